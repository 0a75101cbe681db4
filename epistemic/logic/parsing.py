"""RDF files as triples of texts; whatever can't be read is told in a line, with its place."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph

from epistemic.logic.terms import literal_text

_FORMATS = {
    ".ttl": pyoxigraph.RdfFormat.TURTLE,
    ".nt": pyoxigraph.RdfFormat.N_TRIPLES,
    ".rdf": pyoxigraph.RdfFormat.RDF_XML,
    ".owl": pyoxigraph.RdfFormat.RDF_XML,
    ".xml": pyoxigraph.RdfFormat.RDF_XML,
    ".jsonld": pyoxigraph.RdfFormat.JSON_LD,
    ".n3": pyoxigraph.RdfFormat.N3,
    ".nq": pyoxigraph.RdfFormat.N_QUADS,
    ".trig": pyoxigraph.RdfFormat.TRIG,
}
_LONGEST_TERM = 1 << 24
"""Bytes; the parser's own limit."""


def parse_triples(path: str | Path) -> Iterator[tuple[str, str, str]]:
    """The triples of one RDF file as texts, in file order.

    Blank nodes are numbered as they come, after the digest of what the file holds: two files have
    none in common, and a file read twice has the same.

    Turtle, N-Triples, RDF/XML, JSON-LD, N3, N-Quads and TriG, by extension; `.gz` is unpacked.

    Raises:
      ValueError: an unknown extension, or what can't be read, with file and, where known, line.
      FileNotFoundError: no such file.
    """
    path = Path(path)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in _FORMATS:
        raise ValueError(f"{path}: unknown RDF extension {suffix!r}; known: {', '.join(_FORMATS)}")
    content = _content(path).removeprefix(codecs.BOM_UTF8)
    if _FORMATS[suffix] == pyoxigraph.RdfFormat.RDF_XML:
        _refuse_entity_bombs(path, content)
    blanks: dict[str, str] = {}
    digest = cache(lambda: hashlib.sha256(content).hexdigest()[:8])

    def text(term: Any) -> str:
        if isinstance(term, pyoxigraph.NamedNode):
            return term.value
        if isinstance(term, pyoxigraph.BlankNode):
            return blanks.setdefault(term.value, f"_:{digest()}-{len(blanks)}")
        if isinstance(term, pyoxigraph.Triple):
            raise ValueError("a triple about a triple (RDF-star), which nothing here reads")
        return literal_text(
            term.value, term.language, None if term.language else term.datatype.value
        )

    try:
        for quad in pyoxigraph.parse(content, _FORMATS[suffix], base_iri=path.absolute().as_uri()):
            yield text(quad.subject), quad.predicate.value, text(quad.object)
    except MemoryError:
        limit = f"a term is longer than {_LONGEST_TERM >> 20} MiB"
        lines = content.split(b"\n")
        longest = max(range(len(lines)), key=lambda i: len(lines[i]))
        raise ValueError(f"{path}, line {longest + 1}: {limit}") from None
    except SyntaxError as error:
        at = f", line {error.lineno}" if error.lineno else ""
        why = re.sub(r"^Parser error at line [^:]*: ", "", error.msg)
        if "LoadDocumentCallback" in why:
            why = "its @context lies elsewhere, and nothing is fetched: write it into the file"
        raise ValueError(f"{path}{at}: {why}") from None
    except ValueError as error:
        raise ValueError(f"{place([path], ['<<'])}: {error}") from None


def place(paths: Iterable[str | Path], words: Iterable[str]) -> str:
    """The file and line that hold all of these words, as errors name it; else the files."""
    files, sought = [*map(Path, paths)], [word.encode() for word in words]
    for path in files if sought else ():
        for number, line in enumerate(_content(path).split(b"\n"), start=1):
            if all(word in line for word in sought):
                return f"{path}, line {number}"
    return ", ".join(map(str, files))


def _content(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    try:
        return gzip.decompress(path.read_bytes())
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path}: not a whole gzip file: {error}") from None


_ENTITY = re.compile(rb"<!ENTITY\s+([^\s%\"'<>]+)\s+(?:\"([^\"]*)\"|'([^']*)')")
_REFERENCE = re.compile(rb"&([^\s#;&<]+);")


def _refuse_entity_bombs(path: Path, content: bytes) -> None:
    """XML's entities may name others, and so grow tenfold a level; the parser has no limit.

    Raises:
      ValueError: what they stand for is far longer than the file, or one stands for itself.
    """
    values = {name: double or single for name, double, single in _ENTITY.findall(content)}
    if not values:
        return
    limit = 32 * len(content) + (1 << 20)
    sizes: dict[bytes, int] = {}

    def expanded(text: bytes, within: tuple[bytes, ...]) -> int:
        size = len(text)
        for name in _REFERENCE.findall(text):
            if name in within:
                size = limit
            elif name in values:
                if name not in sizes:
                    sizes[name] = expanded(values[name], (*within, name))
                size += sizes[name]
            if size > limit:
                return limit + 1
        return size

    longest = max(expanded(value, (name,)) for name, value in values.items())
    if max(longest, expanded(content, ())) >= limit:
        raise ValueError(
            f"{place([path], ['<!ENTITY'])}: its entities stand for far more text than the file "
            "has; write them out"
        )

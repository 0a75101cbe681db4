"""A graph as sorted integers: terms become ids once, on the host; everything after is arrays.

A term outside the arrays is text: an IRI bare (`http://...`), a literal as in N-Triples
(`"5"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"Nil"@ar`), a blank node `_:b0`.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph
import rdflib
from rdflib.namespace import RDF, RDFS, XSD

TYPE = str(RDF.type)
LABEL = str(RDFS.label)

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


_INTEGERS = frozenset(
    f"{XSD}{sign}{size}"
    for sign, sizes in {
        "": ("integer", "int", "long", "short", "byte"),
        "unsigned": ("Int", "Long", "Short", "Byte"),
        "nonNegative": ("Integer",),
        "nonPositive": ("Integer",),
        "positive": ("Integer",),
        "negative": ("Integer",),
    }.items()
    for size in sizes
)
_FLOATS = frozenset({str(XSD.double), str(XSD.float)})
_LITERAL = re.compile(
    r'"(?P<lexical>.*)"(?:@(?P<language>[\w-]+)|\^\^<(?P<datatype>[^>]*)>)?', re.S
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.S)
_SPECIALS = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'[\\"\n\r\t]')
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")

# A rank is (kind << _KIND_SHIFT) | place: values compare only within one kind.
_KIND_SHIFT = 28
_NUMBER, _DATE, _NAIVE, _AWARE, _STRING, _BOOLEAN, _YEAR = range(1, 8)


def split_literal(term: str) -> tuple[str, str | None, str | None] | None:
    """(lexical form, language, datatype IRI) of a literal; None for an IRI or a blank node."""
    if not term.startswith('"'):
        return None
    match = _LITERAL.fullmatch(term)
    if match is None:
        raise ValueError(f"not a literal in N-Triples form: {term!r}")
    language, datatype = match["language"], match["datatype"]
    if language is None and datatype is None:
        datatype = str(XSD.string)
    return _unescape(match["lexical"]), language, datatype


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    plain = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}

    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else plain.get(match[3], match[3])

    return _ESCAPE.sub(one, text)


def term_text(term: Any) -> str:
    """The text of an rdflib term."""
    if isinstance(term, rdflib.Literal):
        return _write_literal(str(term), term.language, term.datatype)
    return f"_:{term}" if isinstance(term, rdflib.BNode) else str(term)


def _write_literal(lexical: str, language: str | None, datatype: str | None) -> str:
    """A literal as in N-Triples, on one line; xsd:string goes without saying."""
    if _SPECIAL.search(lexical):
        lexical = _SPECIAL.sub(lambda match: _SPECIALS[match[0]], lexical)
    if language:
        return f'"{lexical}"@{language}'
    if datatype is None or str(datatype) == str(XSD.string):
        return f'"{lexical}"'
    return f'"{lexical}"^^<{datatype}>'


def literal(value: int | float | str | datetime.date) -> str:
    """A Python value as the text of a literal: literal(5) -> `"5"^^<...#integer>`."""
    return term_text(rdflib.Literal(value))


def canonical(term: str) -> str:
    """The term with its literal normalised as rdflib does ("007" as an integer is "7")."""
    if not term.startswith('"') or not term.endswith(">"):
        return term
    lexical, _, datatype = split_literal(term) or ("", None, None)
    if datatype in _INTEGERS and _PLAIN_INTEGER.fullmatch(lexical):
        return term
    if datatype == str(XSD.string):
        return term[: term.rindex("^^")]
    return term_text(rdflib.Literal(lexical, datatype=rdflib.URIRef(datatype or "")))


def value_of(term: str) -> tuple[int, Any]:
    """(kind, comparable Python value) of a literal; kind 0 where nothing compares with it.

    Ill-typed literals, language strings and unknown datatypes have kind 0, as have IRIs.
    """
    parts = split_literal(term)
    if parts is None:
        return 0, None
    lexical, _, datatype = parts
    try:
        if datatype in _INTEGERS:
            return _NUMBER, int(lexical)
        if datatype == str(XSD.decimal):
            return _NUMBER, Decimal(lexical)
        if datatype in _FLOATS:
            number = float(lexical)
            return (_NUMBER, number) if number == number else (0, None)
        if datatype == str(XSD.date):
            return _DATE, datetime.date.fromisoformat(lexical)
        if datatype == str(XSD.dateTime):
            moment = datetime.datetime.fromisoformat(lexical)
            return (_AWARE if moment.tzinfo else _NAIVE), moment
        if datatype == str(XSD.string):
            return _STRING, lexical
        if datatype == str(XSD.boolean):
            return _BOOLEAN, {"true": 1, "1": 1, "false": 0, "0": 0}[lexical]
        if datatype == str(XSD.gYear):
            return _YEAR, int(lexical)
    except (ValueError, KeyError, InvalidOperation):
        return 0, None
    return 0, None


@dataclass(frozen=True, eq=False)
class Graph:
    """Triples over a sorted table of terms.

    Ids follow the order of terms: IRIs, blank nodes, literals that don't compare, then literals
    by value. A group of objects in id order is therefore in order of value too.

    Attributes:
      terms: text of each term; its place is its id.
      triples: i32[triples, 3] of (subject, predicate, object) ids, sorted, without duplicates.
      rank: i32[terms], order-preserving within a kind of literal; 0 where nothing compares.
      language: the language that labels are wanted in.
      values, value_ranks: (kind, value) of the literals that compare, in order, and i32 ranks.
    """

    terms: list[str]
    triples: np.ndarray
    rank: np.ndarray
    language: str = "en"
    values: list[tuple[int, Any]] = field(default_factory=list, repr=False)
    value_ranks: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)

    @classmethod
    def from_triples(cls, triples: Iterable[Sequence[str]], language: str = "en") -> Graph:
        """Build from (subject, predicate, object) texts; duplicates and order don't matter."""
        flat: list[str] = [term for triple in triples for term in triple]
        first_seen: dict[str, int] = {}
        codes = np.fromiter(
            (first_seen.setdefault(term, len(first_seen)) for term in flat), np.int64, len(flat)
        )
        renamed = {term: canonical(term) for term in first_seen}
        return cls.from_codes(
            [renamed[term] for term in first_seen], codes.reshape(-1, 3), language
        )

    @classmethod
    def from_codes(cls, texts: Sequence[str], codes: np.ndarray, language: str = "en") -> Graph:
        """Build from a table of texts in any order and i[triples, 3] places in it."""
        unique = sorted(set(texts))
        values = {text: value_of(text) for text in unique if text.startswith('"')}
        others = [text for text in unique if text not in values]
        others.sort(key=lambda text: text.startswith("_:"))
        loose = [text for text, (kind, _) in values.items() if kind == 0]
        ordered = sorted(
            (text for text, (kind, _) in values.items() if kind), key=lambda text: values[text]
        )
        terms = [*others, *loose, *ordered]
        rank = np.zeros(len(terms), np.int32)
        in_order = [values[text] for text in ordered]
        value_ranks = _ranks(in_order)
        rank[len(terms) - len(ordered) :] = value_ranks
        ids = {text: i for i, text in enumerate(terms)}
        place = np.fromiter((ids[text] for text in texts), np.int32, len(texts))
        triples = place[codes] if len(codes) else np.zeros((0, 3), np.int32)
        graph = cls(terms, sorted_unique(triples), rank, language, in_order, value_ranks)
        graph.__dict__["ids"] = ids
        return graph

    def __len__(self) -> int:
        return len(self.triples)

    @cached_property
    def ids(self) -> dict[str, int]:
        return {term: i for i, term in enumerate(self.terms)}

    @cached_property
    def is_name(self) -> np.ndarray:
        """bool[terms]: IRIs and blank nodes."""
        return np.array([not term.startswith('"') for term in self.terms], bool)

    @cached_property
    def columns(self) -> dict[object, np.ndarray]:
        """Columns over terms that are worth keeping, by what they say; see `allowed_terms`."""
        return {}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the graph's triples as text: equal graphs, equal digests."""
        digest = hashlib.sha256()
        digest.update("\n".join(self.terms).encode())
        digest.update(np.ascontiguousarray(self.triples, "<i4").tobytes())
        return digest.hexdigest()

    @cached_property
    def labels(self) -> list[str]:
        """What a reader calls each term: rdfs:label, else the IRI's last segment, else its text.

        Of several labels the one in the wanted language wins, then one without a language, then
        the first in order of text.
        """
        labels = [_fallback_label(term) for term in self.terms]
        found: dict[int, tuple[int, str]] = {}
        for subject, _, thing in self.triples[self.triples[:, 1] == self.ids.get(LABEL, -1)]:
            lexical, language, _ = split_literal(self.terms[thing]) or (self.terms[thing], None, "")
            preference = 0 if language == self.language else 1 if language is None else 2
            found[subject] = min(found.get(subject, (3, "")), (preference, lexical))
        for subject, (_, lexical) in found.items():
            labels[subject] = lexical
        return labels

    def label(self, term: int) -> str:
        return self.labels[term]

    @cached_property
    def shared_labels(self) -> dict[str, list[int]]:
        """Labels that several subjects bear: such terms must never meet in one card."""
        owners: dict[str, list[int]] = {}
        for subject in np.unique(self.triples[:, 0]):
            owners.setdefault(self.labels[subject], []).append(int(subject))
        return {label: terms for label, terms in sorted(owners.items()) if len(terms) > 1}

    def with_triples(self, triples: np.ndarray) -> Graph:
        """The same table of terms with other triples, i32[M, 3]."""
        graph = replace(self, triples=sorted_unique(triples))
        for name in ("ids", "labels", "is_name", "columns"):
            if name in self.__dict__:
                graph.__dict__[name] = self.__dict__[name]
        return graph

    def without(self, mask: np.ndarray) -> Graph:
        """The graph less the triples where mask, bool[triples], is true."""
        return self.with_triples(self.triples[~mask])

    def rank_of(self, term: str) -> int:
        """The rank of a literal that may not be in the graph: odd where it falls between two."""
        kind, value = value_of(term)
        if kind == 0:
            return 0
        at = bisect_left(self.values, (kind, value))
        if at < len(self.values) and self.values[at] == (kind, value):
            return int(self.value_ranks[at])
        if at and self.values[at - 1][0] == kind:
            return int(self.value_ranks[at - 1]) + 1
        return (kind << _KIND_SHIFT) + 1

    def to_rdflib(self) -> rdflib.Graph:
        """The graph as rdflib's, for pySHACL."""
        graph = rdflib.Graph()
        nodes = [rdflib_term(term) for term in self.terms]
        for s, p, o in self.triples:
            graph.add((nodes[s], nodes[p], nodes[o]))
        return graph


def rdflib_term(term: str) -> rdflib.term.Node:
    """The rdflib term that a text stands for."""
    parts = split_literal(term)
    if parts is not None:
        lexical, language, datatype = parts
        if language is not None:
            return rdflib.Literal(lexical, lang=language)
        plain = datatype == str(XSD.string)
        return rdflib.Literal(lexical, datatype=None if plain else rdflib.URIRef(datatype or ""))
    return rdflib.BNode(term[2:]) if term.startswith("_:") else rdflib.URIRef(term)


def _ranks(values: list[tuple[int, Any]]) -> np.ndarray:
    """Even places from 2 upwards within each kind, equal for equal values."""
    ranks = np.zeros(len(values), np.int32)
    place, before = 0, (0, None)
    for i, (kind, value) in enumerate(values):
        if kind != before[0]:
            place = 2
        elif value != before[1]:
            place += 2
        ranks[i] = (kind << _KIND_SHIFT) + place
        before = (kind, value)
    return ranks


def sorted_unique(triples: np.ndarray) -> np.ndarray:
    """i32[T, 3] rows in order, each once."""
    triples = np.ascontiguousarray(triples, np.int32).reshape(-1, 3)
    if not len(triples):
        return triples
    # One number a triple where that fits 63 bits: far faster to sort than three columns.
    bits = [int(column.max()).bit_length() for column in triples.T]
    if triples.min() >= 0 and sum(bits) <= 63:
        wide = triples.astype(np.int64)
        keys = (wide[:, 0] << (bits[1] + bits[2])) | (wide[:, 1] << bits[2]) | wide[:, 2]
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        found = np.empty((len(keys), 3), np.int32)
        found[:, 0] = keys >> (bits[1] + bits[2])
        found[:, 1] = (keys >> bits[2]) & ((1 << bits[1]) - 1)
        found[:, 2] = keys & ((1 << bits[2]) - 1)
        return found
    order = np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0]))
    triples = triples[order]
    fresh = np.ones(len(triples), bool)
    fresh[1:] = (triples[1:] != triples[:-1]).any(axis=1)
    return triples[fresh]


def _fallback_label(term: str) -> str:
    parts = split_literal(term)
    if parts is not None:
        return parts[0]
    return re.split(r"[#/]", term.rstrip("/#"))[-1].replace("_", " ")


def parse_triples(path: str | Path) -> Iterator[tuple[str, str, str]]:
    """The triples of one RDF file as texts, in file order; blank nodes numbered as they come.

    Turtle, N-Triples, RDF/XML, JSON-LD, N3, N-Quads and TriG, by extension; `.gz` is unpacked.

    Raises:
      ValueError: an unknown extension, or a syntax error with file and line.
      FileNotFoundError: no such file.
    """
    path = Path(path)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in _FORMATS:
        raise ValueError(f"{path}: unknown RDF extension {suffix!r}; known: {', '.join(_FORMATS)}")
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    blanks: dict[str, str] = {}

    def text(term: Any) -> str:
        if isinstance(term, pyoxigraph.NamedNode):
            return term.value
        if isinstance(term, pyoxigraph.BlankNode):
            return blanks.setdefault(term.value, f"_:{path.stem}-{len(blanks)}")
        return _write_literal(
            term.value, term.language, None if term.language else term.datatype.value
        )

    try:
        for quad in pyoxigraph.parse(content, _FORMATS[suffix], base_iri=path.absolute().as_uri()):
            yield text(quad.subject), quad.predicate.value, text(quad.object)
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{path}, line {getattr(error, 'lineno', '?')}: {error}") from None


def read_graph(*paths: str | Path, language: str = "en") -> Graph:
    """One graph out of one or several RDF files; see `parse_triples`."""
    return Graph.from_triples(
        (triple for path in paths for triple in parse_triples(path)), language=language
    )


def neighbourhood(graph: Graph, ids: Sequence[int], hops: int = 1) -> np.ndarray:
    """i32[M, 3] triples within `hops` of any of the ids, less types, labels and hubs' others.

    Types and labels don't count as links, or everything would be two hops from everything.
    """
    triples = graph.triples
    link = ~np.isin(triples[:, 1], [graph.ids.get(TYPE, -1), graph.ids.get(LABEL, -1)])
    reached = np.asarray(ids)
    near = np.zeros(len(triples), bool)
    for _ in range(hops):
        near = link & (np.isin(triples[:, 0], reached) | np.isin(triples[:, 2], reached))
        reached = np.union1d(triples[near][:, [0, 2]], reached)
    return triples[near]

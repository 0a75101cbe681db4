"""Terms as text, and what their literals are worth.

An IRI is bare (`http://...`), a literal is as in N-Triples
(`"5"^^<http://www.w3.org/2001/XMLSchema#integer>`, `"Nil"@ar`), a blank node is `_:b0`.
"""

from __future__ import annotations

import datetime
import logging
import math
import re
from decimal import Decimal, InvalidOperation
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import rdflib
from rdflib.namespace import XSD

# rdflib tells of each ill-typed literal, with a trace; here those are on no scale, and that is all.
logging.getLogger("rdflib.term").setLevel(logging.ERROR)

RANGES: dict[str, tuple[float, float]] = {
    f"{XSD}{name}": (low, high)
    for name, low, high in (
        *((name, -(1 << bits - 1), (1 << bits - 1) - 1)
          for name, bits in (("byte", 8), ("short", 16), ("int", 32), ("long", 64))),
        *((f"unsigned{name}", 0, (1 << bits) - 1)
          for name, bits in (("Byte", 8), ("Short", 16), ("Int", 32), ("Long", 64))),
        ("nonNegativeInteger", 0, math.inf), ("positiveInteger", 1, math.inf),
        ("nonPositiveInteger", -math.inf, 0), ("negativeInteger", -math.inf, -1),
    )
}  # fmt: skip
"""Datatypes of whole numbers -> the least and the greatest."""
_INTEGER = str(XSD.integer)
DECIMAL = str(XSD.decimal)
_MOST_ZEROS = 10_000
INTEGERS = frozenset({_INTEGER, *RANGES})
FLOATS = frozenset({str(XSD.double), str(XSD.float)})
_LITERAL = re.compile(
    r'"(?P<lexical>.*)"(?:@(?P<language>[\w-]+)|\^\^<(?P<datatype>[^>]*)>)?', re.S
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.S)
_SPECIALS = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'[\\"\n\r\t]')
_PLAIN_INTEGER = re.compile(r"0|-?[1-9][0-9]*")


class Scale(IntEnum):
    """What a literal's value compares with: values of its own scale, and nothing else."""

    NONE = 0
    NUMBER = 1
    DATE = 2
    NAIVE_TIME = 3
    AWARE_TIME = 4
    STRING = 5
    BOOLEAN = 6
    YEAR = 7


# A rank is (scale << SCALE_SHIFT) | place.
SCALE_SHIFT = 28


class LiteralParts(NamedTuple):
    """A literal taken apart: its lexical form, its language and the IRI of its datatype."""

    lexical: str
    language: str | None
    datatype: str | None


def split_literal(term: str) -> LiteralParts | None:
    """The parts of a literal; None for an IRI or a blank node.

    Raises:
      ValueError: the text begins as a literal and isn't one.
    """
    if not term.startswith('"'):
        return None
    match = _LITERAL.fullmatch(term)
    if match is None:
        raise ValueError(f"not a literal in N-Triples form: {term!r}")
    language, datatype = match["language"], match["datatype"]
    if language is None and datatype is None:
        datatype = str(XSD.string)
    return LiteralParts(_unescape(match["lexical"]), language, datatype)


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
        return literal_text(str(term), term.language, term.datatype)
    return f"_:{term}" if isinstance(term, rdflib.BNode) else str(term)


def literal_text(lexical: str, language: str | None, datatype: str | None) -> str:
    """A literal as in N-Triples, on one line; the datatype xsd:string is left out."""
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
    """The term with its literal normalised as rdflib does ("007" as an integer is "7"), and its
    language in small letters, as files are read."""
    if not term.startswith('"') or term.endswith('"'):
        return term
    if not term.endswith(">"):
        lexical, mark, language = term.rpartition("@")
        return lexical + mark + language.lower()
    lexical, _, datatype = split_literal(term) or ("", None, None)
    if datatype in INTEGERS and _PLAIN_INTEGER.fullmatch(lexical):
        return term
    if datatype == str(XSD.string):
        return term[: term.rindex("^^")]
    if datatype == DECIMAL and _decimal(lexical) is None:
        return term
    return term_text(rdflib.Literal(lexical, datatype=rdflib.URIRef(datatype or "")))


def _decimal(lexical: str) -> Decimal | None:
    """The number, None where there is none, or one with more digits than anybody wrote: rdflib
    would write the zeros of 1e999999999 out."""
    try:
        number = Decimal(lexical)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) <= _MOST_ZEROS else None


def value_of(term: str) -> tuple[Scale, Any]:
    """(scale, comparable Python value) of a literal; (NONE, None) where nothing compares with it.

    Ill-typed literals, language strings and unknown datatypes are on no scale, nor are IRIs.
    """
    parts = split_literal(term)
    if parts is None:
        return Scale.NONE, None
    lexical, _, datatype = parts
    try:
        if datatype == _INTEGER:
            return Scale.NUMBER, int(lexical)
        if datatype in RANGES:
            low, high = RANGES[datatype]
            whole = int(lexical)
            return (Scale.NUMBER, whole) if low <= whole <= high else (Scale.NONE, None)
        if datatype == DECIMAL:
            decimal = _decimal(lexical)
            return (Scale.NONE if decimal is None else Scale.NUMBER), decimal
        if datatype in FLOATS:
            number = float(lexical)
            return (Scale.NUMBER, number) if number == number else (Scale.NONE, None)
        if datatype == str(XSD.date):
            return Scale.DATE, datetime.date.fromisoformat(lexical)
        if datatype == str(XSD.dateTime):
            moment = datetime.datetime.fromisoformat(lexical)
            return (Scale.AWARE_TIME if moment.tzinfo else Scale.NAIVE_TIME), moment
        if datatype == str(XSD.string):
            return Scale.STRING, lexical
        if datatype == str(XSD.boolean):
            return Scale.BOOLEAN, {"true": 1, "1": 1, "false": 0, "0": 0}[lexical]
        if datatype == str(XSD.gYear):
            return Scale.YEAR, int(lexical)
    except (ValueError, KeyError):
        return Scale.NONE, None
    return Scale.NONE, None


@lru_cache(maxsize=256)
def is_read(datatype: str) -> bool:
    """Whether a datatype is one whose values are compared: one of these is a value of each."""
    examples = (f'"{lexical}"^^<{datatype}>' for lexical in ("1", "-1", "2000-01-01", "true"))
    return any(value_of(example)[0] for example in examples)


def rdflib_term(term: str) -> rdflib.term.Node:
    """The rdflib term that a text stands for."""
    parts = split_literal(term)
    if parts is not None:
        lexical, language, datatype = parts
        if language is not None:
            return rdflib.Literal(lexical, lang=language)
        plain = datatype == str(XSD.string)
        return rdflib.Literal(
            lexical,
            datatype=None if plain else rdflib.URIRef(datatype or ""),
            normalize=datatype != DECIMAL or _decimal(lexical) is not None,
        )
    return rdflib.BNode(term[2:]) if term.startswith("_:") else rdflib.URIRef(term)


def last_segment(iri: str) -> str:
    """What follows the last # or / of an IRI."""
    return re.split(r"[#/]", iri.rstrip("/#"))[-1]


def plain_label(term: str) -> str:
    """What a term without a label is called: a literal's text, or the IRI's last segment."""
    parts = split_literal(term)
    return parts.lexical if parts is not None else last_segment(term).replace("_", " ")

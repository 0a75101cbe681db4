"""Constraints on the form of single values: what they are, how they are spelt, in what language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar

import rdflib
from rdflib.collection import Collection
from rdflib.namespace import SH
from rdflib.term import Node

from epistemic.logic.kinds.base import BadParameter, ValueConstraint, whole_number
from epistemic.logic.terms import split_literal

_LITERAL = str(SH.Literal)
_NODE_KINDS = {
    SH.IRI: {"iri"}, SH.BlankNode: {"blank"}, SH.Literal: {"literal"},
    SH.BlankNodeOrIRI: {"blank", "iri"}, SH.BlankNodeOrLiteral: {"blank", "literal"},
    SH.IRIOrLiteral: {"iri", "literal"},
}  # fmt: skip


class Form(ValueConstraint):
    """What no sentence says and no card breaks: it is kept by claims all the same."""

    card_family = ""
    is_of_numbers = False


class NodeKind(Form):
    """sh:nodeKind: every value is an IRI, a blank node or a literal, or one of two of them."""

    kind = "node_kind"
    parameter = SH.nodeKind

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        return (str(value),) if value in _NODE_KINDS else None

    def allows(self, term: str) -> bool:
        sort = "literal" if term.startswith('"') else "blank" if term.startswith("_:") else "iri"
        return sort in _NODE_KINDS[rdflib.URIRef(self.value[0])]


IS_LITERAL = NodeKind("", (_LITERAL,))
"""The test that a term is a literal, whatever the property."""


class Pattern(Form):
    """sh:pattern: an expression is found in every value; `value` is it and its sh:flags.

    It is Python's, as pySHACL takes it.
    """

    kind = "pattern"
    parameter = SH.pattern

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        flags = str(source.value(part, SH.flags) or "").lower()
        try:
            _expression(str(value), flags)
        except re.error as error:
            raise BadParameter(cls.parameter, value, str(error)) from None
        return str(value), flags

    def allows(self, term: str) -> bool:
        text = _text(term)
        return text is not None and _expression(*self.value).search(text) is not None

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        expression, flags = self.value
        shapes.add((part, SH.pattern, rdflib.Literal(expression)))
        if flags:
            shapes.add((part, SH.flags, rdflib.Literal(flags)))


class _Length(Form):
    """A bound on how many characters every value has."""

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        return (str(whole_number(cls.parameter, value)),)

    @property
    def limit(self) -> int:
        """How many characters."""
        return int(self.value[0])

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        assert self.parameter is not None
        shapes.add((part, self.parameter, rdflib.Literal(self.limit)))


class MinLength(_Length):
    """sh:minLength: no value is shorter than so many characters."""

    kind = "min_length"
    parameter = SH.minLength

    def allows(self, term: str) -> bool:
        text = _text(term)
        return not self.limit or (text is not None and len(text) >= self.limit)


class MaxLength(_Length):
    """sh:maxLength: no value is longer than so many characters."""

    kind = "max_length"
    parameter = SH.maxLength

    def allows(self, term: str) -> bool:
        text = _text(term)
        return text is not None and len(text) <= self.limit


class LanguageIn(Form):
    """sh:languageIn: every value is a text in one of these languages, "de" for "de-AT" too."""

    kind = "language_in"
    parameter: ClassVar[rdflib.URIRef | None] = SH.languageIn

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        return tuple(sorted(str(member).lower() for member in Collection(source, value)))

    def allows(self, term: str) -> bool:
        parts = split_literal(term)
        language = (parts.language or "").lower() if parts is not None else ""
        return any(
            bool(language) and (wanted in ("*", language) or language.startswith(f"{wanted}-"))
            for wanted in self.value
        )

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        members = rdflib.BNode()
        Collection(shapes, members, [rdflib.Literal(language) for language in self.value])
        shapes.add((part, SH.languageIn, members))


def _text(term: str) -> str | None:
    """What a pattern is looked for in: a literal's text or an IRI; None for a blank node."""
    parts = split_literal(term)
    if parts is not None:
        return parts.lexical
    return None if term.startswith("_:") else term


@lru_cache(maxsize=256)
def _expression(pattern: str, flags: str) -> re.Pattern[str]:
    return re.compile(pattern, (re.I if "i" in flags else 0) | (re.M if "m" in flags else 0))

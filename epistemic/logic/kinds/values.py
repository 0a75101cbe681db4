"""Constraints on single values: a datatype, a list of members, bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import rdflib
from rdflib.collection import Collection
from rdflib.namespace import RDF, SH, XSD
from rdflib.term import Node

from epistemic.logic.graph import Graph
from epistemic.logic.kinds.base import Constraint, ValueConstraint, Words
from epistemic.logic.lookup import comparable
from epistemic.logic.terms import (
    DECIMAL,
    FLOATS,
    INTEGERS,
    RANGES,
    canonical,
    is_read,
    rdflib_term,
    split_literal,
    term_text,
    value_of,
)

_LANG_STRING = str(RDF.langString)
_INTEGER = str(XSD.integer)
_PARTS = {
    str(XSD.string): [
        str(XSD[name])
        for name in ("normalizedString", "token", "language", "Name", "NCName", "NMTOKEN")
    ],
    str(XSD.dateTime): [str(XSD.dateTimeStamp)],
}
"""Datatypes all of whose values another has; numbers apart."""
# A list of more values than this isn't read out.
_LONGEST_LIST = 12


class Datatype(ValueConstraint):
    """sh:datatype: every value is a literal of a datatype, in a form that it allows."""

    kind = "datatype"
    parameter: ClassVar[rdflib.URIRef | None] = SH.datatype

    def allows(self, term: str) -> bool:
        parts = split_literal(term)
        if parts is None:
            return False
        if (_LANG_STRING if parts.language else parts.datatype) != self.value[0]:
            return False
        if value_of(term)[0] or (parts.lexical == "NaN" and parts.datatype in FLOATS):
            return True
        # On no scale: either a datatype that we don't read, or a form that its datatype lacks.
        return not is_read(self.value[0])

    def _allowed(self, graph: Graph) -> np.ndarray:
        column = np.zeros(len(graph.terms), bool)
        for i in np.flatnonzero(~graph.is_name).tolist():
            column[i] = self.allows(graph.terms[i])
        return column

    def say(self, words: Words) -> str:
        whole = self.value == (_INTEGER,)
        return f"{words.said.value()} is a whole number." if whole else ""


class ValueSpace(Datatype):
    """rdfs:range, owl:allValuesFrom: every value is one that a datatype has, whichever it is
    written in.

    30 is a non-negative integer as it stands, and 30.0 a whole number; 30.0 as a double is neither,
    for OWL keeps doubles apart.
    """

    kind = "value_space"
    card_kind = "datatype"
    parameter = None

    @property
    def _spellings(self) -> list[str]:
        """The datatypes that can write its values."""
        (name,) = self.value
        if name in INTEGERS or name == DECIMAL:
            return [*sorted(INTEGERS), DECIMAL]
        return [name, *_PARTS.get(name, ())]

    def follows_from(self, rules: Iterable[Constraint]) -> bool:
        narrower = {self.value[0], *_PARTS.get(self.value[0], ())}
        if self.value[0] in (DECIMAL, _INTEGER):
            narrower |= {*INTEGERS}
        return any(
            rule.kind == Datatype.kind
            and rule.value[0] in narrower
            and (rule.classes, rule.nodes) in (((), ()), (self.classes, self.nodes))
            for rule in rules
        )

    def allows(self, term: str) -> bool:
        parts = split_literal(term)
        if parts is None:
            return False
        own = _LANG_STRING if parts.language else parts.datatype
        if own not in self._spellings or not Datatype("", (own,)).allows(term):
            return False
        if self.value[0] not in INTEGERS:
            return True
        low, high = RANGES.get(self.value[0], (-math.inf, math.inf))
        number = value_of(term)[1]
        return bool(number == int(number) and low <= number <= high)

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        ways = []
        for name in self._spellings:
            ways.append(rdflib.BNode())
            shapes.add((ways[-1], SH.datatype, rdflib.URIRef(name)))
            if name == DECIMAL and self.value[0] in INTEGERS:
                shapes.add((ways[-1], SH.pattern, rdflib.Literal(r"^[^.]*(\.0*)?$")))
        members = rdflib.BNode()
        Collection(shapes, members, [*ways])
        shapes.add((part, SH["or"], members))
        limits = RANGES.get(self.value[0], (-math.inf, math.inf))
        for bound, limit in zip((SH.minInclusive, SH.maxInclusive), limits, strict=True):
            if math.isfinite(limit):
                shapes.add((part, bound, rdflib.Literal(limit)))


class In(ValueConstraint):
    """sh:in: every value is one of a list."""

    kind = "in"
    parameter: ClassVar[rdflib.URIRef | None] = SH["in"]
    terms_in_value = True
    is_of_numbers = False

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        return tuple(sorted(map(term_text, Collection(source, value))))

    def allows(self, term: str) -> bool:
        return term in map(canonical, self.value)

    def _allowed(self, graph: Graph) -> np.ndarray:
        allowed = set(map(canonical, self.value))
        return np.array([term in allowed for term in graph.terms], bool)

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        members = rdflib.BNode()
        Collection(shapes, members, [rdflib_term(value) for value in self.value])
        shapes.add((part, SH["in"], members))

    def say(self, words: Words) -> str:
        if len(self.value) > _LONGEST_LIST:
            return ""
        names = sorted(map(words.term, self.value))
        return f"{words.said.value()} is one of these: {', '.join(names)}."


class Bound(ValueConstraint):
    """Every value compares with a bound, on the bound's own scale."""

    said: ClassVar[str]

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        # What is on no scale of ours, such as a duration, pySHACL compares.
        text = term_text(value)
        return (text,) if value_of(canonical(text))[0] else None

    @staticmethod
    def within(value: Any, bound: Any) -> Any:
        """Whether a value, or each of an array of ranks, is on the right side of the bound."""
        raise NotImplementedError

    def allows(self, term: str) -> bool:
        scale, value = value_of(term)
        bound_scale, bound = value_of(canonical(self.value[0]))
        return bool(scale) and scale == bound_scale and bool(self.within(value, bound))

    def _allowed(self, graph: Graph) -> np.ndarray:
        bound = graph.rank_of(canonical(self.value[0]))
        return comparable(graph.rank, bound) & self.within(graph.rank, bound)

    def say(self, words: Words) -> str:
        return f"{words.said.value()} is {self.said.format(words.term(self.value[0]))}."


class MinInclusive(Bound):
    """sh:minInclusive."""

    kind = "min_inclusive"
    parameter = SH.minInclusive
    said = "{} or more"

    @staticmethod
    def within(value: Any, bound: Any) -> Any:
        return value >= bound


class MinExclusive(Bound):
    """sh:minExclusive."""

    kind = "min_exclusive"
    parameter = SH.minExclusive
    said = "more than {}"

    @staticmethod
    def within(value: Any, bound: Any) -> Any:
        return value > bound


class MaxInclusive(Bound):
    """sh:maxInclusive."""

    kind = "max_inclusive"
    parameter = SH.maxInclusive
    said = "{} or less"

    @staticmethod
    def within(value: Any, bound: Any) -> Any:
        return value <= bound


class MaxExclusive(Bound):
    """sh:maxExclusive."""

    kind = "max_exclusive"
    parameter = SH.maxExclusive
    said = "less than {}"

    @staticmethod
    def within(value: Any, bound: Any) -> Any:
        return value < bound

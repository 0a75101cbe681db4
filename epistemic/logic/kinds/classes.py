"""Constraints on classes: what a property's values are, what nothing is both of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import ClassVar

import numpy as np
import rdflib
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, SH

from epistemic.logic.english import article
from epistemic.logic.hierarchy import Hierarchy
from epistemic.logic.kinds.base import Constraint, Words, add_class_shape, add_property
from epistemic.logic.kinds.forms import IS_LITERAL
from epistemic.logic.lookup import Demand
from epistemic.logic.tables import Tables


class ValueClass(Constraint):
    """sh:class: every value is a member of a class, so never a literal.

    Where all members of the class are known, a value that isn't one of them breaks it; elsewhere
    a member of a disjoint class does.
    """

    kind = "class"
    card_family = "class"
    parameter: ClassVar[rdflib.URIRef | None] = SH["class"]
    names_in_value = True

    @property
    def value_class(self) -> str:
        return self.value[0]

    @property
    def class_names(self) -> set[str]:
        return {*self.classes, self.value_class}

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        if self.value_class in tables.hierarchy.complete:
            demands = [(Demand.HAS, self.value_class)]
        else:
            apart = tables.hierarchy.apart_from(self.value_class)
            demands = [(Demand.LACKS, other) for other in apart]
        for demand, name in demands:
            trait = tables.member_trait(name)
            tables.add_row(self.name, self.predicate, demand, target=target, trait=trait)
        literal = tables.value_trait(IS_LITERAL)
        tables.add_row(self.name, self.predicate, Demand.LACKS, target=target, trait=literal)

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        mine = tables.stated(self.predicate)
        # A subject that is its own value joins the classes as a value, too.
        own = mine[:, 0] == mine[:, 2]

        def are(name: str) -> np.ndarray:
            return tables.members(name)[mine[:, 2]] | (own & (name in joined))

        if self.value_class in tables.hierarchy.complete:
            return ~are(self.value_class)
        broken = tables.allowed(IS_LITERAL)[mine[:, 2]]
        for other in tables.hierarchy.apart_from(self.value_class):
            broken |= are(other)
        return broken

    def barred(self, tables: Tables, joined: frozenset[str]) -> Iterable[tuple[str, np.ndarray]]:
        yield from super().barred(tables, joined)
        apart = joined & set(tables.hierarchy.apart_from(self.value_class))
        if apart and self.value_class not in tables.hierarchy.complete:
            mine = tables.stated(self.predicate)
            seen = tables.focus(self.classes, self.nodes)[mine[:, 0]]
            values = tables.column(mine[seen, 2])
            for name in apart:
                yield self.kind, values & ~tables.members(name)

    def write(self, shapes: rdflib.Graph, hierarchy: Hierarchy) -> None:
        if self.value_class in hierarchy.complete:
            super().write(shapes, hierarchy)
            return
        node = self._write_targets(shapes)
        part = add_property(shapes, node, self._write_path(shapes))
        shapes.add((part, SH.nodeKind, SH.BlankNodeOrIRI))
        for other in hierarchy.apart_from(self.value_class):
            part = add_property(shapes, node, self._write_path(shapes))
            shapes.add((part, SH["not"], add_class_shape(shapes, other)))

    def say(self, words: Words) -> str:
        name = words.class_(self.value_class)
        only, apart = words.said.only(name), words.apart(self.value_class)
        if not apart:
            return f"{only}."
        others = " or ".join(f"{article(other)} {other}" for other in apart)
        return f"{only}, and no {name} is {others}."

    def also_said(self, rules: Iterable[Constraint]) -> list[str]:
        return [
            rule.name
            for rule in rules
            if any(self.value_class in pair for pair in rule.disjoint_pairs)
        ]


class Disjoint(Constraint):
    """owl:disjointWith, owl:AllDisjointClasses: nothing is a member of both classes.

    `predicate` is the first class in order of text, `value` the other.
    """

    kind = "disjoint"
    names_in_value = True

    @classmethod
    def of(cls, one: str, other: str) -> Disjoint:
        """Keep two classes apart, in whatever order they are given."""
        first, second = sorted((one, other))
        return cls(first, (second,))

    @property
    def class_names(self) -> set[str]:
        return {*self.classes, self.predicate, *self.value}

    @property
    def disjoint_pairs(self) -> list[tuple[str, str]]:
        return [(self.predicate, self.value[0])]

    @classmethod
    def read_axioms(cls, source: rdflib.Graph) -> Iterator[Constraint]:
        pairs = [*source.subject_objects(OWL.disjointWith)]
        for axiom in source.subjects(RDF.type, OWL.AllDisjointClasses):
            for group in source.objects(axiom, OWL.members):
                pairs += permutations(Collection(source, group), 2)
        for one, other in pairs:
            yield cls.of(str(one), str(other))

    def compile(self, tables: Tables) -> None:
        """Nothing: no claim about a property breaks it, see `barred`."""

    def barred(self, tables: Tables, joined: frozenset[str]) -> Iterable[tuple[str, np.ndarray]]:
        for one, other in permutations((self.predicate, self.value[0])):
            if one in joined:
                yield self.kind, ~tables.members(one) & (tables.members(other) | (other in joined))

    def write(self, shapes: rdflib.Graph, hierarchy: Hierarchy) -> None:
        node = rdflib.BNode()
        shapes.add((node, RDF.type, SH.NodeShape))
        shapes.add((node, SH.targetClass, rdflib.URIRef(self.predicate)))
        shapes.add((node, SH["not"], add_class_shape(shapes, self.value[0])))

"""Constraints on a property's pairs: how many, which way round, which not at all, in what order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import ClassVar

import numpy as np
import rdflib
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, SH
from rdflib.term import Node

from epistemic.logic.kinds.base import Constraint, Words, whole_number
from epistemic.logic.lookup import Demand, comparable
from epistemic.logic.tables import Tables
from epistemic.logic.terms import canonical, rdflib_term, term_text

_NOBODYS = rdflib.URIRef("urn:nobody-has-this")


class MaxCount(Constraint):
    """sh:maxCount, owl:FunctionalProperty: a subject has at most so many values."""

    kind = "max_count"
    card_kind = "functional"
    parameter = SH.maxCount
    axiom = OWL.FunctionalProperty
    axiom_value = ("1",)

    @property
    def limit(self) -> int:
        return int(self.value[0])

    @property
    def allows_one_value(self) -> bool:
        return self.value == ("1",)

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        limit = whole_number(cls.parameter, value)
        return (str(limit),) if limit else None

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        relation = tables.ids[self.predicate]
        tables.add_row(
            self.name, self.predicate, Demand.FEWER,
            target=target, limit=self.limit, relation=relation,
        )  # fmt: skip

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        subjects = tables.stated(self.predicate)[:, 0]
        return np.bincount(subjects, minlength=tables.terms)[subjects] > self.limit

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        shapes.add((part, SH.maxCount, rdflib.Literal(self.limit)))

    def say(self, words: Words) -> str:
        several = "one" if self.allows_one_value else self.value[0]
        return words.said.at_most(several)


class InverseFunctional(Constraint):
    """owl:InverseFunctionalProperty: a value has at most one subject."""

    kind = "inverse_functional"
    axiom = OWL.InverseFunctionalProperty
    allows_one_subject = True

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        label = tables.graph.label(tables.ids[self.predicate])
        pairs = tables.stated(self.predicate)[:, [2, 0]]
        reverse = tables.relation(f"inverse of {label}", pairs)
        tables.add_row(
            self.name, self.predicate, Demand.FEWER, swap=1, limit=1, relation=reverse
        )  # fmt: skip

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        values = tables.stated(self.predicate)[:, 2]
        return np.bincount(values, minlength=tables.terms)[values] > 1

    def _write_everyone(self, shapes: rdflib.Graph, node: rdflib.BNode) -> None:
        super()._write_everyone(shapes, node)
        shapes.add((node, SH.targetObjectsOf, rdflib.URIRef(self.predicate)))

    def _write_path(self, shapes: rdflib.Graph) -> rdflib.term.Node:
        return _inverse_path(shapes, self.predicate)

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        shapes.add((part, SH.maxCount, rdflib.Literal(1)))

    def say(self, words: Words) -> str:
        return words.said.one_subject()


class Asymmetric(Constraint):
    """owl:AsymmetricProperty: never both ways round, nor from a thing to itself."""

    kind = "asymmetric"
    card_family = "asymmetric"
    axiom = OWL.AsymmetricProperty

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        p = self.predicate
        tables.add_row(self.name, p, Demand.ABSENT, swap=1, relation=tables.ids[p])
        tables.add_row(self.name, p, Demand.OTHER)
        if (p, True) in tables.synonyms(p):
            # Symmetric as well: whatever it says contradicts itself; all have trait 0.
            tables.add_row(self.name, p, Demand.LACKS, trait=0)

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        mine = tables.stated(self.predicate).astype(np.int64)
        forwards = mine[:, 0] * tables.terms + mine[:, 2]
        backwards = mine[:, 2] * tables.terms + mine[:, 0]
        return np.isin(forwards, backwards)

    def _write_path(self, shapes: rdflib.Graph) -> rdflib.term.Node:
        return _inverse_path(shapes, self.predicate)

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        shapes.add((part, SH.disjoint, rdflib.URIRef(self.predicate)))

    def say(self, words: Words) -> str:
        return words.said.one_way()


class Irreflexive(Constraint):
    """owl:IrreflexiveProperty: nothing has itself as its value."""

    kind = "irreflexive"
    card_family = "irreflexive"
    axiom = OWL.IrreflexiveProperty

    def follows_from(self, rules: Iterable[Constraint]) -> bool:
        return any(isinstance(rule, Asymmetric) for rule in rules)

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        tables.add_row(self.name, self.predicate, Demand.OTHER)

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        mine = tables.stated(self.predicate)
        return mine[:, 0] == mine[:, 2]

    def _write_path(self, shapes: rdflib.Graph) -> rdflib.term.Node:
        # The node itself, and nothing else: zero or one step along a property that nobody has.
        path = rdflib.BNode()
        shapes.add((path, SH.zeroOrOnePath, _NOBODYS))
        return path

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        shapes.add((part, SH.disjoint, rdflib.URIRef(self.predicate)))

    def say(self, words: Words) -> str:
        return words.said.not_itself()


class LessThan(Constraint):
    """sh:lessThan: every value is less than every value of another property."""

    kind = "less_than"
    card_family = "less_than"
    parameter = SH.lessThan
    names_in_value = True

    @property
    def greater(self) -> str:
        return self.value[0]

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        tables.add_row(
            self.name, self.predicate, Demand.BELOW,
            target=target, relation=tables.ids[self.greater],
        )  # fmt: skip
        # A value that is not less than what stands already breaks nothing new.
        relation = tables.ids[self.predicate]
        if broken.any():
            sound = tables.stated(self.predicate)[~broken]
            relation = tables.relation(tables.graph.label(relation), sound[:, [0, 2]])
        tables.add_row(self.name, self.greater, Demand.ABOVE, target=target, relation=relation)

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        lower, upper = tables.stated(self.predicate), tables.stated(self.greater)
        if not len(upper):
            return np.zeros(len(lower), bool)
        rank = tables.graph.rank
        subjects, first = np.unique(upper[:, 0], return_index=True)
        least = np.minimum.reduceat(rank[upper[:, 2]], first)
        greatest = np.maximum.reduceat(rank[upper[:, 2]], first)
        at = np.minimum(np.searchsorted(subjects, lower[:, 0]), len(subjects) - 1)
        mine, least, greatest = rank[lower[:, 2]], least[at], greatest[at]
        compares = comparable(mine, least) & comparable(mine, greatest)
        return (subjects[at] == lower[:, 0]) & ~(compares & (mine < least))

    def say(self, words: Words) -> str:
        return f"{words.said.value()} is less than {words.other(self.greater).its_value()}."


class PropertyDisjoint(Constraint):
    """sh:disjoint, owl:propertyDisjointWith: no subject has a value of both properties."""

    kind = "property_disjoint"
    excludes_others = True
    parameter: ClassVar[rdflib.URIRef | None] = SH.disjoint
    names_in_value = True

    @classmethod
    def read_axioms(cls, source: rdflib.Graph) -> Iterator[Constraint]:
        pairs = [*source.subject_objects(OWL.propertyDisjointWith)]
        for group in source.subjects(RDF.type, OWL.AllDisjointProperties):
            for members in source.objects(group, OWL.members):
                pairs += combinations(Collection(source, members), 2)
        for one, other in pairs:
            first, second = sorted((str(one), str(other)))
            yield cls(first, (second,))

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        mine, theirs = self.predicate, self.value[0]
        for claimed, other in dict.fromkeys(((mine, theirs), (theirs, mine))):
            tables.add_row(
                self.name, claimed, Demand.ABSENT, target=target, relation=tables.ids[other]
            )
            if (other, False) in tables.synonyms(claimed):
                # Whatever the one says the other says as well; all have trait 0.
                tables.add_row(self.name, claimed, Demand.LACKS, target=target, trait=0)
            if (other, True) in tables.synonyms(claimed):
                tables.add_row(self.name, claimed, Demand.OTHER, target=target)

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        mine, theirs = tables.stated(self.predicate), tables.stated(self.value[0])
        pairs = mine[:, 0].astype(np.int64) * tables.terms + mine[:, 2]
        return np.isin(pairs, theirs[:, 0].astype(np.int64) * tables.terms + theirs[:, 2])

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        shapes.add((part, SH.disjoint, rdflib.URIRef(self.value[0])))


class Negative(Constraint):
    """owl:NegativePropertyAssertion: one triple that doesn't hold."""

    kind = "negative"
    card_kind = "negated"
    terms_in_value = True

    @classmethod
    def read_axioms(cls, source: rdflib.Graph) -> Iterator[Constraint]:
        for assertion in source.subjects(RDF.type, OWL.NegativePropertyAssertion):
            subject = source.value(assertion, OWL.sourceIndividual)
            predicate = source.value(assertion, OWL.assertionProperty)
            thing = source.value(assertion, OWL.targetIndividual)
            thing = thing or source.value(assertion, OWL.targetValue)
            if subject is None or predicate is None or thing is None:
                raise ValueError(
                    f"negative assertion {assertion}: it needs owl:sourceIndividual, "
                    "owl:assertionProperty and owl:targetIndividual or owl:targetValue"
                )
            yield cls(term_text(predicate), (term_text(subject), term_text(thing)))

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        subject, thing = self.value
        tables.deny(subject, self.predicate, canonical(thing))

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        mine = tables.stated(self.predicate)
        subject, thing = (tables.ids[term] for term in (self.value[0], canonical(self.value[1])))
        return (mine[:, 0] == subject) & (mine[:, 2] == thing)

    def _write_everyone(self, shapes: rdflib.Graph, node: rdflib.BNode) -> None:
        shapes.add((node, SH.targetNode, rdflib_term(self.value[0])))

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        denied, members = rdflib.BNode(), rdflib.BNode()
        Collection(shapes, members, [rdflib_term(self.value[1])])
        shapes.add((part, SH["not"], denied))
        shapes.add((denied, SH["in"], members))


def _inverse_path(shapes: rdflib.Graph, predicate: str) -> rdflib.BNode:
    path = rdflib.BNode()
    shapes.add((path, SH.inversePath, rdflib.URIRef(predicate)))
    return path

"""What can be asked of a graph: for each predicate, the families of cards that it can give.

A family's cards say the same sorts of things whatever their label (`epistemic.decks.layouts`);
which families there are follows from the constraints, from what the domain's sentences put into
words and from what other predicates the same subjects have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from epistemic.decks.layouts import LAYOUTS, Layout
from epistemic.domain import Domain
from epistemic.logic.constraints import inverse_name, symmetric_name
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.kinds import Constraint, ValueConstraint
from epistemic.logic.oracle import Oracle
from epistemic.predicates import Predicate

OF_OBJECTS = ("inverse_functional", "negated_of")
"""Families whose cards are about objects, to which one subject belongs."""

_FLIPPED = ("functional", "inverse_functional", "negated", "negated_of", "asymmetric")
_VALUE_KINDS = (
    "datatype",
    "in",
    "min_inclusive",
    "min_exclusive",
    "max_inclusive",
    "max_exclusive",
)
# With fewer subjects than this in common, two predicates can't share a card.
_SHARED_SUBJECTS = 5


class BySubject:
    """Triples i32[T, 3] in order of subject, to be drawn from by subject."""

    def __init__(self, triples: np.ndarray):
        self.triples = triples
        self.subjects, self._start, self._count = np.unique(
            triples[:, 0], return_index=True, return_counts=True
        )

    def __len__(self) -> int:
        return len(self.triples)

    def value_of(self, subjects: np.ndarray, draws: Draws) -> tuple[np.ndarray, np.ndarray]:
        """A random value of each subject, and whether it has any."""
        if not len(self.subjects):
            return np.zeros(len(subjects), np.int32), np.zeros(len(subjects), bool)
        at = np.clip(np.searchsorted(self.subjects, subjects), 0, len(self.subjects) - 1)
        row = self._start[at] + draws.below(self._count[at], len(subjects))
        return self.triples[row, 2], self.subjects[at] == subjects


class Relation(NamedTuple):
    """What a sort of slot draws from: the predicate that its facts state, and triples."""

    predicate: int
    there: BySubject


Rule = tuple[str, tuple[str, ...]]
"""A sentence and the names of the constraints that it puts into words."""


@dataclass
class Cell:
    """One predicate in one family: cards of each label, alike in all but the answer.

    Attributes:
      predicate: what is claimed.
      family: names its layouts.
      sort: the kind of contradiction; cards are spread evenly over sorts.
      relations: sort of slot -> what it draws from.
      rules: those that stand in its cards.
      flips: the predicate that says the card's own facts the other way round, or -1.
      claimed: the class that is claimed, or -1.
      matched: "claim" where claimed numbers must be as long for every label, "all" where those in
        facts must too; else "".
      requires: what settles the gold, "card" or "graph".
    """

    predicate: Predicate
    family: str
    sort: str
    relations: dict[str, Relation]
    rules: tuple[Rule, ...]
    flips: int = -1
    claimed: int = -1
    matched: str = ""
    requires: str = "card"
    pools: dict[tuple[str, bool], np.ndarray] = field(default_factory=dict)

    @property
    def layouts(self) -> dict[str, Layout]:
        return LAYOUTS[self.family]

    @property
    def name(self) -> str:
        """The family of its cards, such as "mouth/functional"."""
        kind = self.sort if self.family == "value" else self.family
        said = "_inferred" if self.sort == "inferred" else ""
        return f"{self.predicate.name}/{kind}{said}"

    @property
    def axioms(self) -> tuple[str, ...]:
        return tuple(name for _, names in self.rules for name in names)


class Families:
    """The families of a domain.

    Args:
      domain: the graph, whole.
      deck: the graph that systems may know.
      seed: of the draws.
    """

    def __init__(self, domain: Domain, deck: Graph, seed: int):
        self.domain, self.deck = domain, deck
        self.constraints = domain.constraints
        self.draws = Draws(seed)
        self.whole = domain.oracle
        self.known = Oracle(deck, domain.constraints)
        self.ids = domain.graph.ids
        self.spoken = _by_subject(self.known)
        self.truth = _by_subject(self.whole)
        self._length = np.full(len(domain.graph.terms), -1)

    def relation(self, iri: str) -> Relation:
        """All triples that systems may know of a predicate, stated or inferred."""
        number = self.ids.get(iri, -1)
        return Relation(number, self.spoken.get(number, NOTHING))

    def predicates(self, wanted: Sequence[str] | None) -> list[Predicate]:
        """The predicates of these names, or all; being of a class is the last of them.

        Raises:
          ValueError: there is no such predicate; says which there are, with their triples.
        """
        there = {**self.domain.predicates}
        there.setdefault("type", self.domain.type)
        for name in wanted or ():
            if name not in there:
                said = ", ".join(
                    f"{n} ({len(self.truth.get(self.ids.get(p.iri, -1), NOTHING)):,})"
                    for n, p in there.items()
                )
                raise ValueError(
                    f"No triples found for predicate {name!r} in {self.domain.name}; "
                    f"there are: {said}"
                )
        return [there[name] for name in (wanted or there)]

    def cells_of(self, predicate: Predicate) -> list[Cell]:
        """Every family that the graph and its constraints allow for a predicate.

        Families that a graph feeds least come first, before others take their claims.
        """
        if predicate.iri == TYPE:
            return self._class_cells()
        if not len(self.relation(predicate.iri).there):
            return []
        kinds = {rule.kind: rule for rule in self.constraints.of(predicate.iri)}
        functional, inverse = self.counted(predicate)
        families: list[Cell | None] = []
        if "irreflexive" in kinds and "asymmetric" not in kinds:
            families.append(self._cell(predicate, "irreflexive"))
        if "asymmetric" in kinds:
            families.append(self._cell(predicate, "asymmetric"))
        if not inverse:
            # In these, somebody else has what is claimed of a subject.
            if "less_than" in kinds:
                families.append(self._less_than(predicate, kinds["less_than"]))
            families += [
                self._value(predicate, kinds[kind]) for kind in _VALUE_KINDS if kind in kinds
            ]
            if "class" in kinds:
                families.append(self._cell(predicate, "class"))
        if functional and not inverse:
            families.append(self._cell(predicate, "functional"))
        if inverse and not functional:
            families.append(self._cell(predicate, "inverse_functional"))
            families.append(self._cell(predicate, "negated_of"))
        elif (functional or predicate.complete) and not inverse:
            families.append(self._cell(predicate, "negated"))
        cells = [cell for cell in families if cell is not None]
        flips = self._flips(predicate)
        if flips >= 0:
            cells += [
                replace(cell, sort="inferred", flips=flips, pools={})
                for cell in cells
                if cell.family in _FLIPPED
            ]
        return cells

    def graph_cells(self, predicate: Predicate) -> list[Cell]:
        """Cards that only the graph settles."""
        if predicate.iri == TYPE or self.counted(predicate) != (True, False):
            return []
        cell = self._cell(predicate, "graph")
        return [] if cell is None else [replace(cell, requires="graph", pools={})]

    def counted(self, predicate: Predicate) -> tuple[bool, bool]:
        """Whether a subject has one value, and whether a value has one subject."""
        kinds = {rule.kind for rule in self.constraints.of(predicate.iri)}
        return self.constraints.functional(predicate.iri), "inverse_functional" in kinds

    def _flips(self, predicate: Predicate) -> int:
        """The predicate by which the other way round says the same, where rules say so; or -1."""
        said = {name for _, names in predicate.rules for name in names}
        for iri, swapped in self.constraints.synonyms(predicate.iri):
            ways = {inverse_name(predicate.iri, iri), inverse_name(iri, predicate.iri)}
            if iri == predicate.iri:
                ways = {symmetric_name(iri)}
            if swapped and iri in self.domain.by_iri and said & ways:
                return self.ids[iri]
        return -1

    def _cell(self, predicate: Predicate, family: str) -> Cell | None:
        """The cell, or nothing where the domain has no predicate to set beside."""
        relations = {"+": self.relation(predicate.iri), "?": self.relation(predicate.iri)}
        if any(slot[0] == "q" for slot in LAYOUTS[family]["E"]):
            ours = relations["+"].there
            subjects = ours.subjects
            if family in OF_OBJECTS:
                subjects = np.unique(ours.triples[:, 2])
            beside = self._beside(predicate, family, subjects)
            if beside is None:
                return None
            relations["q"] = self.relation(beside.iri)
        return Cell(predicate, family, family, relations, _usual_rules(predicate))

    def _beside(
        self, predicate: Predicate, family: str, subjects: np.ndarray, *barred: str
    ) -> Predicate | None:
        """Another predicate that these subjects have, drawn from those that most of them have."""
        same = {iri for iri, _ in self.constraints.synonyms(predicate.iri)}
        ours = self._marked(subjects)
        shared = {
            other.name: int(ours[self.relation(other.iri).there.subjects].sum())
            for other in self.domain.predicates.values()
            if other.iri not in same
            and other.iri not in barred
            and (family != "class" or self._classes_differ(predicate, other))
        }
        most = max(shared.values(), default=0)
        if most < min(_SHARED_SUBJECTS, len(subjects) // 4 + 1):
            return None
        candidates = [name for name, count in shared.items() if 2 * count >= most]
        name = candidates[int(self.draws.below(len(candidates), 1)[0])]
        return self.domain.predicates[name]

    def _less_than(self, predicate: Predicate, rule: Constraint) -> Cell | None:
        subjects = self.relation(predicate.iri).there.subjects
        beside = self._beside(predicate, "less_than", subjects, rule.value[0])
        if beside is None or rule.value[0] not in self.domain.by_iri:
            return None
        relations = {
            "+": self.relation(predicate.iri),
            "q": self.relation(beside.iri),
            "g": self.relation(rule.value[0]),
        }
        rules = _usual_rules(predicate)
        return Cell(predicate, "less_than", "less_than", relations, rules, matched="claim")

    def _value(self, predicate: Predicate, rule: ValueConstraint) -> Cell | None:
        """Claims of values that a rule forbids: another predicate's, as long as allowed ones."""
        spoken = [entry for entry in predicate.rules if entry[1][0] == rule.name]
        if not spoken:
            return None
        forbidden = ~rule.allowed(self.domain.graph)
        mine = self.relation(predicate.iri)
        lengths = np.unique(self.lengths(mine.there.triples[:, 2]))
        usual = self._marked(mine.there.triples[:, 2])
        everyone = self._marked(self.truth[mine.predicate].subjects)
        compared = {predicate.iri} | {
            iri
            for other in self.constraints.rules
            if other.kind == "less_than"
            for iri in (other.predicate, *other.value)
        }
        is_number = rule.kind != "in"
        best, most = None, (False, 0)
        for other in self.domain.predicates.values():
            if other.iri in compared:
                continue
            theirs = self.relation(other.iri)
            rows = theirs.there.triples
            # Values of the same sort: some of them are values here too.
            alike = bool(usual[rows[:, 2]].any())
            if rule.kind == "in" and not alike:
                continue
            rows = rows[forbidden[rows[:, 2]] & everyone[rows[:, 0]]]
            if is_number:
                # A name where a number belongs would be told by its form.
                rows = rows[self.domain.graph.rank[rows[:, 2]] > 0]
                rows = rows[np.isin(self.lengths(rows[:, 2]), lengths)]
            if len(rows) >= _SHARED_SUBJECTS and (alike, len(rows)) > most:
                best, most = Relation(theirs.predicate, BySubject(rows)), (alike, len(rows))
        if best is None:
            return None
        relations = {"+": mine, "q": best}
        rules = (*_usual_rules(predicate), *spoken)
        return Cell(
            predicate, "value", rule.kind, relations, rules, matched="all" if is_number else ""
        )

    def lengths(self, terms: np.ndarray) -> np.ndarray:
        """How long a sentence's numbers are; a sign makes another length."""
        unread = terms[self._length[terms] < 0]
        if len(unread):
            names = self.domain.names(unread)
            self._length[unread] = [2 * len(said) + said.startswith("-") for said in names]
        return self._length[terms]

    def _marked(self, terms: np.ndarray) -> np.ndarray:
        """bool[terms]: the terms that are among these."""
        column = np.zeros(len(self.domain.graph.terms), bool)
        column[terms] = True
        return column

    def _class_cells(self) -> list[Cell]:
        """Claims that something is of a class, for each class that can be left unsaid of things
        which another predicate speaks of."""
        cells = []
        stated = self.relation(TYPE)
        types = stated.there.triples
        below = {child for child, _ in self.constraints.subclass}
        for name, apart in sorted(self.constraints.hierarchy.apart.items()):
            if not apart or name not in self.ids:
                continue
            claimed = self.ids[name]
            others = [self.ids[other] for other in sorted(apart - below) if other in self.ids]
            relations = {
                "k": Relation(stated.predicate, BySubject(types[types[:, 2] == claimed])),
                "d": Relation(stated.predicate, BySubject(types[np.isin(types[:, 2], others)])),
            }
            beside = self._speaks_of(claimed)
            if beside is None or not all(len(relation.there) for relation in relations.values()):
                continue
            relations["q"] = beside
            rules = self.domain.type.rules
            cell = Cell(self.domain.type, "disjoint", "disjoint", relations, rules, claimed=claimed)
            narrower = [
                self.ids[child]
                for child, supers in self.constraints.hierarchy.above.items()
                if name in supers and child != name and child in self.ids
            ]
            low = BySubject(types[np.isin(types[:, 2], narrower)])
            if len(low):
                narrow = {**relations, "k": Relation(stated.predicate, low)}
                cells.append(replace(cell, relations=narrow, sort="inferred", pools={}))
            cells.append(cell)
        return cells

    def _speaks_of(self, claimed: int) -> Relation | None:
        """A predicate with members of the class as its values, some of them untyped here."""
        types = self.truth[self.ids[TYPE]].triples
        members = self._marked(types[types[:, 2] == claimed, 0])
        known = self._marked(self.relation(TYPE).there.subjects)
        candidates = []
        for other in self.domain.predicates.values():
            relation = self.relation(other.iri)
            values = self._marked(relation.there.triples[:, 2]) & members
            if values.sum() >= _SHARED_SUBJECTS and (values & ~known).any():
                candidates.append(relation)
        return candidates[int(self.draws.below(len(candidates), 1)[0])] if candidates else None

    def _classes_differ(self, one: Predicate, other: Predicate) -> bool:
        first, second = self.class_of(one), self.class_of(other)
        apart = self.constraints.hierarchy.apart
        return first is not None and second in apart.get(first, frozenset())

    def class_of(self, predicate: Predicate) -> str | None:
        """The class that a predicate's values must have."""
        return next(
            (r.value[0] for r in self.constraints.of(predicate.iri) if r.kind == "class"), None
        )


NOTHING = BySubject(np.zeros((0, 3), np.int32))


def _usual_rules(predicate: Predicate) -> tuple[Rule, ...]:
    """The rules that stand in a predicate's cards; those on single values only in their own."""
    return tuple(rule for rule in predicate.rules if rule[1][0].split("(")[0] not in _VALUE_KINDS)


def _by_subject(oracle: Oracle) -> dict[int, BySubject]:
    """All that a graph says, stated or inferred, by predicate."""
    return {number: BySubject(rows) for number, rows in oracle.compiled.by_predicate.items()}


def among(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """bool[n]: whether each key is one of those known, which are in order."""
    places = np.searchsorted(known, keys)
    found = places < len(known)
    found[found] = known[places[found]] == keys[found]
    return found

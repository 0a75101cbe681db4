"""What cards are drawn from: a domain's graph, whole, and what systems may know of it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from epistemic.domain import Domain
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.oracle import Oracle
from epistemic.predicates import Predicate


class Values(NamedTuple):
    """A value drawn for each of some terms.

    Attributes:
      terms: i32[n]; arbitrary where there is none.
      there: bool[n], whether there is one.
    """

    terms: np.ndarray
    there: np.ndarray


class BySubject:
    """Triples i32[T, 3] in order of subject, to be drawn from by subject."""

    def __init__(self, triples: np.ndarray):
        self.triples = triples
        self.subjects, self._start, self._count = np.unique(
            triples[:, 0], return_index=True, return_counts=True
        )

    def __len__(self) -> int:
        return len(self.triples)

    def value_of(self, subjects: np.ndarray, draws: Draws) -> Values:
        """A random value of each subject."""
        if not len(self.subjects):
            return Values(np.zeros(len(subjects), np.int32), np.zeros(len(subjects), bool))
        at = np.clip(np.searchsorted(self.subjects, subjects), 0, len(self.subjects) - 1)
        row = self._start[at] + draws.below(self._count[at], len(subjects))
        return Values(self.triples[row, 2], self.subjects[at] == subjects)

    def swapped(self) -> BySubject:
        """The triples the other way round, to be drawn from by value."""
        turned = self.triples[:, ::-1]
        return BySubject(turned[np.argsort(turned[:, 0], kind="stable")])


NOTHING = BySubject(np.zeros((0, 3), np.int32))


class Relation(NamedTuple):
    """What a sort of slot draws from: the predicate that its facts state, and triples."""

    predicate: int
    there: BySubject


class Counted(NamedTuple):
    """Whether a subject has one value of a predicate, and whether a value has one subject."""

    functional: bool
    inverse: bool


@dataclass(frozen=True, eq=False)
class Sources:
    """What cards are drawn from; all graphs share one table of terms.

    Attributes:
      domain: the graph, whole, with its constraints and words.
      graph: what systems may know of it.
      known: the oracle of that graph.
      spoken: predicate -> the triples that systems may know of it, stated or inferred.
      truth: predicate -> all its triples, stated or inferred.

    Triples of blank nodes are left out: no sentence can name them.
    """

    domain: Domain
    graph: Graph
    known: Oracle
    spoken: dict[int, BySubject]
    truth: dict[int, BySubject]

    @classmethod
    def of(cls, domain: Domain, graph: Graph) -> Sources:
        """Of a domain and the graph that systems may know."""
        known = Oracle(graph, domain.constraints)
        return cls(domain, graph, known, _by_subject(known), _by_subject(domain.oracle))

    @property
    def ids(self) -> dict[str, int]:
        """Term -> its number."""
        return self.domain.graph.ids

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

    def counted(self, predicate: Predicate) -> Counted:
        """How many values and subjects a predicate allows."""
        constraints, iri = self.domain.constraints, predicate.iri
        return Counted(constraints.functional(iri), constraints.inverse_functional(iri))

    def class_of(self, predicate: Predicate) -> str | None:
        """The class that a predicate's values must have."""
        rules = self.domain.constraints.of_all(predicate.iri)
        return next((rule.value_class for rule in rules if rule.value_class), None)

    def marked(self, terms: np.ndarray) -> np.ndarray:
        """bool[terms]: the terms that are among these."""
        column = np.zeros(len(self.domain.graph.terms), bool)
        column[terms] = True
        return column

    @cached_property
    def lengths(self) -> np.ndarray:
        """i64[terms]: how long a sentence's name of a term is; a sign makes another length."""
        said = self.domain.names(np.arange(len(self.domain.graph.terms))).tolist()
        return np.array([2 * len(name) + name.startswith("-") for name in said], np.int64)

    @cached_property
    def readers_names(self) -> np.ndarray:
        """i32[terms]: terms of one name, which are one for a reader, have one number."""
        names = list(map(str.casefold, self.domain.graph.labels))
        places = dict(zip(names, range(len(names)), strict=True))
        return np.fromiter(map(places.__getitem__, names), np.int32, len(names))

    @cached_property
    def violators(self) -> np.ndarray:
        """i32[V]: subjects that break a constraint in the whole graph, in order."""
        subjects = {s for broken in self.domain.oracle.violations for s in broken.subjects}
        return np.array(sorted(self.ids[subject] for subject in subjects), np.int32)

    @cached_property
    def classes(self) -> np.ndarray:
        """i32[C]: the classes that something is stated or inferred to be of, in order."""
        return np.unique(self.truth.get(self.ids[TYPE], NOTHING).triples[:, 2])


def among(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """bool[n]: whether each key is one of those known, which are in order."""
    places = np.searchsorted(known, keys)
    inside = places < len(known)
    inside[inside] = known[places[inside]] == keys[inside]
    return inside


def _by_subject(oracle: Oracle) -> dict[int, BySubject]:
    """All that a graph says of what has a name, stated or inferred, by predicate."""
    graph = oracle.graph
    names = int(graph.is_name.sum())
    # Blank nodes stand after all IRIs.
    first = bisect_left(graph.terms, True, hi=names, key=lambda term: term.startswith("_:"))

    def named(rows: np.ndarray) -> np.ndarray:
        ends = rows[:, [0, 2]]
        return rows[((ends < first) | (ends >= names)).all(axis=1)]

    return {n: BySubject(named(rows)) for n, rows in oracle.compiled.by_predicate.items()}

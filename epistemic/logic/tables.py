"""Tables: the workspace in which constraints lay out what they demand, see `compilation`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.hierarchy import Hierarchy
from epistemic.logic.lookup import Demand, Row, Rows, lay_out_rows, no_row, padded

Synonyms = Callable[[str], list[tuple[str, bool]]]
"""Property -> every (property, swapped) that says the same; see `Constraints.synonyms`."""


class ValueTest(Protocol):
    """What a constraint asks of a single value; see `epistemic.logic.kinds.values`."""

    @property
    def test(self) -> tuple[str, tuple[str, ...]]:
        """Names the test: its kind and its value."""

    def allows(self, term: str) -> bool:
        """Whether a term, as text, is allowed."""

    def allowed(self, graph: Graph) -> np.ndarray:
        """bool[terms]: the graph's terms that are allowed."""


@dataclass(frozen=True)
class Violation:
    """A constraint that the graph itself breaks, and how often: its subjects are left out."""

    constraint: str
    subjects: tuple[str, ...]


@dataclass(frozen=True)
class CardsSay:
    """What is said beside the graph where the graph is made of cards, see `epistemic.logic.alone`.

    Attributes:
      denied: i32[M, 3] of triples said not to hold, beside the constraints' own negatives.
      allowed: test of single values -> bool[terms], which terms it allows.
      claimed: classes that claims of type are about.
      room: groups and places that there is room for at least, so that sizes don't vary.
    """

    denied: np.ndarray
    allowed: Callable[[ValueTest], np.ndarray]
    claimed: frozenset[str]
    room: int


class _Traits:
    """Columns of bits over terms, numbered as they are asked for."""

    def __init__(self, terms: int):
        self.columns: list[np.ndarray] = [np.ones(terms, bool)]
        self.numbers: dict[object, int] = {"everything": 0}

    def number(self, name: object, column: np.ndarray) -> int:
        if name not in self.numbers:
            self.numbers[name] = len(self.columns)
            self.columns.append(column)
        return self.numbers[name]

    def words(self, capacity: int) -> np.ndarray:
        """u32[capacity, W]: 32 traits a word."""
        words = np.zeros((capacity, -(-len(self.columns) // 32)), np.uint32)
        words[:, 0] = 1
        for i, column in enumerate(self.columns):
            words[: len(column), i >> 5] |= column.astype(np.uint32) << np.uint32(i & 31)
        return words


class Tables:
    """What a graph says as arrays, and the rows, traits and relations made from it; one use.

    Args:
      graph: its table of terms holds all that the constraints name.
      closed: i32[T, 3], all that the graph says, stated or inferred.
      hierarchy: of its classes.
      synonyms: which properties say the same.
      spare: room for terms in claims that the graph has never heard of.
      cards: where the graph is made of cards.

    Attributes:
      terms: how many terms the graph has.
      capacity: how many the arrays have room for; numbers from here up are pseudo-predicates.
      by_predicate: predicate -> i32[M, 3] of `closed`, in order.
      pseudo: pseudo-predicate -> "not P" and the like.
      names: of constraints, by number.
      value_traits: trait -> the test that gives it to a literal.
      violations: what the graph itself breaks.
    """

    def __init__(
        self,
        graph: Graph,
        closed: np.ndarray,
        hierarchy: Hierarchy,
        synonyms: Synonyms,
        spare: int,
        cards: CardsSay | None = None,
    ):
        self.graph, self.ids, self.closed = graph, graph.ids, closed
        self.hierarchy, self.synonyms, self.cards = hierarchy, synonyms, cards
        self.terms = len(graph.terms)
        self.capacity = padded(self.terms + spare)
        self.by_predicate = _grouped(closed)
        self.pseudo: dict[int, str] = {}
        self.names: list[str] = []
        self.value_traits: dict[int, ValueTest] = {}
        self.violations: list[Violation] = []
        self._members: dict[str, np.ndarray] = {}
        self._allowed: dict[object, np.ndarray] = {}
        self._denied: list[tuple[int, int, int]] = []
        self._relations: list[np.ndarray] = []
        self._traits = _Traits(self.terms)
        self._shelves: dict[int, list[Row[int]]] = {}

    # What the graph says.

    def stated(self, predicate: str) -> np.ndarray:
        """i32[M, 3]: the triples of a predicate, stated or inferred."""
        return self.by_predicate.get(self.ids.get(predicate, -1), self.closed[:0])

    def members(self, name: str) -> np.ndarray:
        """bool[terms]: the instances of a class."""
        if name not in self._members:
            types = self.stated(TYPE)
            members = types[types[:, 2] == self.ids.get(name, -1), 0]
            self._members[name] = self.column(members)
        return self._members[name]

    def focus(self, classes: tuple[str, ...], nodes: tuple[str, ...]) -> np.ndarray:
        """bool[terms]: the subjects that a constraint with these targets looks at."""
        if not (classes or nodes):
            return np.ones(self.terms, bool)
        column = self.column(np.array([self.ids[node] for node in nodes], int))
        for name in classes:
            column |= self.members(name)
        return column

    def allowed(self, test: ValueTest) -> np.ndarray:
        """bool[terms]: the terms that pass a test of single values."""
        if test.test not in self._allowed:
            self._allowed[test.test] = (
                self.cards.allowed(test) if self.cards else test.allowed(self.graph)
            )
        return self._allowed[test.test]

    def column(self, terms: np.ndarray) -> np.ndarray:
        """bool[terms]: those among i[n]."""
        column = np.zeros(self.terms, bool)
        column[terms] = True
        return column

    # What constraints make of it.

    def trait(self, name: object, column: np.ndarray) -> int:
        """The number of a trait, bool[terms]; a name always stands for the same column."""
        return self._traits.number(name, column)

    def target(self, classes: tuple[str, ...], nodes: tuple[str, ...]) -> int:
        """The trait of the subjects that a constraint with these targets looks at."""
        if not (classes or nodes):
            return 0
        return self.trait((classes, nodes), self.focus(classes, nodes))

    def value_trait(self, test: ValueTest) -> int:
        """The trait of what passes a test of single values."""
        trait = self.trait(test.test, self.allowed(test))
        self.value_traits[trait] = test
        return trait

    def member_trait(self, name: str) -> int:
        """The trait of a class's members."""
        return self.trait(("member", name), self.members(name))

    def relation(self, name: str, pairs: np.ndarray) -> int:
        """A pseudo-predicate with these (subject, object) pairs, i32[M, 2]."""
        number = self.capacity + len(self.pseudo)
        self.pseudo[number] = name
        fresh = np.full((len(pairs), 3), number, np.int32)
        fresh[:, [0, 2]] = pairs
        self._relations.append(fresh)
        return number

    def add_row(self, name: str, predicate: str, demand: Demand, **fields: int) -> None:
        """File a row under a predicate, and swapped or not under all that say the same.

        Args:
          name: of the constraint.
          predicate: whose claims it looks at.
          demand: what it demands of them.
          **fields: those of `Row` that it needs.
        """
        if name not in self.names:
            self.names.append(name)
        row = no_row(self.capacity)._replace(demand=demand, name=self.names.index(name), **fields)
        for other, flipped in self.synonyms(predicate):
            if other in self.ids:
                shelf = self._shelves.setdefault(self.ids[other], [])
                shelf.append(row._replace(swap=row.swap ^ flipped))

    def bar_from_class(self, name: str, constraint: str, barred: np.ndarray) -> None:
        """File a row under a class: the terms in bool[terms] can't become members.

        Args:
          name: IRI of the class.
          constraint: what the row is called.
          barred: the terms.
        """
        trait = self.trait(("barred", name, constraint), barred)
        row = no_row(self.capacity)._replace(
            demand=Demand.LACKS, swap=1, trait=trait, name=len(self.names)
        )
        self.names.append(constraint)
        self._shelves.setdefault(self.ids[name], []).append(row)

    def deny(self, subject: str, predicate: str, thing: str) -> None:
        """Note a triple, as texts, that may not hold; see `add_denied`."""
        self._denied.append((self.ids[subject], self.ids[predicate], self.ids[thing]))

    def add_denied(self, constraint_name: Callable[[str], str]) -> None:
        """File a row for each predicate with denied triples, the constraints' and the cards'.

        Args:
          constraint_name: IRI of a predicate -> what its row is called.
        """
        denied = np.array(self._denied, np.int32).reshape(-1, 3)
        if self.cards is not None:
            denied = np.concatenate([denied, self.cards.denied])
        for p in np.unique(denied[:, 1]):
            predicate = self.graph.terms[p]
            pairs = denied[denied[:, 1] == p][:, [0, 2]]
            relation = self.relation(f"not {self.graph.label(int(p))}", pairs)
            self.add_row(constraint_name(predicate), predicate, Demand.ABSENT, relation=relation)

    def report(self, constraint: str, subjects: np.ndarray) -> None:
        """Note that these subjects, i32[n], break a constraint already."""
        if len(subjects) and self.cards is None:
            texts = tuple(self.graph.terms[s] for s in np.unique(subjects))
            self.violations.append(Violation(constraint, texts))

    # What comes out.

    def triples(self) -> np.ndarray:
        """i32[M, 3]: all that the graph says and all pairs of pseudo-predicates, in no order."""
        return np.concatenate([self.closed, *self._relations])

    def trait_words(self) -> np.ndarray:
        """u32[capacity, W]: the traits of each term, 32 a word."""
        return self._traits.words(self.capacity)

    def rows(self) -> Rows:
        """The device's rows."""
        return lay_out_rows(self._shelves, self.capacity, self.ids.get(TYPE, self.capacity))


def _grouped(triples: np.ndarray) -> dict[int, np.ndarray]:
    """i32[T, 3] in order, by predicate: rows of one are asked for again and again."""
    grouped = triples[np.argsort(triples[:, 1], kind="stable")]
    numbers, starts = np.unique(grouped[:, 1], return_index=True)
    parts = np.split(grouped, starts[1:]) if len(grouped) else []
    return dict(zip(numbers.tolist(), parts, strict=True))

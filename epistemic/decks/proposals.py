"""Proposals: cards as integers that a layout allows, not yet known to be right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from epistemic.decks.families import OF_OBJECTS, Cell
from epistemic.decks.layouts import LAYOUTS
from epistemic.decks.sources import BySubject, Sources, Values, among
from epistemic.logic.alone import CardArrays
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE

# What else is stated is drawn by its value here, elsewhere by its subject.
_BY_VALUE = ("value", "disjoint")
_MOST_FACTS = max(len(slots) for layouts in LAYOUTS.values() for slots in layouts.values())


class Chosen(NamedTuple):
    """Names of roles that aren't left to the layout.

    Attributes:
      roles: role -> i32[n].
      there: bool[n], whether a card has them all.
      holders: where a chosen name is what a fact's subject has: by value, who has it.
    """

    roles: Mapping[str, np.ndarray]
    there: np.ndarray
    holders: BySubject | None = None


Choose = Callable[[Cell, str, int, Draws], Chosen]
"""Names for roles of a cell's cards of one label; how many cards; where draws come from."""


def choose_nothing(cell: Cell, label: str, size: int, draws: Draws) -> Chosen:
    """Every role is left to the layout."""
    return Chosen({}, np.ones(size, bool))


class _Bound(NamedTuple):
    """What each role stands for: role -> i32[n]; and bool[n], whether a card has them all."""

    roles: dict[str, np.ndarray]
    whole: np.ndarray


@dataclass(frozen=True, eq=False)
class Proposer:
    """Proposes cards.

    Attributes:
      sources: what they are drawn from.
      draws: of their names.
      choose: what isn't left to the layout.
    """

    sources: Sources
    draws: Draws
    choose: Choose = choose_nothing
    # By cell, sort of slot and whether it must stay unknown: made when first asked for.
    _pools: dict[tuple[Cell, str, bool], np.ndarray] = field(default_factory=dict)

    def propose(self, cell: Cell, label: str, size: int) -> CardArrays:
        """Draw what each role stands for and lay the facts out.

        Returns:
          at most `size` cards: those with a gap, or with one name twice, are left out.
        """
        bound = self._bound(cell, label, size)
        if bound is None:
            return _blank(0)
        roles, whole = bound
        names = np.stack([self.sources.readers_names[column] for column in roles.values()])
        names.sort(axis=0)
        whole &= (names[1:] != names[:-1]).all(axis=0)
        return self._laid_out(cell, label, roles, size).at(np.flatnonzero(whole))

    def _bound(self, cell: Cell, label: str, size: int) -> _Bound | None:
        """What each role stands for, in the order of the layout's slots; None: there is nothing
        to draw from."""
        chosen = self.choose(cell, label, size, self.draws)
        roles: dict[str, np.ndarray] = {}
        whole = chosen.there.copy()
        for what, s, o in cell.layouts[label]:
            if what in "-t":
                continue
            unknown = _is_unknown(cell, label, s, o)
            if s not in roles and s in chosen.roles:
                roles[s] = chosen.roles[s]
            elif s not in roles and what == "q" and cell.family not in _BY_VALUE:
                roles[s], there = self._somebody(cell, unknown, size)
                whole &= there
            if s in roles:
                roles[o], there = cell.relations[what].there.value_of(roles[s], self.draws)
                whole &= there
            elif o in chosen.roles and chosen.holders is not None:
                roles[o] = chosen.roles[o]
                roles[s], there = self._holder(cell, chosen.holders, roles[o])
                whole &= there
            else:
                rows = self._pool(cell, what, unknown)
                if not len(rows):
                    return None
                drawn = rows[self.draws.below(len(rows), size)]
                roles[s], roles[o] = drawn[:, 0], drawn[:, 2]
        spare = [slot for slot in cell.layouts[label] if slot[0] == "-" and "w" in slot[1:]]
        if spare:
            mine = cell.relations["+"].there.triples
            column = 2 if spare[0][2] == "w" else 0
            roles["w"] = mine[self.draws.below(len(mine), size), column]
        roles.pop("z", None)
        return _Bound(roles, whole)

    def _laid_out(
        self, cell: Cell, label: str, roles: Mapping[str, np.ndarray], size: int
    ) -> CardArrays:
        """The layout's facts and the claim, of what the roles stand for."""
        facts, holds, claims = _blank(size)
        claimed = cell.relations["+" if "+" in cell.relations else "k"].predicate
        shown = [slot for slot in cell.layouts[label] if slot[0] != "?"]
        for k, (what, s, o) in enumerate(shown):
            holds[:, k] = -1 if what == "-" else 1
            if what == "t":
                facts[:, k, 0] = roles[o]
                facts[:, k, 1:] = self.sources.ids[TYPE], self._class(cell, label, o)
                continue
            predicate = claimed if what == "-" else cell.relations[what].predicate
            facts[:, k, 0], facts[:, k, 1], facts[:, k, 2] = roles[s], predicate, roles[o]
        claims[:, 0], claims[:, 1] = roles["s"], claimed
        claims[:, 2] = cell.claimed if cell.claimed >= 0 else roles.get("o", roles["s"])
        return CardArrays(facts, holds, claims)

    def _holder(self, cell: Cell, holders: BySubject, values: np.ndarray) -> Values:
        """A random subject of each value; one that systems may know of, or there is none."""
        who, held = holders.value_of(values, self.draws)
        size = len(self.sources.domain.graph.terms)
        known = self.sources.spoken[cell.relations["+"].predicate].triples.astype(np.int64)
        there = among(known[:, 0] * size + known[:, 2], who * np.int64(size) + values)
        return Values(who, held & there)

    def _somebody(self, cell: Cell, unknown: bool, size: int) -> Values:
        """Subjects (or, where those are asked for, objects) of the predicate, as often as it has
        them, for slots that state something else of them: all are known as well, for every label.
        """
        key = (cell, "somebody", unknown)
        if key not in self._pools:
            self._pools[key] = _everybody(self.sources, cell, unknown)
        pool = self._pools[key]
        if not len(pool):
            return Values(np.zeros(size, np.int32), np.zeros(size, bool))
        return Values(pool[self.draws.below(len(pool), size)], np.ones(size, bool))

    def _pool(self, cell: Cell, what: str, unknown: bool) -> np.ndarray:
        """i32[M, 3]: the triples that a slot with two fresh roles is drawn from."""
        key = (cell, what, unknown)
        if key not in self._pools:
            self._pools[key] = _triples_for(self.sources, cell, what, unknown)
        return self._pools[key]

    def _class(self, cell: Cell, label: str, role: str) -> int:
        """For 'Paris is a city': in a contradictory card the claimed object is of the other
        predicate's class."""
        other = (role == "x") != (label == "C")
        terms = self.sources.domain.graph.terms
        beside = self.sources.domain.by_iri[terms[cell.relations["q"].predicate]]
        name = self.sources.class_of(beside if other else cell.predicate)
        assert name is not None
        return self.sources.ids[name]


def _blank(size: int) -> CardArrays:
    """Cards that say nothing yet."""
    return CardArrays(
        np.full((size, _MOST_FACTS, 3), -1, np.int32),
        np.zeros((size, _MOST_FACTS), np.int8),
        np.zeros((size, 3), np.int32),
    )


def _is_unknown(cell: Cell, label: str, s: str, o: str) -> bool:
    """Whether a slot speaks of what a card asks about and, by design, doesn't tell."""
    asked = o if cell.family == "disjoint" else s
    return label == "U" and asked == ("o" if cell.family in OF_OBJECTS else "s")


def _everybody(sources: Sources, cell: Cell, unknown: bool) -> np.ndarray:
    """i32[M]: whom something else may be stated of, see `Proposer._somebody`."""
    column = 2 if cell.family in OF_OBJECTS else 0
    relation = cell.relations["+"]
    everyone = sources.truth[relation.predicate].triples[:, column]
    functional, inverse = sources.counted(cell.predicate)
    if unknown and (inverse if cell.family in OF_OBJECTS else functional):
        everyone = everyone[~np.isin(everyone, relation.there.triples[:, column])]
    return everyone


def _triples_for(sources: Sources, cell: Cell, what: str, unknown: bool) -> np.ndarray:
    """i32[M, 3]: the triples for a sort of slot."""
    rows = cell.relations[what].there.triples
    if what not in "qg":
        return rows
    if cell.family == "disjoint":
        # Every value once, however many subjects have it.
        rows = rows[np.unique(rows[:, 2], return_index=True)[1]]
        members = np.isin(rows[:, 2], sources.relation(TYPE).there.subjects)
        return rows[~members] if unknown else rows
    # Whoever stands in for a subject of the predicate must be able to be one.
    mine = cell.relations["+"]
    rows = rows[np.isin(rows[:, 0], sources.truth[mine.predicate].subjects)]
    if unknown and sources.counted(cell.predicate).functional:
        rows = rows[~np.isin(rows[:, 0], mine.there.subjects)]
    return rows

"""What can be asked of a graph: for each predicate, the families of cards that it can give.

A family's cards say the same sorts of things whatever their label (`epistemic.decks.layouts`);
which families there are follows from the constraints, from what the domain's sentences put into
words and from what other predicates the same subjects have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from epistemic.decks.layouts import LAYOUTS, Layout
from epistemic.decks.sources import NOTHING, BySubject, Relation, Sources
from epistemic.logic.constraints import inverse_name, symmetric_name
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE
from epistemic.logic.kinds import KINDS, Constraint
from epistemic.predicates import Predicate, Rule

OF_OBJECTS = ("inverse_functional", "negated_of")
"""Families whose cards are about objects, to which one subject belongs."""

_FLIPPED = ("functional", "inverse_functional", "negated", "negated_of", "asymmetric")
# With fewer subjects than this in common, two predicates can't share a card.
_SHARED_SUBJECTS = 5


@dataclass(frozen=True, eq=False)
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
    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...]
    flips: int = -1
    claimed: int = -1
    matched: Literal["", "claim", "all"] = ""
    requires: Literal["card", "graph"] = "card"

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
        return tuple(name for rule in self.rules for name in rule.constraints)


def cells_of(sources: Sources, predicate: Predicate, draws: Draws) -> list[Cell]:
    """Every family that the graph and its constraints allow for a predicate.

    Families that a graph feeds least come first, before others take their claims.
    """
    if predicate.iri == TYPE:
        return _class_cells(sources, draws)
    if not len(sources.relation(predicate.iri).there):
        return []
    functional, inverse = sources.counted(predicate)
    families: list[Cell | None] = []
    for rule in _rules_to_break(sources, predicate):
        family = _FAMILIES[rule.card_family]
        if not (inverse and family.shares_values):
            families.append(family.cell(sources, predicate, rule, draws))
    if functional and not inverse:
        families.append(_cell(sources, predicate, "functional", draws))
    if inverse and not functional:
        families.append(_cell(sources, predicate, "inverse_functional", draws))
        families.append(_cell(sources, predicate, "negated_of", draws))
    elif (functional or predicate.complete) and not inverse:
        families.append(_cell(sources, predicate, "negated", draws))
    cells = [cell for cell in families if cell is not None]
    flips = _flips(sources, predicate)
    if flips >= 0:
        cells += [
            replace(cell, sort="inferred", flips=flips) for cell in cells if cell.family in _FLIPPED
        ]
    return cells


def _rules_to_break(sources: Sources, predicate: Predicate) -> list[Constraint]:
    """The constraints on a predicate that have a family of cards, one of each kind."""
    rules = sources.domain.constraints.of_all(predicate.iri)
    of_kind = {rule.kind: rule for rule in rules if rule.card_family}
    in_order = [of_kind[kind] for kind in KINDS if kind in of_kind]
    return [rule for rule in in_order if not rule.follows_from(rules)]


def graph_cells(sources: Sources, predicate: Predicate, draws: Draws) -> list[Cell]:
    """Cards that only the graph settles."""
    if predicate.iri == TYPE or sources.counted(predicate) != (True, False):
        return []
    cell = _cell(sources, predicate, "graph", draws)
    return [] if cell is None else [replace(cell, requires="graph")]


def _flips(sources: Sources, predicate: Predicate) -> int:
    """The predicate by which the other way round says the same, where rules say so; or -1."""
    said = {name for rule in predicate.rules for name in rule.constraints}
    for iri, swapped in sources.domain.constraints.synonyms(predicate.iri):
        ways = {inverse_name(predicate.iri, iri), inverse_name(iri, predicate.iri)}
        if iri == predicate.iri:
            ways = {symmetric_name(iri)}
        if swapped and iri in sources.domain.by_iri and said & ways:
            return sources.ids[iri]
    return -1


def _cell(sources: Sources, predicate: Predicate, family: str, draws: Draws) -> Cell | None:
    """The cell, or nothing where the domain has no predicate to set beside."""
    relations = {"+": sources.relation(predicate.iri), "?": sources.relation(predicate.iri)}
    if any(slot[0] == "q" for slot in LAYOUTS[family]["E"]):
        ours = relations["+"].there
        subjects = ours.subjects
        if family in OF_OBJECTS:
            subjects = np.unique(ours.triples[:, 2])
        beside = _beside(sources, predicate, family, subjects, draws)
        if beside is None:
            return None
        relations["q"] = sources.relation(beside.iri)
    return Cell(predicate, family, family, relations, _usual_rules(predicate))


def _beside(
    sources: Sources,
    predicate: Predicate,
    family: str,
    subjects: np.ndarray,
    draws: Draws,
    barred: str | None = None,
) -> Predicate | None:
    """Another predicate that these subjects have, drawn from those that most of them have."""
    same = {iri for iri, _ in sources.domain.constraints.synonyms(predicate.iri)}
    ours = sources.marked(subjects)
    shared = {
        other.name: int(ours[sources.relation(other.iri).there.subjects].sum())
        for other in sources.domain.predicates.values()
        if other.iri not in same
        and other.iri != barred
        and (family != "class" or _classes_differ(sources, predicate, other))
    }
    most = max(shared.values(), default=0)
    if most < min(_SHARED_SUBJECTS, len(subjects) // 4 + 1):
        return None
    candidates = [name for name, count in shared.items() if 2 * count >= most]
    name = candidates[int(draws.below(len(candidates), 1)[0])]
    return sources.domain.predicates[name]


def _plain(sources: Sources, predicate: Predicate, rule: Constraint, draws: Draws) -> Cell | None:
    """Claims that break a rule, of the predicate's own pairs."""
    return _cell(sources, predicate, rule.card_family, draws)


def _less_than(
    sources: Sources, predicate: Predicate, rule: Constraint, draws: Draws
) -> Cell | None:
    """Claims of numbers that are not less than another of the subject's."""
    subjects = sources.relation(predicate.iri).there.subjects
    beside = _beside(sources, predicate, "less_than", subjects, draws, barred=rule.greater)
    if beside is None or rule.greater is None or rule.greater not in sources.domain.by_iri:
        return None
    relations = {
        "+": sources.relation(predicate.iri),
        "q": sources.relation(beside.iri),
        "g": sources.relation(rule.greater),
    }
    rules = _usual_rules(predicate)
    return Cell(predicate, "less_than", "less_than", relations, rules, matched="claim")


def _value(sources: Sources, predicate: Predicate, rule: Constraint, draws: Draws) -> Cell | None:
    """Claims of values that a rule forbids: another predicate's, as long as allowed ones."""
    spoken = [said for said in predicate.rules if said.constraints[0] == rule.name]
    if not spoken:
        return None
    forbidden = ~rule.allowed(sources.domain.graph)
    mine = sources.relation(predicate.iri)
    lengths = np.unique(sources.lengths[mine.there.triples[:, 2]])
    usual = sources.marked(mine.there.triples[:, 2])
    everyone = sources.marked(sources.truth[mine.predicate].subjects)
    compared = {predicate.iri} | {
        iri
        for other in sources.domain.constraints.rules
        if other.greater is not None
        for iri in (other.predicate, other.greater)
    }
    best, most = None, (False, 0)
    for other in sources.domain.predicates.values():
        if other.iri in compared:
            continue
        theirs = sources.relation(other.iri)
        rows = theirs.there.triples
        # Values of the same sort: some of them are values here too.
        alike = bool(usual[rows[:, 2]].any())
        if not (alike or rule.is_of_numbers):
            continue
        rows = rows[forbidden[rows[:, 2]] & everyone[rows[:, 0]]]
        if rule.is_of_numbers:
            # A name where a number belongs would be told by its form.
            rows = rows[sources.domain.graph.rank[rows[:, 2]] > 0]
            rows = rows[np.isin(sources.lengths[rows[:, 2]], lengths)]
        if len(rows) >= _SHARED_SUBJECTS and (alike, len(rows)) > most:
            best, most = Relation(theirs.predicate, BySubject(rows)), (alike, len(rows))
    if best is None:
        return None
    relations = {"+": mine, "q": best}
    rules = (*_usual_rules(predicate), *spoken)
    matched: Literal["", "all"] = "all" if rule.is_of_numbers else ""
    return Cell(predicate, "value", rule.kind, relations, rules, matched=matched)


class _Family(NamedTuple):
    """How the cell of a constraint is made.

    Attributes:
      cell: makes it.
      shares_values: whether somebody else has what is claimed of a subject.
    """

    cell: Callable[[Sources, Predicate, Constraint, Draws], Cell | None]
    shares_values: bool


_FAMILIES = {
    "irreflexive": _Family(_plain, shares_values=False),
    "asymmetric": _Family(_plain, shares_values=False),
    "less_than": _Family(_less_than, shares_values=True),
    "value": _Family(_value, shares_values=True),
    "class": _Family(_plain, shares_values=True),
}


def _class_cells(sources: Sources, draws: Draws) -> list[Cell]:
    """Claims that something is of a class, for each class that can be left unsaid of things
    which another predicate speaks of."""
    cells = []
    stated = sources.relation(TYPE)
    types = stated.there.triples
    below = {child for child, _ in sources.domain.constraints.subclass}
    for name, apart in sorted(sources.domain.constraints.hierarchy.apart.items()):
        if not apart or name not in sources.ids:
            continue
        claimed = sources.ids[name]
        others = [sources.ids[other] for other in sorted(apart - below) if other in sources.ids]
        relations = {
            "k": Relation(stated.predicate, BySubject(types[types[:, 2] == claimed])),
            "d": Relation(stated.predicate, BySubject(types[np.isin(types[:, 2], others)])),
        }
        beside = _speaks_of(sources, claimed, draws)
        if beside is None or not all(len(relation.there) for relation in relations.values()):
            continue
        relations["q"] = beside
        rules = sources.domain.type.rules
        cell = Cell(sources.domain.type, "disjoint", "disjoint", relations, rules, claimed=claimed)
        narrower = [
            sources.ids[child]
            for child, supers in sources.domain.constraints.hierarchy.above.items()
            if name in supers and child != name and child in sources.ids
        ]
        low = BySubject(types[np.isin(types[:, 2], narrower)])
        if len(low):
            narrow = {**relations, "k": Relation(stated.predicate, low)}
            cells.append(replace(cell, relations=narrow, sort="inferred"))
        cells.append(cell)
    return cells


def _speaks_of(sources: Sources, claimed: int, draws: Draws) -> Relation | None:
    """A predicate with members of the class as its values, some of them untyped here."""
    types = sources.truth.get(sources.ids[TYPE], NOTHING).triples
    members = sources.marked(types[types[:, 2] == claimed, 0])
    known = sources.marked(sources.relation(TYPE).there.subjects)
    candidates = []
    for other in sources.domain.predicates.values():
        relation = sources.relation(other.iri)
        values = sources.marked(relation.there.triples[:, 2]) & members
        if values.sum() >= _SHARED_SUBJECTS and (values & ~known).any():
            candidates.append(relation)
    return candidates[int(draws.below(len(candidates), 1)[0])] if candidates else None


def _classes_differ(sources: Sources, one: Predicate, other: Predicate) -> bool:
    first, second = sources.class_of(one), sources.class_of(other)
    apart = sources.domain.constraints.hierarchy.apart
    return first is not None and second in apart.get(first, frozenset())


def _usual_rules(predicate: Predicate) -> tuple[Rule, ...]:
    """The rules that stand in a predicate's cards; those on single values only in their own."""
    return tuple(rule for rule in predicate.rules if rule.in_every_card)

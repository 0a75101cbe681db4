"""Compilation: a graph and its constraints into the arrays that `epistemic.logic.lookup` reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from rdflib.namespace import RDF

from epistemic.logic.constraints import BOUNDS, Constraint, Constraints
from epistemic.logic.graph import (
    TYPE,
    Graph,
    canonical,
    sorted_unique,
    split_literal,
    value_of,
)
from epistemic.logic.lookup import Index, Kind, Rows, file, lay_out, padded

_LANG_STRING = str(RDF.langString)


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
        words = np.zeros((capacity, -(-len(self.columns) // 32)), np.uint32)
        words[:, 0] = 1
        for i, column in enumerate(self.columns):
            words[: len(column), i >> 5] |= column.astype(np.uint32) << np.uint32(i & 31)
        return words


@dataclass(frozen=True)
class Violation:
    """A constraint that the graph itself breaks, and how often: its subjects are left out."""

    constraint: str
    subjects: tuple[str, ...]


class Compiled(NamedTuple):
    """What `compile_oracle` makes: device arrays and what the host needs to speak of them."""

    lookup: Index
    rows: Rows
    triples: np.ndarray  # i32[places, 3]: what each place says; pseudo-predicates included
    by_predicate: dict[int, np.ndarray]  # i32[M, 3] each, in order: the same without those
    pseudo: dict[int, str]  # pseudo-predicate -> "not P" and the like
    names: list[str]  # of constraints, by number
    value_traits: dict[int, Constraint]  # trait -> the demand on a literal
    violations: list[Violation]


def _closed(graph: Graph, constraints: Constraints) -> np.ndarray:
    """All that the graph says: stated, by symmetry, by inverses, by subclasses. i32[T, 3]."""
    triples, ids, is_name = graph.triples, graph.ids, graph.is_name
    parts = [triples]
    mentioned = {*constraints.symmetric, *(p for pair in constraints.inverse for p in pair)}
    for p in sorted(mentioned & ids.keys()):
        rows = triples[triples[:, 1] == ids[p]]
        for q, swapped in constraints.sayings(p)[1:]:
            if q not in ids:
                continue
            fresh = rows[is_name[rows[:, 2]]][:, [2, 1, 0]] if swapped else rows.copy()
            fresh[:, 1] = ids[q]
            parts.append(fresh)
    types = triples[triples[:, 1] == ids.get(TYPE, -1)]
    for child, supers in constraints.superclasses().items():
        for parent in supers & ids.keys():
            fresh = types[types[:, 2] == ids.get(child, -1)].copy()
            fresh[:, 2] = ids[parent]
            parts.append(fresh)
    return sorted_unique(np.concatenate(parts))


def with_vocabulary(graph: Graph, constraints: Constraints) -> Graph:
    """The graph with every term that the constraints name in its table."""
    named = {TYPE, *constraints.symmetric, *(p for pair in constraints.inverse for p in pair)}
    named |= {name for pair in constraints.subclass for name in pair}
    for rule in constraints.rules:
        named |= {rule.predicate, *rule.classes, *rule.nodes}
        if rule.kind in ("class", "disjoint", "less_than", "in", "negative"):
            named |= {canonical(value) for value in rule.value}
    missing = sorted(named - graph.ids.keys())
    if not missing:
        return graph
    return Graph.from_codes([*graph.terms, *missing], graph.triples, graph.language)


@dataclass(frozen=True)
class Cards:
    """What is said beside the graph where the graph is made of cards, see `epistemic.logic.alone`.

    Attributes:
      denied: i32[M, 3] of triples said not to hold, beside the constraints' own negatives.
      allowed: rule on single values -> bool[terms], which terms it allows.
      claimed: classes that claims of type are about.
      room: groups and places that there is room for at least, so that sizes don't vary.
    """

    denied: np.ndarray
    allowed: Callable[[Constraint], np.ndarray]
    claimed: frozenset[str]
    room: int


def compile_oracle(
    graph: Graph, constraints: Constraints, spare: int = 4096, cards: Cards | None = None
) -> Compiled:
    """Compile a graph whose table has the constraints' vocabulary (`with_vocabulary`).

    Args:
      graph, constraints: what to judge by.
      spare: room for terms in claims that the graph has never heard of.
      cards: where the graph is made of cards.
    """
    return _Compiler(graph, constraints, spare, cards).compiled()


class _Compiler:
    """Lays a graph and its constraints out as arrays; one use."""

    def __init__(self, graph: Graph, constraints: Constraints, spare: int, cards: Cards | None):
        self.graph, self.constraints, self.ids = graph, constraints, graph.ids
        self.cards = cards
        self.terms = len(graph.terms)
        self.capacity = padded(self.terms + spare)
        self.closed = _closed(graph, constraints)
        # Rows of one predicate are asked for again and again: they lie side by side here.
        grouped = self.closed[np.argsort(self.closed[:, 1], kind="stable")]
        numbers, starts = np.unique(grouped[:, 1], return_index=True)
        parts = np.split(grouped, starts[1:]) if len(grouped) else []
        self.by_predicate = dict(zip(numbers.tolist(), parts, strict=True))
        self.members: dict[str, np.ndarray] = {}
        self.extra: list[np.ndarray] = []
        self.pseudo: dict[int, str] = {}
        self.traits = _Traits(self.terms)
        self.value_traits: dict[int, Constraint] = {}
        self.shelves: dict[int, list[tuple[int, ...]]] = {}
        self.names: list[str] = []
        self.violations: list[Violation] = []
        self.supers = constraints.superclasses()
        self.disjoint = constraints.disjoint_classes()

    def compiled(self) -> Compiled:
        for rule in self.constraints.rules:
            self._compile(rule)
        self._compile_denied()
        for name in self._classes():
            if self.cards is None or name in self.cards.claimed:
                self._compile_type_claims(name)
        triples = sorted_unique(np.concatenate([self.closed, *self.extra]))
        room = self.cards.room if self.cards else 0
        traits = self.traits.words(self.capacity)
        index = lay_out(triples, self.graph.rank, traits, self.capacity, room)
        rows = file(self.shelves, self.capacity, self.ids.get(TYPE, self.capacity))
        return Compiled(
            index, rows, triples, self.by_predicate, self.pseudo, self.names, self.value_traits,
            self.violations,
        )  # fmt: skip

    # Columns over terms.

    def _of(self, predicate: str) -> np.ndarray:
        return self.by_predicate.get(self.ids.get(predicate, -1), self.closed[:0])

    def _members(self, name: str) -> np.ndarray:
        """bool[terms]: the instances of a class."""
        if name not in self.members:
            types = self._of(TYPE)
            column = np.zeros(self.terms, bool)
            column[types[types[:, 2] == self.ids.get(name, -1), 0]] = True
            self.members[name] = column
        return self.members[name]

    def _targets(self, rule: Constraint) -> np.ndarray:
        """bool[terms]: the subjects that a constraint looks at."""
        if not (rule.classes or rule.nodes):
            return np.ones(self.terms, bool)
        column = np.zeros(self.terms, bool)
        for name in rule.classes:
            column |= self._members(name)
        column[[self.ids[node] for node in rule.nodes]] = True
        return column

    def _satisfying(self, rule: Constraint) -> np.ndarray:
        """bool[terms]: the terms that are allowed as values of a datatype, in or bound rule."""
        return self.cards.allowed(rule) if self.cards else allowed_terms(self.graph, rule)

    def _classes(self) -> list[str]:
        found = set(self.supers)
        for rule in self.constraints.rules:
            found |= set(rule.classes)
            if rule.kind == "disjoint":
                found |= {rule.predicate, *rule.value}
            if rule.kind == "class":
                found.add(rule.value[0])
        return sorted(found & self.ids.keys())

    # Rows.

    def _shelve(self, rule: Constraint, predicate: str, kind: Kind, **row: int) -> None:
        """File a row under the predicate, and swapped or not under all that say the same."""
        if rule.name not in self.names:
            self.names.append(rule.name)
        swap = row.get("swap", 0)
        for other, flipped in self.constraints.sayings(predicate):
            if other in self.ids:
                self.shelves.setdefault(self.ids[other], []).append(
                    (
                        kind,
                        swap ^ flipped,
                        row.get("target", 0),
                        row.get("trait", 0),
                        row.get("limit", 0),
                        row.get("relation", self.capacity - 1),
                        self.names.index(rule.name),
                    )
                )

    def _relation(self, name: str, triples: np.ndarray) -> int:
        """A pseudo-predicate with these (subject, object) pairs, i32[M, 2]."""
        number = self.capacity + len(self.pseudo)
        self.pseudo[number] = name
        fresh = np.full((len(triples), 3), number, np.int32)
        fresh[:, [0, 2]] = triples
        self.extra.append(fresh)
        return number

    def _compile(self, rule: Constraint) -> None:
        if rule.predicate not in self.ids or rule.kind == "disjoint":
            return
        targets = self._targets(rule)
        everyone = not (rule.classes or rule.nodes)
        target = 0 if everyone else self.traits.number((rule.classes, rule.nodes), targets)
        mine = self._of(rule.predicate)
        p = rule.predicate
        broken = np.zeros(len(mine), bool)
        if rule.kind == "max_count":
            limit = int(rule.value[0])
            self._shelve(rule, p, Kind.FEWER, target=target, limit=limit, relation=self.ids[p])
            broken = np.bincount(mine[:, 0], minlength=self.terms)[mine[:, 0]] > limit
        elif rule.kind == "inverse_functional":
            reverse = self._relation(f"inverse of {self.graph.label(self.ids[p])}", mine[:, [2, 0]])
            self._shelve(rule, p, Kind.FEWER, swap=1, limit=1, relation=reverse)
            broken = np.bincount(mine[:, 2], minlength=self.terms)[mine[:, 2]] > 1
        elif rule.kind in ("datatype", "in", *BOUNDS):
            allowed = self._satisfying(rule)
            trait = self.traits.number((rule.kind, rule.value), allowed)
            self.value_traits[trait] = rule
            self._shelve(rule, p, Kind.HAS, target=target, trait=trait)
            broken = ~allowed[mine[:, 2]]
        elif rule.kind == "class":
            broken = self._compile_class(rule, target, mine)
        elif rule.kind == "less_than":
            broken = self._compile_less_than(rule, target, mine)
        elif rule.kind == "asymmetric":
            self._shelve(rule, p, Kind.ABSENT, swap=1, relation=self.ids[p])
            self._shelve(rule, p, Kind.OTHER)
            if (p, True) in self.constraints.sayings(p):
                # Symmetric as well: whatever it says contradicts itself; all have trait 0.
                self._shelve(rule, p, Kind.LACKS, trait=0)
            forwards = mine[:, 0].astype(np.int64) * self.terms + mine[:, 2]
            backwards = mine[:, 2].astype(np.int64) * self.terms + mine[:, 0]
            broken = np.isin(forwards, backwards)
        elif rule.kind == "irreflexive":
            self._shelve(rule, p, Kind.OTHER)
            broken = mine[:, 0] == mine[:, 2]
        elif rule.kind == "negative":
            s, o = self.ids[rule.value[0]], self.ids[canonical(rule.value[1])]
            broken = (mine[:, 0] == s) & (mine[:, 2] == o)
        self._report(rule, mine[broken & targets[mine[:, 0]], 0])

    def _compile_denied(self) -> None:
        """Negative assertions, from the constraints and from the caller: groups of their own."""
        stated = [
            (self.ids[rule.value[0]], self.ids[rule.predicate], self.ids[canonical(rule.value[1])])
            for rule in self.constraints.rules
            if rule.kind == "negative"
        ]
        denied = np.array(stated, np.int32).reshape(-1, 3)
        if self.cards is not None:
            denied = np.concatenate([denied, self.cards.denied])
        for p in np.unique(denied[:, 1]):
            name = self.graph.terms[p]
            pairs = denied[denied[:, 1] == p][:, [0, 2]]
            relation = self._relation(f"not {self.graph.label(int(p))}", pairs)
            self._shelve(Constraint("negative", name), name, Kind.ABSENT, relation=relation)

    def _compile_class(self, rule: Constraint, target: int, mine: np.ndarray) -> np.ndarray:
        name = rule.value[0]
        if name in self.constraints.complete:
            members = self._members(name)
            trait = self.traits.number(("member", name), members)
            self._shelve(rule, rule.predicate, Kind.HAS, target=target, trait=trait)
            return ~members[mine[:, 2]]
        broken = np.zeros(len(mine), bool)
        for other in sorted(self.disjoint.get(name, ())):
            members = self._members(other)
            trait = self.traits.number(("member", other), members)
            self._shelve(rule, rule.predicate, Kind.LACKS, target=target, trait=trait)
            broken |= members[mine[:, 2]]
        return broken

    def _compile_less_than(self, rule: Constraint, target: int, mine: np.ndarray) -> np.ndarray:
        greater = rule.value[0]
        broken = self._not_less(mine, self._of(greater))
        self._shelve(rule, rule.predicate, Kind.BELOW, target=target, relation=self.ids[greater])
        # A value that is not less than what stands already breaks nothing new.
        relation = self.ids[rule.predicate]
        if broken.any():
            label = self.graph.label(self.ids[rule.predicate])
            relation = self._relation(label, mine[~broken][:, [0, 2]])
        self._shelve(rule, greater, Kind.ABOVE, target=target, relation=relation)
        return broken

    def _not_less(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """bool[len(lower)]: the values that aren't less than all of their subject's upper ones."""
        if not len(upper):
            return np.zeros(len(lower), bool)
        rank = self.graph.rank
        subjects, first = np.unique(upper[:, 0], return_index=True)
        least = np.minimum.reduceat(rank[upper[:, 2]], first)
        greatest = np.maximum.reduceat(rank[upper[:, 2]], first)
        at = np.minimum(np.searchsorted(subjects, lower[:, 0]), len(subjects) - 1)
        mine, least, greatest = rank[lower[:, 2]], least[at], greatest[at]
        comparable = (mine > 0) & ((least ^ mine) >> 28 == 0) & ((greatest ^ mine) >> 28 == 0)
        return (subjects[at] == lower[:, 0]) & ~(comparable & (mine < least))

    def _compile_type_claims(self, name: str) -> None:
        """Claims that something is a member of a class: rows filed under the class."""
        added = self.supers.get(name, frozenset({name}))
        fresh = {a: ~self._members(a) for a in added}
        clashing = np.zeros(self.terms, bool)
        reasons = {kind: clashing.copy() for kind in ("disjoint", "class", "target")}
        for rule in self.constraints.rules:
            if rule.kind == "disjoint":
                for one, other in ((rule.predicate, *rule.value), (*rule.value, rule.predicate)):
                    if one in added:
                        has = self._members(other) | (other in added)
                        reasons["disjoint"] |= fresh[one] & has
                continue
            apart = added & self.disjoint.get(rule.value[0] if rule.value else "", frozenset())
            implies = rule.kind == "class" and rule.value[0] not in self.constraints.complete
            if not ((implies and apart) or set(rule.classes) & added):
                continue
            mine = self._of(rule.predicate)
            targets = self._targets(rule)
            if implies:
                implied = np.zeros(self.terms, bool)
                implied[mine[targets[mine[:, 0]], 2]] = True
                for a in apart:
                    reasons["class"] |= fresh[a] & implied
            if set(rule.classes) & added:
                becomes = np.zeros(self.terms, bool)
                for a in set(rule.classes) & added:
                    becomes |= fresh[a]
                reasons["target"] |= becomes & ~targets & self._would_break(rule, mine, added)
        for kind, column in reasons.items():
            if column.any():
                rule = Constraint(kind, name)
                trait = self.traits.number((kind, name), column)
                self.names.append(rule.name)
                self.shelves.setdefault(self.ids[name], []).append(
                    (Kind.LACKS, 1, 0, trait, 0, self.capacity - 1, len(self.names) - 1)
                )

    def _would_break(self, rule: Constraint, mine: np.ndarray, added: frozenset[str]) -> np.ndarray:
        """bool[terms]: subjects that would break the rule if it looked at them, once they are
        members of the added classes (which matters where a subject is its own value)."""
        own = mine[:, 0] == mine[:, 2]
        if rule.kind == "max_count":
            return np.bincount(mine[:, 0], minlength=self.terms) > int(rule.value[0])
        if rule.kind == "less_than":
            broken = self._not_less(mine, self._of(rule.value[0]))
        elif rule.kind == "class" and rule.value[0] in self.constraints.complete:
            name = rule.value[0]
            broken = ~(self._members(name)[mine[:, 2]] | (own & (name in added)))
        elif rule.kind == "class":
            broken = np.zeros(len(mine), bool)
            for other in self.disjoint.get(rule.value[0], frozenset()):
                broken |= self._members(other)[mine[:, 2]] | (own & (other in added))
        else:
            broken = ~self._satisfying(rule)[mine[:, 2]]
        column = np.zeros(self.terms, bool)
        column[mine[broken, 0]] = True
        return column

    def _report(self, rule: Constraint, subjects: np.ndarray) -> None:
        if len(subjects) and self.cards is None:
            found = tuple(self.graph.terms[s] for s in np.unique(subjects))
            self.violations.append(Violation(rule.name, found))


def allowed_terms(graph: Graph, rule: Constraint) -> np.ndarray:
    """bool[terms]: the terms that are allowed as values of a datatype, in or bound rule."""
    key = (rule.kind, rule.value)
    if key not in graph.columns:
        graph.columns[key] = _allowed_terms(graph, rule)
    return graph.columns[key]


def _allowed_terms(graph: Graph, rule: Constraint) -> np.ndarray:
    if rule.kind == "in":
        allowed = set(map(canonical, rule.value))
        return np.array([term in allowed for term in graph.terms], bool)
    if rule.kind == "datatype":
        column = np.zeros(len(graph.terms), bool)
        for i in np.flatnonzero(~graph.is_name).tolist():
            column[i] = satisfies(graph.terms[i], rule)
        return column
    return _within(graph.rank, graph.rank_of(canonical(rule.value[0])), rule.kind)


def _within(rank: np.ndarray, bound: int, kind: str) -> np.ndarray:
    comparable = (rank > 0) & ((rank ^ bound) >> 28 == 0)
    compare = {
        "min_inclusive": np.greater_equal,
        "min_exclusive": np.greater,
        "max_inclusive": np.less_equal,
        "max_exclusive": np.less,
    }[kind]
    return comparable & compare(rank, bound)


def satisfies(term: str, rule: Constraint) -> bool:
    """Whether a single term is allowed as a value by a datatype, in or bound rule."""
    if rule.kind == "in":
        return term in map(canonical, rule.value)
    parts = split_literal(term)
    if parts is None:
        return False
    lexical, language, datatype = parts
    if rule.kind == "datatype":
        if (_LANG_STRING if language else datatype) != rule.value[0]:
            return False
        if lexical == "NaN" or value_of(term)[0]:
            return True
        # Kind 0: either a datatype that we don't read, or a form that its datatype doesn't have.
        readable = value_of(f'"0"^^<{datatype}>')[0] or value_of(f'"2000-01-01"^^<{datatype}>')[0]
        return not readable
    kind, value = value_of(term)
    bound_kind, bound = value_of(canonical(rule.value[0]))
    if kind == 0 or kind != bound_kind:
        return False
    return {
        "min_inclusive": value >= bound,
        "min_exclusive": value > bound,
        "max_inclusive": value <= bound,
        "max_exclusive": value < bound,
    }[rule.kind]

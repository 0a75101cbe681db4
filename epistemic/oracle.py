"""The oracle: claims in, verdicts with their proofs out, jitted.

A claim is ENTAILED when the graph states it or says the same by symmetry, an inverse or a
subclass; else CONTRADICTORY when the graph with it breaks a constraint that the graph alone
doesn't; else UNKNOWN. Two violations are one when focus node, constraint, path and value are:
a subject with two capitals already breaks 'one capital', and a third adds nothing.

How it is fast. Three ideas:

- What a constraint asks of a single term (is it a country, an integer, above zero, in the list)
  is a bit of that term, set once on the host: a *trait*.
- What it asks of a pair is a look into a *group*, the sorted objects of one (subject, predicate),
  found in two probes of a cuckoo hash table. Negative assertions and reversed triples are groups
  of predicates of their own.
- So a constraint is a row of seven integers, filed under the predicate that can break it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyshacl
import rdflib
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from rdflib.namespace import RDF, SH

from epistemic.constraints import BOUNDS, Constraint, Constraints
from epistemic.graph import (
    TYPE,
    Graph,
    canonical,
    neighbourhood,
    rdflib_term,
    sorted_unique,
    split_literal,
    value_of,
)

_LANG_STRING = str(RDF.langString)
# Larger batches spill their intermediates out of the cache and are judged at half the speed.
_LARGEST_BATCH = 1 << 16


class Verdict(IntEnum):
    """What the graph says of a claim; its value is that of the answer which is then right."""

    CONTRADICTORY = 0
    UNKNOWN = 1
    ENTAILED = 2

    @property
    def label(self) -> str:
        return "CUE"[self]

    @property
    def gold(self) -> str:
        return ("NO", "UNKNOWN", "YES")[self]


class Index(NamedTuple):
    """A graph, closed under its logic, as the device sees it. Sizes are padded.

    Attributes:
      slots: i32[S], the cuckoo table: the group in each slot, or the empty last group.
      subject, predicate: i32[G], the key of each group.
      start: i32[G + 1], where its objects begin.
      objects: i32[T], sorted within a group.
      rank: i32[V], order of literals by value, see `Graph`.
      traits: u32[V, W], 32 traits a word; trait 0 holds for every term.
      salt: u32[], chosen so that every group found a slot.
      depth: i32[], halvings that find an object in the largest group.
    """

    slots: jax.Array
    subject: jax.Array
    predicate: jax.Array
    start: jax.Array
    objects: jax.Array
    rank: jax.Array
    traits: jax.Array
    salt: jax.Array
    depth: jax.Array


class Kind(IntEnum):
    """What a row demands of a claimed (a, b); it is broken otherwise."""

    HAS = 0  # b has the trait
    LACKS = 1  # b lacks the trait
    FEWER = 2  # a's group does not hold exactly `limit` objects yet
    BELOW = 3  # b is less than all of a's group
    ABOVE = 4  # b is greater than all of a's group
    ABSENT = 5  # b is not in a's group
    OTHER = 6  # b is not a


class Rows(NamedTuple):
    """Compiled constraints.

    Attributes:
      shelf: i32[V], by predicate (by class, for a claim of type): its shelf; 0 is empty.
      table: i32[shelves, R, 7]: kind, swap, target trait, trait, limit, relation, name.
        A row looks at (a, b) = (subject, object), swapped where swap is 1, and applies where a
        has the target trait.
      longest: i32[], how many rows the fullest shelf holds.
      type_id: i32[], the id of rdf:type.
    """

    shelf: jax.Array
    table: jax.Array
    longest: jax.Array
    type_id: jax.Array


def _mix(x: jax.Array, y: jax.Array, salt: jax.Array) -> jax.Array:
    """A u32 hash of a pair; the same in NumPy and in JAX."""
    x = (x * np.uint32(0x9E3779B1)) ^ (y * np.uint32(0x85EBCA77)) ^ salt
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x2C1B3C6D)
    x = (x ^ (x >> np.uint32(12))) * np.uint32(0x297A2D39)
    return x ^ (x >> np.uint32(15))


def _probes(subject, predicate, salt, slots: int):  # type: ignore[no-untyped-def]
    """The two slots where a group can be."""
    first = _mix(subject, predicate, salt)
    second = _mix(predicate, subject, salt ^ np.uint32(0x5BD1E995))
    return first % np.uint32(slots), second % np.uint32(slots)


def _group(index: Index, subject: jax.Array, predicate: jax.Array) -> jax.Array:
    """The group of (subject, predicate), or the empty one."""
    empty = jnp.int32(index.subject.shape[0] - 1)
    first, second = _probes(
        subject.astype(jnp.uint32), predicate.astype(jnp.uint32), index.salt, index.slots.shape[0]
    )
    group = empty
    for probe in (first, second):
        found = index.slots[probe]
        hit = (index.subject[found] == subject) & (index.predicate[found] == predicate)
        group = jnp.where(hit, found, group)
    return group


def _find(index: Index, start: jax.Array, end: jax.Array, thing: jax.Array) -> jax.Array:
    """Where the object stands in objects[start:end], or -1."""

    def halve(_: int, span: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = span
        middle = (low + high) // 2
        right = (index.objects[middle] < thing) & (low < high)
        return jnp.where(right, middle + 1, low), jnp.where(right, high, middle)

    low, _ = jax.lax.fori_loop(0, index.depth, halve, (start, end))
    return jnp.where((low < end) & (index.objects[low] == thing), low, -1)


def _has(index: Index, term: jax.Array, trait: jax.Array) -> jax.Array:
    return (index.traits[term, trait >> 5] >> (trait & 31).astype(jnp.uint32)) & 1 == 1


def _break(index: Index, row: jax.Array, subject: jax.Array, thing: jax.Array):  # type: ignore[no-untyped-def]
    """Whether the claim breaks the row, and the place of the triple it clashes with or -1."""
    kind, swap, target, trait, limit, relation, _ = row
    a = jnp.where(swap == 1, thing, subject)
    b = jnp.where(swap == 1, subject, thing)
    group = _group(index, a, relation)
    start, end = index.start[group], index.start[group + 1]
    there = _find(index, start, end, b)
    least, greatest = index.rank[index.objects[start]], index.rank[index.objects[end - 1]]
    rank = index.rank[b]
    comparable = (rank > 0) & ((least ^ rank) >> 28 == 0) & ((greatest ^ rank) >> 28 == 0)
    some = start < end
    trait_held = _has(index, b, trait)
    broken = jnp.select(
        [kind == k for k in Kind],
        [
            ~trait_held,
            trait_held,
            end - start == limit,
            some & ~(comparable & (rank < least)),
            some & ~(comparable & (rank > greatest)),
            there >= 0,
            a == b,
        ],
    )
    clash = jnp.select(
        [(kind == Kind.FEWER) | (kind == Kind.BELOW), kind == Kind.ABOVE, kind == Kind.ABSENT],
        [start, end - 1, there],
        -1,
    )
    return broken & _has(index, a, target), clash


def _judge(index: Index, rows: Rows, claim: jax.Array) -> tuple[jax.Array, jax.Array]:
    subject, predicate, thing = claim
    group = _group(index, subject, predicate)
    stated = _find(index, index.start[group], index.start[group + 1], thing)
    shelf = rows.shelf[jnp.where(predicate == rows.type_id, thing, predicate)]

    def look(i: int, found: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        name, clash = found
        row = rows.table[shelf, i]
        broken, where = _break(index, row, subject, thing)
        first = broken & (name < 0) & (row[6] >= 0)
        return jnp.where(first, row[6], name), jnp.where(first, where, clash)

    none = jnp.full_like(subject, -1)
    name, clash = jax.lax.fori_loop(0, rows.longest, look, (none, none))
    entailed = stated >= 0
    verdict = jnp.where(
        entailed,
        Verdict.ENTAILED,
        jnp.where(name >= 0, Verdict.CONTRADICTORY, Verdict.UNKNOWN),
    )
    proof = jnp.stack([jnp.where(entailed, -1, name), jnp.where(entailed, stated, clash)])
    return verdict.astype(jnp.int8), proof


@jax.jit
def judge(index: Index, rows: Rows, claims: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Judge claims.

    Args:
      index, rows: a compiled graph and its constraints.
      claims: i32[N, 3] of (subject, predicate, object) ids, below the padded number of terms.

    Returns:
      verdict i8[N] and proof i32[N, 2]: the name of the broken constraint or -1, and the place
      of a triple, the one that entails the claim or the one it clashes with, or -1.
    """
    return jax.vmap(functools.partial(_judge, index, rows))(claims)


@jax.jit
def contains(index: Index, claims: jax.Array) -> jax.Array:
    """Membership alone: bool[N], whether each claim of i32[N, 3] is stated or inferred."""

    def one(claim: jax.Array) -> jax.Array:
        group = _group(index, claim[0], claim[1])
        return _find(index, index.start[group], index.start[group + 1], claim[2]) >= 0

    return jax.vmap(one)(claims)


# -- Compilation, on the host ------------------------------------------------------------------


def padded(size: int) -> int:
    """The size rounded up, so that few sizes need compiling: coarsely while it is small, by at
    most an eighth where memory matters."""
    for small in (1 << 13, 1 << 16):
        if size <= small:
            return small
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step


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
    """What is said beside the graph where the graph is made of cards, see `epistemic.alone`.

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
        self.grouped = self.closed[np.argsort(self.closed[:, 1], kind="stable")]
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
        index = _lay_out(triples, self.graph.rank, traits, self.capacity, room)
        rows = _file(self.shelves, self.capacity, self.ids.get(TYPE, self.capacity))
        return Compiled(
            index, rows, triples, self.pseudo, self.names, self.value_traits, self.violations
        )

    # Columns over terms.

    def _of(self, predicate: str) -> np.ndarray:
        number = self.ids.get(predicate, -1)
        column = self.grouped[:, 1]
        return self.grouped[np.searchsorted(column, number) : np.searchsorted(column, number + 1)]

    def _members(self, name: str) -> np.ndarray:
        """bool[terms]: the instances of a class."""
        types = self._of(TYPE)
        column = np.zeros(self.terms, bool)
        column[types[types[:, 2] == self.ids.get(name, -1), 0]] = True
        return column

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


def _lay_out(
    triples: np.ndarray, rank: np.ndarray, traits: np.ndarray, capacity: int, room: int
) -> Index:
    """The device's arrays for sorted, unique triples i32[T, 3]."""
    fresh = np.ones(len(triples), bool)
    fresh[1:] = (triples[1:, :2] != triples[:-1, :2]).any(axis=1)
    starts = np.flatnonzero(fresh)
    groups = padded(max(len(starts) + 1, room))
    places = padded(max(len(triples) + 1, room))
    subject = np.full(groups, -1, np.int32)
    predicate = np.full(groups, -1, np.int32)
    subject[: len(starts)] = triples[starts, 0]
    predicate[: len(starts)] = triples[starts, 1]
    start = np.full(groups + 1, len(triples), np.int32)
    start[: len(starts)] = starts
    objects = np.full(places, -1, np.int32)
    objects[: len(triples)] = triples[:, 2]
    largest = int(np.diff(start[: len(starts) + 1]).max(initial=0))
    slots, salt = _cuckoo(subject[: len(starts)], predicate[: len(starts)], groups)
    ranks = np.zeros(capacity, np.int32)
    ranks[: len(rank)] = rank
    arrays = (slots, subject, predicate, start, objects, ranks, traits)
    scalars = (np.uint32(salt), np.int32(largest.bit_length()))
    return Index(*map(jnp.asarray, (*arrays, *scalars)))


def _cuckoo(subject: np.ndarray, predicate: np.ndarray, groups: int) -> tuple[np.ndarray, int]:
    """A table in which every key stands in one of its two slots, and the salt that allows it.

    All keys without a place try at once, the last writer wins and whoever it displaced tries its
    other slot next (Alcantara et al. 2009). At 2.5 slots a key this ends in some twenty rounds.
    """
    size = padded(int(2.5 * groups))
    keys = np.arange(len(subject), dtype=np.int32)
    for salt in range(64):
        slots = np.full(size, groups - 1, np.int32)
        with np.errstate(over="ignore"):
            probes = np.stack(
                _probes(
                    subject.astype(np.uint32), predicate.astype(np.uint32), np.uint32(salt), size
                )
            ).astype(np.int64)
        turn = np.zeros(len(keys), np.int8)
        homeless = keys
        for _ in range(200):
            wanted = probes[turn[homeless], homeless]
            displaced = slots[wanted]
            slots[wanted] = homeless
            lost = homeless[slots[wanted] != homeless]
            displaced = displaced[displaced != groups - 1]
            homeless = np.union1d(
                lost, displaced[slots[probes[turn[displaced], displaced]] != displaced]
            )
            if not len(homeless):
                return slots, salt
            turn[homeless] ^= 1
    raise RuntimeError(f"no cuckoo table found for {len(keys)} groups")  # pragma: no cover


def _file(shelves: dict[int, list[tuple[int, ...]]], capacity: int, type_id: int) -> Rows:
    longest = max(map(len, shelves.values()), default=0)
    empty = (0, 0, 0, 0, 0, capacity - 1, -1)
    table = np.full((-(-(len(shelves) + 1) // 64) * 64, max(16, longest), 7), empty, np.int32)
    shelf = np.zeros(capacity, np.int32)
    for number, (term, rows) in enumerate(sorted(shelves.items()), start=1):
        shelf[term] = number
        table[number, : len(rows)] = rows
    return Rows(
        jnp.asarray(shelf),
        jnp.asarray(table),
        jnp.asarray(longest, jnp.int32),
        jnp.asarray(type_id, jnp.int32),
    )


class Judgement(NamedTuple):
    """Verdicts with their proofs; see `judge`.

    Attributes:
      verdict: i8[N] of `Verdict`.
      proof: i32[N, 2].
      slow: bool[N], whether pySHACL had to judge the claim.
    """

    verdict: np.ndarray
    proof: np.ndarray
    slow: np.ndarray


class Oracle:
    """A graph with its constraints, ready to judge claims.

    Args:
      graph: what is known.
      constraints: what may not be said.
    """

    def __init__(self, graph: Graph, constraints: Constraints | None = None):
        self.constraints = constraints or Constraints()
        self.graph = with_vocabulary(graph, self.constraints)
        self._spare = max(4096, len(graph.terms) // 8)
        self.compiled = compile_oracle(self.graph, self.constraints, self._spare)
        self.violations = self.compiled.violations

    def judge(self, claims: Sequence[Sequence[str]]) -> Judgement:
        """Judge claims given as (subject, predicate, object) texts."""
        ids = self.encode(claims)
        strange = np.flatnonzero((ids < 0).any(axis=1))
        if not len(strange):
            return self.judge_ids(ids)
        ids, extended = self._admit(claims, ids, strange)
        return self._judge_slowly(self._judge_with(extended, ids), lambda i: claims[i])

    def encode(self, claims: Sequence[Sequence[str]]) -> np.ndarray:
        """i32[N, 3] ids of the claims' texts; -1 for a term that the graph has never heard of."""
        get = self.graph.ids.get
        columns = [
            np.fromiter((get(term, -1) for term in column), np.int32, len(claims))
            for column in zip(*claims, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((0, 3), np.int32)

    def judge_ids(self, claims: np.ndarray) -> Judgement:
        """Judge claims given as i32[N, 3] ids; the fast path."""
        judgement = self._judge_with(self.compiled.lookup, np.asarray(claims, np.int32))
        terms = self.graph.terms
        return self._judge_slowly(judgement, lambda i: [terms[term] for term in claims[i]])

    def _judge_slowly(
        self, judgement: Judgement, claim_of: Callable[[int], Sequence[str]]
    ) -> Judgement:
        """Ask pySHACL about claims that are still unknown and that a slow shape may speak of."""
        if not len(self.constraints.slow):
            return judgement
        verdict, slow = judgement.verdict.copy(), judgement.slow.copy()
        mentioned = self.constraints.slow_terms
        for i in np.flatnonzero(verdict == Verdict.UNKNOWN).tolist():
            claim = claim_of(i)
            concerns = claim[2] if claim[1] == TYPE else claim[1]
            if mentioned is None or concerns in mentioned:
                slow[i] = True
                if self._breaks_slow_shape(claim):
                    verdict[i] = Verdict.CONTRADICTORY
        return Judgement(verdict, judgement.proof, slow)

    def _breaks_slow_shape(self, claim: Sequence[str]) -> bool:
        """Whether the claim's neighbourhood with it has a violation that it lacks without."""
        around = neighbourhood(self._closed, [*self.encode([claim])[0, [0, 2]]], hops=2)
        reached = np.unique(around[:, [0, 2]])
        types = self._closed.triples[:, 1] == self.graph.ids.get(TYPE, -1)
        types &= np.isin(self._closed.triples[:, 0], reached)
        before = self._closed.with_triples(
            np.concatenate([around, self._closed.triples[types]])
        ).to_rdflib()
        after = before + rdflib.Graph()
        s, p, o = map(rdflib_term, claim)
        after.add((s, p, o))
        for other, swapped in self.constraints.sayings(claim[1])[1:]:
            if not (swapped and isinstance(o, rdflib.Literal)):
                after.add((o, rdflib_term(other), s) if swapped else (s, rdflib_term(other), o))
        return bool(self._violations(after) - self._violations(before))

    @functools.cached_property
    def _closed(self) -> Graph:
        """All that the graph says, stated or inferred."""
        spoken = self.compiled.triples
        return self.graph.with_triples(spoken[spoken[:, 1] < len(self.graph.terms)])

    def _violations(self, graph: rdflib.Graph) -> set[tuple[Any, ...]]:
        """(focus node, shape, component, path, value) of each of pySHACL's results."""
        _, report, _ = pyshacl.validate(graph, shacl_graph=self.constraints.slow, inference="none")
        if not isinstance(report, rdflib.Graph):
            raise RuntimeError(f"pySHACL could not read the shapes: {report}")
        keys = (
            SH.focusNode, SH.sourceShape, SH.sourceConstraintComponent, SH.resultPath, SH.value
        )  # fmt: skip
        return {
            tuple(report.value(result, key) for key in keys)
            for result in report.subjects(RDF.type, SH.ValidationResult)
        }

    def _judge_with(self, index: Index, claims: np.ndarray) -> Judgement:
        verdicts, proofs = [], []
        for start in range(0, len(claims), _LARGEST_BATCH):
            batch = claims[start : start + _LARGEST_BATCH]
            verdict, proof = judge(index, self.compiled.rows, _spread(batch))
            verdicts.append(np.asarray(verdict)[: len(batch)])
            proofs.append(np.asarray(proof)[: len(batch)])
        if not verdicts:
            return Judgement(np.zeros(0, np.int8), np.zeros((0, 2), np.int32), np.zeros(0, bool))
        verdict, proof = np.concatenate(verdicts), np.concatenate(proofs)
        return Judgement(verdict, proof, np.zeros(len(verdict), bool))

    def _admit(
        self, claims: Sequence[Sequence[str]], ids: np.ndarray, strange: np.ndarray
    ) -> tuple[np.ndarray, Index]:
        """Give terms that the graph has never heard of a place, with the traits of literals."""
        index, known = self.compiled.lookup, len(self.graph.terms)
        places: dict[str, int] = {}
        for row in strange.tolist():
            for column in np.flatnonzero(ids[row] < 0).tolist():
                term = canonical(claims[row][column])
                ids[row, column] = self.graph.ids.get(
                    term, known + places.setdefault(term, len(places))
                )
        literals = [(known + i, term) for term, i in places.items() if term.startswith('"')]
        extra = padded(known + len(places)) - index.rank.shape[0]
        if extra > 0:
            raise ValueError(
                f"{len(places)} terms that the graph doesn't hold in one batch of claims; "
                f"there is room for {index.rank.shape[0] - known}: judge fewer claims at a time"
            )
        if not literals:
            return ids, index
        rank, traits = np.array(index.rank), np.array(index.traits)
        for place, term in literals:
            rank[place] = self.graph.rank_of(term)
            for trait, rule in self.compiled.value_traits.items():
                if satisfies(term, rule):
                    traits[place, trait >> 5] |= np.uint32(1 << (trait & 31))
        return ids, index._replace(rank=jnp.asarray(rank), traits=jnp.asarray(traits))

    def explain(self, judgement: Judgement, i: int) -> str:
        """One line for one claim: the triple that entails it, or the constraint and the clash."""
        return explain(self.compiled, self.graph, judgement.verdict[i], judgement.proof[i])


def explain(compiled: Compiled, graph: Graph, verdict: int, proof: np.ndarray) -> str:
    """A proof in one line; see `Oracle.explain`."""
    name, place = (int(part) for part in proof)
    clash = ""
    if place >= 0:
        s, p, o = (int(term) for term in compiled.triples[place])
        predicate = compiled.pseudo.get(p) or graph.label(p)
        clash = f"{graph.label(s)} | {predicate} | {graph.label(o)}"
    if verdict == Verdict.CONTRADICTORY and name < 0:
        return "a shape that pySHACL judges"
    if verdict == Verdict.CONTRADICTORY:
        return compiled.names[name] + (f"; clashes with: {clash}" if clash else "")
    return clash


def _spread(claims: np.ndarray) -> jax.Array:
    """A batch filled up to a padded size and spread over the devices."""
    devices = jax.device_count()
    size = -(-padded(len(claims)) // devices) * devices
    batch = np.zeros((size, 3), np.int32)
    batch[: len(claims)] = claims
    if devices == 1:
        return jnp.asarray(batch)
    mesh = jax.make_mesh((devices,), ("claims",), axis_types=(AxisType.Auto,))
    return jax.device_put(batch, NamedSharding(mesh, PartitionSpec("claims")))

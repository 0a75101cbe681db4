"""Judging on the device: arrays, and a look into them for every claim.

Three ideas make it fast:

- What a constraint asks of a single term (is it a country, an integer, above zero, in the list)
  is a bit of that term, set once on the host: a *trait*.
- What it asks of a pair is a look into a *group*, the sorted objects of one (subject, predicate),
  found in two probes of a cuckoo hash table. Negative assertions and reversed triples are groups
  of predicates of their own.
- So a constraint is a `Row` of seven integers, filed under the predicate that can break it.

`epistemic.logic.compilation` makes the arrays from a graph and its constraints.
"""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Any, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from epistemic.logic.terms import SCALE_SHIFT


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


class Demand(IntEnum):
    """What a row demands of a claimed (a, b); it is broken otherwise."""

    HAS = 0  # b has the trait
    LACKS = 1  # b lacks the trait
    FEWER = 2  # a's group does not hold exactly `limit` objects yet
    BELOW = 3  # b is less than all of a's group
    ABOVE = 4  # b is greater than all of a's group
    ABSENT = 5  # b is not in a's group
    OTHER = 6  # b is not a


Number = TypeVar("Number")


class Row(NamedTuple, Generic[Number]):
    """One demand on the claims of one predicate: integers on the host, i32[] on the device.

    Attributes:
      demand: a `Demand`.
      swap: 0 where it looks at (a, b) = (subject, object), 1 where at (object, subject).
      target: the trait of every a that it looks at.
      trait: that b must have or lack.
      limit: of the number of objects.
      relation: the predicate of a's group.
      name: the constraint's number, or -1 where there is no row.
    """

    demand: Number
    swap: Number
    target: Number
    trait: Number
    limit: Number
    relation: Number
    name: Number


class Rows(NamedTuple):
    """Compiled constraints.

    Attributes:
      shelf: i32[V], by predicate (by class, for a claim of type): its shelf; 0 is empty.
      table: i32[shelves, R, 7], the fields of a `Row` in their order. A row's fields lie side by
        side, so that one fetch gets them all.
      longest: i32[], how many rows the fullest shelf holds.
      type_id: i32[], the id of rdf:type.
    """

    shelf: jax.Array
    table: jax.Array
    longest: jax.Array
    type_id: jax.Array

    def at(self, shelf: jax.Array, place: int | jax.Array) -> Row[jax.Array]:
        """The row at a place of a shelf."""
        return Row(*self.table[shelf, place])


def comparable(rank: Any, other: Any) -> Any:
    """Whether values of these ranks, i32 of any one shape, are on one scale; the same in NumPy and
    in JAX."""
    return (rank > 0) & ((rank ^ other) >> SCALE_SHIFT == 0)


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
        there = index.slots[probe]
        hit = (index.subject[there] == subject) & (index.predicate[there] == predicate)
        group = jnp.where(hit, there, group)
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


def _break(
    index: Index, row: Row[jax.Array], subject: jax.Array, thing: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Whether the claim breaks the row, and the place of the triple it clashes with or -1."""
    a = jnp.where(row.swap == 1, thing, subject)
    b = jnp.where(row.swap == 1, subject, thing)
    group = _group(index, a, row.relation)
    start, end = index.start[group], index.start[group + 1]
    there = _find(index, start, end, b)
    least, greatest = index.rank[index.objects[start]], index.rank[index.objects[end - 1]]
    rank = index.rank[b]
    compares = comparable(rank, least) & comparable(rank, greatest)
    some = start < end
    trait_held = _has(index, b, row.trait)
    broken = jnp.select(
        [row.demand == demand for demand in Demand],
        [
            ~trait_held,
            trait_held,
            end - start == row.limit,
            some & ~(compares & (rank < least)),
            some & ~(compares & (rank > greatest)),
            there >= 0,
            a == b,
        ],
    )
    clashes_first = (row.demand == Demand.FEWER) | (row.demand == Demand.BELOW)
    clash = jnp.select(
        [clashes_first, row.demand == Demand.ABOVE, row.demand == Demand.ABSENT],
        [start, end - 1, there],
        -1,
    )
    return broken & _has(index, a, row.target), clash


def _judge(index: Index, rows: Rows, claim: jax.Array) -> tuple[jax.Array, jax.Array]:
    subject, predicate, thing = claim
    group = _group(index, subject, predicate)
    stated = _find(index, index.start[group], index.start[group + 1], thing)
    shelf = rows.shelf[jnp.where(predicate == rows.type_id, thing, predicate)]

    def check(i: int, first: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        name, clash = first
        row = rows.at(shelf, i)
        broken, where = _break(index, row, subject, thing)
        is_first = broken & (name < 0) & (row.name >= 0)
        return jnp.where(is_first, row.name, name), jnp.where(is_first, where, clash)

    none = jnp.full_like(subject, -1)
    name, clash = jax.lax.fori_loop(0, rows.longest, check, (none, none))
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


def padded(size: int) -> int:
    """The size rounded up, so that few sizes need compiling: coarsely while it is small, by at
    most an eighth where memory matters."""
    for small in (1 << 13, 1 << 16):
        if size <= small:
            return small
    step = 1 << (size.bit_length() - 4)
    return -(-size // step) * step


def lay_out_triples(
    triples: np.ndarray, rank: np.ndarray, traits: np.ndarray, capacity: int, room: int
) -> Index:
    """The device's arrays for sorted, unique triples i32[T, 3]."""
    fresh = np.ones(len(triples), bool)
    subjects, predicates, _ = triples.T
    fresh[1:] = (subjects[1:] != subjects[:-1]) | (predicates[1:] != predicates[:-1])
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


def lay_out_rows(shelves: dict[int, list[Row[int]]], capacity: int, type_id: int) -> Rows:
    """The device's arrays for the rows filed under each predicate or class."""
    longest = max(map(len, shelves.values()), default=0)
    size = (-(-(len(shelves) + 1) // 64) * 64, max(16, longest), len(Row._fields))
    table = np.full(size, no_row(capacity), np.int32)
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


def no_row(capacity: int) -> Row[int]:
    """What stands where a shelf has no row: it looks at the empty group and has no name."""
    return Row(0, 0, 0, 0, 0, relation=capacity - 1, name=-1)

"""Readers: neurons that look at two things recalled, and are told the answers to questions.

For each question (an attribute and a value) and each pair of attributes there is a reader. What is
recalled of somebody's two attributes, or that nothing is, is the place of an event in an ORIGIN
layer of neurons that share a memory (`growth.listen`) and have 16 slots each. A slot has a strength
for each answer told there. A place without a slot is novel.

With bins at widths of 100% a place is a bin of its own, so the layer is kept as a table over
places, with the number of slots that exist in place of their order. An event that finds no room is
lost: the core would reinforce another bin's slot with it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from evidence.answers import Answer
from kubku.grownet.ensemble import opinion
from kubku.grownet.eye import STRENGTH, Switches
from kubku.grownet.slots import STEP
from kubku.halo import ATTRIBUTES, BASE, VALUES

QUESTIONS = ATTRIBUTES * VALUES
PAIRS = np.stack(np.triu_indices(BASE), axis=-1)
"""Two attributes, or one beside itself; i32[P, 2]."""
PLACES = (1 + VALUES) ** 2
SLOTS, NEURONS = 16, 6
"""Slots of a neuron, and neurons that a reader may grow to: room for all places."""


class Readers(NamedTuple):
    """Of all questions and pairs.

    Attributes:
      hits: u16[QUESTIONS, P, PLACES, 3], of the slot at each place, by answer; 0 where none is.
      used: u8[QUESTIONS, P], slots that exist; a neuron for each 16 of them.
      right: f32[QUESTIONS, P], times that a reader foresaw the answer before it was told.
      told: f32[QUESTIONS], answers told.
    """

    hits: Array
    used: Array
    right: Array
    told: Array


def blank() -> Readers:
    """Readers that were told nothing."""
    sizes = QUESTIONS, len(PAIRS)
    return Readers(
        hits=jnp.zeros((*sizes, PLACES, 3), jnp.uint16),
        used=jnp.zeros(sizes, jnp.uint8),
        right=jnp.zeros(sizes),
        told=jnp.zeros(QUESTIONS),
    )


def places(frame: Array) -> Array:
    """Where what is recalled, f32[ATTRIBUTES, VALUES], puts each reader's event: i32[P]."""
    held = frame[:BASE]
    recalled = jnp.where(held.any(-1), 1 + jnp.argmax(held, -1), 0)
    first, second = recalled[PAIRS.T]
    return first * (1 + VALUES) + second


def judge(
    readers: Readers, switches: Switches, focus: Array, question: Array, place: Array
) -> Array:
    """Scores f32[3]: the linear opinion pool (Stone, 1961) of a question's readers.

    A reader that has a slot at its place says what share of the slot's strength each answer has.
    Answers inhibit each other: it weighs the strength by which the first exceeds the second, times
    that over the whole. One that has no slot says UNKNOWN, as if it had been told so once, or
    nothing if novelty is off. All weigh exp(focus * the share of answers that they foresaw).
    """
    each = np.arange(len(PAIRS))
    hits = readers.hits[question, each, place].astype(jnp.int32)
    strength = jnp.where(switches.strength, _strength(hits), hits)
    familiar = (hits > 0).any(-1)
    first, total = strength.max(-1), strength.sum(-1)
    ahead = 2 * first + strength.min(-1) - total  # of three, the largest less the middle one
    once = jnp.where(switches.strength, STEP, 1.0) * switches.novelty
    sure = jnp.where(familiar, ahead**2 / jnp.maximum(total, 1e-9), once)
    record = readers.right[question] / jnp.maximum(readers.told[question], 1)
    weight = jnp.exp(focus * (record - record.max()))
    return opinion(strength, familiar, weight * sure)


def tell(
    readers: Readers, switches: Switches, question: Array, place: Array, gold: Array, told: Array
) -> Readers:
    """A question's readers foresee an answer, then are told it; nothing where `told` is False."""
    each = np.arange(len(PAIRS))
    hits = readers.hits[question, each, place]
    exists = (hits > 0).any(-1)
    foreseen = jnp.where(exists, jnp.argmax(hits, -1), int(Answer.UNKNOWN))
    room = jnp.where(switches.growth, NEURONS * SLOTS, SLOTS)
    heard = told & (exists | (readers.used[question] < room))
    return Readers(
        hits=readers.hits.at[question, each, place, gold].add(heard.astype(jnp.uint16)),
        used=readers.used.at[question].add((heard & ~exists).astype(jnp.uint8)),
        right=readers.right.at[question].add(told * (foreseen == gold)),
        told=readers.told.at[question].add(told),
    )


def tell_all(
    readers: Readers, switches: Switches, events: tuple[Array, Array, Array, Array]
) -> Readers:
    """`tell` one event after the other; (question, place, gold, told) with a leading axis."""

    def one(readers: Readers, event: tuple[Array, ...]) -> tuple[Readers, None]:
        return tell(readers, switches, *event), None

    return lax.scan(one, readers, events)[0]


def _strength(hits: Array) -> Array:
    return jnp.asarray(STRENGTH)[jnp.minimum(hits, 255)]

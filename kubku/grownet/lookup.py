"""`grownet_lookup`: a memory of facts alone."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from evidence.answers import Answer
from kubku.grownet import memory
from kubku.grownet.ensemble import DOUBT, passes
from kubku.grownet.memory import Memory
from kubku.halo import ENTITIES, Learner, Sample, Statement


class LookupState(NamedTuple):
    """`grownet_lookup`'s state.

    Attributes:
      memory: the facts stated.
      steps: i32[], passes over a sample.
    """

    memory: Memory
    steps: Array


def remember_all(memory_: Memory, sample: Sample) -> Memory:
    """Take in a sample's facts. Contrasts add nothing to what single-valued attributes imply."""
    stated = sample.shown & (sample.label == Answer.YES)

    def tick(held: Memory, item: tuple[Statement, Array]):
        return memory.remember(held, *item), None

    return lax.scan(tick, memory_, (sample.exposure, stated))[0]


def look_up(memory_: Memory, query: Statement) -> tuple[Array, Array]:
    """Scores f32[3], and the recalled frame f32[ATTRIBUTES, VALUES] that they come from."""
    frame = memory.recall(memory_, query.entity)
    strengths = frame[query.attribute]
    total = strengths.sum()
    yes = strengths[query.value] / jnp.maximum(total, 1e-9)
    return jnp.where(total > 0, jnp.stack([1 - yes, 0.0, yes]), DOUBT), frame


def grownet_lookup(entities: int = ENTITIES) -> Learner:
    """A memory of facts alone: the value held is YES, another value of that attribute NO.

    Where values of different samples contradict each other, the scores are their strengths' shares.

    Args:
      entities: how many entities there is room for.
    """

    return Learner(partial(init, entities), learn, answer, {"empty": None}, chunk=8)


def init(entities: int, key: Array) -> LookupState:
    """No facts."""
    return LookupState(memory.empty(entities), jnp.int32(1))


def learn(state: LookupState, sample: Sample) -> LookupState:
    """Remember the sample's facts."""
    held = passes(state.steps, lambda held: remember_all(held, sample), state.memory)
    return state._replace(memory=held)


def answer(state: LookupState, query: Statement) -> Array:
    """Scores f32[3]."""
    return look_up(state.memory, query)[0]

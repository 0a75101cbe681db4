"""A modern Hopfield network: patterns are stored as they are and completed by one update.

Ramsauer et al. (2021), "Hopfield networks is all you need", eq. 3: the state x becomes
X softmax(b X'x), with X the stored patterns and b the inverse temperature. A pattern holds a key,
the outer product of an entity's code and an attribute, and a one-hot value; the state asked with
has the key and no value. What comes back has a value as far as the stored patterns agree on one,
and a key whose product with the one asked with says how familiar it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from kubku.halo import DRAWN, ENTITY_CODE, FACTS, Learner, Sample, Sizes
from kubku.learners.recall import facts, recalling, settled

DOUBT = 0.75
"""Between the familiarity of what was stated, 1, and of the most similar stranger, 0.5."""

TRIALS = tuple({"beta": float(2**power)} for power in range(8))


class Patterns(NamedTuple):
    """`hopfield`'s state: N patterns, each given by what it is the product of.

    Attributes:
      entity, attribute, value: i32[N]; value -1 where no pattern is stored yet.
      written: i32[], how many were stored; the oldest gives way.
      beta: f32[], inverse temperature.
      params, trained: of the reader.
    """

    entity: jax.Array
    attribute: jax.Array
    value: jax.Array
    written: jax.Array
    beta: jax.Array
    params: Any = None
    trained: Any = None


def completed(
    overlaps: jax.Array, own: jax.Array, values: jax.Array, stored: jax.Array, beta: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """One update of states that have a key and no value, one for each attribute.

    Keys of different attributes have product 0, so that a pattern counts e^0 in every state but its
    own attribute's: N + A exponentials do for all states.

    Args:
      overlaps: f32[N], products of the patterns' keys with that of the state of their attribute.
      own: f32[A, N], 1 where the pattern is of the attribute.
      values: f32[N, values], of the patterns.
      stored: bool[N], whether there is a pattern.
      beta: f32[], inverse temperature.

    Returns:
      the new states' values, f32[A, values]; the products of their keys with the old, f32[A].
    """
    most = jnp.max(own * stored * overlaps, axis=-1)  # of each attribute, or 0
    other = jnp.exp(-beta * most)  # e^0 in units of its largest exponential
    of_others = other @ own
    more = (jnp.exp(beta * (overlaps - most @ own)) - of_others) * stored
    total = own @ more + other * stored.sum()
    value = own @ (more[:, None] * values) + other[:, None] * (stored @ values)
    familiar = own @ ((more + of_others) * stored * overlaps)
    share = 1 / jnp.where(total > 0, total, 1.0)
    return value * share[:, None], familiar * share


def hopfield(sizes: Sizes = DRAWN, room: int = 16 * FACTS) -> Learner:
    """Patterns of (entity, attribute, value), and a reader.

    Args:
      sizes: of the family.
      room: patterns that are kept.
    """
    codes = jnp.asarray(ENTITY_CODE)

    def init() -> Patterns:
        blank = jnp.zeros(room, jnp.int32)
        return Patterns(blank, blank, blank - 1, jnp.int32(0), jnp.float32(16))

    def learn(state: Patterns, sample: Sample) -> Patterns:
        said, is_fact = sample.exposure, facts(sample)
        place = (state.written + jnp.cumsum(is_fact) - 1) % room
        place = jnp.where(is_fact, place, room)  # out of bounds: dropped
        return state._replace(
            entity=state.entity.at[place].set(said.entity, mode="drop"),
            attribute=state.attribute.at[place].set(said.attribute, mode="drop"),
            value=state.value.at[place].set(said.value, mode="drop"),
            written=state.written + is_fact.sum(),
        )

    def recall(state: Patterns, entity: jax.Array) -> jax.Array:
        # A product of outer products is the product of their parts' products.
        overlaps = codes[state.entity] @ codes[entity]
        own = (state.attribute == jnp.arange(sizes.base)[:, None]).astype(jnp.float32)
        values, stored = jax.nn.one_hot(state.value, sizes.values), state.value >= 0
        value, familiar = completed(overlaps, own, values, stored, state.beta)
        return settled(familiar[:, None] * value, DOUBT)

    return recalling(init, learn, recall, sizes, TRIALS)

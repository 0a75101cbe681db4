"""Fast weights by the delta rule: a linear map that learning a sample writes into.

The rule is that of Schlag, Irie and Schmidhuber (2021), "Linear transformers are secretly fast
weight programmers", section 4.2, for the fast weights of Schmidhuber (1992):
W <- W + b (v - W k) k'. It is a gradient step on |W k - v|^2, the inner loop of TTT-Linear (Sun et
al., 2024, "Learning to (learn at test time)"). The key is a fixed feature map, as in the
former: the outer product of an entity's code and an attribute, so that keys of different
attributes are orthogonal and W falls into a block for each attribute. A value is one-hot.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from kubku.grownet.ensemble import passes
from kubku.halo import DRAWN, ENTITY_CODE, Learner, Sample, Sizes
from kubku.learners.recall import facts, recalling, settled

DOUBT = 0.75
"""Between the strength of what was stated, 1, and of the most similar stranger, 0.5."""

TRIALS = tuple(
    {"steps": steps, "rate": rate} for steps, rate in product((1, 4), (0.25, 0.5, 0.75, 1.0))
)


class FastWeights(NamedTuple):
    """`fast_weights`' state.

    Attributes:
      weights: blocks of W, f32[base, values, code].
      rate: f32[], b of the rule.
      steps: i32[], passes over a sample.
      params, trained: of the reader.
    """

    weights: jax.Array
    rate: jax.Array
    steps: jax.Array
    params: Any = None
    trained: Any = None


def written(weights: jax.Array, key: jax.Array, value: jax.Array, rate: jax.Array) -> jax.Array:
    """The delta rule: f32[values, code] that maps `key` nearer to `value`."""
    return weights + rate * jnp.outer(value - weights @ key, key)


def fast_weights(sizes: Sizes = DRAWN) -> Learner:
    """A linear map from (entity, attribute) to the value, and a reader."""
    codes = jnp.asarray(ENTITY_CODE)

    def init() -> FastWeights:
        weights = jnp.zeros((sizes.base, sizes.values, codes.shape[1]))
        return FastWeights(weights, jnp.float32(1), jnp.int32(4))

    def learn(state: FastWeights, sample: Sample) -> FastWeights:
        said, is_fact = sample.exposure, facts(sample)

        def tick(weights: jax.Array, item: Any) -> tuple[jax.Array, None]:
            entity, attribute, value, told = item
            block = weights[attribute]
            new = written(block, codes[entity], jax.nn.one_hot(value, sizes.values), state.rate)
            return weights.at[attribute].set(jnp.where(told, new, block)), None

        def once(weights: jax.Array) -> jax.Array:
            items = said.entity, said.attribute, said.value, is_fact
            return jax.lax.scan(tick, weights, items)[0]

        return state._replace(weights=passes(state.steps, once, state.weights))

    def recall(state: FastWeights, entity: jax.Array) -> jax.Array:
        return settled(state.weights @ codes[entity], DOUBT)

    return recalling(init, learn, recall, sizes, TRIALS)

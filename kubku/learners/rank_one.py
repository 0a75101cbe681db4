"""A layer of an MLP edited in closed form, one fact after the other.

Meng et al. (2022), "Locating and editing factual associations in GPT" (ROME), eq. 2: of all layers
with W k* = v*, the one that least changes what W makes of the keys known before is
W + L (C^-1 k*)', where L = (v* - W k*) / (C^-1 k*)'k* and C is those keys' uncentred covariance.

The MLP maps (entity, attribute) to a value. Its first layer is random; its second is fitted to the
facts of the pretraining split by least squares, as ROME reads a layer: as an associative memory.
An edit's key is counted into C with a weight, so that later edits spare it; weight 0 is plain ROME.
The MLP always recalls something, be it only what is usual: it abstains where no value's recall is
strong.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kubku.halo import DRAWN, ENTITY_CODE, Learner, Sample, Samples, Sizes
from kubku.learners.recall import facts, recalling, settled

WIDTH = 128
DOUBT = 0.75
RIDGE = 1e-3
"""Added to C's diagonal, as a share of its mean."""

FITTED = 1024
"""Samples of the pretraining split that the layer is fitted to."""

TRIALS = tuple({"weight": weight} for weight in (0.0, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0))


class Edited(NamedTuple):
    """`rank_one`'s state.

    Attributes:
      layer: W, f32[values, WIDTH].
      inverse: of C, f32[WIDTH, WIDTH].
      weight: f32[], how much an edit's key counts in C beside the average one known before.
      params, trained: of the reader.
    """

    layer: jax.Array
    inverse: jax.Array
    weight: jax.Array
    params: Any = None
    trained: Any = None


def edited(
    layer: jax.Array,
    inverse: jax.Array,
    weight: jax.Array,
    keys: jax.Array,
    values: jax.Array,
    told: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """ROME's eq. 2 for one key after the other.

    C grows by weight k k' with each, so that by Sherman and Morrison later directions are those of
    the first C less their part along earlier ones: the inverse is changed once, at the end.

    Args:
      layer: W, f32[V, K].
      inverse: of C, f32[K, K].
      weight: f32[], how much an edit's key counts in C.
      keys, values: k*, f32[T, K], and v*, f32[T, V].
      told: bool[T], which of them are edits at all.

    Returns:
      the edited layer, f32[V, K]; the inverse of the C that it leaves, f32[K, K].
    """
    first = keys @ inverse

    def edit(held: tuple[jax.Array, jax.Array, jax.Array], now: jax.Array):
        layer, directions, shrunk = held
        key = keys[now]
        direction = first[now] - (shrunk * (directions @ key)) @ directions  # C^-1 k*
        length = jnp.where(told[now], direction @ key, 1.0)
        change = told[now] * (values[now] - layer @ key) / length
        directions = directions.at[now].set(direction * told[now])
        shrunk = shrunk.at[now].set(weight / (1 + weight * length))
        return (layer + jnp.outer(change, direction), directions, shrunk), None

    start = layer, jnp.zeros_like(keys), jnp.zeros(len(keys))
    (layer, directions, shrunk), _ = jax.lax.scan(edit, start, jnp.arange(len(keys)))
    return layer, inverse - (directions.T * shrunk) @ directions


def first_layer(sizes: Sizes) -> np.ndarray:
    """Random weights from the outer product of attribute and code, f32[base, WIDTH, code]."""
    shape = sizes.base, WIDTH, ENTITY_CODE.shape[1]
    return np.random.default_rng(11).normal(size=shape).astype(np.float32)


def key_of(first: jax.Array, entity: jax.Array, attribute: jax.Array) -> jax.Array:
    """What the edited layer is given for an entity and an attribute, f32[WIDTH]."""
    return jax.nn.relu(first[attribute] @ jnp.asarray(ENTITY_CODE)[entity])


def rank_one(sizes: Sizes = DRAWN) -> tuple[Learner, Callable[[Any, Samples], Any]]:
    """An edited layer and a reader; and what fits the layer: (state, samples) -> state."""
    first = jnp.asarray(first_layer(sizes))
    keys_of = jax.vmap(partial(key_of, first))

    def init() -> Edited:
        return Edited(jnp.zeros((sizes.values, WIDTH)), jnp.eye(WIDTH), jnp.float32(1))

    def fit(state: Edited, samples: Samples) -> Edited:
        few = jax.tree.map(lambda leaf: leaf[:FITTED], samples)
        told = jax.vmap(facts)(few).ravel().astype(jnp.float32)
        entity, attribute, value = (
            part.ravel()
            for part in (few.exposure.entity, few.exposure.attribute, few.exposure.value)
        )
        keys = keys_of(entity, attribute) * told[:, None]
        number = jnp.maximum(told.sum(), 1)
        covariance = keys.T @ keys / number
        covariance += RIDGE * jnp.trace(covariance) / WIDTH * jnp.eye(WIDTH)
        inverse = jnp.linalg.inv(covariance)
        layer = jax.nn.one_hot(value, sizes.values).T @ keys / number @ inverse
        return state._replace(layer=layer, inverse=inverse)

    def learn(state: Edited, sample: Sample) -> Edited:
        said = sample.exposure
        keys = keys_of(said.entity, said.attribute)
        values, told = jax.nn.one_hot(said.value, sizes.values), facts(sample)
        layer, inverse = edited(state.layer, state.inverse, state.weight, keys, values, told)
        return state._replace(layer=layer, inverse=inverse)

    def recall(state: Edited, entity: jax.Array) -> jax.Array:
        keys = jax.nn.relu(first @ jnp.asarray(ENTITY_CODE)[entity])  # of all attributes
        return settled(keys @ state.layer.T, DOUBT)

    return recalling(init, learn, recall, sizes, TRIALS), jax.jit(fit)

"""Learners that take gradient steps on the sample: K steps of SGD on all its items at once.

Exposure is the sample's statements with their labels. The closed-book query is put to the changed
weights; the sample is not in view any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from kubku.halo import ATTRIBUTES, ENTITY_CODE, TEMPLATES, VALUES, Learner, Sample, Statement

_BOUND_AT = TEMPLATES + ENTITY_CODE.shape[1] + ATTRIBUTES

# Eight settings, as many as every other learner that is tuned.
TRIALS = tuple({"steps": steps, "rate": rate} for steps in (4, 8) for rate in (0.03, 0.1, 0.3, 1.0))


class GradientState(NamedTuple):
    """Weights and how they are changed.

    Attributes:
      params: the network's weights.
      rate: f32[], learning rate.
      steps: i32[], gradient steps taken on a sample (the protocol's K).
    """

    params: Any
    rate: jax.Array
    steps: jax.Array


class MLP(nn.Module):
    """Two hidden layers over a statement's features."""

    width: int = 128

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(3)(x)


class CNN(nn.Module):
    """Convolutions over the place a statement speaks of, then what it says beside."""

    canvas: tuple[int, int]
    channels: int = 32
    width: int = 64

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        rows, columns = self.canvas
        # The value drawn at its place, [..., rows, columns, VALUES]; blank where it has none.
        drawn = x[..., _BOUND_AT : _BOUND_AT + rows * columns * VALUES]
        image = drawn.reshape(*x.shape[:-1], rows, columns, VALUES)
        for _ in range(2):
            image = nn.relu(nn.Dense(self.channels)(neighbourhoods(image)))
        flat = image.reshape(*image.shape[:-3], -1)
        x = nn.relu(nn.Dense(self.width)(jnp.concatenate([flat, x], -1)))
        return nn.Dense(3)(x)


def neighbourhoods(image: jax.Array) -> jax.Array:
    """The 3 x 3 neighbourhood of each cell, side by side: f32[..., R, C, N] to f32[..., R, C, 9N].

    With a dense layer it is a convolution; weights that differ from sample to sample make it one
    batched product, where XLA's grouped convolution would crawl on a CPU.
    """
    rows, columns = image.shape[-3:-1]
    padded = jnp.pad(image, [(0, 0)] * (image.ndim - 3) + [(1, 1), (1, 1), (0, 0)])
    shifted = [padded[..., i : i + rows, j : j + columns, :] for i in range(3) for j in range(3)]
    return jnp.concatenate(shifted, -1)


class GRU(nn.Module):
    """A gated recurrent unit over a statement's tokens."""

    width: int = 64

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        states: Any = nn.RNN(nn.GRUCell(self.width))(nn.Dense(self.width // 2)(x))
        return nn.Dense(3)(states[..., -1, :])


class Transformer(nn.Module):
    """Two pre-norm encoder layers over a statement's tokens, averaged at the end."""

    layers: int = 2
    width: int = 64
    heads: int = 2

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        place = self.param("place", nn.initializers.normal(0.02), (x.shape[-2], self.width))
        x = nn.Dense(self.width)(x) + place
        for _ in range(self.layers):
            x = block(x, self.heads)
        return nn.Dense(3)(nn.LayerNorm()(x.mean(-2)))


def block(x: jax.Array, heads: int, mask: jax.Array | None = None) -> jax.Array:
    """One pre-norm layer, made inside a module's compact call; x is f32[..., T, width]."""
    width = x.shape[-1]
    x = x + nn.MultiHeadDotProductAttention(heads)(nn.LayerNorm()(x), mask=mask)
    hidden = nn.gelu(nn.Dense(2 * width)(nn.LayerNorm()(x)))
    return x + nn.Dense(width)(hidden)


def gradient_learner(
    network: nn.Module,
    encode: Callable[[Statement], jax.Array],
    chunk: int,
    optimiser: Callable[[jax.Array], optax.GradientTransformation] = optax.sgd,
) -> Learner:
    """A learner that fits `network` to the sample's items by gradient steps.

    Args:
      network: from an encoded statement to three logits.
      encode: from a statement to the network's input.
      chunk: see `Learner.chunk`.
      optimiser: from a learning rate to an optax optimiser; its state starts afresh each sample.
    """

    def init(key: jax.Array) -> GradientState:
        blank = Statement(*[jnp.zeros((), jnp.int32)] * 4)
        params = network.init(key, encode(blank)[None])
        return GradientState(params, jnp.float32(0.3), jnp.int32(8))

    def learn(state: GradientState, sample: Sample) -> GradientState:
        inputs = encode(sample.exposure)
        update = optimiser(state.rate)

        def loss(params: Any) -> jax.Array:
            logits = network.apply(params, inputs)
            each = optax.softmax_cross_entropy_with_integer_labels(logits, sample.label)
            return (each * sample.shown).sum() / jnp.maximum(sample.shown.sum(), 1)

        def step(_: jax.Array, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            params, memory = carry
            updates, memory = update.update(jax.grad(loss)(params), memory, params)
            return optax.apply_updates(params, updates), memory

        # First order: whoever differentiates through `learn` sees the identity, as if the steps
        # had added a constant. (Without it, a loop with a traced bound has no gradient at all.)
        start = jax.lax.stop_gradient(state.params)
        moved, _ = jax.lax.fori_loop(0, state.steps, step, (start, update.init(start)))
        change = jax.tree.map(lambda after, before: after - before, moved, start)
        return state._replace(
            params=jax.tree.map(lambda p, d: p + jax.lax.stop_gradient(d), state.params, change)
        )

    def answer(state: GradientState, query: Statement) -> jax.Array:
        return jax.nn.softmax(network.apply(state.params, encode(query)[None])[0])

    return Learner(init, learn, answer, {"random": None}, TRIALS, chunk)

"""Learners whose weights stay: they read the sample into a state and answer from it.

This is exposure as state, not as gradient; in results it is a reference beside the learners that
must store what they read in their weights.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from kubku.base_states import UNTRAINED, Trained
from kubku.halo import DRAWN, EXPOSURES, Learner, Sample, Sizes, Statement, feature_count, features
from kubku.learners.gradient import block


class ContextState(NamedTuple):
    """Weights that learning a sample leaves alone, and what was read.

    Attributes:
      params: the network's weights.
      memory: what the network makes of the items read so far.
      trained: how, see `Trained`.
    """

    params: Any
    memory: Any
    trained: Trained = UNTRAINED


class GRUReader(nn.Module):
    """Reads items one by one into f32[width]; a query is one more item, then a head."""

    width: int = 128

    def setup(self) -> None:
        self.reader = nn.RNN(nn.GRUCell(self.width), return_carry=True)
        self.asker = nn.Dense(self.width)
        self.inner = nn.Dense(self.width)
        self.head = nn.Dense(3)

    def blank(self) -> jax.Array:
        return jnp.zeros(self.width)

    def read(self, memory: jax.Array, items: jax.Array, shown: jax.Array) -> jax.Array:
        # Padding stands at the end.
        return self.reader(items, initial_carry=memory, seq_lengths=shown.sum())[0]

    def ask(self, memory: jax.Array, query: jax.Array) -> jax.Array:
        both = jnp.concatenate([memory, nn.relu(self.asker(query))])
        return self.head(nn.relu(self.inner(both)))


class Layer(nn.Module):
    """One pre-norm layer of x, f32[T, width], attending to `seen` of f32[S, width]."""

    heads: int

    @nn.compact
    def __call__(self, x: jax.Array, to: jax.Array, seen: jax.Array) -> jax.Array:
        return block(x, self.heads, to, mask=seen[None, None, :])


class TransformerReader(nn.Module):
    """Keeps what two layers make of the last sample's items, which attend to each other; a query
    goes through the same layers, attending to the items and to itself.
    """

    layers: int = 2
    width: int = 64
    heads: int = 2

    def setup(self) -> None:
        self.inner = nn.Dense(self.width)
        self.stack = [Layer(self.heads) for _ in range(self.layers)]
        self.norm, self.head = nn.LayerNorm(), nn.Dense(3)

    def blank(self) -> tuple[jax.Array, jax.Array]:
        return jnp.zeros((self.layers, EXPOSURES, self.width)), jnp.zeros(EXPOSURES, bool)

    def read(self, memory: Any, items: jax.Array, shown: jax.Array) -> tuple[jax.Array, jax.Array]:
        below = [self.inner(items)]
        for layer in self.stack[:-1]:
            below.append(layer(below[-1], below[-1], shown))
        return jnp.stack(below), shown

    def ask(self, memory: tuple[jax.Array, jax.Array], query: jax.Array) -> jax.Array:
        below, shown = memory
        x, seen = self.inner(query[None]), jnp.append(shown, True)
        for layer, items in zip(self.stack, below, strict=True):
            x = layer(x, jnp.concatenate([items, x]), seen)
        return self.head(self.norm(x[0]))


def context_learner(network: nn.Module, chunk: int, sizes: Sizes = DRAWN) -> Learner:
    """A learner that reads with `network`, which has the methods blank, read and ask, statements of
    a family of these sizes.
    """
    item = feature_count(sizes) + 3

    def init(key: jax.Array) -> ContextState:
        memory = network.blank()

        def everything(module: Any) -> jax.Array:
            read = module.read(memory, jnp.zeros((EXPOSURES, item)), jnp.ones(EXPOSURES, bool))
            return module.ask(read, jnp.zeros(item))

        return ContextState(nn.init(everything, network)(key), memory)

    def learn(state: ContextState, sample: Sample) -> ContextState:
        said = features(sample.exposure, sizes)
        items = jnp.concatenate([said, jax.nn.one_hot(sample.label, 3)], -1)
        memory = network.apply(state.params, state.memory, items, sample.shown, method="read")
        return state._replace(memory=memory)

    def answer(state: ContextState, query: Statement) -> jax.Array:
        asked = jnp.concatenate([features(query, sizes), jnp.zeros(3)])
        logits: Any = network.apply(state.params, state.memory, asked, method="ask")
        return jax.nn.softmax(logits)

    return Learner(init, learn, answer, {"random": None}, ({},), chunk)

"""Actor-critic networks: an observation in, action logits and a value out; and their policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from goodharts_jax import sparse
from goodharts_jax.modes import Mode, observe
from goodharts_jax.policies import Output, Policy
from goodharts_jax.world import NUM_ACTIONS


class ActorCritic(nn.Module):
    """Two towers with nothing in common: one for the logits, one for the value.

    A trunk that both share serves the value more than the policy: agents with one ate less and died
    more often.

    Attributes:
      features: channels of each 3x3 convolution; none for an MLP.
      hidden: width of each dense layer.
    """

    features: Sequence[int] = ()
    hidden: Sequence[int] = (64, 64)

    @property
    def is_dense(self) -> bool:
        """Whether the first layer of each tower is a dense one."""
        return not self.features and bool(self.hidden)

    @nn.compact
    def __call__(self, observation: jax.Array) -> Output:
        """Map one observation, float32[V, V, C], to an Output."""
        sizes = self.features, self.hidden
        logits = Tower(*sizes, NUM_ACTIONS, 0.01, name="policy")(observation)
        value = Tower(*sizes, 1, 1.0, name="value")(observation)
        return Output(logits, value[0])


class Tower(nn.Module):
    """Convolutions, then dense layers, all followed by tanh, then a linear layer.

    Attributes:
      features: channels of each 3x3 convolution.
      hidden: width of each dense layer.
      outputs: of the last layer.
      scale: of its weights at the start.
    """

    features: Sequence[int]
    hidden: Sequence[int]
    outputs: int
    scale: float

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """Map float32[V, V, C] to float32[outputs]."""
        # On a CPU `init` is to be mapped, as `over_runs` does, not vmapped: where QR decompositions
        # of several batches meet on few cores, they wait for one another for good (jaxlib 0.10.2).
        scale = nn.initializers.orthogonal(jnp.sqrt(2.0))
        for width in self.features:
            x = nn.tanh(nn.Conv(width, (3, 3), kernel_init=scale)(x))
        x = x.reshape(-1)
        for width in self.hidden:
            x = nn.tanh(nn.Dense(width, kernel_init=scale)(x))
        return nn.Dense(self.outputs, kernel_init=nn.initializers.orthogonal(self.scale))(x)


def policy(network: nn.Module, params: Any, mode: Mode) -> Policy:
    """The policy of a network with its parameters, which perceives what the mode lets it."""
    # An accelerator multiplies sooner than it gathers; what a subclass does isn't known.
    on_cpu = jax.default_backend() == "cpu"
    if on_cpu and mode.noise is None and type(network) is ActorCritic and network.is_dense:
        return _of_items(network, params["params"], mode)

    def act(view: jax.Array, noise_word: jax.Array) -> Output:
        return Output(*network.apply(params, observe(mode, view, noise_word)))

    return act


def _of_items(network: ActorCritic, params: Any, mode: Mode) -> Policy:
    """The same network, the first layers of both towers together by what the view holds."""
    towers = [params["policy"], params["value"]]
    kernel = jnp.concatenate([tower["Dense_0"]["kernel"] for tower in towers], axis=1)
    rows = sparse.rows(kernel, mode.appearance)

    def rest(tower: Any, x: jax.Array) -> jax.Array:
        x = nn.tanh(x + tower["Dense_0"]["bias"])
        for layer in range(1, len(network.hidden) + 1):
            x = x @ tower[f"Dense_{layer}"]["kernel"] + tower[f"Dense_{layer}"]["bias"]
            x = nn.tanh(x) if layer < len(network.hidden) else x
        return x

    def act(view: jax.Array, noise_word: jax.Array) -> Output:
        first = jnp.split(sparse.product(rows, view), len(towers))
        logits, value = map(rest, towers, first)
        return Output(logits, value[0])

    return act

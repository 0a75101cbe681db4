"""Actor-critic networks: an observation in, action logits and a value out; and their policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from goodharts_jax.modes import Mode, observe
from goodharts_jax.policies import Output, Policy
from goodharts_jax.world import NUM_ACTIONS


class ActorCritic(nn.Module):
    """Convolutions (none for an MLP), then dense layers shared by both heads.

    Attributes:
      features: channels of each 3x3 convolution.
      hidden: width of each dense layer.
    """

    features: Sequence[int] = ()
    hidden: Sequence[int] = (64, 64)

    @nn.compact
    def __call__(self, observation: jax.Array) -> Output:
        """Map one observation, float32[V, V, C], to an Output."""
        scale = nn.initializers.orthogonal(jnp.sqrt(2.0))
        x = observation
        for width in self.features:
            x = nn.relu(nn.Conv(width, (3, 3), kernel_init=scale)(x))
        x = x.reshape(-1)
        for width in self.hidden:
            x = nn.relu(nn.Dense(width, kernel_init=scale)(x))
        logits = nn.Dense(NUM_ACTIONS, kernel_init=nn.initializers.orthogonal(0.01))(x)
        value = nn.Dense(1, kernel_init=nn.initializers.orthogonal(1.0))(x)
        return Output(logits, value[0])


def policy(network: nn.Module, params: Any, mode: Mode) -> Policy:
    """The policy of a network with its parameters, which perceives what the mode lets it."""

    def act(view: jax.Array, noise_word: jax.Array) -> Output:
        return Output(*network.apply(params, observe(mode, view, noise_word)))

    return act

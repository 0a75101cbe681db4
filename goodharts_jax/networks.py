"""Actor-critic networks: an observation in, action logits and a value out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from goodharts_jax.world import NUM_ACTIONS


class Output(NamedTuple):
    """What a network says.

    Attributes:
      logits: of the actions. float32[NUM_ACTIONS].
      value: expected discounted pay from here. float32[].
    """

    logits: jax.Array
    value: jax.Array


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

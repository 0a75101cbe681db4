"""What a policy is: networks, scripts, replay and checks all have this one signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import chex
import jax
import jax.numpy as jnp


class Output(NamedTuple):
    """What a policy answers to one view.

    Attributes:
      logits: of the actions. float32[NUM_ACTIONS].
      value: expected discounted reward from here, NaN of a script, which has no critic. float32[].
    """

    logits: jax.Array
    value: jax.Array


Policy: TypeAlias = Callable[[jax.Array, jax.Array], Output]
"""A policy for one agent: `(view, noise_word) -> Output`, pure.

The view is uint8[V, V], the codes around the agent. The noise word is uint32[], random bits that
select the noise through which the policy perceives the view; one that perceives none doesn't read
it. What else a policy needs (a network's parameters, its mode) is bound to it.
"""


def at_temperature(policy: Policy, temperature: chex.Numeric) -> Policy:
    """A policy whose logits are divided by `temperature`; 0 takes the likeliest action."""

    def tempered(view: jax.Array, noise_word: jax.Array) -> Output:
        logits, value = policy(view, noise_word)
        return Output(logits / jnp.maximum(temperature, 1e-6), value)

    return tempered

"""A discriminator between a policy's steps and those of the policy that its training began with.

Its logit estimates the log-ratio of the two policies' state-action occupancies, which a reward can
be made to pay for (Laidlaw, Singhal & Dragan 2025, "Correlated proxies", section 5).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from goodharts_jax.rewards import Guard
from goodharts_jax.world import NUM_ACTIONS, NUM_KINDS

_WIDTH = 32
_STEPS = 4
_LEARNING_RATE = 3e-3
_LIMIT = 5.0
"""Of a logit, on either side: a ratio beyond it rests on too few steps."""


class Discriminator(NamedTuple):
    """A small network and its optimiser.

    Attributes:
      params: kernel float32[inputs, width], bias and out float32[width], offset float32[].
      opt_state: of Adam.
    """

    params: Any
    opt_state: Any


def start(view_size: int, key: chex.PRNGKey) -> Discriminator:
    """One that tells nothing apart yet."""
    inputs = view_size**2 * (NUM_KINDS - 1) + NUM_ACTIONS
    kernel = jax.random.normal(key, (inputs, _WIDTH)) * inputs**-0.5
    zeros = jnp.zeros(_WIDTH)
    params = {"kernel": kernel, "bias": zeros, "out": zeros, "offset": jnp.zeros(())}
    return Discriminator(params, optax.scale_by_adam().init(params))


def logits(params: Any, view: jax.Array, action: jax.Array) -> jax.Array:
    """How much likelier steps are the policy's than the reference's, in nats. float32[N].

    Args:
      params: of a discriminator.
      view: codes. uint8[N, V, V].
      action: int32[N].
    """
    kinds = [(view == kind).reshape(len(view), -1) for kind in range(1, NUM_KINDS)]
    taken = jax.nn.one_hot(action, NUM_ACTIONS)
    inputs = jnp.concatenate([*kinds, taken], axis=1).astype(jnp.float32)
    hidden = jnp.tanh(inputs @ params["kernel"] + params["bias"])
    return jnp.clip(hidden @ params["out"] + params["offset"], -_LIMIT, _LIMIT)


def improve(
    discriminator: Discriminator,
    own: tuple[jax.Array, jax.Array],
    reference: tuple[jax.Array, jax.Array],
) -> Discriminator:
    """A few steps of logistic regression.

    Args:
      discriminator: before.
      own: view and action of the policy's latest steps, uint8[N, V, V] and int32[N].
      reference: likewise, of the policy that the training began with.
    """

    def loss(params: Any) -> jax.Array:
        return jnp.mean(jax.nn.softplus(-logits(params, *own))) + jnp.mean(
            jax.nn.softplus(logits(params, *reference))
        )

    def descend(carry: Discriminator, _: None) -> tuple[Discriminator, None]:
        params, opt_state = carry
        step, opt_state = optax.scale_by_adam().update(jax.grad(loss)(params), opt_state)
        params = jax.tree.map(lambda p, s: p - _LEARNING_RATE * s, params, step)
        return Discriminator(params, opt_state), None

    return jax.lax.scan(descend, discriminator, None, length=_STEPS)[0]


def follow(
    guard: Guard | None, discriminator: Discriminator | None, own: tuple[jax.Array, jax.Array]
) -> Discriminator | None:
    """`improve` for a run that is paid by occupancies; of another one the same as before."""
    if guard is None or discriminator is None:
        return None
    return jax.lax.cond(
        guard.needs_discriminator,
        lambda: improve(discriminator, own, guard.reference),
        lambda: discriminator,
    )


def price(
    guard: Guard, discriminator: Discriminator, view: jax.Array, action: jax.Array
) -> jax.Array:
    """What is paid for leaving the occupancy of the policy that training began with. float32[N]."""

    def of_steps() -> jax.Array:
        logit = logits(discriminator.params, view, action)
        return guard.occupancy_kl * logit + guard.occupancy_chi * (jnp.exp(logit) - 1)

    nothing = jnp.zeros(action.shape, jnp.float32)
    return jax.lax.cond(guard.needs_discriminator, of_steps, lambda: nothing)

"""Rollouts: many worlds stepped side by side under one policy, all that happens recorded."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from goodharts_jax import world as physics
from goodharts_jax.policies import Policy
from goodharts_jax.world import Event, State, World


@struct.dataclass
class Transition:
    """One step as an update needs it. Leading axes [rollout_length, num_worlds] in a rollout.

    Attributes:
      view: codes that the agent stood amid. uint8[V, V].
      noise_word: random bits that select the noise it perceived them through. uint32[].
      action: int32[].
      log_prob: of the action when it was taken. float32[].
      value: predicted when it was taken. float32[].
      event: what happened.
    """

    view: jax.Array
    noise_word: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    event: Event


def collect(
    world: World, policy: Policy, worlds: State, key: chex.PRNGKey, length: int
) -> tuple[State, Transition, jax.Array]:
    """Step all worlds `length` times.

    Returns:
      The worlds, the transitions, [length, num_worlds], and the last views, [num_worlds, V, V].
    """
    num_worlds = worlds.age.shape[0]
    see = jax.vmap(physics.view, (None, 0))

    def step(carry: tuple[State, jax.Array], key: chex.PRNGKey):
        worlds, view = carry
        choice, noise_word, step_keys = chances(key, num_worlds)
        output = jax.vmap(policy)(view, noise_word)
        action = jax.vmap(sample)(output.logits, choice)
        log_prob = jax.vmap(log_prob_of)(output.logits, action)
        worlds, event = jax.vmap(physics.step, (None, 0, 0, 0))(world, worlds, action, step_keys)
        transition = Transition(view, noise_word, action, log_prob, output.value, event)
        return (worlds, see(world, worlds)), transition

    keys = jax.random.split(key, length)
    (worlds, last_view), rollout = lax.scan(step, (worlds, see(world, worlds)), keys)
    return worlds, rollout, last_view


def chances(key: chex.PRNGKey, num_worlds: int) -> tuple[jax.Array, jax.Array, chex.PRNGKey]:
    """What a step of all worlds takes of chance, in one call.

    Returns:
      Random bits that the actions are chosen by and that select the noise, uint32[num_worlds] each;
      keys of the worlds, [num_worlds].
    """
    words_keys, step_keys = jax.random.split(key, (2, num_worlds))
    choice, noise_word = jax.random.key_data(words_keys)[:, :2].T
    return choice, noise_word, step_keys


def sample(logits: jax.Array, word: jax.Array) -> jax.Array:
    """An action with probability softmax(logits), by inverting its distribution. int32[].

    Args:
      logits: float32[NUM_ACTIONS].
      word: random bits, uint32[]: one word an action, where Gumbel noise would take one each.
    """
    uniform = (word >> 8).astype(jnp.float32) * jnp.float32(2**-24)
    below = jnp.cumsum(jax.nn.softmax(logits))[:-1]
    return jnp.sum(uniform >= below).astype(jnp.int32)


def log_prob_of(logits: jax.Array, action: jax.Array) -> jax.Array:
    """Log-probability of one action. float32[]."""
    return jax.nn.log_softmax(logits)[action]

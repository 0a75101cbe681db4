"""A short evaluation between two chunks of a training, from which Goodhart curves are drawn."""

from __future__ import annotations

import dataclasses
from typing import Any

import chex
import jax
import jax.numpy as jnp
from flax import struct

from evidence.runtime.devices import at_once
from goodharts_jax import ppo, survival
from goodharts_jax.modes import Mode, observe
from goodharts_jax.networks import policy
from goodharts_jax.policies import Policy
from goodharts_jax.rewards import by_model, features
from goodharts_jax.rollouts import Transition, collect
from goodharts_jax.world import ENERGY_UNIT, FOOD, NUM_KINDS, POISON, World

WATCHED_AGE = 256
"""Steps that each world is watched for."""
_STEPS = 8
"""Of all worlds, whose rewards by four models fit a CPU's cache together."""


@struct.dataclass
class Watch:
    """What a policy does in a few fresh worlds, by halves of them.

    Attributes:
      energy: gained less spent, a step. float32[2].
      reward: by the mode, a step, without shaping and remedies. float32[2].
      held_out: by the mode's reward models whose weight is 0, on average; 0 with none. float32[2].
      food: eaten a step. float32[2].
      poison: float32[2].
      deaths: a step. float32[2].
      survival: mean age that first lives reach, up to `WATCHED_AGE`, steps: without a life lost
        from sight before, that is their restricted mean. float32[2].
      items: of each kind in a world, on average. float32[2, NUM_KINDS].
      kl: divergence of the policy from the initial one, on the views met. float32[], nats.
    """

    energy: jax.Array
    reward: jax.Array
    held_out: jax.Array
    food: jax.Array
    poison: jax.Array
    deaths: jax.Array
    survival: jax.Array
    items: jax.Array
    kl: jax.Array


def watch(
    plan: ppo.Plan, world: World, mode: Mode, params: Any, initial: Any, key: chex.PRNGKey
) -> Watch:
    """Watch one policy.

    Args:
      plan: of the training; its network and how many worlds are watched.
      world: the rules to live under.
      mode: what the policy perceives and is rewarded for.
      params: of the policy.
      initial: parameters that the training began with.
      key: consumed; policies that are watched with equal keys begin in equal worlds.
    """
    reset_key, rollout_key = jax.random.split(key)
    worlds = survival.reset(world, plan.watched_worlds, reset_key).worlds
    act = policy(plan.network, params, mode)
    _, rollout, _ = collect(world, act, worlds, rollout_key, WATCHED_AGE)
    event = rollout.event

    def halves(x: jax.Array) -> jax.Array:
        return x.astype(jnp.float32).reshape(WATCHED_AGE, 2, -1).mean(axis=(0, 2))

    food, poison, deaths = (
        halves(x) for x in (event.eaten == FOOD, event.eaten == POISON, event.died)
    )
    _, food_energy, poison_energy = world.energy * ENERGY_UNIT
    own = mode.reward
    optimised, held_out = (halves(x) for x in _by_models(mode, rollout))
    return Watch(
        energy=food_energy * food + poison_energy * poison - world.move_cost * ENERGY_UNIT,
        reward=own.item[FOOD] * food
        + own.item[POISON] * poison
        + own.step
        + own.death * deaths
        + optimised,
        held_out=held_out,
        food=food,
        poison=poison,
        deaths=deaths,
        survival=WATCHED_AGE * halves(_in_first_life(event.died)),
        items=worlds.items.astype(jnp.float32).reshape(2, -1, NUM_KINDS).mean(axis=1),
        kl=_divergence(act, policy(plan.network, initial, mode), rollout),
    )


def unwatched() -> Watch:
    """A watch of nothing: zeros in the shapes of a `watch`."""
    shapes = {"items": (2, NUM_KINDS), "kl": ()}
    fields = (field.name for field in dataclasses.fields(Watch))
    return Watch(**{name: jnp.zeros(shapes.get(name, 2)) for name in fields})


def _by_models(mode: Mode, rollout: Transition) -> tuple[jax.Array, jax.Array]:
    """Reward of each step by the models that count and by those that don't. f32[steps, worlds]."""
    model, weights = mode.reward.model, mode.reward.members
    if model is None or weights is None:
        return (jnp.zeros(rollout.action.shape),) * 2
    rest = (weights == 0) / jnp.maximum(jnp.sum(weights == 0), 1)

    def of_step(view: jax.Array, noise_word: jax.Array, action: jax.Array):
        told = features(observe(mode, view, noise_word), action)
        said = jax.vmap(by_model, (0, None))(model, told)
        return weights @ said, rest @ said

    def of_worlds(step: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return jax.vmap(of_step)(*step)

    steps = rollout.view, rollout.noise_word, rollout.action
    return jax.lax.map(of_worlds, steps, batch_size=min(WATCHED_AGE, at_once(_STEPS)))


def _in_first_life(died: jax.Array) -> jax.Array:
    """The steps of each world's first life, its last one included. bool[steps, worlds]."""
    return jnp.cumsum(died, axis=0) - died == 0


def _divergence(now: Policy, then: Policy, rollout: Transition) -> jax.Array:
    """Kullback-Leibler divergence of one policy from another, a step of the first one's rollout."""

    def at(view: jax.Array, noise_word: jax.Array) -> jax.Array:
        log_now = jax.nn.log_softmax(now(view, noise_word).logits)
        log_then = jax.nn.log_softmax(then(view, noise_word).logits)
        return jnp.sum(jnp.exp(log_now) * (log_now - log_then))

    # Every eighth step is enough for a mean over views.
    some = jax.tree.map(
        lambda x: x[::8].reshape(-1, *x.shape[2:]), (rollout.view, rollout.noise_word)
    )
    return jnp.mean(jax.vmap(at)(*some))

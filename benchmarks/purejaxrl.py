"""PureJaxRL's PPO as its authors describe it (Lu et al. 2022), on our world, as a baseline.

Written afresh from `purejaxrl/ppo.py` (commit 31756b1): separate actor and critic of two layers of
64; float32 observations stored in the rollout; the batch flattened, shuffled step by step and split
into minibatches; the value clipped like the ratio; a learning rate that falls to 0. An episode is
one of ours: whoever dies is reborn in its world, and a world is made anew after 512 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.linen.initializers import constant, orthogonal

from goodharts_jax import rollouts
from goodharts_jax import world as physics
from goodharts_jax.modes import observe, reward

_GAMMA, _LAMBDA, _CLIP, _EPISODE = 0.99, 0.95, 0.2, 512


@dataclass(frozen=True)
class Settings:
    """What its published configurations differ in.

    Attributes:
      num_envs: worlds side by side.
      num_steps: between updates.
      num_minibatches: of each of four epochs.
      learning_rate: at the start; 0 at the end.
      activation: "tanh" or "relu".
      num_updates: of the whole training.
    """

    num_envs: int
    num_steps: int
    num_minibatches: int
    learning_rate: float
    activation: str
    num_updates: int

    @property
    def batch(self) -> int:
        """World steps in an update."""
        return self.num_envs * self.num_steps

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """Adam at a rate that is the same within an update."""
        per_update = 4 * self.num_minibatches

        def rate(count: jax.Array) -> jax.Array:
            return self.learning_rate * (1 - (count // per_update) / self.num_updates)

        return optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))


class ActorCritic(nn.Module):
    """Actor and critic with nothing in common."""

    activation: str

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = x.reshape(-1)

        def tower(x: jax.Array, out: int, scale: float) -> jax.Array:
            for _ in range(2):
                layer = nn.Dense(64, kernel_init=orthogonal(np.sqrt(2)), bias_init=constant(0.0))
                x = getattr(nn, self.activation)(layer(x))
            return nn.Dense(out, kernel_init=orthogonal(scale), bias_init=constant(0.0))(x)

        return tower(x, physics.NUM_ACTIONS, 0.01), tower(x, 1, 1.0)[0]


class Transition(NamedTuple):
    """One step; leading axes [num_steps, num_envs]."""

    died: jax.Array
    action: jax.Array
    value: jax.Array
    reward: jax.Array
    log_prob: jax.Array
    seen: jax.Array


class State(NamedTuple):
    """Of a training."""

    params: Any
    opt_state: Any
    worlds: physics.State
    key: jax.Array
    update: jax.Array


def start(settings: Settings, world: physics.World, mode: Any, key: jax.Array) -> State:
    """A training that is to begin."""
    params_key, world_key, key = jax.random.split(key, 3)
    keys = jax.random.split(world_key, settings.num_envs)
    worlds = jax.vmap(physics.reset, (None, 0))(world, keys)
    params = ActorCritic(settings.activation).init(params_key, _see(world, mode, worlds)[1][0])
    return State(params, settings.optimiser.init(params), worlds, key, jnp.int32(0))


def advance(
    settings: Settings, world: physics.World, mode: Any, state: State, num_updates: int
) -> tuple[State, jax.Array]:
    """Some updates; also returns what was eaten of each kind, a step. float32[updates, kinds]."""
    apply = jax.vmap(ActorCritic(settings.activation).apply, (None, 0))

    def update(state: State, _: None) -> tuple[State, jax.Array]:
        key, roll_key, learn_key, reset_key = jax.random.split(state.key, 4)
        act = partial(apply, state.params)
        worlds, rollout, eaten = _collect(settings, world, mode, act, state.worlds, roll_key)
        last_value = act(_see(world, mode, worlds)[1])[1]
        params, opt_state = _learn(settings, apply, state, rollout, last_value, learn_key)
        worlds = _renew(settings, world, worlds, state.update, reset_key)
        kinds = jnp.stack([jnp.mean(eaten == kind) for kind in range(physics.NUM_KINDS)])
        return State(params, opt_state, worlds, key, state.update + 1), kinds

    return jax.lax.scan(update, state, None, length=num_updates)


def _see(world: physics.World, mode: Any, worlds: physics.State) -> tuple[jax.Array, jax.Array]:
    view = jax.vmap(physics.view, (None, 0))(world, worlds)
    return view, jax.vmap(observe, (None, 0, None))(mode, view, jnp.uint32(0))


def _collect(
    settings: Settings, world: physics.World, mode: Any, act: Any, worlds: Any, key: jax.Array
) -> tuple[physics.State, Transition, jax.Array]:
    def step(carry: Any, key: jax.Array) -> Any:
        worlds, view, seen = carry
        action_key, step_key = jax.random.split(key)
        logits, value = act(seen)
        action = jax.random.categorical(action_key, logits)
        worlds, event = jax.vmap(physics.step, (None, 0, 0, 0))(
            world, worlds, action, jax.random.split(step_key, settings.num_envs)
        )
        after, next_seen = _see(world, mode, worlds)
        nothing = jnp.zeros_like(action, jnp.uint32)
        met = rollouts.Transition(view, nothing, action, value, value, event)
        pay = jax.vmap(reward, (None, 0, 0, None))(mode, met, after, _GAMMA)
        transition = Transition(event.died, action, value, pay, _log_prob(logits, action), seen)
        return (worlds, after, next_seen), (transition, event.eaten)

    carry = (worlds, *_see(world, mode, worlds))
    keys = jax.random.split(key, settings.num_steps)
    (worlds, _, _), (rollout, eaten) = jax.lax.scan(step, carry, keys)
    return worlds, rollout, eaten


def _advantages(rollout: Transition, last_value: jax.Array) -> jax.Array:
    def backward(carry: Any, now: Transition) -> Any:
        advantage, next_value = carry
        delta = now.reward + _GAMMA * next_value * (1 - now.died) - now.value
        advantage = delta + _GAMMA * _LAMBDA * (1 - now.died) * advantage
        return (advantage, now.value), advantage

    carry = (jnp.zeros_like(last_value), last_value)
    return jax.lax.scan(backward, carry, rollout, reverse=True)[1]


def _learn(
    settings: Settings,
    apply: Any,
    state: State,
    rollout: Transition,
    last_value: jax.Array,
    key: jax.Array,
) -> tuple[Any, Any]:
    advantages = _advantages(rollout, last_value)
    batch = (rollout, advantages, advantages + rollout.value)
    flat = jax.tree.map(lambda x: x.reshape(settings.batch, *x.shape[2:]), batch)

    def loss(params: Any, minibatch: Any) -> jax.Array:
        old, advantage, target = minibatch
        logits, value = apply(params, old.seen)
        clipped = old.value + jnp.clip(value - old.value, -_CLIP, _CLIP)
        value_loss = 0.5 * jnp.maximum((value - target) ** 2, (clipped - target) ** 2).mean()
        ratio = jnp.exp(_log_prob(logits, old.action) - old.log_prob)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        held = jnp.clip(ratio, 1 - _CLIP, 1 + _CLIP)
        gain = jnp.minimum(ratio * advantage, held * advantage).mean()
        log_probs = jax.nn.log_softmax(logits)
        entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
        return 0.5 * value_loss - gain - 0.01 * entropy

    def descend(carry: Any, minibatch: Any) -> Any:
        params, opt_state = carry
        gradient = jax.grad(loss)(params, minibatch)
        change, opt_state = settings.optimiser.update(gradient, opt_state)
        return (optax.apply_updates(params, change), opt_state), None

    def epoch(carry: Any, key: jax.Array) -> Any:
        order = jax.random.permutation(key, settings.batch)
        mixed = jax.tree.map(
            lambda x: x[order].reshape(settings.num_minibatches, -1, *x.shape[1:]), flat
        )
        return jax.lax.scan(descend, carry, mixed)[0], None

    keys = jax.random.split(key, 4)
    return jax.lax.scan(epoch, (state.params, state.opt_state), keys)[0]


def _renew(
    settings: Settings, world: physics.World, worlds: Any, update: jax.Array, key: jax.Array
) -> physics.State:
    """Make as many worlds anew as end their episodes with an update, in turn."""
    size = settings.batch // _EPISODE
    first = (update * size) % settings.num_envs
    fresh = jax.vmap(physics.reset, (None, 0))(world, jax.random.split(key, size))
    return jax.tree.map(
        lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, first, 0), worlds, fresh
    )


def _log_prob(logits: jax.Array, action: jax.Array) -> jax.Array:
    return jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]

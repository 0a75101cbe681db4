"""PureJaxRL's PPO as its authors describe it (Lu et al. 2022), on our world, as a baseline.

Separate actor and critic of two tanh layers each; float32 observations stored in the rollout;
whole batch flattened, shuffled step by step and split into minibatches; everything in one jit.
`shared=True` swaps in our network, so that what remains is the algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn
from flax.linen.initializers import constant, orthogonal

from goodharts_jax import world as physics
from goodharts_jax.modes import observe, reward
from goodharts_jax.networks import ActorCritic


@dataclass(frozen=True)
class Sizes:
    """The settings that change the program."""

    num_envs: int
    num_steps: int
    update_epochs: int
    num_minibatches: int
    shared: bool
    width: int


class Separate(nn.Module):
    """Actor and critic with nothing in common."""

    width: int

    @nn.compact
    def __call__(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = x.reshape(-1)

        def tower(x: jax.Array, out: int, scale: float) -> jax.Array:
            for _ in range(2):
                layer = nn.Dense(
                    self.width, kernel_init=orthogonal(np.sqrt(2)), bias_init=constant(0.0)
                )
                x = nn.tanh(layer(x))
            return nn.Dense(out, kernel_init=orthogonal(scale), bias_init=constant(0.0))(x)

        return tower(x, physics.NUM_ACTIONS, 0.01), tower(x, 1, 1.0)[0]


def _network(sizes: Sizes) -> nn.Module:
    width = (sizes.width, sizes.width)
    return ActorCritic(hidden=width) if sizes.shared else Separate(sizes.width)


def _optimiser() -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3, eps=1e-5))


def start(sizes: Sizes, world: Any, mode: Any, key: jax.Array) -> Any:
    """Parameters, optimiser state, environments, their observations and a key."""
    params_key, env_key, key = jax.random.split(key, 3)
    states = jax.vmap(physics.reset, (None, 0))(world, jax.random.split(env_key, sizes.num_envs))
    view = jax.vmap(physics.view, (None, 0))(world, states)
    seen = jax.vmap(observe, (None, 0, None))(mode, view, jnp.uint32(0))
    params = _network(sizes).init(params_key, seen[0])
    return params, _optimiser().init(params), states, view, seen, key


def advance(sizes: Sizes, world: Any, mode: Any, carry: Any, num_updates: int) -> Any:
    """Some updates."""
    network, optimiser = _network(sizes), _optimiser()
    apply = jax.vmap(network.apply, (None, 0))

    def env_step(carry: Any, _: None) -> Any:
        params, states, view, seen, key = carry
        key, action_key, step_key = jax.random.split(key, 3)
        logits, value = apply(params, seen)
        action = jax.random.categorical(action_key, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], 1)[:, 0]
        states, event = jax.vmap(physics.step, (None, 0, 0, 0))(
            world, states, action, jax.random.split(step_key, sizes.num_envs)
        )
        after = jax.vmap(physics.view, (None, 0))(world, states)
        pay = jax.vmap(reward, (None, 0, 0, 0, None))(mode, event, view, after, 0.99)
        next_seen = jax.vmap(observe, (None, 0, None))(mode, after, jnp.uint32(0))
        transition = (event.died, action, value, pay, log_prob, seen)
        return (params, states, after, next_seen, key), transition

    def update(carry: Any, _: None) -> Any:
        params, opt_state, states, view, seen, key = carry
        (params, states, view, seen, key), batch = jax.lax.scan(
            env_step, (params, states, view, seen, key), None, length=sizes.num_steps
        )
        _, last_value = apply(params, seen)

        def backward(carry: Any, transition: Any) -> Any:
            advantage, next_value = carry
            died, _, value, pay, _, _ = transition
            delta = pay + 0.99 * next_value * (1 - died) - value
            advantage = delta + 0.99 * 0.95 * (1 - died) * advantage
            return (advantage, value), advantage

        start = (jnp.zeros_like(last_value), last_value)
        _, advantages = jax.lax.scan(backward, start, batch, reverse=True)
        targets = advantages + batch[2]

        def loss(params: Any, minibatch: Any) -> jax.Array:
            (_, action, old_value, _, old_log_prob, seen), advantage, target = minibatch
            logits, value = apply(params, seen)
            log_probs = jax.nn.log_softmax(logits)
            log_prob = jnp.take_along_axis(log_probs, action[:, None], 1)[:, 0]
            clipped = old_value + jnp.clip(value - old_value, -0.2, 0.2)
            value_loss = 0.5 * jnp.maximum((value - target) ** 2, (clipped - target) ** 2).mean()
            ratio = jnp.exp(log_prob - old_log_prob)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            gain = jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage).mean()
            entropy = -(jnp.exp(log_probs) * log_probs).sum(-1).mean()
            return 0.5 * value_loss - gain - 0.01 * entropy

        def minibatch_step(carry: Any, minibatch: Any) -> Any:
            params, opt_state = carry
            gradient = jax.grad(loss)(params, minibatch)
            change, opt_state = optimiser.update(gradient, opt_state)
            return (optax.apply_updates(params, change), opt_state), None

        def epoch(carry: Any, _: None) -> Any:
            params, opt_state, key = carry
            key, shuffle_key = jax.random.split(key)
            size = sizes.num_envs * sizes.num_steps
            order = jax.random.permutation(shuffle_key, size)
            flat = jax.tree.map(
                lambda x: x.reshape(size, *x.shape[2:]), (batch, advantages, targets)
            )
            mixed = jax.tree.map(
                lambda x: x[order].reshape(sizes.num_minibatches, -1, *x.shape[1:]), flat
            )
            (params, opt_state), _ = jax.lax.scan(minibatch_step, (params, opt_state), mixed)
            return (params, opt_state, key), None

        (params, opt_state, key), _ = jax.lax.scan(
            epoch, (params, opt_state, key), None, length=sizes.update_epochs
        )
        return (params, opt_state, states, view, seen, key), None

    return jax.lax.scan(update, carry, None, length=num_updates)[0]

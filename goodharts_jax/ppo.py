"""Proximal policy optimisation (Schulman et al. 2017) as a pure function of a key.

`train(plan, world, hyper, mode, key)` is a whole run. A host that wants progress and checkpoints
calls `start` and then `advance` as often as it likes; both ways end in the same policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax import lax

from goodharts_jax import occupancy
from goodharts_jax import world as physics
from goodharts_jax.modes import NUM_CHANNELS, Mode, floats, reward
from goodharts_jax.networks import ActorCritic, policy
from goodharts_jax.rewards import leaving
from goodharts_jax.rollouts import Transition, collect, log_prob_of
from goodharts_jax.world import FOOD, POISON, State, World


@dataclass(frozen=True)
class Plan:
    """What changes the compiled program.

    Attributes:
      num_worlds: worlds stepped side by side.
      rollout_length: steps between updates.
      episode_length: steps after which a world is made anew; a multiple of `rollout_length`.
      epochs: passes over each rollout.
      num_minibatches: parts of the worlds that a pass is made in.
      network: the actor-critic.
      watched_worlds: in which a policy is watched between two chunks; even.
    """

    num_worlds: int = 128
    rollout_length: int = 32
    episode_length: int = 512
    epochs: int = 1
    num_minibatches: int = 8
    network: ActorCritic = field(default_factory=ActorCritic)
    watched_worlds: int = 128

    @property
    def steps_per_update(self) -> int:
        """World steps between updates."""
        return self.num_worlds * self.rollout_length

    @property
    def num_slices(self) -> int:
        """How many slices the worlds fall into; each update makes one of them anew."""
        return self.episode_length // self.rollout_length


@struct.dataclass
class Hyper:
    """What merely changes numbers; every leaf may be swept.

    Attributes:
      num_updates: updates over which the schedules run. float32[].
      learning_rate: at the start and at the end, linear between. float32[2].
      entropy_weight: likewise. float32[2].
      clip: of the probability ratio. float32[].
      value_clip: of a value's change in an update; infinite for none. float32[].
      discount: gamma. float32[].
      gae_lambda: lambda of the generalised advantages. float32[].
      value_weight: of the value loss. float32[].
      max_grad_norm: global norm beyond which gradients are scaled down. float32[].
    """

    num_updates: jax.Array
    learning_rate: jax.Array
    entropy_weight: jax.Array
    clip: jax.Array
    value_clip: jax.Array
    discount: jax.Array
    gae_lambda: jax.Array
    value_weight: jax.Array
    max_grad_norm: jax.Array


def make_hyper(
    num_updates: float,
    *,
    learning_rate: tuple[float, float] = (3e-3, 1e-3),
    entropy_weight: tuple[float, float] = (1e-2, 1e-3),
    clip: float = 0.2,
    value_clip: float = math.inf,
    discount: float = 0.97,
    gae_lambda: float = 0.9,
    value_weight: float = 0.5,
    max_grad_norm: float = 0.5,
) -> Hyper:
    """Hyper-parameters from plain numbers."""
    schedules = map(floats, (learning_rate, entropy_weight))
    rest = (clip, value_clip, discount, gae_lambda, value_weight, max_grad_norm)
    return Hyper(floats(num_updates), *schedules, *map(floats, rest))


@struct.dataclass
class TrainState:
    """All that a run needs to go on.

    Attributes:
      params: of the network.
      opt_state: of the optimiser.
      worlds: State with a leading axis [num_worlds].
      key: of all that is still to come.
      update: updates made so far. int32[].
      discriminator: of the policy's steps from its first ones; None where no remedy needs it.
    """

    params: Any
    opt_state: Any
    worlds: State
    key: chex.PRNGKey
    update: jax.Array
    discriminator: occupancy.Discriminator | None = None


class Losses(NamedTuple):
    """Of one minibatch, or their means over an update. float32[] each.

    Attributes:
      policy_loss: the clipped surrogate, negated.
      value_loss: half the squared error, clipped.
      entropy: of the policy, in nats.
      kl: divergence of the policy from the one that acted, in nats.
      clipped: share of steps whose probability ratio is beyond the clip.
    """

    policy_loss: jax.Array
    value_loss: jax.Array
    entropy: jax.Array
    kl: jax.Array
    clipped: jax.Array


class History(NamedTuple):
    """What happened in each update. float32[updates] each, with leading axes where there are runs.

    Attributes:
      reward: a step.
      food: eaten a step.
      poison: likewise.
      deaths: a step.
      explained_variance: how much of the returns the values explain.
      policy_loss: see `Losses`, like all that follow; means over the update.
      value_loss: likewise.
      entropy: likewise.
      kl: likewise.
      clipped: likewise.
      grad_norm: global norm of the gradient before it is clipped.
    """

    reward: chex.Array
    food: chex.Array
    poison: chex.Array
    deaths: chex.Array
    explained_variance: chex.Array
    policy_loss: chex.Array
    value_loss: chex.Array
    entropy: chex.Array
    kl: chex.Array
    clipped: chex.Array
    grad_norm: chex.Array


def train(
    plan: Plan, world: World, hyper: Hyper, mode: Mode, key: chex.PRNGKey, num_updates: int
) -> tuple[TrainState, History]:
    """A whole run: `num_updates` updates from scratch, and their history, [num_updates]."""
    return advance(plan, world, hyper, mode, start(plan, world, key, mode), num_updates)


def start(
    plan: Plan,
    world: World,
    key: chex.PRNGKey,
    mode: Mode | None = None,
    params: chex.ArrayTree | None = None,
) -> TrainState:
    """A run that is to begin, from `params` if given: fresh worlds, what its remedies need."""
    guard = None if mode is None else mode.reward.guard
    discriminates = guard is not None and guard.reference is not None
    params_key, worlds_key, key = jax.random.split(key, 3)
    if params is None:
        view = jnp.zeros((world.view_size, world.view_size, NUM_CHANNELS), jnp.float32)
        params = plan.network.init(params_key, view)
    worlds_keys = jax.random.split(worlds_key, plan.num_worlds)
    return TrainState(
        params=params,
        opt_state=optax.scale_by_adam().init(params),
        worlds=jax.vmap(physics.reset, (None, 0))(world, worlds_keys),
        key=key,
        update=jnp.zeros((), jnp.int32),
        discriminator=occupancy.start(world.view_size, params_key) if discriminates else None,
    )


def advance(
    plan: Plan, world: World, hyper: Hyper, mode: Mode, state: TrainState, num_updates: int
) -> tuple[TrainState, History]:
    """Carry a run on by `num_updates` (static) updates; also returns their history."""
    world = replace(world, mortal=mode.mortal)

    def update(state: TrainState, _: None) -> tuple[TrainState, History]:
        key, rollout_key, learn_key, reset_key = jax.random.split(state.key, 4)
        act = policy(plan.network, state.params, mode)
        worlds, rollout, last_view = collect(
            world, act, state.worlds, rollout_key, plan.rollout_length
        )
        discriminator = occupancy.follow(mode.reward.guard, state.discriminator, _steps(rollout))
        rewards = _rewards(plan, mode, discriminator, rollout, last_view, hyper.discount)
        # Worlds are made anew after the rollout, so this value is that of the state before it.
        last_noise_word = jnp.zeros((plan.num_worlds,), jnp.uint32)
        last_value = jax.vmap(act)(last_view, last_noise_word).value
        advantage, target = _advantages(rollout, rewards, last_value, hyper)
        params, opt_state, losses, grad_norm = _learn(
            plan, hyper, mode, state, rollout, advantage, target, learn_key
        )
        history = _history(rollout, rewards, target, losses, grad_norm)
        worlds = _renew(plan, world, worlds, state.update, reset_key)
        state = TrainState(params, opt_state, worlds, key, state.update + 1, discriminator)
        return state, history

    return lax.scan(update, state, None, length=num_updates)


def generalised_advantages(
    r_t: jax.Array, discount_t: jax.Array, v_tm1: jax.Array, v_t: jax.Array, gae_lambda: jax.Array
) -> jax.Array:
    """Generalised advantage estimates (Schulman et al. 2016, equation 16). float32[T].

    Args:
      r_t: rewards. float32[T].
      discount_t: gamma, or 0 where the life ended with the step. float32[T].
      v_tm1: values of the states acted in. float32[T].
      v_t: values of the states reached. float32[T].
      gae_lambda: lambda.
    """
    chex.assert_rank([r_t, discount_t, v_tm1, v_t], 1)
    delta_t = r_t + discount_t * v_t - v_tm1

    def backward(advantage: jax.Array, now: tuple[jax.Array, jax.Array]):
        delta, discount = now
        advantage = delta + discount * gae_lambda * advantage
        return advantage, advantage

    return lax.scan(backward, jnp.zeros(()), (delta_t, discount_t), reverse=True)[1]


def policy_loss(ratio: jax.Array, advantage: jax.Array, clip: jax.Array) -> jax.Array:
    """Clipped surrogate, negated (Schulman et al. 2017, equation 7). float32[] from float32[B]."""
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))


def value_loss(value: jax.Array, old: jax.Array, target: jax.Array, clip: jax.Array) -> jax.Array:
    """Half the squared error, the worse of the new value's and its clipped version's. float32[]."""
    clipped = old + jnp.clip(value - old, -clip, clip)
    return 0.5 * jnp.mean(jnp.maximum((value - target) ** 2, (clipped - target) ** 2))


def _rewards(
    plan: Plan,
    mode: Mode,
    discriminator: occupancy.Discriminator | None,
    rollout: Transition,
    last_view: jax.Array,
    discount: jax.Array,
) -> jax.Array:
    """Of every step, less what its policy pays for leaving where it began. float32[T, worlds]."""
    next_view = jnp.concatenate([rollout.view[1:], last_view[None]])
    of_rollout = jax.vmap(jax.vmap(reward, (None, 0, 0, None)), (None, 0, 0, None))
    rewards = of_rollout(mode, rollout, next_view, discount)
    guard = mode.reward.guard
    if guard is not None and guard.anchor is not None:
        then = jax.vmap(policy(plan.network, guard.anchor, mode))

        def divergence() -> jax.Array:
            view, action = _steps(rollout)
            logits = then(view, rollout.noise_word.reshape(-1)).logits
            log_prob = jax.vmap(log_prob_of)(logits, action).reshape(rewards.shape)
            return leaving(guard, rollout.log_prob - log_prob)

        rewards -= lax.cond(guard.needs_anchor, divergence, lambda: jnp.zeros_like(rewards))
    if guard is not None and discriminator is not None:
        price = occupancy.price(guard, discriminator, *_steps(rollout))
        rewards -= price.reshape(rewards.shape)
    return rewards


def _steps(rollout: Transition) -> tuple[jax.Array, jax.Array]:
    return rollout.view.reshape(-1, *rollout.view.shape[2:]), rollout.action.reshape(-1)


def _advantages(
    rollout: Transition, rewards: jax.Array, last_value: jax.Array, hyper: Hyper
) -> tuple[jax.Array, jax.Array]:
    """Advantages and the returns that the values should have predicted, [T, num_worlds] each."""
    discount = hyper.discount * (1 - rollout.event.died)
    next_value = jnp.concatenate([rollout.value[1:], last_value[None]])
    over_worlds = jax.vmap(generalised_advantages, (1, 1, 1, 1, None), 1)
    advantage = over_worlds(rewards, discount, rollout.value, next_value, hyper.gae_lambda)
    return advantage, advantage + rollout.value


def _learn(
    plan: Plan,
    hyper: Hyper,
    mode: Mode,
    state: TrainState,
    rollout: Transition,
    advantage: jax.Array,
    target: jax.Array,
    key: chex.PRNGKey,
) -> tuple[Any, Any, Losses, jax.Array]:
    """All epochs over one rollout: parameters, optimiser state, mean losses and gradient norm."""
    progress = state.update / hyper.num_updates
    learning_rate = _between(hyper.learning_rate, progress)
    entropy_weight = _between(hyper.entropy_weight, progress)
    optimiser = optax.chain(
        optax.clip_by_global_norm(hyper.max_grad_norm), optax.scale_by_adam(eps=1e-5)
    )

    def loss(params: Any, batch: tuple[Transition, jax.Array, jax.Array]):
        old, advantage, target = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        new = jax.vmap(policy(plan.network, params, mode))(old.view, old.noise_word)
        log_prob = jax.vmap(log_prob_of)(new.logits, old.action)
        log_ratio = log_prob - old.log_prob
        ratio = jnp.exp(log_ratio)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        log_probs = jax.nn.log_softmax(new.logits)
        losses = Losses(
            policy_loss=policy_loss(ratio, advantage, hyper.clip),
            value_loss=value_loss(new.value, old.value, target, hyper.value_clip),
            entropy=-jnp.mean(jnp.sum(jnp.exp(log_probs) * log_probs, -1)),
            # Non-negative and unbiased, unlike the mean of -log ratio (Schulman 2020).
            kl=jnp.mean(ratio - 1 - log_ratio),
            clipped=jnp.mean(jnp.abs(ratio - 1) > hyper.clip),
        )
        total = losses.policy_loss + hyper.value_weight * losses.value_loss
        return total - entropy_weight * losses.entropy, losses

    def descend(carry: tuple[Any, Any], worlds: jax.Array):
        params, opt_state = carry
        batch = jax.tree.map(lambda x: x[:, worlds], (rollout, advantage, target))
        gradient, losses = jax.grad(loss, has_aux=True)(params, batch)
        step, opt_state = optimiser.update(gradient, opt_state)
        params = jax.tree.map(lambda p, s: p - learning_rate * s, params, step)
        return (params, opt_state), (losses, optax.tree.norm(gradient))

    # Whole worlds are shuffled, not single steps: the gather is a few large rows.
    shuffle = jax.vmap(jax.random.permutation, (0, None))
    order = shuffle(jax.random.split(key, plan.epochs), plan.num_worlds)
    carry = (state.params, (optax.EmptyState(), state.opt_state))
    (params, (_, opt_state)), told = lax.scan(
        descend, carry, order.reshape(plan.epochs * plan.num_minibatches, -1)
    )
    losses, grad_norm = jax.tree.map(jnp.mean, told)
    return params, opt_state, losses, grad_norm


def _between(ends: jax.Array, progress: jax.Array) -> jax.Array:
    return ends[0] + (ends[1] - ends[0]) * jnp.clip(progress, 0, 1)


def _renew(plan: Plan, world: World, worlds: State, update: jax.Array, key: chex.PRNGKey) -> State:
    """Make one slice of the worlds anew: densities change, and an endless life is truncated."""
    size = plan.num_worlds // plan.num_slices
    first = (update % plan.num_slices) * size
    fresh = jax.vmap(physics.reset, (None, 0))(world, jax.random.split(key, size))
    return jax.tree.map(
        lambda old, new: lax.dynamic_update_slice_in_dim(old, new, first, 0), worlds, fresh
    )


def _history(
    rollout: Transition, rewards: jax.Array, target: jax.Array, losses: Losses, grad_norm: jax.Array
) -> History:
    """What happened in one update."""
    eaten, residual = rollout.event.eaten, target - rollout.value
    return History(
        reward=jnp.mean(rewards),
        food=jnp.mean(eaten == FOOD),
        poison=jnp.mean(eaten == POISON),
        deaths=jnp.mean(rollout.event.died),
        explained_variance=1 - jnp.var(residual) / (jnp.var(target) + 1e-8),
        **losses._asdict(),
        grad_norm=grad_norm,
    )

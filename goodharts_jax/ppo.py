"""Proximal policy optimisation (Schulman et al. 2017) as a pure function of a key.

`train(plan, world, hyper, mode, key)` is a whole run. A host that wants progress and checkpoints
calls `start` and then `advance` as often as it likes; both ways end in the same policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import optax
from flax import struct
from jax import lax

from goodharts_jax import world as physics
from goodharts_jax.modes import NUM_CHANNELS, Mode, observe, reward
from goodharts_jax.networks import ActorCritic, Output
from goodharts_jax.world import FOOD, POISON, Event, State, World


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
    """

    num_worlds: int = 256
    rollout_length: int = 32
    episode_length: int = 512
    epochs: int = 4
    num_minibatches: int = 4
    network: ActorCritic = field(default_factory=ActorCritic)

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
      clip: of probability ratio and value. float32[].
      discount: gamma. float32[].
      trace: lambda of the generalised advantages. float32[].
      value_weight: of the value loss. float32[].
      max_grad_norm: global norm beyond which gradients are scaled down. float32[].
    """

    num_updates: jax.Array
    learning_rate: jax.Array
    entropy_weight: jax.Array
    clip: jax.Array
    discount: jax.Array
    trace: jax.Array
    value_weight: jax.Array
    max_grad_norm: jax.Array


def make_hyper(
    num_updates: float,
    *,
    learning_rate: tuple[float, float] = (1e-3, 1e-4),
    entropy_weight: tuple[float, float] = (1e-2, 1e-3),
    clip: float = 0.2,
    discount: float = 0.99,
    trace: float = 0.95,
    value_weight: float = 0.5,
    max_grad_norm: float = 0.5,
) -> Hyper:
    """Hyper-parameters from plain numbers."""
    numbers = (num_updates, learning_rate, entropy_weight, clip, discount, trace, value_weight)
    return Hyper(*(jnp.array(number, jnp.float32) for number in (*numbers, max_grad_norm)))


@struct.dataclass
class Learner:
    """All that a run needs to go on.

    Attributes:
      params: of the network.
      momentum: the optimiser's state.
      worlds: State with a leading axis [num_worlds].
      key: of all that is still to come.
      update: updates made so far. int32[].
    """

    params: Any
    momentum: Any
    worlds: State
    key: chex.PRNGKey
    update: jax.Array


@struct.dataclass
class Transition:
    """One step as the update needs it. Leading axes [rollout_length, num_worlds] in a rollout.

    Attributes:
      view: codes that the agent stood amid. uint8[V, V].
      look: which noise it saw them through. uint32[].
      action: int32[].
      log_prob: of the action when it was taken. float32[].
      value: predicted when it was taken. float32[].
      event: what happened.
    """

    view: jax.Array
    look: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    event: Event


def train(
    plan: Plan, world: World, hyper: Hyper, mode: Mode, key: chex.PRNGKey, num_updates: int
) -> tuple[Learner, dict[str, jax.Array]]:
    """A whole run: `num_updates` updates from scratch, and the history of each, [num_updates]."""
    return advance(plan, world, hyper, mode, start(plan, world, key), num_updates)


def start(plan: Plan, world: World, key: chex.PRNGKey) -> Learner:
    """A learner with fresh parameters and worlds."""
    params_key, worlds_key, key = jax.random.split(key, 3)
    view = jnp.zeros((world.view_size, world.view_size, NUM_CHANNELS), jnp.float32)
    params = plan.network.init(params_key, view)
    worlds_keys = jax.random.split(worlds_key, plan.num_worlds)
    return Learner(
        params=params,
        momentum=optax.scale_by_adam().init(params),
        worlds=jax.vmap(physics.reset, (None, 0))(world, worlds_keys),
        key=key,
        update=jnp.zeros((), jnp.int32),
    )


def advance(
    plan: Plan, world: World, hyper: Hyper, mode: Mode, learner: Learner, num_updates: int
) -> tuple[Learner, dict[str, jax.Array]]:
    """Carry a run on by `num_updates` (static) updates; also returns their history."""
    world = replace(world, mortal=mode.mortal)

    def update(learner: Learner, _: None) -> tuple[Learner, dict[str, jax.Array]]:
        key, rollout_key, learn_key, reset_key = jax.random.split(learner.key, 4)
        act = partial(policy, plan.network, learner.params, mode)
        worlds, rollout, last_view = collect(
            world, act, learner.worlds, rollout_key, plan.rollout_length
        )
        pay = _rewards(mode, rollout, last_view, hyper.discount)
        # Worlds are made anew after the rollout, so this value is that of the state before it.
        last_look = jnp.zeros((plan.num_worlds,), jnp.uint32)
        last_value = jax.vmap(act)(last_view, last_look).value
        advantage, target = _advantages(rollout, pay, last_value, hyper)
        params, momentum, losses = _learn(
            plan, hyper, mode, learner, rollout, advantage, target, learn_key
        )
        history = {**_summary(rollout, pay, target), **losses}
        worlds = _renew(plan, world, worlds, learner.update, reset_key)
        return Learner(params, momentum, worlds, key, learner.update + 1), history

    return lax.scan(update, learner, None, length=num_updates)


def policy(
    network: ActorCritic, params: Any, mode: Mode, view: jax.Array, look: jax.Array
) -> Output:
    """The network's word on one view, uint8[V, V], as the mode lets it be perceived."""
    return Output(*network.apply(params, observe(mode, view, look)))


def collect(
    world: World, act: Any, worlds: State, key: chex.PRNGKey, length: int
) -> tuple[State, Transition, jax.Array]:
    """Step all worlds `length` times.

    Returns:
      The worlds, the transitions, [length, num_worlds], and the last views, [num_worlds, V, V].
    """
    num_worlds = worlds.age.shape[0]
    see = jax.vmap(physics.view, (None, 0))

    def step(carry: tuple[State, jax.Array], key: chex.PRNGKey):
        worlds, view = carry
        choice_key, step_key = jax.random.split(key)
        choice, look = jax.random.bits(choice_key, (2, num_worlds), jnp.uint32)
        output = jax.vmap(act)(view, look)
        action = jax.vmap(sample)(output.logits, choice)
        log_prob = jax.vmap(_log_prob)(output.logits, action)
        worlds, event = jax.vmap(physics.step, (None, 0, 0, 0))(
            world, worlds, action, jax.random.split(step_key, num_worlds)
        )
        transition = Transition(view, look, action, log_prob, output.value, event)
        return (worlds, see(world, worlds)), transition

    keys = jax.random.split(key, length)
    (worlds, last_view), rollout = lax.scan(step, (worlds, see(world, worlds)), keys)
    return worlds, rollout, last_view


def sample(logits: jax.Array, word: jax.Array) -> jax.Array:
    """An action with probability softmax(logits), by inverting its distribution. int32[].

    Args:
      logits: float32[NUM_ACTIONS].
      word: random bits, uint32[]: one word an action, where Gumbel noise would take one each.
    """
    uniform = (word >> 8).astype(jnp.float32) * jnp.float32(2**-24)
    below = jnp.cumsum(jax.nn.softmax(logits))[:-1]
    return jnp.sum(uniform >= below).astype(jnp.int32)


def generalised_advantages(
    r_t: jax.Array, discount_t: jax.Array, v_tm1: jax.Array, v_t: jax.Array, trace: jax.Array
) -> jax.Array:
    """Generalised advantage estimates (Schulman et al. 2016, equation 16). float32[T].

    Args:
      r_t: rewards. float32[T].
      discount_t: gamma, or 0 where the life ended with the step. float32[T].
      v_tm1: values of the states acted in. float32[T].
      v_t: values of the states reached. float32[T].
      trace: lambda.
    """
    chex.assert_rank([r_t, discount_t, v_tm1, v_t], 1)
    delta_t = r_t + discount_t * v_t - v_tm1

    def backward(advantage: jax.Array, now: tuple[jax.Array, jax.Array]):
        delta, discount = now
        advantage = delta + discount * trace * advantage
        return advantage, advantage

    return lax.scan(backward, jnp.zeros(()), (delta_t, discount_t), reverse=True)[1]


def policy_loss(ratio: jax.Array, advantage: jax.Array, clip: jax.Array) -> jax.Array:
    """Clipped surrogate, negated (Schulman et al. 2017, equation 7). float32[] from float32[B]."""
    clipped = jnp.clip(ratio, 1 - clip, 1 + clip)
    return -jnp.mean(jnp.minimum(ratio * advantage, clipped * advantage))


def value_loss(value: jax.Array, old: jax.Array, target: jax.Array, clip: jax.Array) -> jax.Array:
    """Half the squared error, the worse of the new value and its clipped version. float32[]."""
    clipped = old + jnp.clip(value - old, -clip, clip)
    return 0.5 * jnp.mean(jnp.maximum((value - target) ** 2, (clipped - target) ** 2))


def _log_prob(logits: jax.Array, action: jax.Array) -> jax.Array:
    return jax.nn.log_softmax(logits)[action]


def _rewards(
    mode: Mode, rollout: Transition, last_view: jax.Array, discount: jax.Array
) -> jax.Array:
    next_view = jnp.concatenate([rollout.view[1:], last_view[None]])
    pay = jax.vmap(jax.vmap(reward, (None, 0, 0, 0, None)), (None, 0, 0, 0, None))
    return pay(mode, rollout.event, rollout.view, next_view, discount)


def _advantages(
    rollout: Transition, pay: jax.Array, last_value: jax.Array, hyper: Hyper
) -> tuple[jax.Array, jax.Array]:
    """Advantages and the returns that the values should have predicted, [T, num_worlds] each."""
    discount = hyper.discount * (1 - rollout.event.died)
    next_value = jnp.concatenate([rollout.value[1:], last_value[None]])
    over_worlds = jax.vmap(generalised_advantages, (1, 1, 1, 1, None), 1)
    advantage = over_worlds(pay, discount, rollout.value, next_value, hyper.trace)
    return advantage, advantage + rollout.value


def _learn(
    plan: Plan,
    hyper: Hyper,
    mode: Mode,
    learner: Learner,
    rollout: Transition,
    advantage: jax.Array,
    target: jax.Array,
    key: chex.PRNGKey,
) -> tuple[Any, Any, dict[str, jax.Array]]:
    """All epochs over one rollout; also returns the mean of each loss."""
    progress = learner.update / hyper.num_updates
    learning_rate = _between(hyper.learning_rate, progress)
    entropy_weight = _between(hyper.entropy_weight, progress)
    optimiser = optax.chain(
        optax.clip_by_global_norm(hyper.max_grad_norm), optax.scale_by_adam(eps=1e-5)
    )

    def loss(params: Any, batch: tuple[Transition, jax.Array, jax.Array]):
        old, advantage, target = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        new = jax.vmap(partial(policy, plan.network, params, mode))(old.view, old.look)
        log_prob = jax.vmap(_log_prob)(new.logits, old.action)
        log_ratio = log_prob - old.log_prob
        ratio = jnp.exp(log_ratio)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        log_probs = jax.nn.log_softmax(new.logits)
        parts = {
            "policy_loss": policy_loss(ratio, advantage, hyper.clip),
            "value_loss": value_loss(new.value, old.value, target, hyper.clip),
            "entropy": -jnp.mean(jnp.sum(jnp.exp(log_probs) * log_probs, -1)),
            # Non-negative and unbiased, unlike the mean of -log ratio (Schulman 2020).
            "kl": jnp.mean(ratio - 1 - log_ratio),
            "clipped": jnp.mean(jnp.abs(ratio - 1) > hyper.clip),
        }
        total = parts["policy_loss"] + hyper.value_weight * parts["value_loss"]
        return total - entropy_weight * parts["entropy"], parts

    def descend(carry: tuple[Any, Any], worlds: jax.Array):
        params, momentum = carry
        batch = jax.tree.map(lambda x: x[:, worlds], (rollout, advantage, target))
        gradient, parts = jax.grad(loss, has_aux=True)(params, batch)
        step, momentum = optimiser.update(gradient, momentum)
        params = jax.tree.map(lambda p, s: p - learning_rate * s, params, step)
        return (params, momentum), {**parts, "grad_norm": optax.tree.norm(gradient)}

    # Whole worlds are shuffled, not single steps: the gather is a few large rows.
    shuffle = jax.vmap(jax.random.permutation, (0, None))
    order = shuffle(jax.random.split(key, plan.epochs), plan.num_worlds)
    carry = (learner.params, (optax.EmptyState(), learner.momentum))
    (params, (_, momentum)), parts = lax.scan(
        descend, carry, order.reshape(plan.epochs * plan.num_minibatches, -1)
    )
    return params, momentum, jax.tree.map(jnp.mean, parts)


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


def _summary(rollout: Transition, pay: jax.Array, target: jax.Array) -> dict[str, jax.Array]:
    """What happened in a rollout: rates a step, and how much of the returns the values explain."""
    eaten, residual = rollout.event.eaten, target - rollout.value
    return {
        "reward": jnp.mean(pay),
        "food": jnp.mean(eaten == FOOD),
        "poison": jnp.mean(eaten == POISON),
        "deaths": jnp.mean(rollout.event.died),
        "explained_variance": 1 - jnp.var(residual) / (jnp.var(target) + 1e-8),
    }

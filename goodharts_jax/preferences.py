"""Reward models learnt from preferences between segments of behaviour.

A labeller watches pairs of segments and prefers one by its true return, with the probability that
Bradley and Terry's model gives (Christiano et al. 2017, section 2.2.3). A small network that is
told what the agent perceives near by and what it does, but never what it ate, learns to agree.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax
from flax import struct

from goodharts_jax import world as physics
from goodharts_jax.modes import Mode, observe
from goodharts_jax.networks import ActorCritic, policy
from goodharts_jax.rewards import RewardModel, by_model, features
from goodharts_jax.rollouts import collect
from goodharts_jax.world import ENERGY_UNIT, World

SEGMENT = 16
"""Steps in a segment."""
WIDEST = 64
"""Hidden units of a reward model; narrower ones have some of them masked."""
MOST_PAIRS = 30_000
SCALE = 0.3
"""Standard deviation of a model's reward over the steps that it learnt from."""
MOST_STEPS = 1024
"""Steps of each world that segments are taken from."""
WORLDS = 256
"""That each policy is watched in."""
HELD_OUT = 32
"""Of these, the first, whose segments models don't learn from, but are tested on."""
_BATCH, _LEARNING_RATE = 64, 3e-3
_TIE = 1e-3
"""Energy; returns that are nearer are equal, but for the order of their summands."""
_TESTED = 4096
"""Pairs that a model's accuracy is counted on."""


class Pool(NamedTuple):
    """Segments of behaviour, by who was watched.

    Attributes:
      view: codes. uint8[watched, segments, SEGMENT, V, V].
      noise_word: uint32[watched, segments, SEGMENT].
      action: int32[watched, segments, SEGMENT].
      gold: true reward. float32[watched, segments, SEGMENT].
    """

    view: Any
    noise_word: Any
    action: Any
    gold: Any


@struct.dataclass
class Labels:
    """How a reward model's labels come about; all may differ between runs of one program.

    Attributes:
      pairs: how many, at most `MOST_PAIRS`. int32[].
      width: hidden units of the model, at most `WIDEST`. int32[].
      noise: share of labels that are turned round. float32[].
      temperature: of the labeller, in energy. float32[].
      watched: how often a segment is of each policy of the pool; sums to 1. float32[watched].
    """

    pairs: jax.Array
    width: jax.Array
    noise: jax.Array
    temperature: jax.Array
    watched: jax.Array


class Fitted(NamedTuple):
    """Reward models and how good they are by the usual measure.

    Attributes:
      model: RewardModel with a leading axis [members].
      accuracy: share of held-out pairs, drawn as the labels were, that they rank as gold does,
        on average over members. float32[].
    """

    model: RewardModel
    accuracy: jax.Array


def gold_reward(world: World) -> tuple[jax.Array, jax.Array]:
    """Energy of eating each kind and of every step. float32[NUM_KINDS], float32[]."""
    return world.energy * jnp.float32(ENERGY_UNIT), -world.move_cost * jnp.float32(ENERGY_UNIT)


@partial(jax.jit, static_argnames=("network", "steps"))
def watch_policies(
    network: ActorCritic, world: World, mode: Mode, params: Any, key: chex.PRNGKey, steps: int
) -> Pool:
    """Segments of several policies, each in worlds of its own where nobody starves.

    Args:
      network: of all policies.
      world: the rules.
      mode: what the policies perceive.
      params: with a leading axis [watched].
      key: consumed.
      steps: of each world; cut to whole segments.

    Returns:
      Segments of a world beside each other, so that those held out are other worlds', at all times.
    """
    length = steps // SEGMENT * SEGMENT
    world = world.replace(mortal=jnp.array(False))  # type: ignore[attr-defined]
    item, step = gold_reward(world)

    def segments(x: jax.Array) -> jax.Array:
        x = x.reshape(length // SEGMENT, SEGMENT, WORLDS, *x.shape[2:])
        return jnp.moveaxis(x, 2, 0).reshape(-1, SEGMENT, *x.shape[3:])

    def of_one(given: tuple[Any, chex.PRNGKey]) -> Pool:
        reset_key, rollout_key = jax.random.split(given[1])
        keys = jax.random.split(reset_key, WORLDS)
        worlds = jax.vmap(physics.reset, (None, 0))(world, keys)
        act = policy(network, given[0], mode)
        _, rollout, _ = collect(world, act, worlds, rollout_key, length)
        gold = item[rollout.event.eaten] + step
        whole = Pool(rollout.view, rollout.noise_word, rollout.action, gold)
        return jax.tree.map(segments, whole)

    count = jax.tree.leaves(params)[0].shape[0]
    return jax.lax.map(of_one, (params, jax.random.split(key, count)))


def told(mode: Mode, pool: Pool) -> jax.Array:
    """What a reward model is told of every step. float32[..., SEGMENT, inputs]."""

    def of_step(view: jax.Array, noise_word: jax.Array, action: jax.Array) -> jax.Array:
        return features(observe(mode, view, noise_word), action)

    for _ in pool.action.shape:
        of_step = jax.vmap(of_step)
    return of_step(pool.view, pool.noise_word, pool.action)


def fit(
    mode: Mode,
    pool: Pool,
    labels: Labels,
    key: chex.PRNGKey,
    members: int,
    descents: jax.Array,
) -> Fitted:
    """Reward models that learn from one set of labels, each from a start of its own.

    Args:
      mode: what the agent perceives.
      pool: of segments.
      labels: how they come about.
      key: consumed.
      members: how many models.
      descents: gradient steps that each is fitted in. int32[].
    """
    draw_key, label_key, fit_key, test_key = jax.random.split(key, 4)
    returns, split = pool.gold.sum(-1), pool.gold.shape[1] // WORLDS * HELD_OUT
    draw = partial(_pairs, watched=labels.watched)
    pairs = draw(draw_key, MOST_PAIRS, first=split, last=pool.gold.shape[1])
    prefers = _label(label_key, _margin(returns[pairs]), labels)
    fit_one = partial(_fit_one, mode, pool, pairs, prefers, labels, descents)
    model = jax.lax.map(fit_one, jax.random.split(fit_key, members))
    tested = draw(test_key, _TESTED, first=0, last=split)
    said = jax.vmap(lambda one: _margin(_by(one, mode, pool, tested)))(model)
    truth = _margin(returns[tested])
    right = jnp.mean((said > 0) == (truth > 0), axis=0)
    told_apart = jnp.abs(truth) > _TIE
    return Fitted(model, jnp.sum(right * told_apart) / jnp.sum(told_apart))


def _pairs(
    key: chex.PRNGKey, count: int, watched: jax.Array, first: int, last: int
) -> tuple[jax.Array, jax.Array]:
    """Who is watched in a pair's segments, and in which. int32[count, 2] each."""
    who_key, which_key = jax.random.split(key)
    who = jax.random.categorical(who_key, jnp.log(watched), shape=(count, 2))
    return who, jax.random.randint(which_key, (count, 2), first, last)


def _margin(of_pairs: jax.Array) -> jax.Array:
    """The first segment's less the second's. float32[N] from float32[N, 2]."""
    return of_pairs[:, 0] - of_pairs[:, 1]


def _label(key: chex.PRNGKey, margin: jax.Array, labels: Labels) -> jax.Array:
    """Whether the labeller says that it prefers a pair's first segment. float32[pairs]."""
    choice_key, noise_key = jax.random.split(key)
    prefers = jax.random.bernoulli(choice_key, jax.nn.sigmoid(margin / labels.temperature))
    turned = jax.random.bernoulli(noise_key, labels.noise, margin.shape)
    return (prefers ^ turned).astype(jnp.float32)


def _by(model: RewardModel, mode: Mode, pool: Pool, pairs: tuple[jax.Array, jax.Array]):
    """A model's return of each segment of some pairs. float32[N, 2]."""
    seen = told(mode, jax.tree.map(lambda x: x[pairs], pool))
    return by_model(model, seen).sum(-1)


def _fit_one(
    mode: Mode,
    pool: Pool,
    pairs: tuple[jax.Array, jax.Array],
    prefers: jax.Array,
    labels: Labels,
    descents: jax.Array,
    key: chex.PRNGKey,
) -> RewardModel:
    """One model: logistic regression on the differences of returns, by Adam."""
    start_key, out_key, batch_key = jax.random.split(key, 3)
    some = told(mode, jax.tree.map(lambda x: x[:1, :1, :1], pool))
    inputs, used = some.shape[-1], (jnp.arange(WIDEST) < labels.width).astype(jnp.float32)
    model = RewardModel(
        kernel=jax.random.normal(start_key, (inputs, WIDEST)) * (2 / inputs) ** 0.5,
        bias=jnp.zeros(WIDEST),
        out=jax.random.normal(out_key, (WIDEST,)) * used / jnp.sqrt(labels.width),
        mean=jnp.zeros(()),
        scale=jnp.ones(()),
    )
    optimiser = optax.scale_by_adam()

    def loss(model: RewardModel, at: jax.Array) -> jax.Array:
        # Units that are masked have no part in it, and so no gradient.
        masked = model.replace(out=model.out * used)  # type: ignore[attr-defined]
        margin = _margin(_by(masked, mode, pool, jax.tree.map(lambda x: x[at], pairs)))
        return jnp.mean(optax.sigmoid_binary_cross_entropy(margin, prefers[at]))

    def descend(index: jax.Array, carry: Any) -> Any:
        model, opt_state = carry
        key = jax.random.fold_in(batch_key, index)
        at = jax.random.randint(key, (_BATCH,), 0, labels.pairs)
        step, opt_state = optimiser.update(jax.grad(loss)(model, at), opt_state)
        rate = _LEARNING_RATE * 0.5 * (1 + jnp.cos(jnp.pi * index / descents))
        model = jax.tree.map(lambda p, s: p - rate * s, model, step)
        # These two are set at the end.
        return model.replace(mean=jnp.zeros(()), scale=jnp.ones(())), opt_state

    model, _ = jax.lax.fori_loop(0, descents, descend, (model, optimiser.init(model)))
    model = model.replace(out=model.out * used)
    return normalised(model, by_model(model, _learnt_from(mode, pool, pairs, labels)))


def _learnt_from(mode: Mode, pool: Pool, pairs: tuple[jax.Array, jax.Array], labels: Labels):
    """Features of 32,768 steps that labels were given on, [segments, SEGMENT, inputs]."""
    at = jnp.arange(1024) % labels.pairs
    return told(mode, jax.tree.map(lambda x: x[jax.tree.map(lambda i: i[at], pairs)], pool))


def normalised(model: RewardModel, said: jax.Array) -> RewardModel:
    """A model whose reward has mean 0 and a standard deviation of `SCALE` on steps of which it says
    so much. float32[...]."""
    scale = SCALE / jnp.maximum(jnp.std(said), 1e-6)
    return model.replace(mean=jnp.mean(said), scale=scale)  # type: ignore[attr-defined]

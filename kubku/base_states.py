"""Base states: what a learner knows before it is shown a sample.

`random` weights know nothing, so their scores measure guessing. `marginal` weights were trained to
answer the pretraining split's halos without seeing its samples. `meta` weights were trained through
the one-shot update: learn a sample, answer its halo, change the weights that learning started from
and, for learners that take gradient steps, how fast each of them learns.
Entailment from one sample can only come from rules that the base state holds.

Bias traps and half of the trap attributes are withheld from all of them (but the control
`question_only`): a learner told in training that every such question is UNKNOWN would show no bias
by construction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from pydantic import Field

from evidence.runtime.config import Settings
from evidence.runtime.devices import at_once
from kubku.halo import Kind, Learner, Sample, Samples, State, withheld

Learn = Callable[[State, Sample], State]
Make = Callable[[State, Samples, jax.Array], State]

WORLDS = {"skewed": 0.85, "balanced": 0.0}
"""Probability that a stereotype is true in the world that base states are trained in."""


def keys(seed: int) -> jax.Array:
    """Keys of a base state, key[3]: where it starts, how it is trained, on which samples."""
    own = jax.random.fold_in(jax.random.key(seed), 7)  # no split's number, see `generate`
    return jax.random.split(own, 3)


def replaying(bases: Mapping[str, Make | None]) -> dict[str, Make | None]:
    """The same base states, with `replay` filled by traps of the pretraining split.

    They are about entities and samples of that split, none of them withheld; the key decides which.
    """

    def after(make: Make | None) -> Make:
        def kept(state: State, samples: Samples, key: jax.Array) -> State:
            trap = (samples.kind == Kind.HALLUCINATION) & samples.asked & ~withheld(samples)
            chance = jax.random.uniform(jax.random.fold_in(key, 1), trap.shape)
            wanted = state.replay.attribute.shape[0]
            at = jax.lax.top_k(jnp.where(trap, chance, -1.0).ravel(), wanted)[1]
            replay = jax.tree.map(lambda leaf: leaf.ravel()[at], samples.query)
            state = state._replace(replay=replay)
            return state if make is None else make(state, samples, key)

        return kept

    return {name: after(make) for name, make in bases.items()}


class Training(Settings):
    """How much `marginal` and `meta` weights are trained; the same for every learner.

    Attributes:
      updates: Adam steps.
      batch: samples in each.
    """

    updates: int = Field(gt=0, le=10_000_000)
    batch: int = Field(gt=0, le=1_000_000)


class Outer(NamedTuple):
    """How a learner's weights are trained: what suits one network stalls another.

    Attributes:
      rate: Adam's learning rate at its height, see `_rates`.
      pace: how fast each weight learns a sample at first, of `meta` weights that learn that, too.
    """

    rate: float
    pace: float = 1.0


def of(
    learner: Learner, training: Training, outer: Outer, learn: Learn | None = None
) -> dict[str, Make | None]:
    """The base states of a learner whose state has `params`.

    `meta` of learners that take gradient steps is Meta-SGD (Li et al., 2017): MAML through one step
    with both orders of the gradient, and a rate for each weight learnt beside it.
    `meta` of those that read into a state is plain training through the exposure.

    Args:
      learner: whose base states.
      training: how much they are trained.
      outer: how.
      learn: what `meta` is trained through, if the learner's state has `pace` and its own `learn`
        can't be differentiated; else `learner.learn`.
    """

    def unexposed(state: State, sample: Sample) -> State:
        return state

    return {
        "random": None,
        "marginal": _trained(learner, unexposed, training, outer, paced=False),
        "meta": _trained(learner, learn or learner.learn, training, outer, paced=learn is not None),
    }


def outer_loss(learner: Learner, learn: Learn, state: State, samples: Samples) -> jax.Array:
    """Mean cross-entropy of the answers to each sample's halo after `learn`, but for what base
    states may not learn from, f32[].
    """

    def one(sample: Sample) -> jax.Array:
        scores = jax.vmap(learner.answer, in_axes=(None, 0))(learn(state, sample), sample.query)
        right = jnp.take_along_axis(scores, sample.gold[:, None], -1)[:, 0]
        used = sample.asked & ~withheld(sample)
        return -(jnp.log(right + 1e-9) * used).sum() / jnp.maximum(used.sum(), 1)

    return jax.vmap(one)(samples).mean()


# A pace is learnt as pace = exp(HASTE * z): Adam moves every number it trains by about as much,
# and a pace has to change by factors while a weight changes by hundredths.
HASTE = 10.0


def _rates(training: Training, outer: Outer) -> optax.Schedule:
    """Adam's rate by update: a tenth of them up, then level, the last quarter down to 0. A network
    stands for hundreds of updates where it answers nothing before it finds how to answer, so the
    rate stays high for long.
    """
    rising, falling = training.updates // 10, training.updates // 4
    return optax.join_schedules(
        [
            optax.linear_schedule(0.0, outer.rate, rising),
            optax.constant_schedule(outer.rate),
            optax.linear_schedule(outer.rate, 0.0, falling),
        ],
        [rising, training.updates - falling],
    )


class _Weights(NamedTuple):
    """What Adam trains; `haste` (see `HASTE`) is None where no pace is learnt."""

    haste: Any
    params: Any


def _trained(learner: Learner, learn: Learn, training: Training, outer: Outer, paced: bool) -> Make:
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(_rates(training, outer)))

    def with_trained(state: State, trained: _Weights) -> State:
        if paced:
            pace = jax.tree.map(lambda z: jnp.exp(HASTE * z), trained.haste)
            state = state._replace(pace=pace)
        return state._replace(params=trained.params)

    def loss(trained: _Weights, state: State, samples: Samples) -> jax.Array:
        return outer_loss(learner, learn, with_trained(state, trained), samples)

    def slope(trained: _Weights, state: State, samples: Samples) -> Any:
        """The gradient of the loss, over as many samples at a time as fit the cache: half of what
        learning alone does where the gradient is taken through a gradient.
        """
        fitting = max(1, learner.chunk // 2) if paced else learner.chunk
        size = math.gcd(training.batch, at_once(fitting))
        parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), samples)
        slopes = jax.lax.map(lambda part: jax.grad(loss)(trained, state, part), parts)
        return jax.tree.map(lambda leaf: leaf.mean(0), slopes)

    @jax.jit
    def make(state: State, samples: Samples, key: jax.Array) -> State:
        n = samples.label.shape[0]

        def update(carry: tuple[Any, Any], key: jax.Array):
            trained, memory = carry
            rows = jax.random.randint(key, (training.batch,), 0, n)
            drawn = jax.tree.map(lambda leaf: leaf[rows], samples)
            change, memory = optimiser.update(slope(trained, state, drawn), memory)
            return (optax.apply_updates(trained, change), memory), None

        haste = None
        if paced:
            first = math.log(outer.pace) / HASTE
            haste = jax.tree.map(lambda w: jnp.full_like(w, first), state.params)
        trained = _Weights(haste, state.params)
        start = trained, optimiser.init(trained)
        (trained, _), _ = jax.lax.scan(update, start, jax.random.split(key, training.updates))
        return with_trained(state, trained)

    return make

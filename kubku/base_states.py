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

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
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


class Training(Settings):
    """How much base states are trained; the same for every learner.

    The rate rises, then stays until the loss levels: until the best loss on held-out pretraining
    samples has improved by less than `LEVEL` over `PATIENCE` windows. Then it falls to 0 over a
    third as many updates again.

    Attributes:
      updates: Adam steps in all, at most.
      batch: samples in each.
      window: updates between two looks at the held-out loss.
    """

    updates: int = Field(gt=0, le=10_000_000)
    batch: int = Field(gt=0, le=1_000_000)
    window: int = Field(default=100, gt=0, le=1_000_000)


LEVEL, PATIENCE = 0.01, 8
HELD_OUT = 256
"""Pretraining samples, at most, that no update sees and the loss is watched on."""


class Trained(NamedTuple):
    """How a base state was trained, as part of it.

    Attributes:
      updates: i32[], Adam steps taken; 0 if it wasn't.
      level: bool[], whether its loss had levelled when the rate began to fall.
    """

    updates: Any
    level: Any


UNTRAINED = Trained(np.int32(0), np.bool_(False))


def how_trained(state: State) -> tuple[int | None, bool | None]:
    """Updates that a base state took, and whether its loss had levelled; None if it took none."""
    parts = jax.tree.leaves(state, is_leaf=lambda part: isinstance(part, Trained))
    for part in parts:
        if isinstance(part, Trained) and int(part.updates):
            return int(part.updates), bool(part.level)
    return None, None


class Outer(NamedTuple):
    """How a learner's weights are trained: what suits one network stalls another.

    Attributes:
      rate: Adam's learning rate at its height.
      pace: how fast each weight learns a sample at first, of `meta` weights that learn that, too.
    """

    rate: float
    pace: float = 1.0


class Through(NamedTuple):
    """What `meta` weights of a learner that takes gradient steps are trained through.

    Attributes:
      learn: one step at rate 1, which unlike the learner's can be differentiated backwards:
        (state, sample) -> anything.
      answer: (what `learn` returns, query) -> scores.
      chunk: samples worked on side by side on a CPU.
      factored: the pace of a weight is the product of one for its input and one for its output, and
        `learn` is given both, as `Factors` in a kernel's place.
      read: what is done to each sample once, before training, as no trained weight has a part in
        it: (state, sample) -> sample; None for nothing.
    """

    learn: Callable[[State, Sample], Any]
    answer: Callable[[Any, Any], jax.Array]
    chunk: int
    factored: bool = False
    read: Callable[[State, Sample], Sample] | None = None


@dataclasses.dataclass(frozen=True)
class Maker:
    """Makes a base state by training: (state, samples, key) -> state.

    Attributes:
      run: (outer, state, samples, key) -> state; one program for every `outer`.
      outer: how it is trained.
      prepare: what is done to the state before.
    """

    run: Callable[[Outer, State, Samples, jax.Array], State]
    outer: Outer
    prepare: Make = lambda state, samples, key: state

    def __call__(self, state: State, samples: Samples, key: jax.Array) -> State:
        outer = Outer(*(jnp.float32(number) for number in self.outer))
        return self.run(outer, self.prepare(state, samples, key), samples, key)


Bases = Mapping[str, Make | None]


def trained_by(bases: Bases, outer: Outer | None) -> dict[str, Make | None]:
    """The same base states, those that are trained by another setting; the programs stay."""
    return {
        name: dataclasses.replace(make, outer=outer) if isinstance(make, Maker) and outer else make
        for name, make in bases.items()
    }


def prepared(bases: Bases, prepare: Make) -> dict[str, Make | None]:
    """The same base states, each made from what `prepare` makes of the first state."""
    return {
        name: dataclasses.replace(make, prepare=prepare) if isinstance(make, Maker) else prepare
        for name, make in bases.items()
    }


def replay(state: State, samples: Samples, key: jax.Array) -> State:
    """The state with `replay` filled by traps of the pretraining split.

    They are about entities and samples of that split, none of them withheld; the key decides which.
    """
    trap = (samples.kind == Kind.HALLUCINATION) & samples.asked & ~withheld(samples)
    chance = jax.random.uniform(jax.random.fold_in(key, 1), trap.shape)
    wanted = state.replay.attribute.shape[0]
    at = jax.lax.top_k(jnp.where(trap, chance, -1.0).ravel(), wanted)[1]
    return state._replace(replay=jax.tree.map(lambda leaf: leaf.ravel()[at], samples.query))


def of(
    learner: Learner, training: Training, outer: Outer, through: Through | None = None
) -> dict[str, Make | None]:
    """The base states of a learner whose state has `params` and `trained`.

    `meta` of learners that take gradient steps is Meta-SGD (Li et al., 2017): MAML through one step
    with both orders of the gradient, and a rate for each weight learnt beside it.
    `meta` of those that read into a state is plain training through the exposure.

    Args:
      learner: whose base states.
      training: how much they are trained.
      outer: how.
      through: what `meta` is trained through, if not its own `learn` and `answer`; paces are learnt
        if the learner takes gradient steps.
    """
    chunk, paced = training.batch, learner.exposure == "gradient"
    unexposed = Through(lambda state, sample: state, learner.answer, chunk)
    reading = Through(learner.learn, learner.answer, learner.chunk)
    return {
        "random": None,
        "marginal": Maker(_trained(unexposed, training, paced=False), outer),
        "meta": Maker(_trained(through or reading, training, paced), outer),
    }


def outer_loss(through: Through, state: State, samples: Samples) -> jax.Array:
    """Mean cross-entropy of the answers to each sample's halo after learning it, but for what base
    states may not learn from, f32[].
    """

    def one(sample: Sample) -> jax.Array:
        learnt = through.learn(state, sample)
        scores = jax.vmap(through.answer, in_axes=(None, 0))(learnt, sample.query)
        right = jnp.take_along_axis(scores, sample.gold[:, None], -1)[:, 0]
        used = sample.asked & ~withheld(sample)
        return -(jnp.log(right + 1e-9) * used).sum() / jnp.maximum(used.sum(), 1)

    return jax.vmap(one)(samples).mean()


# A pace is learnt as pace = exp(HASTE * z): Adam moves every number it trains by about as much,
# and a pace has to change by factors while a weight changes by hundredths.
HASTE = 10.0


class Factors(NamedTuple):
    """What a kernel's paces are the product of (or, as they are trained, its logarithm over
    `HASTE`): one for each input, one for each output.
    """

    inputs: jax.Array
    outputs: jax.Array


def _hastes(params: Any, pace: jax.Array, factored: bool) -> Any:
    def leaf(weights: jax.Array) -> Any:
        first = jnp.log(pace) / HASTE
        if factored and weights.ndim == 2:
            rows, columns = weights.shape
            return Factors(jnp.full(rows, first), jnp.zeros(columns))
        return jnp.full_like(weights, first)

    return jax.tree.map(leaf, params)


def _paces(haste: Any, whole: bool = True) -> Any:
    """The paces that `haste` stands for; those of a kernel as their `Factors` unless `whole`."""

    def leaf(z: Any) -> Any:
        if not isinstance(z, Factors):
            return jnp.exp(HASTE * z)
        factors = Factors(*(jnp.exp(HASTE * of) for of in z))
        return factors.inputs[:, None] * factors.outputs if whole else factors

    return jax.tree.map(leaf, haste, is_leaf=lambda z: isinstance(z, Factors))


class _Weights(NamedTuple):
    """What Adam trains; `haste` (see `HASTE`) is None where no pace is learnt."""

    haste: Any
    params: Any


class _Progress(NamedTuple):
    """What training carries.

    Attributes:
      weights, memory: what is trained, and Adam's moments.
      done: updates.
      least: the least held-out loss so far.
      waited: windows that haven't bettered it by `LEVEL`.
      fall: after how many updates the rate began to fall; -1 before.
    """

    weights: _Weights
    memory: Any
    done: jax.Array
    least: jax.Array
    waited: jax.Array
    fall: jax.Array


def rate_at(training: Training, done: jax.Array, fall: jax.Array) -> jax.Array:
    """Adam's rate as a share of its height: a tenth of `training.updates` up, then level, then down
    to 0 over a third as many as there were. A network stands for hundreds of updates where it
    answers nothing before it finds how to answer, so the rate stays high for long.

    Args:
      training: how much is trained at most.
      done: i32[], updates before this one.
      fall: i32[], after how many the rate began to fall; -1 before.
    """
    rising = (done + 1) / max(training.updates // 10, 1)
    falling = jnp.maximum(fall // 3, 1)
    left = jnp.where(fall < 0, 1.0, (fall + falling - done) / falling)
    return jnp.clip(jnp.minimum(rising, left), 0, 1)


def _in_parts(chunk: int, over: Callable[[Samples], Any], samples: Samples) -> Any:
    """What is found over samples, as many at a time as fit the cache; a row for each part."""
    size = math.gcd(samples.label.shape[0], at_once(chunk))
    parts = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), samples)
    return jax.lax.map(over, parts)


def _mean(chunk: int, over: Callable[[Samples], Any], samples: Samples) -> Any:
    return jax.tree.map(lambda leaf: leaf.mean(0), _in_parts(chunk, over, samples))


def _read(through: Through, state: State, samples: Samples) -> Samples:
    """Samples, each read once where there is something to read."""
    if through.read is None:
        return samples
    each = jax.vmap(through.read, (None, 0))
    parts = _in_parts(through.chunk, lambda part: each(state, part), samples)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), parts)


def _trained(
    through: Through, training: Training, paced: bool
) -> Callable[[Outer, State, Samples, jax.Array], State]:
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())
    level_at_most = max(training.updates - training.updates // 4, 1)
    window = min(training.window, level_at_most)

    def with_trained(state: State, weights: _Weights, whole: bool = True) -> State:
        if paced:
            state = state._replace(pace=_paces(weights.haste, whole))
        return state._replace(params=weights.params)

    def loss(weights: _Weights, state: State, samples: Samples) -> jax.Array:
        return outer_loss(through, with_trained(state, weights, not through.factored), samples)

    @jax.jit
    def run(outer: Outer, state: State, samples: Samples, key: jax.Array) -> State:
        samples = _read(through, state, samples)
        held = max(min(HELD_OUT, (n := samples.label.shape[0]) // 8), 1)
        watched = jax.tree.map(lambda leaf: leaf[:held], samples)

        def update(_: jax.Array, at: _Progress) -> _Progress:
            here = jax.random.fold_in(key, at.done)
            rows = jax.random.randint(here, (training.batch,), held, n)
            drawn = jax.tree.map(lambda leaf: leaf[rows], samples)
            slope = _mean(
                through.chunk, lambda part: jax.grad(loss)(at.weights, state, part), drawn
            )
            change, memory = optimiser.update(slope, at.memory)
            rate = outer.rate * rate_at(training, at.done, at.fall)
            weights = jax.tree.map(lambda w, c: w - rate * c, at.weights, change)
            return at._replace(weights=weights, memory=memory, done=at.done + 1)

        def advance(at: _Progress) -> _Progress:
            """A window of updates; or all that are left, once the rate falls."""
            rising = at.fall < 0
            at = jax.lax.fori_loop(0, jnp.where(rising, window, at.fall // 3), update, at)
            now = _mean(through.chunk, lambda part: loss(at.weights, state, part), watched)
            better = now < (1 - LEVEL) * at.least
            waited = jnp.where(rising, jnp.where(better, 0, at.waited + 1), at.waited)
            ends = rising & ((waited >= PATIENCE) | (at.done + window > level_at_most))
            least, fall = jnp.where(better, now, at.least), jnp.where(ends, at.done, at.fall)
            return at._replace(least=least, waited=waited, fall=fall)

        haste = _hastes(state.params, jnp.asarray(outer.pace), through.factored) if paced else None
        weights, zero = _Weights(haste, state.params), jnp.int32(0)
        start = _Progress(
            weights, optimiser.init(weights), zero, jnp.float32(jnp.inf), zero, zero - 1
        )
        end = jax.lax.while_loop(
            lambda at: (at.fall < 0) | (at.done < at.fall + at.fall // 3), advance, start
        )
        trained = Trained(end.done, end.waited >= PATIENCE)
        return with_trained(state, end.weights)._replace(trained=trained)

    return run

"""How learners are exposed, asked and tuned.

Reset to base: every sample is learnt from the same base state and asked its own halo, so a score
belongs to that sample alone. Streaming: samples are learnt one after the other, and asked before,
after and later. Nothing here knows what a learner is inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime.devices import at_once, fetch, over_runs, shard
from kubku.halo import Learner, Sample, Samples, State, Statement, decide, veiled
from kubku.scoring import Scores, score

# Finer towards 1: what was trained to be sure is only told from what is surer there. Who is wholly
# sure always answers, or `always_yes` would be tuned to silence.
THRESHOLDS = np.concatenate([np.linspace(0.0, 0.96, 49), 1 - np.geomspace(0.03, 2e-7, 24)]).astype(
    np.float32
)
LAGS = (1, 10, 100)


class Exposed(NamedTuple):
    """What a learner said about every halo, as scores for NO, UNKNOWN, YES.

    Attributes:
      before: f32[N, Q, 3], in the base state (K = 0).
      after: f32[N, Q, 3], having learnt the sample.
    """

    before: jax.Array
    after: jax.Array


def reset_to_base(
    learner: Learner, state: State, samples: Samples, asked: Statement | None = None
) -> Exposed:
    """Learn each sample from `state` and ask its halo (or `asked`, i32[N, Q]), before and after.

    One program over all samples, `learner.chunk` at a time side by side on each CPU device, for
    weights that differ from sample to sample soon outgrow the cache, and many more on a GPU.
    """
    num_samples = samples.label.shape[0]
    if not learner.unveiled:
        asked = None if asked is None else veiled(samples._replace(query=asked)).query
        samples = veiled(samples)
    block = min(at_once(learner.chunk), num_samples)
    expose = _exposing(learner.learn, learner.answer, block)
    told_and_asked = shard((samples, samples.query if asked is None else asked), block=block)
    return fetch(expose(state, *told_and_asked), num_samples)


@cache
def _exposing(learn, answer, block: int):  # type: ignore[no-untyped-def]
    def expose(state: State, sample: Sample, query: Statement) -> Exposed:
        ask = jax.vmap(answer, in_axes=(None, 0))
        return Exposed(ask(state, query), ask(learn(state, sample), query))

    return over_runs(expose, block=block)


class Streamed(NamedTuple):
    """What a learner said along a stream of T samples; leading axis streams where there are many.

    Attributes:
      before: f32[T, Q, 3], about sample t just before it was learnt.
      after: f32[T, Q, 3], just after.
      later: f32[T, len(LAGS), Q, 3], having learnt sample t, about sample t - lag; where there is
        none (t < lag) about sample 0, to be left out.
    """

    before: jax.Array
    after: jax.Array
    later: jax.Array


def stream(learner: Learner, state: State, streams: Samples) -> Streamed:
    """Learn streams of samples, each from `state` on; leaves of `streams` are [streams, T, ...]."""
    told = streams if learner.unveiled else veiled(streams)
    return _stream(learner.learn, learner.answer, at_once(learner.chunk), state, told)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _stream(learn, answer, chunk: int, state: State, streams: Samples) -> Streamed:
    asked = jax.vmap(answer, in_axes=(None, 0))
    length = streams.label.shape[1]

    def one(samples: Samples) -> Streamed:
        def step(state: State, t: jax.Array):
            sample = jax.tree.map(lambda leaf: leaf[t], samples)
            learnt = learn(state, sample)
            earlier = jnp.maximum(t - jnp.array(LAGS), 0)
            queries = jax.tree.map(lambda leaf: leaf[earlier], samples.query)
            later = jax.vmap(asked, in_axes=(None, 0))(learnt, queries)
            return learnt, Streamed(asked(state, sample.query), asked(learnt, sample.query), later)

        return jax.lax.scan(step, state, jnp.arange(length))[1]

    return jax.lax.map(one, streams, batch_size=chunk)


class Tuned(NamedTuple):
    """Settings chosen on the validation split, then frozen.

    Attributes:
      trial: fields of the state and their values.
      threshold: the abstention threshold.
      objective: mean KU - BKU on the validation split.
    """

    trial: Mapping[str, float]
    threshold: float
    objective: float


def tune(learner: Learner, state: State, validation: Samples) -> Tuned:
    """The trial and threshold with the highest mean KU - BKU: the first of equal trials, and the
    middle one of thresholds that do equally well side by side, for at their edge the next sample
    may be judged otherwise.
    """
    best = None
    for trial in learner.trials:
        exposed = reset_to_base(learner, with_trial(state, trial), validation)
        objectives = np.asarray(_objectives(exposed.after, validation))
        at = int(objectives.argmax())
        if best is None or objectives[at] > best.objective + 1e-6:
            less = np.flatnonzero(objectives[at:] < objectives[at] - 1e-6)
            equal = less[0] if less.size else len(objectives) - at
            threshold = THRESHOLDS[at + (equal - 1) // 2]
            best = Tuned(dict(trial), float(threshold), float(objectives[at]))
    assert best is not None, "a learner has one trial at least"
    return best


def with_trial(state: State, trial: Mapping[str, float]) -> State:
    """The state with some of its settings changed, their types kept."""
    if not trial:
        return state
    return state._replace(
        **{name: np.asarray(value, getattr(state, name).dtype) for name, value in trial.items()}
    )


@jax.jit
def _objectives(scores: jax.Array, samples: Samples) -> jax.Array:
    def at(threshold: jax.Array) -> jax.Array:
        result = jax.vmap(score)(decide(scores, threshold), samples)
        return (result.ku - result.bku).mean()

    return jax.lax.map(at, jnp.asarray(THRESHOLDS))


@jax.jit
def judged(scores: jax.Array, threshold: jax.Array | float, samples: Samples) -> Scores:
    """Scores of every sample, f32[N] each: the learner's scores decided, then marked."""
    return jax.vmap(score)(decide(scores, threshold), samples)


def audit(learner: Learner, state: State, samples: Samples) -> float:
    """The share of queries whose answer moves when the learner is shown a wrong halo: 0 is right.

    While it learns, each sample carries another one's queries, gold answers, kinds and latents; it
    is then asked its own. A learner that learns from the exposure alone can't notice.
    """
    foreign = jax.tree.map(lambda leaf: np.roll(leaf, 1, axis=0), samples)
    disguised = foreign._replace(
        exposure=samples.exposure, label=samples.label, shown=samples.shown
    )
    honest, blind = (
        np.asarray(reset_to_base(learner, state, told, samples.query).after)
        for told in (samples, disguised)
    )
    return float((np.abs(honest - blind) > 1e-4).any(-1).mean())

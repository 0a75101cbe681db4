"""How learners are exposed, asked and tuned.

Reset to base: every sample is learnt from the same base state and asked its own halo, so a score
belongs to that sample alone. Streaming: samples are learnt one after the other, and asked before,
after and later. Nothing here knows what a learner is inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime.devices import at_once, fetch, over_runs, shard
from kubku.halo import Learner, Sample, Samples, State, Statement, decide, veiled
from kubku.scoring import Scores, balanced_bku, marking, score, traps_told

# Finer towards 1: what was trained to be sure is only told from what is surer there. Who is wholly
# sure always answers, or `always_yes` would be tuned to silence.
THRESHOLDS = np.concatenate([np.linspace(0.0, 0.96, 49), 1 - np.geomspace(0.03, 2e-7, 24)]).astype(
    np.float32
)
LAGS = (1, 10, 100)
LIMITS = (0.1, 0.2, 0.4)
"""BKU, traps weighted equally by stratum, under which KU is maximised on the validation split."""
MATCHED = 0.2
"""The limit that trials are chosen by and answers are given at; the others stand beside it."""
PIECE = 64
"""Samples of one call of a program on a CPU: any number of samples is asked about in such pieces,
so that each learner's program is compiled once."""
LEAST_RUNG = 16
"""Samples of a rung of tuning at least."""


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

    One program over `PIECE` samples, `learner.chunk` at a time side by side on each CPU device, for
    weights that differ from sample to sample soon outgrow the cache, and many more on a GPU.
    """
    num_samples = samples.label.shape[0]
    if not learner.unveiled:
        asked = None if asked is None else veiled(samples._replace(query=asked)).query
        samples = veiled(samples)
    piece = min(at_once(PIECE), num_samples)
    block = min(at_once(learner.chunk), piece)
    expose = _exposing(learner.learn, learner.answer, block)
    both = jax.tree.map(np.asarray, (samples, samples.query if asked is None else asked))
    under_way = []
    for start in range(0, num_samples, piece):
        rows = np.minimum(np.arange(start, start + piece), num_samples - 1)
        part = jax.tree.map(lambda leaf: leaf[rows], both)  # noqa: B023
        under_way.append(expose(state, *shard(part, block=block)))
    found = [fetch(part, piece) for part in under_way]
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:num_samples], *found)


@cache
def _exposing(learn, answer, block: int):  # type: ignore[no-untyped-def]
    learnt, ask = _traced_once(learn, answer)

    def expose(state: State, sample: Sample, query: Statement) -> Exposed:
        return Exposed(ask(state, query), ask(learnt(state, sample), query))

    return over_runs(expose, block=block)


@cache
def _traced_once(learn, answer):  # type: ignore[no-untyped-def]
    """A learner's two functions for all programs that they are part of: `(state, sample) -> state`
    and `(state, queries) -> answers`.
    """
    return jax.jit(learn), jax.jit(jax.vmap(answer, in_axes=(None, 0)))


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
    learn, asked = _traced_once(learn, answer)
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


class Frontier(NamedTuple):
    """What a learner trades: the more it answers, the more it knows, rightly and wrongly.

    Attributes:
      ku: mean KU at each of `THRESHOLDS`, f64[T].
      bku: BKU there, traps weighted equally by stratum, f64[T].
    """

    ku: np.ndarray
    bku: np.ndarray


class Told(NamedTuple):
    """Sums over samples at each threshold, which add up.

    Attributes:
      samples: how many.
      ku: f64[T].
      traps: f64[T, 5, 2], see `scoring.traps_told`.
    """

    samples: int
    ku: np.ndarray
    traps: np.ndarray

    def plus(self, other: Told) -> Told:
        """Of both."""
        return Told(self.samples + other.samples, self.ku + other.ku, self.traps + other.traps)

    @property
    def frontier(self) -> Frontier:
        """Means, over all samples."""
        return Frontier(self.ku / self.samples, balanced_bku(self.traps))


def told(scores: jax.Array, samples: Samples) -> Told:
    """What comes of a learner's scores at each threshold.

    Args:
      scores: f32[N, Q, 3].
      samples: N of them.
    """
    n, marked = len(scores), marking(samples)
    sums = [
        _sums(*jax.tree.map(lambda leaf: leaf[at : at + PIECE], (scores, marked)))  # noqa: B023
        for at in range(0, n, PIECE)
    ]
    ku, traps = (np.sum(part, 0, dtype=np.float64) for part in zip(*sums, strict=True))
    return Told(n, np.asarray(ku), np.asarray(traps))


@jax.jit
def _sums(scores: jax.Array, samples: Samples) -> tuple[jax.Array, jax.Array]:
    def at(threshold: jax.Array) -> tuple[jax.Array, jax.Array]:
        answers = decide(scores, threshold)
        return jax.vmap(score)(answers, samples).ku.sum(), traps_told(answers, samples).sum(0)

    return jax.lax.map(at, jnp.asarray(THRESHOLDS))


class Point(NamedTuple):
    """Where on its frontier a learner stands.

    Attributes:
      threshold: of abstention.
      reached: BKU is low enough there; if it is nowhere, the threshold is that of least BKU.
      objective: KU there, of a point that is reached; else BKU, negative.
    """

    threshold: float
    reached: bool
    objective: float


def point(frontier: Frontier, most: float) -> Point:
    """The threshold with the highest KU of those with a BKU of at most `most`: the middle one of
    thresholds that do equally well side by side, for at their edge the next sample may be judged
    otherwise. Nothing is interpolated between thresholds.
    """
    fits = frontier.bku <= most + 1e-9
    if not fits.any():
        value = np.where(frontier.bku <= frontier.bku.min() + 1e-9, frontier.ku, -np.inf)
    else:
        value = np.where(fits, frontier.ku, -np.inf)
    at = int(value.argmax())
    less = np.flatnonzero(value[at:] < value[at] - 1e-6)
    equal = int(less[0]) if less.size else len(value) - at
    objective = float(value[at] if fits.any() else -frontier.bku.min())
    return Point(float(THRESHOLDS[at + (equal - 1) // 2]), bool(fits.any()), objective)


class Tuned(NamedTuple):
    """Settings chosen on the validation split, then frozen.

    Attributes:
      trial: fields of the state and their values: those with the highest KU at a BKU of `MATCHED`.
      points: by `LIMITS`, on the frontier of that trial.
    """

    trial: Mapping[str, float]
    points: Mapping[float, Point]


def tune(learner: Learner, state: State, validation: Samples) -> Tuned:
    """Choose a trial by successive halving (Jamieson & Talwalkar, 2016), and its thresholds.

    All trials are asked about a first part of the samples, the better half of them about the next
    part as well, and so on; what is left has seen all. Of equal trials the first is better. With
    few samples all trials see all of them.
    """
    trials = [dict(trial) for trial in learner.trials]
    n = validation.label.shape[0]
    rungs = 1 + math.ceil(math.log2(len(trials)))
    edges = np.linspace(0, n, rungs + 1 if n >= rungs * LEAST_RUNG else 2).astype(int)
    seen: dict[int, Told] = {}
    standing = list(range(len(trials)))
    for start, stop in pairwise(edges):
        part = jax.tree.map(lambda leaf: leaf[start:stop], validation)  # noqa: B023
        for trial in standing:
            exposed = reset_to_base(learner, with_trial(state, trials[trial]), part)
            found = told(exposed.after, part)
            seen[trial] = seen[trial].plus(found) if trial in seen else found
        points = {trial: point(seen[trial].frontier, MATCHED) for trial in standing}
        standing.sort(key=lambda trial: (-round(points[trial].objective, 6), trial))
        standing = standing[: -(-len(standing) // 2)] if stop < n else standing[:1]
    best = seen[standing[0]].frontier
    return Tuned(trials[standing[0]], {most: point(best, most) for most in LIMITS})


def with_trial(state: State, trial: Mapping[str, float]) -> State:
    """The state with some of its settings changed, their types kept."""
    if not trial:
        return state
    return state._replace(
        **{name: np.asarray(value, getattr(state, name).dtype) for name, value in trial.items()}
    )


def judged(scores: jax.Array, threshold: jax.Array | float, samples: Samples) -> Scores:
    """Scores of every sample, f32[N] each: the learner's scores decided, then marked."""
    return _judged(scores, threshold, marking(samples))


@jax.jit
def _judged(scores: jax.Array, threshold: jax.Array | float, samples: Samples) -> Scores:
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

"""A study of proxies, from its settings to its results: prepare, train, tell, compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import jax
import numpy as np

from evidence import stats
from evidence.measurement import Measurement
from evidence.runtime import progress
from goodharts_jax import forecast, foretold, learnt, remedies, training
from goodharts_jax.learnt import Job
from goodharts_jax.learnt_results import (
    BestOf,
    LearntStudy,
    PressureCurve,
    ProxyRow,
    Remedies,
    StudyRun,
)
from goodharts_jax.population import Study
from goodharts_jax.preferences import SEGMENT
from goodharts_jax.proxies import Ground, Prepared, prepare
from goodharts_jax.results import UNIT, Results
from goodharts_jax.study_settings import LearntSettings
from goodharts_jax.training import Trained

_DRAWN = (1, 2, 4, 8, 16, 32, 64)
"""Segments that the best is taken of."""


def find(study: Study) -> partial[Results]:
    """All that a study of proxies finds: all but the manifest."""
    kind = study.settings.study
    assert isinstance(kind, LearntSettings)
    ground = Ground(
        settings=study.settings,
        world=study.settings.world.build(),
        seeds=study.settings.seeds,
        folder=study.folder,
        console=study.console,
    )
    return _FINDERS[kind.kind](ground)


def _learnt_proxy(ground: Ground) -> partial[Results]:
    runs = tuple(run for part in ground.parts for run in train_all(part)[0])
    return partial(Results, modes={}, study=LearntStudy(runs=runs, rows=rows(runs)))


def _remedies(ground: Ground) -> partial[Results]:
    runs = _with_remedies(ground)
    bare = [run for run in runs if run.remedy is None]
    found = remedies.table(runs)
    if (other := ground.elsewhere) is not None and found.proxies:
        found = remedies.judged_elsewhere(found, _with_remedies(other, found))
    missing = () if found.proxies else ("No proxy leaves a gap that a remedy could close.",)
    return partial(
        Results,
        modes={},
        study=LearntStudy(runs=runs, rows=rows(bare)),
        remedies=found,
        warnings=missing,
    )


def _with_remedies(ground: Ground, chosen: Remedies | None = None) -> tuple[StudyRun, ...]:
    """Every run, or every run at the chosen strengths."""
    every = ground.settings.remedies
    return tuple(
        run
        for part in ground.parts
        for run in train_all(part, remedies.jobs(part, every, chosen))[0]
    )


def _forecast(ground: Ground) -> partial[Results]:
    runs = _scored(ground)
    other = ground.elsewhere
    elsewhere = () if other is None else _scored(other)
    found = foretold.tell(runs, elsewhere)
    return partial(
        Results,
        modes={},
        study=LearntStudy(runs=runs, rows=rows(runs)),
        forecast=found,
        thesis=foretold.judge(found, foretold.load_thesis()),
    )


def _scored(ground: Ground) -> tuple[StudyRun, ...]:
    """Every run with what was said of it; the tests see no trained policy."""
    runs, prepared = train_all(ground)
    scores = foretold.score_all(ground, prepared)
    return tuple(run.model_copy(update={"scores": scores[run.proxy, run.seed]}) for run in runs)


_FINDERS = {"learnt_proxy": _learnt_proxy, "forecast": _forecast, "remedies": _remedies}


def train_all(
    ground: Ground, jobs: Sequence[Job] | None = None
) -> tuple[tuple[StudyRun, ...], Mapping[int, Prepared]]:
    """Every run of a study, and the proxies by seed.

    Args:
      ground: what they stand on.
      jobs: the runs; None for each proxy and seed once.
    """
    if jobs is None:
        jobs = [Job(proxy, seed) for proxy in ground.drawn for seed in ground.seeds]
    policies = learnt.stages(ground)
    prepared = {}
    title = f"making {len(ground.drawn)} proxies for each of {len(ground.seeds)} seeds"
    with progress.bar(title, len(ground.seeds), "seeds", ground.console, compiles=True) as advance:
        for place, seed in enumerate(ground.seeds):
            own = {
                name: jax.tree.map(lambda x, place=place: x[place], params)
                for name, params in policies.items()
            }
            prepared[seed] = prepare(ground, own, seed)
            advance(1)
    trained = learnt.train(ground, policies, prepared, jobs, ground.folder)
    return tuple(
        told(ground, job, prepared[job.seed], trained, place) for place, job in enumerate(jobs)
    ), prepared


def told(ground: Ground, job: Job, ready: Prepared, trained: Trained, place: int) -> StudyRun:
    """What is kept of one run, which has a `place` in the population."""
    names, at = list(ground.drawn), list(ground.study.stages)
    proxy = ground.drawn[job.proxy]
    index, start = names.index(job.proxy), at.index(proxy.start)
    watch = jax.tree.map(lambda x: np.asarray(x[place], np.float64), trained.watches)
    updates = training.looks(len(watch.kl), ground.chunk_updates)
    steps = ground.settings.plan.steps_per_update
    gold = 1000 * watch.energy.mean(-1)
    said, truth = ready.said[index, start], ready.gold[start]
    return StudyRun(
        proxy=job.proxy,
        seed=job.seed,
        remedy=job.remedy,
        strength=job.strength,
        settings=proxy.model_dump(exclude={"draws", "item"})
        | {name: None if proxy.item is None else proxy.item[i] for i, name in enumerate(_ITEMS)},
        accuracy=float(ready.accuracy[index]),
        correlation=1 - forecast.decorrelation(said.ravel(), truth.ravel()),
        curve=PressureCurve(
            step=tuple(steps * update for update in updates),
            gold=gold.round(3),
            proxy=(1000 * watch.reward.mean(-1)).round(3),
            held_out=(1000 * watch.held_out.mean(-1)).round(3),
            kl=watch.kl.round(6),
        ),
        best_of=None if job.guard is not None else best_of(said.sum(-1), truth.sum(-1)),
        collapsed=bool(gold[-1] < gold[0]),
    )


_ITEMS = ("food_reward", "poison_reward")


def best_of(said: np.ndarray, gold: np.ndarray) -> BestOf:
    """What the best of n segments by a proxy is truly worth, on average over all draws.

    Args:
      said: the proxy's return of each segment. f64[segments].
      gold: its true return. f64[segments].
    """
    order, count = np.argsort(said, kind="stable"), len(said)
    ranks = np.arange(count + 1) / count
    # The chance that the greatest of n ranks, drawn with replacement, is each of them.
    chances = [np.diff(ranks**n) for n in _DRAWN]
    return BestOf(
        n=_DRAWN,
        kl=tuple(float(np.log(n) - (n - 1) / n) for n in _DRAWN),
        gold=tuple(1000 / SEGMENT * float(chance @ gold[order]) for chance in chances),
    )


def rows(runs: Sequence[StudyRun]) -> tuple[ProxyRow, ...]:
    """A row a proxy."""
    return tuple(
        _proxy_row(name, [run for run in runs if run.proxy == name])
        for name in dict.fromkeys(run.proxy for run in runs)
    )


def _proxy_row(name: str, runs: Sequence[StudyRun]) -> ProxyRow:
    gold = np.array([run.curve.gold for run in runs], float)
    others = (gold.sum(axis=0) - gold) if len(runs) > 1 else gold
    peaks = gold[np.arange(len(runs)), others.argmax(axis=1)]

    def over_runs(values: Sequence[float | None] | np.ndarray) -> Measurement:
        return stats.interval(np.array(values, float), UNIT)

    return ProxyRow(
        proxy=name,
        accuracy=over_runs([run.accuracy for run in runs]),
        correlation=over_runs([run.correlation for run in runs]),
        start=over_runs(gold[:, 0]),
        peak=over_runs(peaks),
        end=over_runs(gold[:, -1]),
        collapsed=sum(run.collapsed for run in runs),
        runs=len(runs),
    )

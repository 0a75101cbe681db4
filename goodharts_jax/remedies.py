"""What is used against over-optimisation, side by side.

A remedy is numbers in `rewards.Guard`, so that all of them, at all strengths and on all proxies,
train as one population. What a remedy restores is counted against the gap between no remedy and
training on the truth, and stands beside controls: not training at all, the audit without the proxy,
and a placebo, whose share is the noise.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from evidence import stats
from evidence.measurement import Measurement
from goodharts_jax.learnt import Ground, Job
from goodharts_jax.learnt_results import Remedies, RemedyRow, StudyRun
from goodharts_jax.preferences import gold_reward
from goodharts_jax.results import UNIT
from goodharts_jax.rewards import Function, Guard, no_guard
from goodharts_jax.study_settings import GOLD, Remedy, RemedySettings

Shares = np.ndarray
"""Share of the gap restored: f64[strengths, proxies, seeds]."""

_LEAST_GAP = 10.0
"""Energy per 1,000 steps; a proxy with a smaller gap has nothing to restore."""


def jobs(ground: Ground, remedies: Mapping[str, Remedy]) -> list[Job]:
    """Every run: each proxy without a remedy, and with each strength of each.

    Raises:
      ValueError: a remedy's function is not there, or it needs more reward models than there are.
    """
    functions = {
        name: _function(name, remedy.function)
        for name, remedy in remedies.items()
        if remedy.function is not None
    }

    def guard(name: str | None, strength: RemedySettings) -> Guard:
        own = [strength.own if name == other else 0.0 for other in functions]
        numbers = strength.model_dump(exclude={"own", "mean_of", "reseed"})
        numbers["cap"] = np.inf if strength.cap is None else strength.cap
        if strength.audit_weight is None:
            numbers["audit_weight"] = 1 / strength.audit if strength.audit else 0.0
        item, step = gold_reward(ground.world)
        return no_guard(
            item,
            step,
            own=jnp.array(own, jnp.float32),
            functions=tuple(functions.values()),
            **numbers,
        )

    most = ground.study.members
    for name, remedy in remedies.items():
        if (count := max(one.mean_of for one in remedy.strengths)) > most:
            raise ValueError(f"remedies.{name}: mean_of={count}, but study.members={most}")

    def job(proxy: str, seed: int, name: str | None, index: int, one: RemedySettings) -> Job:
        return Job(proxy, seed, name, index, guard(name, one), one.mean_of, one.reseed)

    off = RemedySettings()
    found = [job(p, seed, None, 0, off) for p in ground.study.drawn for seed in ground.seeds]
    return found + [
        job(proxy, seed, name, index, strength)
        for name, remedy in remedies.items()
        for index, strength in enumerate(remedy.strengths)
        for proxy in ground.study.drawn
        if proxy != GOLD
        for seed in ground.seeds
    ]


def _function(name: str, place: str) -> Function:
    module, _, function = place.partition(":")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"remedies.{name}.function={place}: {error}; give module:function, from a folder that "
            "Python looks in"
        ) from None


def table(runs: Sequence[StudyRun]) -> Remedies:
    """What every remedy restores.

    Args:
      runs: all of the study; those of the proxy `gold` are trained on the truth.
    """
    seeds = sorted({run.seed for run in runs})
    bare = {(run.proxy, run.seed): run for run in runs if run.remedy is None}
    names = [name for name in dict.fromkeys(run.proxy for run in runs) if name != GOLD]
    gold = np.array([bare[GOLD, seed].curve.gold[-1] for seed in seeds])
    curves = np.array([[bare[name, seed].curve.gold for seed in seeds] for name in names], float)
    gaps = gold - curves[..., -1]
    wide = [name for name, gap in zip(names, gaps, strict=True) if _is_wide(gap)]
    left_out = tuple(name for name in names if name not in wide)
    if not wide:
        return Remedies(rows=(), proxies=(), left_out=left_out)
    kept = [names.index(name) for name in wide]
    curves, gap = curves[kept], gaps[kept].mean(axis=1)[:, None]

    def share(energy: np.ndarray) -> Shares:
        return (energy - curves[..., -1]) / gap

    ended = {
        (run.remedy, run.strength, run.proxy, run.seed): run.curve.gold[-1]
        for run in runs
        if run.remedy is not None
    }
    strengths: dict[str, int] = {}
    for name, strength, *_ in ended:
        strengths[str(name)] = max(strength + 1, strengths.get(str(name), 0))
    of_remedies = {
        name: np.array(
            [
                share(np.array([[ended[name, i, p, seed] for seed in seeds] for p in wide], float))
                for i in range(count)
            ]
        )
        for name, count in strengths.items()
    }
    held_out = np.array([[bare[name, seed].curve.held_out for seed in seeds] for name in wide])
    controls = {
        "not_training": share(curves[..., 0])[None],
        "early_stopping": share(np.moveaxis(curves, -1, 0)),
        "early_stopping_by_other_runs": share(_where_others_peak(curves))[None],
        "early_stopping_by_held_out": share(_at(curves, held_out.argmax(-1)))[None],
    }
    every = controls | of_remedies
    return Remedies(
        rows=tuple(_row(name, shares, wide) for name, shares in every.items()),
        proxies=tuple(wide),
        left_out=left_out,
    )


def _is_wide(gap: np.ndarray) -> bool:
    found = stats.interval(gap, UNIT)
    least = found.value if found.low is None else found.low
    return least is not None and least > _LEAST_GAP


def _where_others_peak(curves: np.ndarray) -> np.ndarray:
    """Energy where a run stops at the look at which the other runs on its proxy peak."""
    runs = curves.shape[1]
    others = curves.sum(axis=1, keepdims=True) - curves if runs > 1 else curves
    return _at(curves, others.argmax(-1))


def _at(curves: np.ndarray, looks: np.ndarray) -> np.ndarray:
    return np.take_along_axis(curves, looks[..., None], -1)[..., 0]


def _row(name: str, shares: Shares, proxies: Sequence[str]) -> RemedyRow:
    """One remedy at the strength that is best for each proxy, and at that best on the others."""
    mean = shares.mean(axis=-1)
    best = mean.argmax(axis=0)
    own = np.arange(len(proxies))
    elsewhere = (mean.sum(axis=1, keepdims=True) - mean).argmax(axis=0)
    chosen = shares[elsewhere, own]
    apart = len(proxies) > 1 or len(shares) == 1
    none = Measurement(None, None, None, shares.shape[-1], UNIT, "undefined: needs another proxy")
    return RemedyRow(
        name=name,
        best=stats.interval(shares[best, own].mean(axis=0), UNIT),
        chosen=stats.interval(chosen.mean(axis=0), UNIT) if apart else none,
        by_proxy={p: stats.interval(chosen[i], UNIT) for i, p in enumerate(proxies) if apart},
        strengths={p: int(elsewhere[i]) for i, p in enumerate(proxies) if apart},
    )

"""What is used against over-optimisation, side by side.

A remedy is numbers in `rewards.Guard`, so that all of them, at all strengths and on all proxies,
train as one population. What a remedy restores is counted against the gap between no remedy and
training on the truth, and stands beside controls: not training at all, the audit without the proxy,
and a placebo, whose share is the noise.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from evidence import stats
from evidence.measurement import Measurement
from goodharts_jax.learnt import Job
from goodharts_jax.learnt_results import Remedies, RemedyRow, StudyRun
from goodharts_jax.preferences import gold_reward
from goodharts_jax.proxies import Ground
from goodharts_jax.results import UNIT
from goodharts_jax.rewards import Function, Guard, no_guard
from goodharts_jax.study_settings import Remedy, RemedySettings, gold_of

Shares = np.ndarray
"""Share of the gap restored: f64[strengths, proxies, seeds]."""

_LEAST_GAP = 10.0
"""Energy per 1,000 steps; a proxy with a smaller gap has nothing to restore."""


def jobs(
    ground: Ground, remedies: Mapping[str, Remedy], chosen: Remedies | None = None
) -> list[Job]:
    """Every run: each proxy without a remedy, and with each strength of each.

    Args:
      ground: what they stand on.
      remedies: by name.
      chosen: what they came to in another world; then the strengths alone that were chosen there.

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
        numbers = strength.model_dump(exclude={"own", "mean_of", "relabel", "reseed"})
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
        numbers = (one.mean_of, one.reseed, one.relabel)
        return Job(proxy, seed, name, index, guard(name, one), *numbers)

    def wanted(name: str, index: int, proxy: str) -> bool:
        if chosen is None:
            return proxy != gold_of(ground.perceived)
        row = next(row for row in chosen.rows if row.name == name)
        return row.strengths.get(proxy) == index

    off = RemedySettings()
    found = [job(p, seed, None, 0, off) for p in ground.drawn for seed in ground.seeds]
    return found + [
        job(proxy, seed, name, index, strength)
        for name, remedy in remedies.items()
        for index, strength in enumerate(remedy.strengths)
        for proxy in ground.drawn
        if wanted(name, index, proxy)
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


class _Told(NamedTuple):
    """What runs restore, of the proxies that leave a gap.

    Attributes:
      proxies: these.
      left_out: the others.
      controls: what is read off the runs without a remedy, by name.
      ended: by remedy, strength and proxy. f64[seeds] each.
    """

    proxies: list[str]
    left_out: list[str]
    controls: dict[str, Shares]
    ended: dict[tuple[str, int, str], np.ndarray]


def _tell(runs: Sequence[StudyRun]) -> _Told:
    seeds = sorted({run.seed for run in runs})
    bare = {(run.proxy, run.seed): run for run in runs if run.remedy is None}
    # Each proxy is compared with the truth as perceived by the same senses.
    golds = {run.proxy: gold_of(_senses(run)) for run in runs}
    names = [name for name, gold in golds.items() if name != gold]
    gold = np.array([[bare[golds[p], seed].curve.gold[-1] for seed in seeds] for p in names])
    curves = np.array([[bare[name, seed].curve.gold for seed in seeds] for name in names], float)
    gaps = gold - curves[..., -1]
    wide = [name for name, gap in zip(names, gaps, strict=True) if _is_wide(gap)]
    left_out = [name for name in names if name not in wide]
    if not wide:
        return _Told(wide, left_out, {}, {})
    kept = [names.index(name) for name in wide]
    curves, gap = curves[kept], gaps[kept].mean(axis=1)[:, None]

    def share(energy: np.ndarray) -> Shares:
        return (energy - curves[..., -1]) / gap

    ended: dict[tuple[str, int, str], list[float]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        if run.remedy is not None and run.proxy in wide:
            at = wide.index(run.proxy), seeds.index(run.seed)
            restored = (np.float64(run.curve.gold[-1]) - curves[at][-1]) / gap[at[0], 0]
            ended.setdefault((run.remedy, run.strength, run.proxy), []).append(restored)
    held_out = np.array([[bare[name, seed].curve.held_out for seed in seeds] for name in wide])
    controls = {
        "not_training": share(curves[..., 0])[None],
        "early_stopping": share(np.moveaxis(curves, -1, 0)),
        "early_stopping_by_other_runs": share(_where_others_peak(curves))[None],
        "early_stopping_by_held_out": share(_at(curves, held_out.argmax(-1)))[None],
    }
    return _Told(wide, left_out, controls, {at: np.array(x) for at, x in ended.items()})


def table(runs: Sequence[StudyRun]) -> Remedies:
    """What every remedy restores.

    Args:
      runs: all of the study; those of the proxy `gold` are trained on the truth.
    """
    told = _tell(runs)
    if not told.proxies:
        return Remedies(rows=(), proxies=(), left_out=tuple(told.left_out))
    strengths: dict[str, int] = {}
    for name, strength, _ in told.ended:
        strengths[name] = max(strength + 1, strengths.get(name, 0))
    of_remedies = {
        name: np.array([[told.ended[name, i, p] for p in told.proxies] for i in range(count)])
        for name, count in strengths.items()
    }
    every = told.controls | of_remedies
    return Remedies(
        rows=tuple(_row(name, shares, told.proxies) for name, shares in every.items()),
        proxies=tuple(told.proxies),
        left_out=tuple(told.left_out),
    )


def judged_elsewhere(found: Remedies, runs: Sequence[StudyRun]) -> Remedies:
    """The table with what its choices restore in another world, on the proxies of both.

    Args:
      found: the table.
      runs: in the other world, at the chosen strengths.
    """
    told = _tell(runs)
    shared = [name for name in found.proxies if name in told.proxies]

    def restored(row: RemedyRow, proxy: str) -> np.ndarray:
        strength = row.strengths[proxy]
        if row.name in told.controls:
            return told.controls[row.name][strength, told.proxies.index(proxy)]
        return told.ended[row.name, strength, proxy]

    def of(row: RemedyRow) -> RemedyRow:
        if not shared or not row.strengths:
            return row
        mean = np.mean([restored(row, proxy) for proxy in shared], axis=0)
        return row.model_copy(update={"elsewhere": stats.interval(mean, UNIT)})

    rows = tuple(of(row) for row in found.rows)
    changes = {"rows": rows, "elsewhere": tuple(runs), "elsewhere_on": tuple(shared)}
    return found.model_copy(update=changes)


def _senses(run: StudyRun) -> str | None:
    name = run.settings.get("senses")
    return name if isinstance(name, str) else None


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

"""From what was counted to the parts of the results: tables, curves, checks, joined sweeps.

Pure functions: nothing is run and nothing is written here. The unit of replication is the run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evidence import lifetimes, stats
from evidence.measurement import Measurement
from goodharts_jax import survival, thesis, verification
from goodharts_jax.modes import Mode
from goodharts_jax.ppo import History as Course
from goodharts_jax.results import (
    UNIT,
    History,
    Intervals,
    LogRank,
    Manifest,
    Metrics,
    ModeResults,
    Modes,
    Results,
    RunResults,
    Spread,
    Totals,
    Training,
)
from goodharts_jax.survival import LifeTable
from goodharts_jax.world import FOOD, POISON, World

# Fewer than these make a claim rest on too little, whatever its interval says.
LEAST_RUNS = 3
LEAST_DEATHS = 500
COMPARED = ("overall_efficiency", "deaths_per_1k_steps", "survival_restricted_mean")
"""The metrics that modes are compared on."""

# Training counts as having learnt to tell food from poison when this share of what was eaten in
# as many updates in a row was food.
_EFFICIENT, _WINDOW = 0.99, 8
_HISTORY = 64
# What may differ between results that are joined: which runs they hold, and how they were run.
_MAY_DIFFER = (
    "modes",
    "seed",
    "runs",
    "study.thesis_runs",
    "train",
    "policy",
    "checkpoint",
    "resume",
    "full_report",
    "dashboard",
    "tracker",
    "timings",
    "compilation_cache",
)


# ---- the table of modes -------------------------------------------------------------------------


def tabulate(
    life_tables: Mapping[str, Sequence[LifeTable]],
    trained: Mapping[str, tuple[Mode, Sequence[Training]]],
    seeds: Mapping[str, Sequence[int]],
    world: World,
    *,
    horizon: int,
    interestingness: Mapping[str, float],
) -> dict[str, ModeResults]:
    """The table of modes: pooled, over runs, and run by run.

    Args:
      life_tables: what was counted of each run, by row of the table.
      trained: the mode of each row that was trained, and the training of each run.
      seeds: of the runs, by row.
      world: the rules that they lived under.
      horizon: of the restricted mean survival, in steps.
      interestingness: of "food" and "poison".
    """
    table = {}
    for name, counted in life_tables.items():
        mode, trainings = trained.get(name, (None, [None] * len(counted)))

        def measure(lives: LifeTable, mode: Mode | None = mode) -> Totals:
            return survival.metrics(lives, world, horizon, interestingness, mode)

        runs = [
            RunResults(
                seed=seed,
                **dict(measure(lives)),
                **survival.details(lives)._asdict(),
                training=training,
            )
            for seed, lives, training in zip(seeds[name], counted, trainings, strict=True)
        ]
        table[name] = ModeResults(
            scripted=mode is None,
            aggregates=measure(survival.pool(counted)),
            intervals=intervals(runs),
            other_intervals=intervals(runs, stats.other_interval),
            spread=spread(
                [lives.tally.eaten for lives in counted],
                [lives.tally.deaths for lives in counted],
                counted[0].steps,
            ),
            runs=tuple(runs),
        )
    return table


def intervals(
    runs: Sequence[RunResults], estimate: Callable[..., Measurement] = stats.interval
) -> Intervals:
    """Each metric of one mode over its runs; by `stats.other_interval` for a second opinion."""
    return Intervals(
        **{
            metric: estimate([getattr(run, metric) for run in runs], UNIT)
            for metric in Metrics.model_fields
        }
    )


def spread(
    eaten: Sequence[ArrayLike], deaths: Sequence[ArrayLike], steps: int
) -> dict[str, Spread]:
    """World-level quantities of one mode, and how much of their variation lies between runs.

    Worlds where nothing was eaten have no efficiency.

    Args:
      eaten: i[worlds, kinds] for each run, items of each kind eaten in each world.
      deaths: i[worlds] for each run.
      steps: lived in each world.

    Returns:
      Of overall_efficiency and deaths_per_1k_steps.
    """
    meals = [np.asarray(run, dtype=np.float64)[:, [FOOD, POISON]] for run in eaten]
    rates = [1000 * np.asarray(run, dtype=np.float64) / steps for run in deaths]
    fed = [m[m.sum(axis=1) > 0] for m in meals]
    efficiencies = [m[:, 0] / m.sum(axis=1) for m in fed]

    def told(groups: list[np.ndarray], worlds: list[np.ndarray], statistic: Any) -> Spread:
        measured = stats.hierarchical_bootstrap(groups, statistic, UNIT, resamples=2000)
        enough = len(worlds) > 1 and min(map(len, worlds)) > 1
        parts = stats.variance_components(worlds) if enough else None
        return Spread(
            measured=measured,
            between_runs=math.sqrt(parts.between) if parts else None,
            within_runs=math.sqrt(parts.within) if parts else None,
        )

    return {
        "overall_efficiency": told(meals, efficiencies, lambda m: m[:, 0] / m.sum(axis=1)),
        "deaths_per_1k_steps": told(rates, rates, lambda m: m),
    }


def training(history: Course, steps: int) -> Training:
    """What a run's training has to say for itself.

    Args:
      history: of one run, NaN after its last update. f32[updates].
      steps: in an update.
    """
    trained = ~np.isnan(history.food)
    history = Course(*(column[trained] for column in history))
    return Training(
        steps=len(history.reward) * steps,
        steps_to_99_efficiency=steps_to_efficiency(history.food, history.poison, steps),
        converged=is_level(history),
        history=_thinned(history, steps),
    )


def is_level(history: Course) -> bool:
    """Whether one run's return and value loss have levelled off."""
    curves = {"return": history.reward, "value_loss": history.value_loss}
    return verification.convergence(curves).converged


def are_level(history: Course) -> np.ndarray:
    """The same of each run of a population. bool[runs] from f32[runs, updates]."""
    return np.array([is_level(Course(*run)) for run in zip(*history, strict=True)])


def _thinned(history: Course, steps: int) -> History:
    """At most 64 entries a curve, each the mean of as many updates; metrics.jsonl has them all."""
    num_updates = len(history.reward)
    block = -(-num_updates // _HISTORY)
    first = range(0, num_updates, block)
    ends = tuple(min(start + block, num_updates) * steps for start in first)
    means = {
        name: tuple(float(f"{column[start : start + block].mean():.5g}") for start in first)
        for name, column in history._asdict().items()
    }
    return History(steps=ends, **means)


def steps_to_efficiency(food: np.ndarray, poison: np.ndarray, steps: int) -> int | None:
    """Training steps until 99% of what was eaten in eight updates in a row was food.

    Args:
      food: eaten a step, by update.
      poison: likewise.
      steps: in an update.
    """
    window = np.ones(min(_WINDOW, len(food)))
    eaten_food = np.convolve(food, window, "valid")
    eaten = eaten_food + np.convolve(poison, window, "valid")
    reached = np.flatnonzero((eaten > 0) & (eaten_food >= _EFFICIENT * eaten))
    return int(reached[0] + len(window)) * steps if len(reached) else None


def own(modes: Modes) -> dict[str, ModeResults]:
    """The trained modes of a table."""
    return {name: mode for name, mode in modes.items() if not mode.scripted}


# ---- what is made of it -------------------------------------------------------------------------


def cautions(modes: Modes) -> list[str]:
    """Sentences about modes whose claims rest on too few runs or deaths."""
    said = []
    for name, mode in modes.items():
        deaths = sum(run.total_deaths for run in mode.runs)
        if len(mode.runs) < LEAST_RUNS:
            said.append(
                f"{name}: {len(mode.runs)} run(s); a claim about a mode needs {LEAST_RUNS}."
            )
        if deaths < LEAST_DEATHS:
            said.append(
                f"{name}: {deaths:,} deaths in all; survival estimates need {LEAST_DEATHS}."
            )
    return said


def logrank(lives: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> list[LogRank]:
    """The log-rank statistic over first lives for every pair of modes.

    Args:
      lives: by mode, deaths by age and lives still going on by age, all runs together.
    """
    return [
        LogRank(a=a, b=b, z=lifetimes.logrank_descriptive(*lives[a], *lives[b]))
        for a, b in combinations(lives, 2)
    ]


def of_modes(manifest: Manifest, modes: Modes, **more: Any) -> Results:
    """The results of a table of modes, with what it says of the thesis.

    Ruling and ratios are given where both modes of the thesis are there, tests where there is a
    pair to compare.

    Args:
      manifest: what made them.
      modes: the table.
      **more: further fields of `Results`.
    """
    stated = thesis.load_thesis()
    both = stated.truth in modes and stated.proxy in modes
    trained = own(modes)
    return Results(
        manifest=manifest,
        modes=modes,
        warnings=tuple(cautions(trained)),
        thesis=thesis.judge(modes, stated) if both else None,
        ratios=thesis.ratios(modes, stated) if both else {},
        beside_chance=thesis.beside_chance(modes),
        comparisons=tuple(
            row for metric in COMPARED for row in thesis.comparisons(trained, metric, stated)
        ),
        **more,
    )


# ---- several results as one ---------------------------------------------------------------------


def join(parts: Mapping[str, Results]) -> Results:
    """Join results made under the same conditions, such as a sweep's over modes and seeds.

    Runs of equal mode stand together, with intervals, tests and verdict over all of them; a run
    found twice counts once. A mode's aggregates are means over its runs, where those of one
    experiment are of all lives pooled.

    Args:
      parts: results by the name of what made them, such as their folders.

    Raises:
      ValueError: there is nothing to join, a setting other than modes and seeds differs, or there
        are parts that are no tables of modes, or hold different rows of one name.
    """
    if not parts:
        raise ValueError("there are no results to join")
    for name, part in parts.items():
        if part.phase_diagram or part.study is not None:
            raise ValueError(f"{name}: only tables of modes are joined; look at each job alone")
    manifests = {name: part.manifest for name, part in parts.items()}
    verification.require_same_configuration(
        {name: manifest.configuration for name, manifest in manifests.items()}, _MAY_DIFFER
    )
    first = next(iter(manifests.values()))
    seeds = {seed for manifest in manifests.values() for seed in manifest.seeds}
    manifest = first.model_copy(
        update={
            "configuration": {**first.configuration, "modes": _mode_settings(manifests)},
            "seeds": tuple(sorted(seeds)),
            "joined": tuple(parts),
        }
    )
    return of_modes(manifest, _joined_modes(parts))


def _mode_settings(manifests: Mapping[str, Manifest]) -> dict[str, Any]:
    """The settings of every mode.

    Raises:
      ValueError: a mode means different things in two parts.
    """
    found: dict[str, Any] = {}
    for part, manifest in manifests.items():
        for mode, settings in manifest.configuration["modes"].items():
            if found.setdefault(mode, settings) != settings:
                raise ValueError(f"{part}: modes.{mode} differs from the same mode elsewhere")
    return found


def _joined_modes(parts: Mapping[str, Results]) -> dict[str, ModeResults]:
    runs: dict[str, dict[int, RunResults]] = {}
    scripted: dict[str, bool] = {}
    for part, results in parts.items():
        for name, mode in results.modes.items():
            scripted[name] = mode.scripted
            for run in mode.runs:
                first = runs.setdefault(name, {}).setdefault(run.seed, run)
                if mode.scripted and first != run:
                    raise ValueError(
                        f"{part}: {name} of seed {run.seed} is not what it is elsewhere; give "
                        "policies of your own names of their own"
                    )
    joined = {}
    # Trained modes first, as in the results of one experiment.
    for name in sorted(runs, key=lambda name: scripted[name]):
        entries = [run for _, run in sorted(runs[name].items())]
        means = intervals(entries)
        joined[name] = ModeResults(
            scripted=scripted[name],
            aggregates=Totals(
                **{metric: measured.value for metric, measured in means},
                total_deaths=sum(run.total_deaths for run in entries),
                total_steps=sum(run.total_steps for run in entries),
            ),
            intervals=means,
            other_intervals=intervals(entries, stats.other_interval),
            runs=tuple(entries),
        )
    return joined

"""A whole experiment: train, evaluate, check, judge, record, write.

What it leaves in its folder: `config.yaml`, `metrics.jsonl` and `checkpoints/` while it trains,
then `results.json` (results.schema.json), `replay.json`, and the page made from them.
"""

from __future__ import annotations

import importlib.resources
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import yaml
from rich.console import Console

from evidence import stats
from evidence.runtime import devices, files, progress
from goodharts_jax import (
    evaluation,
    phase,
    ppo,
    replay,
    survival,
    thesis,
    training,
    verification,
)
from goodharts_jax.evaluation import Candidate, Evaluator
from goodharts_jax.live import observing
from goodharts_jax.modes import Mode
from goodharts_jax.policies import Policy
from goodharts_jax.ppo import History
from goodharts_jax.results import Manifest
from goodharts_jax.seekers import scripted_policies
from goodharts_jax.settings import Experiment, WorldSettings, read, runs_of
from goodharts_jax.training import Trained
from goodharts_jax.world import ENERGY_UNIT, FOOD, World

_SHOWN_SCRIPTS = ("omniscient_seeker", "random_walk")
# Training counts as having learnt to tell food from poison when this share of what was eaten in
# as many updates in a row was food.
_EFFICIENT, _WINDOW = 0.99, 8
_HISTORY = 64

LifeTables = dict[str, list[survival.LifeTable]]
"""What was counted of each run, by row of the table."""


def conduct(
    settings: Experiment, folder: Path, judged_in: WorldSettings, console: Console
) -> dict[str, Any]:
    """Run an experiment and write what it finds.

    Args:
      settings: validated.
      folder: of results; may hold an interrupted run of the same settings, which goes on.
      judged_in: the world of the evaluation.
      console: where progress is shown.

    Returns:
      The results, as written.

    Raises:
      ValueError: the study does not fit into memory.
    """
    started = time.perf_counter()
    study = Study(settings, folder, judged_in.build(), console)
    _plan_memory(study)
    files.write_text(folder / "config.yaml", yaml.safe_dump(settings.model_dump(mode="json")))
    with _aside(study) as aside:
        trained, train_seconds = _timed(partial(_train, study, aside))
        find = _phase_diagram if settings.study.kind == "phase_diagram" else _modes
        results, judge_seconds = _timed(partial(find, study, trained, aside))
    manifest = Manifest.now(
        settings.model_dump() | {"evaluation_world": judged_in.model_dump()},
        settings.seeds,
        survival_horizon=settings.horizon,
        wall_seconds={
            "training": round(train_seconds, 2),
            "evaluation": round(judge_seconds, 2),
            "total": round(time.perf_counter() - started, 2),
        },
    )
    results = {"manifest": manifest, **results}
    files.write_json(folder / "results.json", results, schema())
    full = settings.full_report
    from goodharts_jax import report  # has been loaded aside

    report.write(folder, full=len(study.rows) > 2 if full is None else full)
    return results


@dataclass(frozen=True)
class Study:
    """What every part of an experiment works from.

    Attributes:
      settings: validated.
      folder: of results.
      judge_world: the rules of the evaluation.
      console: where progress is shown.
    """

    settings: Experiment
    folder: Path
    judge_world: World
    console: Console

    @cached_property
    def rows(self) -> dict[str, Mode]:
        """What is trained, by name."""
        return self.settings.rows()

    @cached_property
    def scripts(self) -> dict[str, Policy]:
        """What stands beside it, by name."""
        interest = self.settings.interestingness
        scripts = scripted_policies(interest.food, interest.poison)
        chance = {"random_walk": scripts["random_walk"]}
        return chance if self.settings.study.kind == "phase_diagram" else scripts

    def own(self, index: int) -> slice:
        """The runs of one row in a population's leading axis."""
        count = len(self.settings.seeds)
        return slice(index * count, (index + 1) * count)


def _plan_memory(study: Study) -> None:
    """Say what the study will take, and refuse it now rather than fail in the middle."""
    settings, world = study.settings, study.settings.world.build()
    num_runs = len(study.rows) * len(settings.seeds)
    num_rows = (len(study.rows) + len(study.scripts)) * len(settings.seeds)
    worlds = settings.budget.evaluation_worlds
    peak = training.memory_needed(settings.plan, world, num_runs)
    peak += evaluation.memory_needed(world, num_rows, worlds)
    available = devices.memory_available()
    study.console.print(
        f"{num_runs} runs x {settings.num_updates * settings.plan.steps_per_update:,} steps; "
        f"memory: about {peak / 2**20:,.0f} of {available / 2**20:,.0f} MiB",
        style="dim",
        highlight=False,
    )
    if peak > available:
        fits = int(len(settings.seeds) * available / peak)
        way_out = (
            f"runs={fits} would fit"
            if fits
            else "lower ppo.num_worlds or budget.evaluation_worlds, for not even runs=1 would fit"
        )
        raise ValueError(
            f"this study takes about {peak / 2**20:,.0f} MiB, {available / 2**20:,.0f} are free; "
            + way_out
        )


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of results.json."""
    file = importlib.resources.files("goodharts_jax").joinpath("results.schema.json")
    return json.loads(file.read_text("utf-8"))


def _timed(work: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


# ---- aside of the training ----------------------------------------------------------------------


@dataclass(frozen=True)
class Aside:
    """What needs no trained policy, done while they are trained: one run leaves a core free.

    Attributes:
      begun: to be set when the training runs, for Python can't trace two programs at once.
      evaluator: of all rows.
    """

    begun: threading.Event
    evaluator: Future[Evaluator]


@contextmanager
def _aside(study: Study) -> Iterator[Aside]:
    begun, given_up = threading.Event(), threading.Event()

    def make_evaluator() -> Evaluator:
        begun.wait()
        if given_up.is_set():
            raise CancelledError
        for slow in ("scipy.stats", "goodharts_jax.report"):
            importlib.import_module(slow)
        start = partial(ppo.start, study.settings.plan, study.settings.world.build())
        params = jax.eval_shape(start, jax.random.key(0)).params
        num_runs = len(study.settings.seeds)
        shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct((num_runs, *x.shape), x.dtype), params)
        return evaluation.make_evaluator(
            study.settings.plan.network,
            study.judge_world,
            _candidates(study, lambda _: shapes),
            num_worlds=study.settings.budget.evaluation_worlds,
            steps_per_world=study.settings.budget.steps_per_world,
        )

    with ThreadPoolExecutor(1) as thread:
        try:
            yield Aside(begun, thread.submit(make_evaluator))
        except BaseException:
            given_up.set()
            raise
        finally:
            begun.set()


# ---- training -----------------------------------------------------------------------------------


def _train(study: Study, aside: Aside) -> Trained:
    settings = study.settings
    modes, keys = runs_of(study.rows, settings.seeds)
    labels = [(name, seed) for name in study.rows for seed in settings.seeds]
    train = partial(
        training.train,
        settings.plan,
        settings.world.build(),
        settings.hyper,
        modes,
        keys,
        chunk_updates=settings.chunk_updates,
        watch_world=study.judge_world,
    )
    if settings.checkpoint is not None and not settings.train:
        aside.begun.set()
        return train(num_updates=0, folder=_checkpoints_of(settings, Path(settings.checkpoint)))
    steps = settings.plan.steps_per_update
    with observing(labels, steps, settings, study.folder, study.console) as tell:

        def observe(first_update: int, history: History) -> None:
            aside.begun.set()
            tell(first_update, history)

        folder = study.folder / "checkpoints"
        trained = train(num_updates=settings.num_updates, folder=folder, observe=observe)
    aside.begun.set()
    return trained


def _checkpoints_of(settings: Experiment, folder: Path) -> Path:
    """Where a run kept its policies, which must be those that the settings describe."""
    config, checkpoints = folder / "config.yaml", folder / "checkpoints"
    for path in (config, checkpoints):
        if not path.exists():
            raise ValueError(f"checkpoint={folder}: there is no {path}")
    if not any(checkpoints.iterdir()):
        raise ValueError(f"checkpoint={folder}: {checkpoints} is empty: nothing was kept yet")
    kept = read(yaml.safe_load(config.read_text("utf-8")))
    for name in ("modes", "world", "network", "ppo", "seeds", "num_updates"):
        if getattr(kept, name) != getattr(settings, name):
            raise ValueError(
                f"{name}: not those that the policies in checkpoint={folder} were trained with; "
                f"repeat the settings in {config}"
            )
    return checkpoints


def _learning(settings: Experiment, history: History) -> dict[str, Any]:
    """What a run's training has to say for itself."""
    steps = settings.plan.steps_per_update
    num_updates = len(history.reward)
    curves = {"return": history.reward, "value_loss": history.value_loss}
    return {
        "steps": num_updates * steps,
        "steps_to_99_efficiency": steps_to_efficiency(history.food, history.poison, steps),
        "converged": verification.convergence(curves).converged,
        "history": _thinned(steps, history),
    }


def _thinned(steps: int, history: History) -> dict[str, list[float]]:
    """At most 64 entries a curve, each the mean of as many updates; metrics.jsonl has them all."""
    num_updates = len(history.reward)
    block = -(-num_updates // _HISTORY)
    first = range(0, num_updates, block)
    ends = [min(start + block, num_updates) for start in first]
    means = {
        name: [float(f"{column[start : start + block].mean():.5g}") for start in first]
        for name, column in history._asdict().items()
    }
    return {"steps": [end * steps for end in ends], **means}


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


# ---- evaluation ---------------------------------------------------------------------------------


def _modes(study: Study, trained: Trained, aside: Aside) -> dict[str, Any]:
    """The table of modes, what is made of it, and a replay."""
    counted = _evaluate(study, trained, aside)
    modes = _tabulate(study, counted, trained)
    recorded = files.plain(_record(study, trained))
    files.write_text(study.folder / "replay.json", json.dumps(recorded, allow_nan=False))
    lives = {name: survival.first_lives(survival.pool(counted[name])) for name in study.rows}
    return {"modes": modes, "logrank": thesis.logrank(lives), **_judge(study, trained, modes)}


def _phase_diagram(study: Study, trained: Trained, aside: Aside) -> dict[str, Any]:
    """The cells, and the random walk that they are compared with."""
    modes = _tabulate(study, _evaluate(study, trained, aside), trained)
    chance = modes["random_walk"]["aggregates"]
    energy = study.judge_world.energy[FOOD:] * ENERGY_UNIT
    found = phase.cells(
        study.settings.study.grid,
        trained.watches,
        _watch_steps(study, trained),
        {item: chance[f"{item}_per_1k_steps"] / 1000 for item in ("food", "poison")},
        energy.tolist(),
    )
    return {"modes": modes, "warnings": phase.cautions(found), "phase_diagram": found}


def _candidates(study: Study, params_of: Callable[[int], Any]) -> dict[str, Candidate]:
    """The rows of the table; `params_of` gives those of a mode's runs, by its place."""
    seeds = study.settings.seeds
    trained = {} if study.settings.study.kind == "phase_diagram" else study.rows
    return {
        name: Candidate(None, params_of(index), mode, seeds)
        for index, (name, mode) in enumerate(trained.items())
    } | {name: Candidate(script, None, None, seeds) for name, script in study.scripts.items()}


def _own_params(study: Study, trained: Trained, index: int) -> Any:
    return jax.tree.map(lambda x: x[study.own(index)], trained.states.params)


def _evaluate(study: Study, trained: Trained, aside: Aside) -> LifeTables:
    rows = _candidates(study, partial(_own_params, study, trained))
    evaluator = aside.evaluator.result()
    title = f"evaluating {len(rows)} policies"
    with progress.bar(title, evaluator.total_steps, "steps", study.console) as advance:
        return evaluation.evaluate(
            evaluator, rows, temperature=study.settings.temperature, report=advance
        )


def _tabulate(study: Study, life_tables: LifeTables, trained: Trained) -> dict[str, Any]:
    """The table of modes: pooled, over runs, and run by run."""
    settings, world = study.settings, study.judge_world
    interest = settings.interestingness.model_dump()
    table = {}
    for index, (name, counted) in enumerate(life_tables.items()):
        mode = study.rows.get(name)

        def measure(
            life_table: survival.LifeTable, mode: Mode | None = mode
        ) -> dict[str, float | None]:
            return survival.metrics(life_table, world, settings.horizon, interest, mode)

        entries = []
        for run, (seed, life_table) in enumerate(zip(settings.seeds, counted, strict=True)):
            entry: dict[str, Any] = {"seed": seed, **measure(life_table)}
            entry |= survival.details(life_table)._asdict()
            if mode is not None:
                place = study.own(index).start + run
                history = jax.tree.map(lambda column, i=place: column[i], trained.history)
                entry["training"] = _learning(settings, history)
            entries.append(entry)
        pooled = measure(survival.pool(counted))
        shown = [metric for metric in pooled if not metric.startswith("total_")]
        table[name] = {
            "scripted": mode is None,
            "aggregates": pooled,
            "intervals": thesis.intervals(entries, shown),
            "other_intervals": thesis.intervals(entries, shown, stats.other_interval),
            "spread": thesis.spread(
                [life_table.tally.eaten for life_table in counted],
                [life_table.tally.deaths for life_table in counted],
                settings.budget.steps_per_world,
            ),
            "runs": entries,
        }
    return table


# ---- judgement ----------------------------------------------------------------------------------


def _judge(study: Study, trained: Trained, modes: Mapping[str, Any]) -> dict[str, Any]:
    stated = thesis.load_thesis()
    own = {name: mode for name, mode in modes.items() if not mode["scripted"]}
    judged: dict[str, Any] = {
        "warnings": thesis.cautions(own),
        "verification": _verification(study, trained, modes),
        "device_agreement": _device_agreement(study, trained),
        "goodhart_curves": _goodhart_curves(study, trained),
    }
    if stated.truth in modes and stated.proxy in modes:
        judged["thesis"] = thesis.judge(modes, stated)
        judged["ratios"] = thesis.ratios(modes, stated)
    if len(study.settings.seeds) > 1 and len(own) > 1:
        judged["comparisons"] = [
            row
            for metric in ("overall_efficiency", "deaths_per_1k_steps", "survival_restricted_mean")
            for row in thesis.comparisons(own, metric, stated)
        ]
    return judged


def _verification(study: Study, trained: Trained, modes: Mapping[str, Any]) -> dict[str, Any]:
    verification.require_same_conditions(modes)
    floors = verification.survival_floor(modes)
    network, radius = study.settings.plan.network, study.settings.world.view_radius
    checked = {}
    for index, (name, mode) in enumerate(study.rows.items()):
        params = _own_params(study, trained, index)
        accuracy = jax.device_get(
            verification.mean_directional_accuracy(network, params, mode, radius)
        )
        checked[name] = {
            "directions": {k: getattr(accuracy, k) for k in accuracy.__dataclass_fields__},
            "converged": all(run["training"]["converged"] for run in modes[name]["runs"]),
            "survival_floor": floors[name],
        }
    return checked


def _device_agreement(study: Study, trained: Trained) -> dict[str, Any]:
    """The first mode's first policy, as each kind of device computes it."""
    params = jax.tree.map(lambda x: x[0], _own_params(study, trained, 0))
    mode = next(iter(study.rows.values()))
    radius = study.settings.world.view_radius
    return verification.policy_agreement(study.settings.plan.network, params, mode, radius)


def _watch_steps(study: Study, trained: Trained) -> list[int]:
    """Training steps at each watch of the population."""
    each = study.settings.chunk_updates * study.settings.plan.steps_per_update
    return [(chunk + 1) * each for chunk in range(trained.watches.kl.shape[1])]


def _goodhart_curves(study: Study, trained: Trained) -> dict[str, Any]:
    steps = _watch_steps(study, trained)
    if len(steps) < 2:
        return {}
    found = {}
    for index, name in enumerate(study.rows):
        watch = jax.tree.map(lambda x, i=index: x[study.own(i)], trained.watches)
        found[name] = {
            "steps": steps,
            "runs": [
                {
                    "seed": seed,
                    "sqrt_kl": np.sqrt(np.maximum(watch.kl[run], 0)),
                    "proxy_return": 1000 * watch.reward[run].mean(axis=-1),
                    "true_return": 1000 * watch.energy[run].mean(axis=-1),
                }
                for run, seed in enumerate(study.settings.seeds)
            ],
            **thesis.goodhart_curve(steps, 1000 * watch.energy),
        }
    return found


# ---- replay -------------------------------------------------------------------------------------


def _record(study: Study, trained: Trained) -> replay.Replay:
    """One life story a mode, of its first run, and of two scripts to compare with."""
    shown = {
        name: (jax.tree.map(lambda x: x[0], _own_params(study, trained, index)), mode)
        for index, (name, mode) in enumerate(study.rows.items())
    }
    return replay.record_policies(
        study.settings.plan.network,
        shown,
        {name: study.scripts[name] for name in _SHOWN_SCRIPTS},
        study.judge_world,
        jax.random.key(study.settings.seed),
        temperature=study.settings.temperature,
    )

"""A whole experiment: train, evaluate, check, judge, record, write.

What it leaves in its folder: `config.yaml`, `metrics.jsonl` and `checkpoints/` while it trains,
then `results.json` (`goodharts_jax.results`), `replay.json`, and the page made from them.
"""

from __future__ import annotations

import importlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import yaml
from rich.console import Console

from evidence.runtime import files, progress, timings
from goodharts_jax import (
    assessment,
    curves,
    evaluation,
    phase,
    population,
    replay,
    survival,
    thesis,
    training,
    verification,
)
from goodharts_jax.evaluation import Candidate, Evaluator
from goodharts_jax.interop.policies import Outside
from goodharts_jax.live import observing
from goodharts_jax.population import Study
from goodharts_jax.pressure import GoodhartCurve
from goodharts_jax.results import (
    DeviceAgreement,
    Directions,
    Manifest,
    ModeResults,
    Modes,
    Results,
    Training,
)
from goodharts_jax.resuming import checkpoints_of, require_own, watched_elsewhere
from goodharts_jax.seekers import SHOWN
from goodharts_jax.settings import Experiment, StudySettings, runs_of
from goodharts_jax.study_settings import LearntSettings
from goodharts_jax.training import Trained
from goodharts_jax.world import ENERGY_UNIT

LifeTables = dict[str, list[survival.LifeTable]]
"""What was counted of each run, by row of the table."""


def run(settings: Experiment, folder: Path, console: Console) -> Results:
    """Run an experiment and write what it finds.

    Args:
      settings: validated.
      folder: of results; may hold an interrupted run of the same settings, which goes on.
      console: where progress is shown.

    Returns:
      The results, as written.

    Raises:
      ValueError: the study does not fit into memory.
    """
    started = time.perf_counter()
    study = Study(settings, folder, settings.evaluation_world.build(), console)
    of_proxies = isinstance(settings.study, LearntSettings)
    found, seconds = _of_proxies(study) if of_proxies else _of_rows(study)
    manifest = Manifest.now(
        settings,
        settings.seeds,
        survival_horizon=settings.horizon,
        wall_seconds=seconds | {"total": round(time.perf_counter() - started, 2)},
    )
    with timings.part("assessment"):
        results = found(manifest=manifest)
    with timings.part("writing"):
        results.save(folder)
    full = settings.full_report
    from goodharts_jax import report  # has been loaded aside

    with timings.part("drawing"), progress.clock("drawing the page", console):
        report.write(folder, full=len(study.rows) > 2 if full is None else full)
    return results


def _of_rows(study: Study) -> tuple[partial[Results], dict[str, float]]:
    """What a study of modes or cells finds, and how long its parts took."""
    population.require_memory(study)
    _keep_settings(study)
    with _aside(study) as aside:
        trained, train_seconds = _timed("training", partial(_train, study, aside))
        find = _phase_diagram if study.settings.study.kind == "phase_diagram" else _modes
        found, judge_seconds = _timed("assessment", partial(find, study, trained, aside))
    return found, {"training": round(train_seconds, 2), "evaluation": round(judge_seconds, 2)}


def _of_proxies(study: Study) -> tuple[partial[Results], dict[str, float]]:
    """Likewise, of a study of proxies."""
    from goodharts_jax import learnt_study

    _keep_settings(study)
    found, seconds = _timed("proxies", partial(learnt_study.find, study))
    return found, {"training": round(seconds, 2)}


def _keep_settings(study: Study) -> None:
    require_own(study.settings, study.folder)
    plain = study.settings.model_dump(mode="json")
    # In their order, for it is that of the runs in a checkpoint.
    files.write_text(study.folder / "config.yaml", yaml.safe_dump(plain, sort_keys=False))


def _timed(part: str, work: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    with timings.part(part):
        return work(), time.perf_counter() - started


# ---- aside of the training ----------------------------------------------------------------------


@dataclass(frozen=True)
class Aside:
    """What needs no trained policy, done while they are trained: one run leaves a core free.

    Attributes:
      begun: to be set when the training is traced, for Python can't trace two programs at once.
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
        params = training.shapes(study.settings.plan, study.settings.world.build()).params

        def shapes(name: str) -> Any:
            runs = len(study.seeds(name))
            return jax.tree.map(lambda x: jax.ShapeDtypeStruct((runs, *x.shape), x.dtype), params)

        return evaluation.make_evaluator(
            study.settings.plan.network,
            study.judge_world,
            _candidates(study, shapes),
            num_worlds=study.settings.budget.evaluation_worlds,
            steps_per_world=study.settings.budget.steps_per_world,
        )

    def load() -> None:
        for slow in ("goodharts_jax.report", *["scipy.stats"] * (len(study.settings.seeds) > 1)):
            if not given_up.is_set():
                importlib.import_module(slow)

    with ThreadPoolExecutor(1) as thread:
        try:
            aside = Aside(begun, thread.submit(make_evaluator))
            thread.submit(load)
            yield aside
        except BaseException:
            given_up.set()
            raise
        finally:
            begun.set()


# ---- training -----------------------------------------------------------------------------------


def _train(study: Study, aside: Aside) -> Trained:
    settings = study.settings
    modes, keys = runs_of(study.rows, study.seeds)
    labels = [(name, seed) for name in study.rows for seed in study.seeds(name)]
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
        return train(num_updates=0, folder=checkpoints_of(settings, Path(settings.checkpoint)))
    steps = settings.plan.steps_per_update
    with observing(labels, steps, settings, study.folder, study.console) as observe:
        folder = study.folder / "checkpoints"
        trained = train(
            num_updates=settings.num_updates,
            max_updates=settings.max_updates,
            level=assessment.are_level,
            folder=folder,
            observe=observe,
            traced=aside.begun.set,
        )
    aside.begun.set()
    return trained


# ---- evaluation ---------------------------------------------------------------------------------


def _modes(study: Study, trained: Trained, aside: Aside) -> partial[Results]:
    """The table of modes, what is made of it, and a replay: all but the manifest."""
    with ThreadPoolExecutor(1) as thread:  # Python is free while worlds are stepped
        alone = thread.submit(_alone, study, trained)
        counted = _evaluate(study, trained, aside)
    modes = _tabulate(study, counted, _trainings(study, trained))
    verification.require_same_conditions(modes)
    recorded, directions, agreement = alone.result()
    files.write_text(study.folder / "replay.json", json.dumps(recorded, allow_nan=False))
    lives = {name: survival.first_lives(survival.pool(counted[name])) for name in study.rows}
    return partial(
        assessment.of_modes,
        modes=modes,
        logrank=tuple(assessment.logrank(lives)),
        verification=verification.verify(modes, directions),
        device_agreement=agreement,
        goodhart_curves=_goodhart_curves(study, trained, modes),
    )


def _phase_diagram(study: Study, trained: Trained, aside: Aside) -> partial[Results]:
    """The cells, and the random walk that they are compared with: all but the manifest."""
    modes = _tabulate(study, _evaluate(study, trained, aside), {})
    _, food_energy, poison_energy = (study.judge_world.energy * ENERGY_UNIT).tolist()
    cells = study.settings.study
    assert isinstance(cells, StudySettings)
    found = phase.cells(
        cells.grid,
        trained.watches,
        _watch_steps(study, trained),
        modes["random_walk"].aggregates,
        (food_energy, poison_energy),
        [one.converged for own in _trainings(study, trained).values() for one in own],
    )
    said = phase.cautions(found, study.settings.plan.watched_worlds)
    return partial(Results, modes=modes, warnings=tuple(said), phase_diagram=tuple(found))


def _candidates(study: Study, params_of: Callable[[str], Any]) -> dict[str, Candidate]:
    """The rows of the table; `params_of` gives those of a mode's runs."""
    trained = {} if study.settings.study.kind == "phase_diagram" else study.rows
    return (
        {
            name: Candidate(None, params_of(name), mode, study.seeds(name))
            for name, mode in trained.items()
        }
        | {
            name: Candidate(script, None, None, study.seeds(name))
            for name, script in study.scripts.items()
            if name not in study.outside
        }
        | {
            part: Candidate(one, None, None, seeds, whole=True)
            for name in study.outside
            for part, one, seeds in _parts(study, name)
        }
    )


def _parts(study: Study, name: str) -> list[tuple[str, Outside, list[int]]]:
    """Of a row from outside: one policy in the worlds of all seeds, or one a seed, by a name."""
    policies, seeds = study.outside[name], study.seeds(name)
    if len(policies) == 1:
        return [(name, policies[0], seeds)]
    return [(f"{name} {seed}", one, [seed]) for one, seed in zip(policies, seeds, strict=True)]


def _own_params(study: Study, trained: Trained, name: str) -> Any:
    return jax.tree.map(lambda x: x[study.own(name)], trained.states.params)


def _evaluate(study: Study, trained: Trained, aside: Aside) -> LifeTables:
    rows = _candidates(study, partial(_own_params, study, trained))
    evaluator = aside.evaluator.result()
    title = f"evaluating {len(rows)} policies"
    report = progress.bar(title, evaluator.total_steps, "steps", study.console)
    with timings.part("evaluation"), report as advance:
        counted = evaluation.evaluate(
            evaluator, rows, temperature=study.settings.temperature, report=advance
        )
    for name in study.outside:
        parts = [counted.pop(part) for part, _, _ in _parts(study, name)]
        counted[name] = [table for part in parts for table in part]
    return counted


def _trainings(study: Study, trained: Trained) -> dict[str, list[Training]]:
    """How each run of each row was trained."""
    steps = study.settings.plan.steps_per_update
    return {
        name: [
            assessment.training(
                jax.tree.map(lambda column, i=run: column[i], trained.history), steps
            )
            for run in range(study.own(name).start, study.own(name).stop)
        ]
        for name in study.rows
    }


def _tabulate(
    study: Study, life_tables: LifeTables, trainings: Mapping[str, Sequence[Training]]
) -> dict[str, ModeResults]:
    settings = study.settings
    return assessment.tabulate(
        life_tables,
        {name: (study.rows[name], of_runs) for name, of_runs in trainings.items()},
        {name: study.seeds(name) for name in life_tables},
        study.judge_world,
        horizon=settings.horizon,
        interestingness=settings.interestingness.model_dump(),
    )


# ---- checks -------------------------------------------------------------------------------------


def _alone(study: Study, trained: Trained) -> tuple[Any, dict[str, Directions], DeviceAgreement]:
    """What policies are asked outside of an evaluation: a replay, as plain data; where single items
    draw them; and whether all devices compute the same, by the first mode's first policy.
    """
    policies = {
        name: (_own_params(study, trained, name), mode) for name, mode in study.rows.items()
    }
    network, radius = study.settings.plan.network, study.settings.world.view_radius
    params, mode = next(iter(policies.values()))
    first = jax.tree.map(lambda x: x[0], params)
    return (
        files.plain(_record(study, trained)),
        verification.directions(network, policies, radius),
        verification.policy_agreement(network, first, mode, radius),
    )


def _watch_steps(study: Study, trained: Trained) -> list[int]:
    """Training steps at each watch of the population."""
    looks = training.looks(trained.watches.kl.shape[1], study.settings.chunk_updates)
    return [updates * study.settings.plan.steps_per_update for updates in looks]


def _goodhart_curves(study: Study, trained: Trained, modes: Modes) -> dict[str, GoodhartCurve]:
    if watched_elsewhere(study.settings):
        return {}
    steps = _watch_steps(study, trained)
    looked = training.looked(trained.history, study.settings.chunk_updates)
    # What a mode's curve is called means nothing where a budget teaches the truth nothing.
    needed = [thesis.has_learnt(modes, thesis.load_thesis().truth)]

    def curve(name: str) -> GoodhartCurve:
        own = study.own(name)
        watches = jax.tree.map(lambda x: x[own], trained.watches)
        return curves.curve(steps, study.seeds(name), watches, needed, looked[own].tolist())

    return {name: curve(name) for name in study.rows}


# ---- replay -------------------------------------------------------------------------------------


def _record(study: Study, trained: Trained) -> replay.Replay:
    """One life story a mode, of its first run, and of two scripts to compare with."""
    shown = {
        name: (jax.tree.map(lambda x: x[0], _own_params(study, trained, name)), mode)
        for name, mode in study.rows.items()
    }
    return replay.record_policies(
        study.settings.plan.network,
        shown,
        {name: study.scripts[name] for name in (*SHOWN, *study.outside)},
        study.judge_world,
        jax.random.key(study.settings.seed),
        temperature=study.settings.temperature,
    )

"""A whole experiment: train, evaluate, check, judge, record, write.

What it leaves in its folder: `config.yaml`, `metrics.jsonl` and `checkpoints/` while it trains,
then `results.json` (results.schema.json), `replay.json`, and the page made from them.
"""

from __future__ import annotations

import importlib.resources
import json
import time
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import yaml
from jax.tree_util import Partial
from rich.console import Console

from evidence import progress, runs
from goodharts_jax import population, ppo, render, report, survival, thesis, verification
from goodharts_jax.modes import Mode
from goodharts_jax.population import Contender, Trained
from goodharts_jax.seekers import scripted_policies
from goodharts_jax.settings import Experiment, WorldSettings, runs_of
from goodharts_jax.world import World

_REPLAY_STEPS = 600
_SHOWN_SCRIPTS = ("omniscient_seeker", "random_walk")
# Training counts as having learnt to tell food from poison when this share of what was eaten in
# as many updates in a row was food.
_EFFICIENT, _WINDOW = 0.99, 8


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
    """
    started = time.perf_counter()
    rows, world, judge_world = settings.rows(), settings.world.build(), judged_in.build()
    _keep_configuration(settings, folder)
    trained, train_seconds = _timed(
        partial(_train, settings, rows, world, judge_world, folder, console)
    )
    contenders = _contenders(settings, rows, trained)
    censuses, evaluation_seconds = _timed(
        partial(_evaluate, settings, judge_world, contenders, console)
    )
    results = _tabulate(settings, judge_world, rows, contenders, censuses, trained)
    results |= _judge(settings, rows, trained, results["modes"])
    replay = _replay(settings, judge_world, rows, contenders)
    runs.write_text(folder / "replay.json", json.dumps(runs.plain(replay), allow_nan=False))
    manifest = runs.manifest(
        settings.model_dump() | {"evaluation_world": judged_in.model_dump()},
        settings.seeds,
        survival_horizon=settings.horizon,
        wall_seconds={
            "training": round(train_seconds, 2),
            "evaluation": round(evaluation_seconds, 2),
            "total": round(time.perf_counter() - started, 2),
        },
    )
    results = {"manifest": manifest, **results}
    runs.write_json(folder / "results.json", results, schema())
    full = settings.full_report
    report.write(folder, full=len(rows) > 2 if full is None else full)
    return results


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema of results.json."""
    file = importlib.resources.files("goodharts_jax").joinpath("results.schema.json")
    return json.loads(file.read_text("utf-8"))


def _timed(work: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    return work(), time.perf_counter() - started


# ---- training -----------------------------------------------------------------------------------


def _keep_configuration(settings: Experiment, folder: Path) -> None:
    runs.write_text(folder / "config.yaml", yaml.safe_dump(settings.model_dump(mode="json")))


def _train(
    settings: Experiment,
    rows: Mapping[str, Mode],
    world: World,
    judge_world: World,
    folder: Path,
    console: Console,
) -> Trained:
    modes, keys = runs_of(dict(rows), settings.seeds)
    source = folder if settings.train else Path(settings.checkpoint or "")
    log = folder / "metrics.jsonl"
    if settings.train:
        log.unlink(missing_ok=True)
    labels = [(name, seed) for name in rows for seed in settings.seeds]
    steps = settings.plan.steps_per_update
    total = settings.num_updates * steps * len(labels) if settings.train else 0
    with progress.bar(f"training {len(labels)} runs", total, "steps", console) as advance:

        def observe(first_update: int, history: Mapping[str, np.ndarray]) -> None:
            num_updates = next(iter(history.values())).shape[1]
            for update in range(num_updates):
                for run, (mode, seed) in enumerate(labels):
                    numbers = {name: float(column[run, update]) for name, column in history.items()}
                    taken = (first_update + update + 1) * steps
                    line = {"mode": mode, "seed": seed, "steps": taken, **numbers}
                    runs.append_jsonl(log, line)
            advance(num_updates * steps * len(labels))

        return population.train(
            settings.plan,
            world,
            settings.hyper,
            modes,
            keys,
            num_updates=settings.num_updates if settings.train else 0,
            chunk_updates=settings.chunk_updates,
            folder=source / "checkpoints",
            watch_world=judge_world,
            observe=observe if settings.train else lambda first_update, history: None,
        )


def _learning(settings: Experiment, history: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """What a run's training has to say for itself."""
    steps = settings.plan.steps_per_update
    num_updates = len(history["reward"])
    curves = {"return": history["reward"], "value_loss": history["value_loss"]}
    return {
        "steps": num_updates * steps,
        "steps_to_99_efficiency": steps_to_efficiency(history["food"], history["poison"], steps),
        "converged": verification.convergence(curves).converged,
        "history": {
            "steps": [(update + 1) * steps for update in range(num_updates)],
            **{name: np.round(column.astype(float), 6) for name, column in history.items()},
        },
    }


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


def _contenders(
    settings: Experiment, rows: Mapping[str, Mode], trained: Trained
) -> dict[str, Contender]:
    seeds = settings.seeds
    found = {}
    for index, (name, mode) in enumerate(rows.items()):
        own = slice(index * len(seeds), (index + 1) * len(seeds))
        params = jax.tree.map(lambda x, own=own: x[own], trained.learners.params)
        found[name] = Contender(None, params, mode, seeds)
    for index, name in enumerate(_scripts(settings)):
        found[name] = Contender(index, None, None, seeds)
    return found


def _scripts(settings: Experiment) -> dict[str, Any]:
    interest = settings.interestingness
    return scripted_policies(interest.food, interest.poison)


def _evaluate(
    settings: Experiment, world: World, contenders: Mapping[str, Contender], console: Console
) -> dict[str, list[survival.Census]]:
    budget = settings.budget
    lives = len(contenders) * len(settings.seeds) * budget.evaluation_worlds
    title = f"evaluating {len(contenders)} policies"
    with progress.bar(title, lives * budget.steps_per_world, "steps", console) as advance:
        return population.evaluate(
            settings.plan.network,
            world,
            contenders,
            list(_scripts(settings).values()),
            num_worlds=budget.evaluation_worlds,
            steps_per_world=budget.steps_per_world,
            temperature=settings.temperature,
            report=advance,
        )


def _tabulate(
    settings: Experiment,
    world: World,
    rows: Mapping[str, Mode],
    contenders: Mapping[str, Contender],
    censuses: Mapping[str, list[survival.Census]],
    trained: Trained,
) -> dict[str, Any]:
    """The table of modes: pooled, over runs, and run by run."""
    interest = settings.interestingness.model_dump()
    table = {}
    for index, (name, counted) in enumerate(censuses.items()):
        mode = rows.get(name)

        def measure(census: survival.Census, mode: Mode | None = mode) -> dict[str, Any]:
            return survival.metrics(census, world, settings.horizon, interest, mode)

        entries = []
        for run, (seed, census) in enumerate(zip(settings.seeds, counted, strict=True)):
            entry = {"seed": seed, **measure(census), **survival.details(census)}
            if mode is not None:
                row = index * len(settings.seeds) + run
                history = {key: column[row] for key, column in trained.history.items()}
                entry["training"] = _learning(settings, history)
            entries.append(entry)
        pooled = measure(survival.pool(counted))
        shown = [metric for metric in pooled if not metric.startswith("total_")]
        table[name] = {
            "scripted": contenders[name].script is not None,
            "aggregates": pooled,
            "intervals": thesis.intervals(entries, shown),
            "runs": entries,
        }
    return {"modes": table}


# ---- judgement ----------------------------------------------------------------------------------


def _judge(
    settings: Experiment, rows: Mapping[str, Mode], trained: Trained, modes: Mapping[str, Any]
) -> dict[str, Any]:
    stated = thesis.load_thesis()
    own = {name: mode for name, mode in modes.items() if not mode["scripted"]}
    judged: dict[str, Any] = {
        "warnings": thesis.cautions(own),
        "verification": _verification(settings, rows, trained, modes),
        "goodhart_curves": _goodhart_curves(settings, rows, trained),
    }
    if stated.truth in modes and stated.proxy in modes:
        judged["thesis"] = thesis.judge(modes, stated)
        judged["ratios"] = thesis.ratios(modes, stated)
    if len(settings.seeds) > 1 and len(own) > 1:
        judged["comparisons"] = [
            row
            for metric in ("overall_efficiency", "deaths_per_1k_steps", "survival_restricted_mean")
            for row in thesis.comparisons(own, metric, stated)
        ]
    return judged


def _verification(
    settings: Experiment, rows: Mapping[str, Mode], trained: Trained, modes: Mapping[str, Any]
) -> dict[str, Any]:
    floors = verification.survival_floor(modes)
    network, radius = settings.plan.network, settings.world.view_radius

    @jax.jit
    def directions(params: Any, mode: Mode) -> verification.DirectionalAccuracy:
        def one(params: Any) -> verification.DirectionalAccuracy:
            def act(view: jax.Array) -> jax.Array:
                return ppo.policy(network, params, mode, view, jnp.uint32(0)).logits

            return verification.directional_accuracy(act, radius)

        return jax.tree.map(lambda x: jnp.mean(x, axis=0), jax.vmap(one)(params))

    checked = {}
    for index, (name, mode) in enumerate(rows.items()):
        own = slice(index * len(settings.seeds), (index + 1) * len(settings.seeds))
        params = jax.tree.map(lambda x, own=own: x[own], trained.learners.params)
        accuracy = jax.device_get(directions(params, mode))
        checked[name] = {
            "directions": {k: getattr(accuracy, k) for k in accuracy.__dataclass_fields__},
            "converged": all(run["training"]["converged"] for run in modes[name]["runs"]),
            "survival_floor": floors[name],
        }
    return checked


def _goodhart_curves(
    settings: Experiment, rows: Mapping[str, Mode], trained: Trained
) -> dict[str, Any]:
    chunks = trained.watch.kl.shape[1]
    if chunks < 2:
        return {}
    steps = [
        (chunk + 1) * settings.chunk_updates * settings.plan.steps_per_update
        for chunk in range(chunks)
    ]
    seeds = settings.seeds
    found = {}
    for index, name in enumerate(rows):
        own = slice(index * len(seeds), (index + 1) * len(seeds))
        watch = jax.tree.map(lambda x, own=own: x[own], trained.watch)
        found[name] = {
            "steps": steps,
            "runs": [
                {
                    "seed": seed,
                    "sqrt_kl": np.sqrt(np.maximum(watch.kl[run], 0)),
                    "proxy_return": 1000 * watch.pay[run].mean(axis=-1),
                    "true_return": 1000 * watch.energy[run].mean(axis=-1),
                }
                for run, seed in enumerate(seeds)
            ],
            **thesis.goodhart_curve(steps, 1000 * watch.energy),
        }
    return found


# ---- replay -------------------------------------------------------------------------------------


def _replay(
    settings: Experiment,
    world: World,
    rows: Mapping[str, Mode],
    contenders: Mapping[str, Contender],
) -> dict[str, Any]:
    """One life story a mode, of its first run, and of two scripts to compare with."""
    network, scripts = settings.plan.network, _scripts(settings)

    def trained(params: Any, mode: Mode, view: jax.Array, look: jax.Array):
        output = ppo.policy(network, params, mode, view, look)
        return output.logits / max(settings.temperature, 1e-6), output.value

    def scripted(script: Any, view: jax.Array, look: jax.Array):
        return script(view), jnp.float32(jnp.nan)

    key = jax.random.key(settings.seed)
    truth = jnp.array([[0, 0], [1, 0], [0, 1]], jnp.float32)
    recordings = {}
    for name, mode in rows.items():
        params = jax.tree.map(lambda x: x[0], contenders[name].params)
        agent = Partial(trained, params, mode)
        recordings[name] = (mode.perceive, render.record(key, world, agent, _REPLAY_STEPS))
    for name in _SHOWN_SCRIPTS:
        agent = Partial(partial(scripted, scripts[name]))
        recordings[name] = (truth, render.record(key, world, agent, _REPLAY_STEPS))
    return render.replay(world, recordings)

"""How fast and how well ground_truth is learnt: ours beside PureJaxRL's published algorithm.

All learn in the same world, as many steps, and are judged in the same worlds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import purejaxrl
from benchmarks.timing import isolated, save
from evidence import stats
from goodharts_jax import evaluation, make_hyper, make_mode, make_world, ppo, survival
from goodharts_jax.evaluation import Candidate
from goodharts_jax.world import FOOD

_STEPS, _CHUNK, _SMOOTHED, _ENOUGH = 1 << 20, 1 << 14, 1 << 16, 0.15
_SEEDS = range(1000, 1005)  # met by nobody who chose a setting
_PEERS = {
    # purejaxrl/ppo.py, as it is run there on CartPole.
    "purejaxrl": (4, 128, 4, 2.5e-4, "tanh"),
    # examples/brax_minatar.ipynb: a grid world, many environments.
    "purejaxrl_minatar": (64, 128, 8, 5e-3, "relu"),
    # The same algorithm with our number of worlds, rollout and learning rate.
    "purejaxrl_our_batch": (128, 32, 4, 3e-3, "tanh"),
}
_MEASURED = ("food_per_1k_steps", "deaths_per_1k_steps")
_TIMED = ("seconds_to_150_food", "steps_to_150_food", "steps_per_second", "compile_s", "peak_mb")


class Training(NamedTuple):
    """A contestant's training, however it is made."""

    network: Any
    start: Callable[..., Any]
    advance: Callable[..., tuple[Any, jax.Array]]
    """`(world, mode, state) -> (state, food eaten a step)`, one chunk of steps."""


def main() -> None:
    """Take the contestants in turn, so that a slow minute hits all of them."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("ours", *_PEERS)}
    for seed in _SEEDS:
        for name, found in rows.items():
            found.append(isolated("benchmarks.training:contest", name=name, seed=seed))
            told = ", ".join(f"{key} {found[-1][key]}" for key in (*_MEASURED, *_TIMED))
            print(f"  {name} {seed}: {told}", flush=True)
    results = {
        "steps": _STEPS,
        "settings": {name: list(peer) for name, peer in _PEERS.items()},
        "contestants": {name: _summary(found) for name, found in rows.items()},
        "cores": len(os.sched_getaffinity(0)),
        "runs": rows,
    }
    save("training", results, "ground_truth in the protocol's world; a process a seed and learner")


def contest(name: str, seed: int) -> dict[str, Any]:
    """One contestant's training and what it is worth."""
    world, mode = _setting()
    training = _ours() if name == "ours" else _purejaxrl(*_PEERS[name])
    init, advance = jax.jit(training.start), jax.jit(training.advance, donate_argnums=2)
    started = time.perf_counter()
    warm = advance(world, mode, init(world, mode, jax.random.key(0)))
    jax.block_until_ready(warm)
    compile_s = time.perf_counter() - started

    state, food, seconds = jax.block_until_ready(init(world, mode, jax.random.key(seed))), [], []
    for _ in range(_STEPS // _CHUNK):
        started = time.perf_counter()
        state, eaten = jax.block_until_ready(advance(world, mode, state))
        seconds.append(time.perf_counter() - started)
        food.append(float(eaten))
    compile_s -= float(np.median(seconds))
    window = _SMOOTHED // _CHUNK
    smoothed = np.convolve(food, np.ones(window) / window, "valid")
    reached = np.flatnonzero(smoothed >= _ENOUGH)
    chunks = int(reached[0]) + window if len(reached) else None
    return {
        **_judge(training.network, state.params, mode, seed),
        "seconds_to_150_food": None if chunks is None else sum(seconds[:chunks]),
        "steps_to_150_food": None if chunks is None else chunks * _CHUNK,
        "steps_per_second": _STEPS / sum(seconds),
        "compile_s": compile_s,
        "food_while_learning": [round(1000 * x, 1) for x in smoothed[window - 1 :: window]],
    }


def _ours() -> Training:
    plan = ppo.Plan()
    hyper = make_hyper(_STEPS // plan.steps_per_update)

    def advance(world: Any, mode: Any, state: Any) -> tuple[Any, jax.Array]:
        updates = _CHUNK // plan.steps_per_update
        state, history = ppo.advance(plan, world, hyper, mode, state, updates)
        return state, jnp.mean(history.food)

    return Training(plan.network, lambda world, mode, key: ppo.start(plan, world, key), advance)


def _purejaxrl(num_envs: int, num_steps: int, parts: int, rate: float, activation: str) -> Training:
    updates = _STEPS // (num_envs * num_steps)
    settings = purejaxrl.Settings(num_envs, num_steps, parts, rate, activation, updates)

    def advance(world: Any, mode: Any, state: Any) -> tuple[Any, jax.Array]:
        state, eaten = purejaxrl.advance(settings, world, mode, state, _CHUNK // settings.batch)
        return state, jnp.mean(eaten[:, FOOD])

    network = purejaxrl.ActorCritic(activation)
    return Training(network, partial(purejaxrl.start, settings), advance)


def _judge(network: Any, params: Any, mode: Any, seed: int) -> dict[str, Any]:
    """As an experiment judges a policy, in a quarter of the worlds."""
    row = Candidate(None, jax.tree.map(lambda x: np.asarray(x)[None], params), mode, [seed])
    world, rows, steps = make_world(), {"policy": row}, 3000
    evaluator = evaluation.make_evaluator(
        network, world, rows, num_worlds=256, steps_per_world=steps
    )
    lives = evaluation.evaluate(evaluator, rows)["policy"][0]
    found = survival.metrics(lives, world, steps, {"food": 0.5, "poison": 1.0}, mode)
    return {name: getattr(found, name) for name in _MEASURED}


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Over seeds: intervals of what is measured, the median of what is timed, the worst run."""
    told: dict[str, Any] = {
        name: stats.interval([run[name] for run in runs], "run") for name in _MEASURED
    }
    told["least_food"] = min(run["food_per_1k_steps"] for run in runs)
    told["most_deaths"] = max(run["deaths_per_1k_steps"] for run in runs)
    for name in _TIMED:
        values = [run[name] for run in runs]
        told[name] = None if None in values else float(np.median(values))
    return told


def _setting() -> tuple[Any, Any]:
    mode = make_mode((1, 0), (0, 1), 1, -2, step_reward=-0.1, death_reward=-4)
    return make_world(), mode

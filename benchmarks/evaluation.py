"""Evaluation steps a second with trained policies, and with scripted ones."""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

import jax

from benchmarks.timing import isolated, save
from goodharts_jax import make_mode, make_world, ppo
from goodharts_jax.evaluation import Candidate, evaluate, make_evaluator
from goodharts_jax.seekers import scripted_policies

_WORLDS, _STEPS, _CHUNKS = 1024, 600, 6


def main() -> None:
    """A trained run alone, and the four scripts."""
    rows = [isolated("benchmarks.evaluation:steps_per_second", trained=t) for t in (True, False)]
    for row in rows:
        kind = "trained" if row["trained"] else "scripted"
        print(f"  {kind:>8}: {row['steps_per_second']:>12,.0f} steps/s")
    save("evaluation", rows, f"median of 5 x {_WORLDS} worlds x {_STEPS} steps a run")


def steps_per_second(trained: bool) -> dict[str, Any]:
    """The whole evaluator, tallies fetched and added up on the host."""
    plan, world = ppo.Plan(), make_world()
    mode = make_mode((1, 0), (0, 1), 1, -2)
    scripts = scripted_policies(0.5, 1.0)
    params = jax.tree.map(lambda x: x[None], ppo.start(plan, world, jax.random.key(0)).params)
    rows = {"trained": Candidate(None, params, mode, [0])}
    if not trained:
        rows = {name: Candidate(script, None, None, [0]) for name, script in scripts.items()}
    sizes = {"num_worlds": _WORLDS, "steps_per_world": _STEPS * _CHUNKS}
    started = time.perf_counter()
    evaluator = make_evaluator(plan.network, world, rows, **sizes)
    prepare_s = time.perf_counter() - started

    # The evaluator tells of each chunk that it has counted; the first one loads the program.
    clock: list[float] = []
    evaluate(evaluator, rows, report=lambda steps: clock.append(time.perf_counter()))
    seconds = [after - before for before, after in itertools.pairwise(clock)]
    median = statistics.median(seconds)
    # A script is followed in fewer worlds than a trained run.
    steps = len(evaluator.source) * evaluator.block_worlds * _STEPS
    return {"prepare_s": prepare_s, "seconds": seconds, "steps_per_second": steps / median}

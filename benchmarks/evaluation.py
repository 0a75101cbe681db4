"""Evaluation steps a second with trained policies, and with scripted ones."""

from __future__ import annotations

from typing import Any

import jax

from benchmarks.timing import isolated, save, timed
from goodharts_jax import make_mode, make_world, ppo
from goodharts_jax.population import Contender, evaluate
from goodharts_jax.seekers import scripted_policies

_WORLDS, _STEPS = 1024, 600


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
    rows = {"trained": Contender(None, params, mode, [0])}
    if not trained:
        rows = {name: Contender(i, None, None, [0]) for i, name in enumerate(scripts)}

    def run(_: Any) -> Any:
        return evaluate(
            plan.network,
            world,
            rows,
            list(scripts.values()),
            num_worlds=_WORLDS,
            steps_per_world=_STEPS,
        )

    taken = timed(run, None)
    return {**taken, "steps_per_second": len(rows) * _WORLDS * _STEPS / taken["median_s"]}

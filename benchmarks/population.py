"""Runs of a population on one device: one after another, or vmapped."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax

from benchmarks.timing import isolated, save, timed
from goodharts_jax import make_hyper, make_mode, make_world, ppo

_UPDATES = 2


def main() -> None:
    """The measurement behind `evidence.devices.over_runs`."""
    rows = [
        isolated("benchmarks.population:steps_per_second", num_runs=num_runs, how=how)
        for num_runs in (2, 8)
        for how in ("map", "vmap")
    ]
    for row in rows:
        name, rate = f"{row['num_runs']} runs by {row['how']}", row["steps_per_second"]
        print(f"  {name:>14}: {rate:>10,.0f} steps/s")
    save("population", rows, f"one device, median of 5 x {_UPDATES} updates")


def steps_per_second(num_runs: int, how: str) -> dict[str, Any]:
    """Training steps of all runs together."""
    plan, world, hyper = ppo.Plan(), make_world(), make_hyper(128)
    mode = make_mode((1, 0), (0, 1), 1, -2, pay_step=-0.1, pay_death=-4)
    keys = jax.random.split(jax.random.key(0), num_runs)
    learners = jax.jit(jax.vmap(partial(ppo.start, plan, world)))(keys)

    def one(learner: ppo.Learner) -> ppo.Learner:
        return ppo.advance(plan, world, hyper, mode, learner, _UPDATES)[0]

    lifted = partial(jax.lax.map, one) if how == "map" else jax.vmap(one)
    taken = timed(jax.jit(lifted, donate_argnums=0), learners)
    steps = num_runs * _UPDATES * plan.steps_per_update
    return {**taken, "steps_per_second": steps / taken["median_s"]}

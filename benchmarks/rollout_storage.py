"""Was the published 'blinded' row made by its rollout buffer?

There, agents that see interestingness (food 0.5, poison 1.0) and are rewarded by the truth ate next
to nothing. Their rollouts were stored as uint8, so that the update saw 0 where the policy had acted
on 0.5: food was invisible to learning. The hypothesis: with lossless storage such an agent learns
to tell 0.5 from 1.0, and lives. Both arms here differ in that alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from benchmarks.timing import isolated, save
from evidence import stats
from goodharts_jax import evaluation, make_hyper, ppo, survival, training
from goodharts_jax.evaluation import Candidate
from goodharts_jax.settings import WorldSettings, read, runs_of

_SEEDS = [42, 43, 44, 45, 46]
_SHOWN = (
    "overall_efficiency",
    "deaths_per_1k_steps",
    "food_per_1k_steps",
    "poison_per_1k_steps",
    "energy_per_1k_steps",
    "survival_restricted_mean",
)


def main(steps: int = 3_000_000) -> None:
    """Both arms in both training worlds, five seeds each."""
    rows = [
        isolated("benchmarks.rollout_storage:train", world=world, lossless=lossless, steps=steps)
        for world in ("protocol", "reference")
        for lossless in (False, True)
    ]
    for row in rows:
        arm = "lossless" if row["lossless"] else "uint8"
        food = row["judged"][row["world"]]["intervals"]["food_per_1k_steps"]
        print(f"  {row['world']:>9} {arm:>8}: {food['value']:.1f} food per 1,000 steps")
    save("rollout_storage", rows, f"ground_truth_blinded, {steps:,} steps, seeds {_SEEDS}")


def train(world: str, lossless: bool, steps: int) -> dict[str, Any]:
    """One arm: its runs judged in the world they learnt in, and at the published move cost."""
    if not lossless:
        _store_as_uint8()
    settings = read(_configuration(world))
    rules, plan = settings.world.build(), settings.plan
    modes, keys = runs_of(settings.rows(), _SEEDS)
    updates = -(-steps // plan.steps_per_update // 8) * 8
    trained = training.train(
        plan, rules, make_hyper(updates), modes, keys, num_updates=updates, chunk_updates=8
    )
    row = Candidate(None, trained.states.params, settings.rows()["ground_truth_blinded"], _SEEDS)
    worlds = {world: settings.world}
    if world == "reference":
        worlds["published_eval"] = read(_configuration("published_eval")).world
    return {"judged": {name: _judge(plan, row, judged) for name, judged in worlds.items()}}


def _judge(plan: ppo.Plan, row: Candidate, world: WorldSettings) -> dict[str, Any]:
    rules = world.build()
    rows = {"blinded": row}
    evaluator = evaluation.make_evaluator(
        plan.network, rules, rows, num_worlds=512, steps_per_world=2000
    )
    counted = evaluation.evaluate(evaluator, rows)["blinded"]
    proxy = {"food": 0.5, "poison": 1.0}
    runs = [survival.metrics(life_table, rules, 2000, proxy, row.mode) for life_table in counted]
    return {
        "intervals": {name: stats.interval([r[name] for r in runs], "run") for name in _SHOWN},
        "runs": [{name: run[name] for name in _SHOWN} for run in runs],
    }


def _store_as_uint8() -> None:
    """Let every update see what a uint8 would have kept of what the policy saw."""
    learn = ppo._learn

    def lossy(plan: Any, hyper: Any, mode: Any, *rest: Any) -> Any:
        return learn(plan, hyper, replace(mode, appearance=jnp.floor(mode.appearance)), *rest)

    ppo._learn = lossy


def _configuration(world: str) -> Any:
    from hydra import compose, initialize_config_module

    with initialize_config_module("conf.goodhart", version_base="1.3"):
        return compose("config", overrides=["mode=ground_truth_blinded", f"world={world}"])

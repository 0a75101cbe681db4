"""What does a rollout buffer of whole bytes teach?

In the published table, agents that see interestingness (food 0.5, poison 1.0) and are rewarded by
the truth ate next to nothing, and proxies ate less of everything than ours. Their rollouts were
stored as uint8, so that the update saw 0 where the policy had acted on 0.5. The arms here differ in
that, in the mode and in the length of training, for too little training suppresses eating too: a
row that both make says nothing of which made it.
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


def main(lengths: tuple[int, ...] = (1_000_000, 3_000_000)) -> None:
    """Both arms of both modes in both training worlds, five seeds each, after each length."""
    rows = [
        isolated(
            "benchmarks.rollout_storage:train",
            mode=mode,
            world=world,
            lossless=lossless,
            steps=steps,
        )
        for mode in ("ground_truth_blinded", "proxy")
        for world in ("protocol", "reference")
        for steps in lengths
        for lossless in (False, True)
    ]
    for row in rows:
        arm = "lossless" if row["lossless"] else "uint8"
        food = row["judged"][row["world"]]["intervals"]["food_per_1k_steps"]
        told = f"{row['mode']:>20} {row['world']:>9} {row['steps']:>9,} {arm:>8}"
        print(f"  {told}: {food['value']:.1f} food per 1,000 steps")
    save("rollout_storage", rows, f"seeds {_SEEDS}")


def train(mode: str, world: str, lossless: bool, steps: int) -> dict[str, Any]:
    """One arm: its runs judged in the world they learnt in, and at the published move cost."""
    if not lossless:
        _store_as_uint8()
    settings = read(_configuration(mode, world))
    rules, plan = settings.world.build(), settings.plan
    modes, keys = runs_of(settings.rows(), lambda name: _SEEDS)
    updates = -(-steps // plan.steps_per_update // 8) * 8
    trained = training.train(
        plan, rules, make_hyper(updates), modes, keys, num_updates=updates, chunk_updates=8
    )
    row = Candidate(None, trained.states.params, settings.rows()[mode], _SEEDS)
    worlds = {world: settings.world}
    if world == "reference":
        worlds["published_eval"] = read(_configuration(mode, "published_eval")).world
    return {"judged": {name: _judge(plan, row, judged) for name, judged in worlds.items()}}


def _judge(plan: ppo.Plan, row: Candidate, world: WorldSettings) -> dict[str, Any]:
    rules = world.build()
    rows = {"arm": row}
    evaluator = evaluation.make_evaluator(
        plan.network, rules, rows, num_worlds=512, steps_per_world=2000
    )
    counted = evaluation.evaluate(evaluator, rows)["arm"]
    proxy = {"food": 0.5, "poison": 1.0}
    runs = [survival.metrics(life_table, rules, 2000, proxy, row.mode) for life_table in counted]
    return {
        "intervals": {
            name: stats.interval([getattr(run, name) for run in runs], "run") for name in _SHOWN
        },
        "runs": [{name: getattr(run, name) for name in _SHOWN} for run in runs],
    }


def _store_as_uint8() -> None:
    """Let every update see what a uint8 would have kept of what the policy saw."""
    learn = ppo._learn

    def lossy(plan: Any, hyper: Any, mode: Any, *rest: Any) -> Any:
        return learn(plan, hyper, replace(mode, appearance=jnp.floor(mode.appearance)), *rest)

    ppo._learn = lossy


def _configuration(mode: str, world: str) -> Any:
    from hydra import compose, initialize_config_module

    with initialize_config_module("conf.goodhart", version_base="1.3"):
        return compose("config", overrides=[f"mode={mode}", f"world={world}"])

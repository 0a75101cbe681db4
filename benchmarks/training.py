"""Training steps a second, ours beside PureJaxRL's algorithm in the same world."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import jax

from benchmarks import purejaxrl
from benchmarks.timing import isolated, save, timed
from evidence.runtime.devices import over_runs, shard
from goodharts_jax import make_hyper, make_mode, make_world, ppo

_UPDATES = 8


def main() -> None:
    """Alternate the contestants, so that a slow minute hits all of them."""
    cases = ("ours", "purejaxrl_equal", "purejaxrl_defaults")
    rows: dict[str, list[dict[str, Any]]] = {case: [] for case in cases}
    for _ in range(3):
        for case in cases:
            rows[case].append(isolated(f"benchmarks.training:{case}"))
            print(f"  {case:>20}: {rows[case][-1]['steps_per_second']:>10,.0f} steps/s", flush=True)
    best = {case: sorted(r["steps_per_second"] for r in rows[case])[1] for case in cases}
    results = {
        "steps_per_second": best,
        "ratio_at_equal_settings": best["ours"] / best["purejaxrl_equal"],
        "ratio_of_defaults": best["ours"] / best["purejaxrl_defaults"],
        "population": isolated("benchmarks.training:population", num_runs=4),
        "to_99_percent": isolated("benchmarks.training:to_99_percent"),
        "repeats": rows,
    }
    save("training", results, f"median of 3 processes, each the median of 5 x {_UPDATES} updates")


def ours(num_runs: int = 1) -> dict[str, Any]:
    """Default plan and network, one run."""
    return population(num_runs)


def population(num_runs: int) -> dict[str, Any]:
    """Several runs, one device a core."""
    plan, world, hyper, mode = _setting()
    keys = shard(jax.random.split(jax.random.key(0), num_runs))
    states = over_runs(partial(ppo.start, plan))(world, keys)
    lifted = over_runs(
        lambda shared, run: ppo.advance(plan, *shared, run, _UPDATES)[0], donate=(1,)
    )
    taken = timed(lambda runs: lifted((world, hyper, mode), runs), states)
    return _rate(taken, num_runs * _UPDATES * plan.steps_per_update)


def purejaxrl_equal() -> dict[str, Any]:
    """PureJaxRL's algorithm with our network, batch and epochs."""
    _, *rest = _setting()
    return _purejaxrl(purejaxrl.Sizes(256, 32, 4, 4, shared=True, width=64), *rest)


def purejaxrl_defaults() -> dict[str, Any]:
    """PureJaxRL's algorithm with the settings of its MinAtar example."""
    _, *rest = _setting()
    return _purejaxrl(purejaxrl.Sizes(64, 128, 4, 8, shared=False, width=64), *rest)


def to_99_percent() -> dict[str, Any]:
    """Seconds and steps of training until 99% of a rollout's meals are food, compilation apart."""
    plan, world, hyper, mode = _setting()
    advance = jax.jit(partial(ppo.advance, plan, num_updates=1), donate_argnums=3)
    advance(world, hyper, mode, jax.jit(partial(ppo.start, plan))(world, jax.random.key(1)))
    state = jax.jit(partial(ppo.start, plan))(world, jax.random.key(0))
    started = time.perf_counter()
    steps, food, poison = 0, 0.0, 1.0
    while food < 0.99 * (food + poison):
        state, history = advance(world, hyper, mode, state)
        steps += plan.steps_per_update
        food, poison = float(history.food[0]), float(history.poison[0])
    return {"steps": steps, "seconds": time.perf_counter() - started}


def _purejaxrl(sizes: purejaxrl.Sizes, world: Any, hyper: Any, mode: Any) -> dict[str, Any]:
    carry = jax.jit(partial(purejaxrl.start, sizes))(world, mode, jax.random.key(0))
    update = jax.jit(partial(purejaxrl.advance, sizes, num_updates=_UPDATES), donate_argnums=2)
    taken = timed(lambda carry: update(world, mode, carry), carry)
    return _rate(taken, _UPDATES * sizes.num_envs * sizes.num_steps)


def _setting() -> tuple[Any, ...]:
    mode = make_mode((1, 0), (0, 1), 1, -2, step_reward=-0.1, death_reward=-4)
    return ppo.Plan(), make_world(), make_hyper(128), mode


def _rate(taken: dict[str, Any], steps: int) -> dict[str, Any]:
    return {**taken, "steps_per_second": steps / taken["median_s"]}

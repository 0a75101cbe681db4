"""Runs of a population on a CPU: one at a time on a device a core, or side by side on one; and what
it is worth to add up what a view holds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax

from benchmarks.timing import ROUNDS, in_rounds, save, timed
from evidence.runtime.devices import over_runs, shard
from goodharts_jax import ActorCritic, make_hyper, make_mode, make_world, ppo

_RUNS, _UPDATES, _REPEATS = 4, 1, 5
_PLAN = ppo.Plan()


def main() -> None:
    """The measurements behind `evidence.runtime.devices.over_runs` and `goodharts_jax.sparse`."""
    ways = ("one_a_core", "whole_views", "side_by_side")
    rows = in_rounds([f"benchmarks.population:{how}" for how in ways])
    for row in rows:
        print(f"  {row['how']:>40}: {row['steps_per_second']:>10,.0f} steps/s")
    save(
        "population",
        rows,
        f"{_RUNS} runs, median of {ROUNDS} x {_REPEATS} x {_UPDATES} update of each",
    )


def one_a_core() -> dict[str, Any]:
    """As `over_runs` does it: a device a core, its runs one after another."""
    return training(_RUNS, how="a device a core, one run at a time")


def whole_views() -> dict[str, Any]:
    """The same where first layers multiply the whole view."""
    plan = ppo.Plan(network=_WholeViews())
    return training(_RUNS, plan=plan, how="the same, the whole of each view multiplied")


class _WholeViews(ActorCritic):
    """What a subclass does isn't known to `networks.policy`, which gives it all of a view."""


def side_by_side() -> dict[str, Any]:
    """All runs vmapped on one device, which may use all cores for each operation."""
    keys = jax.random.split(jax.random.key(0), _RUNS)
    # Begun one by one, for vmapped first weights may never come: see `networks`.
    states = jax.jit(lambda keys: jax.lax.map(partial(ppo.start, _PLAN, make_world()), keys))(keys)
    lifted = jax.jit(jax.vmap(partial(_advance, _PLAN), (None, 0)), donate_argnums=1)
    return _rate("one device, all runs vmapped", partial(lifted, _shared()), states)


def training(
    runs: int, repeats: int = _REPEATS, plan: ppo.Plan = _PLAN, how: str = "as a study"
) -> dict[str, Any]:
    """So many runs, laid out over the devices as a study's are."""
    keys = shard(jax.random.split(jax.random.key(0), runs))
    states = over_runs(partial(ppo.start, plan))(make_world(), keys)
    lifted = over_runs(partial(_advance, plan), donate=(1,))
    return _rate(how, partial(lifted, _shared()), states, runs, repeats)


def _advance(plan: ppo.Plan, shared: Any, state: ppo.TrainState) -> ppo.TrainState:
    return ppo.advance(plan, *shared, state, _UPDATES)[0]


def _shared() -> tuple[Any, ...]:
    mode = make_mode((1, 0), (0, 1), 1, -2, step_reward=-0.1, death_reward=-4)
    return make_world(), make_hyper(128), mode


def _rate(
    how: str, update: Any, states: ppo.TrainState, runs: int = _RUNS, repeats: int = _REPEATS
) -> dict[str, Any]:
    taken = timed(update, states, repeats=repeats)
    steps = runs * _UPDATES * _PLAN.steps_per_update
    return {"how": how, **taken, "steps_per_second": steps / taken["median_s"]}

"""What learnt rewards and remedies cost a training: steps a second, beside a table's."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.timing import ROUNDS, in_rounds, save, timed
from goodharts_jax import make_hyper, make_mode, make_world, ppo, preferences, rewards

_UPDATES, _REPEATS = 8, 5
_WORLD = {"size": 64, "view_radius": 3, "food": (40, 120), "poison": (40, 120)}
_SEES = make_mode((1, 0), (0, 1), 1, -2, step_reward=-0.1, mortal=False)
_KINDS = ("table", "learnt", "ensemble", "divergence", "occupancy")


def main() -> None:
    """Each in a process of its own, in the world of `world=small`."""
    rows = in_rounds([f"benchmarks.rewards:{kind}" for kind in _KINDS])
    for row in rows:
        row["of_table"] = row["steps_per_second"] / rows[0]["steps_per_second"]
        print(f"  {row['reward']:>40}: {row['steps_per_second']:>10,.0f} steps/s")
    save("rewards", rows, f"one run, median of {ROUNDS} x {_REPEATS} x {_UPDATES} updates")


def table() -> dict[str, Any]:
    """A reward for what was eaten."""
    return _rate("a table", _SEES.reward)


def learnt() -> dict[str, Any]:
    """A reward model."""
    return _rate("a reward model", _learnt(1))


def ensemble() -> dict[str, Any]:
    """Four of them, with every remedy that changes the reward of a step alone."""
    return _rate("four reward models and an audit", _guarded(4))


def divergence() -> dict[str, Any]:
    """One, and the divergence from the start."""
    return _rate("a reward model and a KL to the start", _guarded(1, anchored=True))


def occupancy() -> dict[str, Any]:
    """One, and a discriminator between the policy's steps and the start's."""
    return _rate("a reward model and a discriminator", _guarded(1, discriminated=True))


def _learnt(members: int) -> rewards.Reward:
    inputs, width = (2 * rewards.SEEN_RADIUS + 1) ** 2 * 2 + 8, preferences.WIDEST
    draw = partial(jax.random.normal, jax.random.key(0))
    model = rewards.RewardModel(
        kernel=draw((members, inputs, width)),
        bias=draw((members, width)),
        out=draw((members, width)),
        mean=jnp.zeros(members),
        scale=jnp.full(members, 0.01),
    )
    own = rewards.empty_reward()
    return own.replace(model=model, members=jnp.full(members, 1 / members))


def _guarded(
    members: int, *, anchored: bool = False, discriminated: bool = False
) -> rewards.Reward:
    world = make_world(**_WORLD)
    anchor = ppo.start(ppo.Plan(), world, jax.random.key(2)).params if anchored else None
    views = jnp.zeros((4096, world.view_size, world.view_size), jnp.uint8)
    reference = (views, jnp.zeros(4096, jnp.int32)) if discriminated else None
    guard = rewards.no_guard(
        *preferences.gold_reward(world),
        deviations=1.0,
        audit=0.1,
        audit_weight=10.0,
        kl=0.1,
        occupancy_chi=0.1,
        anchor=anchor,
        reference=reference,
    )
    return _learnt(members).replace(guard=guard)


def _rate(name: str, reward: rewards.Reward) -> dict[str, Any]:
    plan, world = ppo.Plan(), make_world(**_WORLD)
    mode = _SEES.replace(reward=reward)
    state = jax.jit(partial(ppo.start, plan))(world, jax.random.key(1), mode)

    def advance(state: ppo.TrainState) -> ppo.TrainState:
        return ppo.advance(plan, world, make_hyper(256), mode, state, _UPDATES)[0]

    taken = timed(jax.jit(advance, donate_argnums=0), state, repeats=_REPEATS)
    steps = _UPDATES * plan.steps_per_update
    return {"reward": name, **taken, "steps_per_second": steps / taken["median_s"]}

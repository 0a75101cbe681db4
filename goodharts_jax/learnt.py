"""Policies of a study of proxies: those that are watched, and those that are trained on proxies.

All proxies, remedies and seeds are one population. A run's proxy is made from its own seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime import devices
from evidence.runtime.devices import Lifted, fetch, over_runs, shard
from goodharts_jax import ppo, relabelling, training
from goodharts_jax.live import observing
from goodharts_jax.modes import Mode
from goodharts_jax.ppo import History
from goodharts_jax.proxies import LOOKS, Ground, Policies, Prepared, repeat, stack
from goodharts_jax.relabelling import Asked
from goodharts_jax.rewards import Guard
from goodharts_jax.training import Observer, Trained

_RUNS = 10
"""What is folded into a seed for a run; 1 and 2 are `proxies`', from 1,000 on `relabelling`'s."""


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
      proxy: its name.
      seed: of the run.
      remedy: its name; None without.
      strength: which of its strengths.
      guard: its numbers, without the policy that the run begins with.
      mean_of: how many reward models count.
      reseed: draws other random numbers for the training.
      relabel: pairs of the policy's own segments that are labelled after each part.
    """

    proxy: str
    seed: int
    remedy: str | None = None
    strength: int = 0
    guard: Guard | None = None
    mean_of: int = 1
    reseed: int = 0
    relabel: int = 0


# ---- who is watched -----------------------------------------------------------------------------


def stages(ground: Ground) -> Policies:
    """Parameters of the policies that a training on the truth goes through, by stage; leading axis
    [seeds].
    """
    number, (begin, go_on) = len(ground.seeds), _programs(ground.settings.plan)
    keys = jax.vmap(jax.random.key)(jnp.array(ground.seeds, jnp.uint32))
    modes, keys = shard((repeat(ground.senses, number), keys))
    states = begin(ground.world, keys)
    found, done = dict[str, chex.ArrayTree](), 0
    for name, updates in sorted(ground.study.stages.items(), key=lambda item: item[1]):
        # A training shorter than a stage ends with it.
        goal = min(updates, ground.settings.num_updates)
        count = np.asarray(goal - done, np.int32)
        states = go_on((ground.world, ground.settings.hyper, count), modes, states)
        found[name], done = fetch(states.params, number), goal
    return found


@cache
def _programs(plan: ppo.Plan) -> tuple[Lifted, Lifted]:
    """What begins runs and what carries them on by a number of updates; made once."""

    def go_on(shared: Any, mode: Mode, state: ppo.TrainState) -> ppo.TrainState:
        world, hyper, updates = shared

        def update(_: jax.Array, state: ppo.TrainState) -> ppo.TrainState:
            return ppo.advance(plan, world, hyper, mode, state, 1)[0]

        return jax.lax.fori_loop(0, updates, update, state)

    begin = over_runs(lambda world, key: ppo.start(plan, world, key))
    return begin, over_runs(go_on, donate=(2,))


# ---- what training makes of it ------------------------------------------------------------------


def train(
    ground: Ground,
    policies: Policies,
    prepared: Mapping[int, Prepared],
    jobs: Sequence[Job],
    folder: Path,
) -> Trained:
    """All runs as one population; goes on where it was interrupted.

    Args:
      ground: what they stand on.
      policies: by stage, leading axis [seeds].
      prepared: proxies by seed.
      jobs: the runs.
      folder: of checkpoints.

    Raises:
      ValueError: they don't fit into memory.
    """
    settings = ground.settings
    modes, initial, keys, watch_keys = _begun(ground, policies, prepared, jobs)
    _check_memory(ground, len(jobs))
    labels = [(f"{job.proxy} {job.remedy or ''}".strip(), job.seed) for job in jobs]
    updates = ground.chunk_updates * LOOKS
    asked = [
        Asked(i, job.proxy, job.seed, job.relabel) for i, job in enumerate(jobs) if job.relabel
    ]
    with observing(
        labels, settings.plan.steps_per_update, settings, folder, ground.console, updates
    ) as observe:
        go_on = partial(
            training.train,
            settings.plan,
            ground.world,
            replace(settings.hyper, num_updates=jnp.float32(updates)),
            keys=keys,
            watch_keys=watch_keys,
            chunk_updates=ground.chunk_updates,
            initial=initial,
            folder=folder / "checkpoints",
            watch_world=ground.peaceful,
            observe=_once(observe),
        )
        paths = [folder / f"relabelled_{part}.npz" for part in range(1, LOOKS)] if asked else []
        with ThreadPoolExecutor(1) as thread:
            if not all(path.exists() for path in paths):
                ahead = thread.submit(relabelling.compile_ahead, ground, policies, asked, initial)
            for part, path in enumerate(paths, start=1):
                trained = go_on(modes=modes, num_updates=part * ground.chunk_updates)
                if not path.exists():
                    if trained.history.food.shape[1] > part * ground.chunk_updates:
                        raise ValueError(f"{path} is missing; start afresh in another folder")
                    ahead.result()  # or it would be compiled twice
                    params = trained.states.params
                    relabelling.save(path, relabelling.refit(ground, policies, asked, params, part))
                modes = relabelling.apply(modes, asked, relabelling.load(path))
        return go_on(modes=modes, num_updates=updates)


def _check_memory(ground: Ground, runs: int) -> None:
    needed = training.memory_needed(ground.settings.plan, ground.world, runs)
    if needed > (free := devices.memory_available()):
        raise ValueError(
            f"{runs} runs take about {needed / 2**20:,.0f} MiB, {free / 2**20:,.0f} are free; "
            "lower runs, or give fewer proxies or remedies"
        )


def _once(observe: Observer) -> Observer:
    """An observer of several trainings that go on from each other, told of each update once."""
    told = 0

    def of_new(first_update: int, history: History) -> None:
        nonlocal told
        known = max(0, told - first_update)
        if known < history.food.shape[1]:
            observe(first_update + known, History(*(column[:, known:] for column in history)))
        told = max(told, first_update + history.food.shape[1])

    return of_new


def _begun(
    ground: Ground,
    policies: Policies,
    prepared: Mapping[int, Prepared],
    jobs: Sequence[Job],
) -> tuple[Mode, Any, jax.Array, jax.Array]:
    """What all runs are rewarded with, their first policies, their keys and those that they are
    watched by; leading axis [runs].
    """
    names, place = list(ground.drawn), {seed: i for i, seed in enumerate(ground.seeds)}
    guards = [job.guard for job in jobs if job.guard is not None]
    anchored = any(guard.kl or guard.excess for guard in guards)
    discriminated = any(guard.occupancy_kl or guard.occupancy_chi for guard in guards)
    modes, initial, keys, watch_keys = [], [], [], []
    for job in jobs:
        ready, start = prepared[job.seed], ground.drawn[job.proxy].start
        own = jax.tree.map(lambda x, job=job: x[place[job.seed]], policies[start])
        reward = jax.tree.map(lambda x, job=job: x[names.index(job.proxy)], ready.reward)
        if job.guard is not None:
            at = list(policies).index(start)
            view, action = (x[at] for x in ready.reference)
            guard = replace(
                job.guard,
                anchor=own if anchored else None,
                reference=(view, action) if discriminated else None,
            )
            counts = np.arange(ground.study.members) < job.mean_of
            members = (counts / job.mean_of).astype(np.float32)
            reward = replace(reward, guard=guard, members=members)
        modes.append(replace(ground.senses, reward=reward))
        initial.append(own)
        # Not those of `proxies.prepare`: nobody is watched in the worlds that labels come from.
        key, again = (
            jax.random.fold_in(jax.random.key(job.seed), _RUNS + n) for n in (0, job.reseed)
        )
        keys.append(again)
        watch_keys.append(training.run_keys(key).watch)
    return stack(modes), stack(initial), jnp.stack(keys), jnp.stack(watch_keys)

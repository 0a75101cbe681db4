"""Many runs trained at once, driven from the host.

What happens inside a chunk is one compiled program over all runs; between chunks the host reports
progress, appends to `metrics.jsonl` and saves a checkpoint, so that a killed training goes on
where it stopped and ends in the same parameters, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime.devices import at_one_time, fetch, over_runs, shard
from goodharts_jax import ppo
from goodharts_jax.checkpoints import Checkpoints
from goodharts_jax.modes import NUM_CHANNELS, Mode
from goodharts_jax.ppo import History, Hyper, Plan, TrainState
from goodharts_jax.watch import Watch, watch
from goodharts_jax.world import World

Observer = Callable[[int, History], None]
"""Told the number of the first update, and the history of it and those after it,
float32[runs, updates] each."""


class RunKeys(NamedTuple):
    """What a run's key is split into."""

    train: chex.PRNGKey
    evaluate: chex.PRNGKey
    watch: chex.PRNGKey


def run_keys(key: chex.PRNGKey) -> RunKeys:
    """A run's keys from its own."""
    return RunKeys(*jax.random.split(key, 3))


@dataclass(frozen=True)
class Trained:
    """A trained population.

    Attributes:
      states: TrainState with a leading axis of runs, on the host.
      history: float32[runs, updates] each.
      watches: after each chunk. Watch with leading axes [runs, chunks].
    """

    states: TrainState
    history: History
    watches: Watch


class _Shared(NamedTuple):
    """What all runs of a population have in common."""

    world: World
    watch_world: World
    hyper: Hyper


class _Run(NamedTuple):
    """What makes a run different from others; with a leading axis [runs] outside of a program."""

    mode: Mode
    key: chex.PRNGKey
    initial: Any
    """Parameters that the training begins with."""


def train(
    plan: Plan,
    world: World,
    hyper: Hyper,
    modes: Mode,
    keys: chex.PRNGKey,
    *,
    num_updates: int,
    chunk_updates: int,
    folder: Path | None = None,
    watch_world: World | None = None,
    observe: Observer = lambda first_update, history: None,
) -> Trained:
    """Train one policy for each mode and key.

    Args:
      plan: static sizes.
      world: the rules to learn under.
      hyper: shared by all runs.
      modes: with a leading axis [runs].
      keys: typed keys. [runs].
      num_updates: a multiple of `chunk_updates`.
      chunk_updates: updates between two checkpoints.
      folder: where checkpoints go and are looked for; None keeps nothing.
      watch_world: the rules that Goodhart curves are measured under; None for `world`.
      observe: told what has happened after each chunk, and at once of what a checkpoint holds.

    Raises:
      ValueError: `num_updates` is 0 and there is no checkpoint, or several processes find
        different ones.
    """
    shared = _Shared(world, world if watch_world is None else watch_world, hyper)
    num_runs = len(keys)
    begin = over_runs(lambda world, key: ppo.start(plan, world, run_keys(key).train))
    go_on = over_runs(partial(_chunk, plan, chunk_updates), donate=(2,))
    modes, keys = shard((modes, keys))
    states = begin(world, keys)
    runs = _Run(modes, keys, initial=jax.tree.map(jnp.copy, states.params))
    history: History | None = None
    watches: list[Watch] = []
    done = 0
    with Checkpoints(folder) as checkpoints:
        kept = checkpoints.latest(partial(fetch, states, num_runs))
        if kept is not None:
            done, found, history, watches = kept
            states = shard(found)
            observe(0, history)
        while done < num_updates:
            states, *news = go_on(shared, runs, states)
            chunk, watched = fetch(news, num_runs)
            done += chunk_updates
            history = chunk if history is None else _joined(history, chunk)
            watches.append(watched)
            checkpoints.save(done, partial(fetch, states, num_runs), history, watches)
            observe(done - chunk_updates, chunk)
    if history is None:
        raise ValueError(f"there is nothing to train and no checkpoint in {folder}")
    together = jax.tree.map(lambda *parts: np.stack(parts, axis=1), *watches)
    return Trained(fetch(states, num_runs), history, together)


def _chunk(
    plan: Plan, num_updates: int, shared: _Shared, run: _Run, state: TrainState
) -> tuple[TrainState, History, Watch]:
    """Some updates of one run, and a watch of what it has learnt."""
    state, history = ppo.advance(plan, shared.world, shared.hyper, run.mode, state, num_updates)
    # Runs of equal seed are watched in equal worlds, at all times of their training.
    key = run_keys(run.key).watch
    watched = watch(plan, shared.watch_world, run.mode, state.params, run.initial, key)
    return state, history, watched


def _joined(before: History, after: History) -> History:
    return jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), before, after)


def memory_needed(plan: Plan, world: World, num_runs: int) -> int:
    """Bytes that a training takes at its peak, worked out from shapes before anything compiles:
    the states of all runs, and rollouts of those that a device trains at once.

    Args:
      plan: of the training.
      world: the rules to learn under.
      num_runs: trained policies.
    """
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = jax.eval_shape(partial(ppo.start, plan), world, key)
    # Codes, and as float32 what the network makes of them at its widest, forward and backward.
    view = world.view_size**2
    widest = max([NUM_CHANNELS, *plan.network.features]) * view
    transition = view + 40 + 4 * 3 * (widest + sum(plan.network.hidden)) // plan.num_minibatches
    rollouts = at_one_time(num_runs) * plan.steps_per_update * transition
    # Twice, for a chunk's results stand beside what it started from while they are copied.
    return 2 * num_runs * nbytes(state) + rollouts


def nbytes(tree: Any) -> int:
    """Bytes of all arrays, or of what shapes describe."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))

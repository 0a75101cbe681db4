"""Many runs trained at once, driven from the host.

What happens inside a chunk is one compiled program over all runs; between chunks the host reports
progress, appends to `metrics.jsonl` and every few seconds saves a checkpoint, so that a killed
training goes on from there and ends in the same parameters, to the bit. Runs that have not levelled
off by their budget may go on alone; the others are then left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime.devices import Lifted, at_one_time, fetch, over_runs, shard
from goodharts_jax import ppo
from goodharts_jax.checkpoints import Checkpoints
from goodharts_jax.modes import NUM_CHANNELS, Mode
from goodharts_jax.ppo import History, Hyper, Plan, TrainState
from goodharts_jax.watch import Watch, unwatched, watch
from goodharts_jax.world import World, make_world

Observer = Callable[[int, History], None]
"""Told the number of the first update, and the history of it and those after it,
float32[runs, updates] each, NaN where a run had stopped."""

Level = Callable[[History], np.ndarray]
"""Told the history of all runs, which of them have levelled off. bool[runs]."""


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
      history: float32[runs, updates] each, NaN where a run had stopped.
      watches: at each of `looks`. Watch with leading axes [runs, looks]. Of a run that had stopped
        they repeat the last, which is what they would find.
    """

    states: TrainState
    history: History
    watches: Watch


class _Shared(NamedTuple):
    """What all runs of a population have in common."""

    world: World
    watch_world: World
    hyper: Hyper
    updates: np.ndarray
    """How many a chunk makes. int32[]."""


class _Run(NamedTuple):
    """What makes a run different from others; with a leading axis [runs] outside of a program."""

    mode: Mode
    key: chex.PRNGKey
    watch_key: Any
    """Of the worlds that it is watched in; None for the one that its own is split into."""
    initial: Any
    """Parameters that the training begins with."""
    goes_on: Any
    """Whether it is still trained. bool[]."""


def train(
    plan: Plan,
    world: World,
    hyper: Hyper,
    modes: Mode,
    keys: chex.PRNGKey,
    *,
    num_updates: int,
    chunk_updates: int,
    watch_keys: chex.PRNGKey | None = None,
    initial: Any = None,
    max_updates: int = 0,
    level: Level | None = None,
    folder: Path | None = None,
    watch_world: World | None = None,
    observe: Observer = lambda first_update, history: None,
    traced: Callable[[], None] = lambda: None,
) -> Trained:
    """Train one policy for each mode and key.

    Args:
      plan: static sizes.
      world: the rules to learn under.
      hyper: shared by all runs.
      modes: with a leading axis [runs].
      keys: typed keys. [runs].
      num_updates: of every run, a multiple of `chunk_updates`.
      chunk_updates: updates between two looks; at first fewer, see `looks`.
      watch_keys: runs of equal ones are watched in equal worlds. [runs]; None for those of `keys`.
      initial: parameters that each run begins with, with a leading axis [runs]; None draws them.
      max_updates: a run that has not levelled off goes on until it has, up to so many.
      level: tells which have; None for all.
      folder: where checkpoints go and are looked for; None keeps nothing.
      watch_world: the rules that Goodhart curves are measured under; None for `world`.
      observe: told what has happened after each chunk, and at once of what a checkpoint holds.
      traced: called when Python is free for another thread: from then on programs are compiled
        and run.

    Raises:
      ValueError: there is nothing to train and no checkpoint, or processes find different ones.
    """
    num_runs, programs = len(keys), _programs(plan, chunk_updates)
    shared = _Shared(world, watch_world or world, hyper, np.zeros((), np.int32))
    modes, keys, watch_keys = shard((modes, keys, watch_keys))
    given = None if initial is None else shard(initial)
    if num_updates:
        going = shard(np.ones(num_runs, bool))
        _compile(programs, shared, _Run(modes, keys, watch_keys, given, going), traced)
    states = programs.begin(world, keys, modes, given)
    runs = _Run(modes, keys, watch_keys, _copied(states.params), goes_on=None)
    going_on = partial(_going_on, num_runs, num_updates, max_updates, level)
    with Checkpoints(folder) as checkpoints:
        states, history, watches = _carry_on(
            programs, shared, runs, states, going_on, checkpoints, observe, num_runs, chunk_updates
        )
    if history is None:
        raise ValueError(f"there is nothing to train and no checkpoint in {folder}")
    together = jax.tree.map(lambda *parts: np.stack(parts, axis=1), *watches)
    return Trained(fetch(states, num_runs), history, together)


def _carry_on(
    programs: _Programs,
    shared: _Shared,
    runs: _Run,
    states: TrainState,
    going_on: Callable[[int, History | None], np.ndarray],
    checkpoints: Checkpoints,
    observe: Observer,
    num_runs: int,
    chunk_updates: int,
) -> tuple[TrainState, History | None, list[Watch]]:
    """Chunk after chunk, from the last checkpoint until no run goes on."""
    kept = checkpoints.latest(partial(fetch, states, num_runs))
    done, found, history, watches = kept or (0, None, None, list[Watch]())
    if history is not None:
        states = shard(found)
        observe(0, history)
    goes_on = going_on(done, history)
    while goes_on.any():
        # The first look is at what has not learnt yet.
        count = _next_look(done, chunk_updates) - done if watches else 0
        now = runs._replace(goes_on=shard(goes_on))
        news = None
        if count:
            of_chunk = shared._replace(updates=np.asarray(count, np.int32))
            states, news = programs.go_on(of_chunk, now, states)
        seen = programs.look(shared.watch_world, now, states.params)
        chunk, watched = fetch((news, seen), num_runs)
        watches.append(_where(goes_on, watched, watches[-1] if watches else watched))
        if count:
            chunk = History(*(column[:, :count] for column in chunk))
            chunk = _where(goes_on, chunk, jax.tree.map(lambda x: x * np.nan, chunk))
            history = _joined(history, chunk)
            goes_on = going_on(done + count, history)
            state, ends = partial(fetch, states, num_runs), not goes_on.any()
            checkpoints.save(done + count, state, history, watches, ends)
            observe(done, chunk)
        done += count
    return states, history, watches


class _Programs(NamedTuple):
    """What a training runs. What looks at runs stands by itself, to be compiled beside the other.

    Attributes:
      begin: what begins runs.
      go_on: what carries them on.
      look: what tells what they have learnt.
    """

    begin: Lifted
    go_on: Lifted
    look: Lifted


@cache
def _programs(plan: Plan, chunk_updates: int) -> _Programs:
    """Made once, for a training in several parts."""

    def begin(world: World, key: chex.PRNGKey, mode: Mode, params: Any) -> TrainState:
        return ppo.start(plan, world, run_keys(key).train, mode, params)

    return _Programs(
        over_runs(begin, brief=True),
        over_runs(partial(_chunk, plan, chunk_updates), donate=(2,)),
        over_runs(partial(_look, plan), brief=True),
    )


def _compile(programs: _Programs, shared: _Shared, runs: _Run, traced: Callable[[], None]) -> None:
    """Compile all programs, each while the next is traced."""
    own = runs.key, runs.mode, runs.initial
    begun = programs.begin.shapes(shared.world, *own)
    runs = runs._replace(initial=begun.params)
    with ThreadPoolExecutor(1) as thread:
        begin = thread.submit(programs.begin.lower(shared.world, *own).compile)
        go_on = thread.submit(programs.go_on.lower(shared, runs, begun).compile)
        programs.look.lower(shared.watch_world, runs, begun.params).compile()
        traced()
        begin.result()
        go_on.result()


@jax.jit
def _copied(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


def _going_on(
    num_runs: int,
    num_updates: int,
    max_updates: int,
    level: Level | None,
    done: int,
    history: History | None,
) -> np.ndarray:
    """Which runs are to be trained further. bool[runs]."""
    if done < num_updates:
        return np.ones(num_runs, bool)
    if done >= max_updates or history is None or level is None:
        return np.zeros(num_runs, bool)
    return ~np.isnan(history.food[:, -1]) & ~level(history)


def looks(number: int, chunk_updates: int) -> list[int]:
    """Updates made at each of the first looks at a training: 0, 1, 2, 4 and so on up to a chunk,
    for most happens early, then after each chunk.
    """
    done = [0]
    while len(done) < number:
        done.append(_next_look(done[-1], chunk_updates))
    return done[:number]


def looked(history: History, chunk_updates: int) -> np.ndarray:
    """How many looks were taken at each run before it stopped. int[runs]."""
    updates = (~np.isnan(history.food)).sum(axis=1)
    at = np.array(looks(2 + history.food.shape[1], chunk_updates))
    return (at <= updates[:, None]).sum(axis=1)


def _next_look(done: int, chunk_updates: int) -> int:
    return min(max(1, 2 * done), (done // chunk_updates + 1) * chunk_updates)


def _where(runs: np.ndarray, these: Any, others: Any) -> Any:
    """Of two pytrees with leading axes [runs], the first in these runs and the second elsewhere."""

    def chosen(this: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.where(runs.reshape(-1, *[1] * (this.ndim - 1)), this, other)

    return jax.tree.map(chosen, these, others)


def _chunk(
    plan: Plan, most: int, shared: _Shared, run: _Run, state: TrainState
) -> tuple[TrainState, History]:
    """Up to `most` updates of one run; nothing of one that stopped."""
    empty = History(*[jnp.zeros(most)] * len(History._fields))

    def update(index: jax.Array, carry: tuple[TrainState, History]) -> tuple[TrainState, History]:
        state, history = carry
        state, news = ppo.advance(plan, shared.world, shared.hyper, run.mode, state, 1)
        return state, jax.tree.map(lambda column, one: column.at[index].set(one[0]), history, news)

    # How many is traced: one program for short chunks and long ones.
    updates = jnp.where(run.goes_on, shared.updates, 0)
    return jax.lax.fori_loop(0, updates, update, (state, empty))


def _look(plan: Plan, world: World, run: _Run, params: Any) -> Watch:
    """A watch of what a run has learnt; of nothing where it has stopped."""

    def look() -> Watch:
        # Runs of equal seed are watched in equal worlds, at all times of their training.
        key = run_keys(run.key).watch if run.watch_key is None else run.watch_key
        return watch(plan, world, run.mode, params, run.initial, key)

    return jax.lax.cond(run.goes_on, look, unwatched)


def _joined(before: History | None, after: History) -> History:
    if before is None:
        return after
    return jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), before, after)


def memory_needed(plan: Plan, world: World, num_runs: int) -> int:
    """Bytes that a training takes at its peak, worked out from shapes before anything compiles:
    the states of all runs, and rollouts of those that a device trains at once.

    Args:
      plan: of the training.
      world: the rules to learn under.
      num_runs: trained policies.
    """
    state = shapes(plan, world)
    # Codes, and as float32 what the network makes of them at its widest, forward and backward.
    view = world.view_size**2
    widest = max([NUM_CHANNELS, *plan.network.features]) * view
    units = 2 * (widest + sum(plan.network.hidden))  # of two towers
    transition = view + 40 + 4 * 3 * units // plan.num_minibatches
    rollouts = at_one_time(num_runs) * plan.steps_per_update * transition
    # Twice, for a chunk's results stand beside what it started from while they are copied.
    return 2 * num_runs * nbytes(state) + rollouts


def shapes(plan: Plan, world: World) -> TrainState:
    """Shapes and types of what a run without remedies begins with."""
    return _shapes(plan, world.size, world.view_radius)


@cache  # tracing takes most of a second
def _shapes(plan: Plan, size: int, view_radius: int) -> TrainState:
    world = make_world(size, view_radius)
    return jax.eval_shape(lambda: ppo.start(plan, world, jax.random.key(0)))


def nbytes(tree: Any) -> int:
    """Bytes of all arrays, or of what shapes describe."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))

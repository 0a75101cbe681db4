"""Many runs at once, driven from the host: training, evaluation, checkpoints.

What happens inside a chunk is one compiled program over all runs; between chunks the host reports
progress, appends to `metrics.jsonl` and saves a checkpoint, so that a killed training goes on
where it stopped and ends in the same parameters, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from flax import struct

from evidence.devices import at_one_time, over_runs
from goodharts_jax import ppo, survival
from goodharts_jax import world as physics
from goodharts_jax.modes import NUM_CHANNELS, Mode, stack
from goodharts_jax.survival import Census, Lives, Tally
from goodharts_jax.world import FOOD, NUM_KINDS, POISON, World

# The worlds of a run are evaluated in blocks of this many: a block fits a core's share of the
# cache, and blocks of one run spread over the cores.
_BLOCK = 256
# Of the small evaluation between chunks, from which Goodhart curves are drawn.
_WATCH_WORLDS, _WATCH_STEPS = 128, 256

Report = Callable[[int], None]
"""Told how many world steps have just been taken."""

Observer = Callable[[int, Mapping[str, np.ndarray]], None]
"""Told the number of the first update and what happened in it and those after it, by name
float32[runs, updates]."""


@struct.dataclass
class Watch:
    """A short look at what a policy does when it counts, on two halves of fresh worlds.

    Attributes:
      energy: gained less spent, a step. float32[2].
      pay: by the mode, a step, without shaping. float32[2].
      food: eaten a step. float32[2].
      poison: float32[2].
      deaths: a step. float32[2].
      items: of each kind in a world, on average. float32[2, NUM_KINDS].
      kl: divergence of the policy from the initial one, on the views met. float32[], nats.
    """

    energy: jax.Array
    pay: jax.Array
    food: jax.Array
    poison: jax.Array
    deaths: jax.Array
    items: jax.Array
    kl: jax.Array


@dataclass(frozen=True)
class Trained:
    """A trained population.

    Attributes:
      learners: Learner with a leading axis of runs.
      history: by name, one number an update. float32[runs, updates].
      watch: after each chunk. Watch with leading axes [runs, chunks].
    """

    learners: ppo.Learner
    history: dict[str, np.ndarray]
    watch: Watch


def train(
    plan: ppo.Plan,
    world: World,
    hyper: ppo.Hyper,
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
    """
    watch_world = world if watch_world is None else watch_world
    begin = over_runs(lambda shared, key: ppo.start(plan, shared, _keys(key)[0]))
    go_on = over_runs(partial(_chunk, plan, chunk_updates), donate=(2,))
    learners = begin(world, keys)
    initial = jax.tree.map(jnp.copy, learners.params)
    history: dict[str, np.ndarray] = {}
    watches: list[Watch] = []
    done = 0
    with _Checkpoints(folder) as checkpoints:
        kept = checkpoints.latest(learners)
        if kept is not None:
            done, learners, history, watches = kept
            observe(0, history)
        while done < num_updates:
            runs = (modes, initial, keys)
            learners, chunk, watch = go_on((world, watch_world, hyper), runs, learners)
            chunk, watch = jax.device_get((chunk, watch))
            done += chunk_updates
            history = {
                name: np.concatenate([*([history[name]] if history else []), chunk[name]], axis=1)
                for name in chunk
            }
            watches.append(watch)
            checkpoints.save(done, learners, history, watches)
            observe(done - chunk_updates, chunk)
    return Trained(learners, history, jax.tree.map(lambda *w: np.stack(w, axis=1), *watches))


def _chunk(plan: ppo.Plan, num_updates: int, shared: Any, run: Any, learner: ppo.Learner):
    """Some updates of one run, and a look at what it has learnt."""
    world, watch_world, hyper = shared
    mode, initial, key = run
    learner, history = ppo.advance(plan, world, hyper, mode, learner, num_updates)
    # Runs of equal seed are watched in equal worlds, at all times of their training.
    watch = _watch(plan, watch_world, mode, learner.params, initial, _keys(key)[2])
    return learner, history, watch


def _watch(
    plan: ppo.Plan, world: World, mode: Mode, params: Any, initial: Any, key: chex.PRNGKey
) -> Watch:
    settle_key, rollout_key = jax.random.split(key)
    worlds = survival.settle(world, _WATCH_WORLDS, settle_key).worlds
    act = partial(ppo.policy, plan.network, params, mode)
    _, rollout, _ = ppo.collect(world, act, worlds, rollout_key, _WATCH_STEPS)
    event = rollout.event

    def halves(x: jax.Array) -> jax.Array:
        return x.astype(jnp.float32).reshape(_WATCH_STEPS, 2, -1).mean(axis=(0, 2))

    def divergence(view: jax.Array, look: jax.Array) -> jax.Array:
        now = jax.nn.log_softmax(act(view, look).logits)
        then = jax.nn.log_softmax(ppo.policy(plan.network, initial, mode, view, look).logits)
        return jnp.sum(jnp.exp(now) * (now - then))

    food, poison, deaths = (
        halves(x) for x in (event.eaten == FOOD, event.eaten == POISON, event.died)
    )
    unit = survival.ENERGY_UNIT
    _, food_energy, poison_energy = world.energy * unit
    # Every eighth step is enough for a mean over views.
    view, look = rollout.view[::8], rollout.look[::8]
    return Watch(
        energy=food_energy * food + poison_energy * poison - world.move_cost * unit,
        pay=mode.pay[FOOD] * food
        + mode.pay[POISON] * poison
        + mode.pay_step
        + mode.pay_death * deaths,
        food=food,
        poison=poison,
        deaths=deaths,
        items=worlds.items.astype(jnp.float32).reshape(2, -1, NUM_KINDS).mean(axis=1),
        kl=jnp.mean(jax.vmap(jax.vmap(divergence))(view, look)),
    )


@dataclass(frozen=True)
class Contender:
    """A row of the table: trained runs of one mode, or one scripted policy.

    Attributes:
      script: index into the scripts that `evaluate` is given, or None for a trained policy.
      params: of the network, with a leading axis [runs]; None for a script.
      mode: its row, without an axis; None for a script.
      seeds: of the runs.
    """

    script: int | None
    params: Any
    mode: Mode | None
    seeds: Sequence[int]


def evaluate(
    network: Any,
    world: World,
    contenders: Mapping[str, Contender],
    scripts: Sequence[Callable[[jax.Array], jax.Array]],
    *,
    num_worlds: int,
    steps_per_world: int,
    temperature: float = 1.0,
    report: Report = lambda steps: None,
) -> dict[str, list[Census]]:
    """Follow every run of every contender for `steps_per_world` steps; a census a run.

    Runs of equal seed begin in equal worlds, whatever their mode. Trained and scripted policies
    go through one compiled program.

    Args:
      network: of the trained policies.
      world: the rules to live under; everyone is mortal.
      contenders: rows by name.
      scripts: policies from one view to logits.
      num_worlds: of each run; blocks of up to 256 evenly, so rounded up to whole blocks.
      steps_per_world: of each.
      temperature: divides the logits of trained policies; 0 takes the likeliest action.
      report: progress.
    """
    blocks = -(-num_worlds // _BLOCK)
    size = -(-num_worlds // blocks)
    chunk = _divisor(steps_per_world, at_most=600)
    units = _units(contenders, blocks)

    def settle(world: World, unit: Any) -> Lives:
        return survival.settle(world, size, unit["key"])

    def forage(shared: Any, unit: Any) -> tuple[Lives, Tally]:
        world, temperature, time = shared

        def trained(view: jax.Array, look: jax.Array) -> jax.Array:
            output = ppo.policy(network, unit["params"], unit["mode"], view, look)
            return output.logits / jnp.maximum(temperature, 1e-6)

        # The first branch is for script -1; nothing there can be traced without any parameters.
        branches: list[Any] = [lambda view, look, script=script: script(view) for script in scripts]
        branches.insert(0, branches[0] if unit["params"] is None else trained)

        def policy(view: jax.Array, look: jax.Array) -> jax.Array:
            return jax.lax.switch(unit["script"] + 1, branches, view, look)

        key = jax.random.fold_in(unit["key"], time)
        return survival.forage(world, policy, unit["lives"], key, chunk, steps_per_world)

    step = over_runs(forage)
    units["lives"] = over_runs(settle)(world, units)
    tallies: list[Tally | None] = [None] * (len(units["script"]))
    for time in range(steps_per_world // chunk):
        shared = (world, jnp.float32(temperature), jnp.int32(time))
        units["lives"], counted = step(shared, units)
        counted = jax.device_get(counted)
        tallies = [
            survival.add(total, jax.tree.map(lambda x, i=i: x[i], counted))
            for i, total in enumerate(tallies)
        ]
        report(chunk * size * len(tallies))

    lives = jax.device_get(units["lives"])
    finished = iter(
        survival.close(tally, jax.tree.map(lambda x, i=i: x[i], lives), steps_per_world)
        for i, tally in enumerate(tallies)
        if tally is not None
    )
    return {
        name: [survival.pool([next(finished) for _ in range(blocks)]) for _ in row.seeds]
        for name, row in contenders.items()
    }


def memory_needed(
    plan: ppo.Plan, world: World, num_runs: int, num_rows: int, num_worlds: int
) -> dict[str, int]:
    """Bytes that a study takes at its peak, worked out from shapes before anything compiles.

    Args:
      plan: of the training.
      world: the larger of the two it uses.
      num_runs: trained policies.
      num_rows: policies evaluated, runs and scripts.
      num_worlds: of each in the evaluation.

    Returns:
      training: learners of all runs, and rollouts of those that a device trains at once;
      evaluation: worlds and tallies of all rows.
    """
    key = jax.eval_shape(lambda: jax.random.key(0))
    learner = jax.eval_shape(partial(ppo.start, plan), world, key)
    state = jax.eval_shape(physics.reset, world, key)
    # Codes, and as float32 what the network makes of them at its widest, forward and backward.
    view = world.view_size**2
    widest = max([NUM_CHANNELS, *plan.network.features]) * view
    transition = view + 40 + 4 * 3 * (widest + sum(plan.network.hidden)) // plan.num_minibatches
    at_once = at_one_time(num_runs)
    rollouts = at_once * plan.steps_per_update * transition
    return {
        # Twice, for a chunk's results stand beside what it started from while they are copied.
        "training": 2 * num_runs * _bytes(learner) + rollouts,
        "evaluation": num_rows * num_worlds * (_bytes(state) + 64),
    }


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _units(contenders: Mapping[str, Contender], blocks: int) -> dict[str, Any]:
    """What is evaluated, one entry a block of worlds: contender by contender, run by run.

    Scripts carry the parameters of some trained policy along, for all entries must be alike.
    """
    runs = [(row, run) for row in contenders.values() for run in range(len(row.seeds))]
    entries = [(row, run, block) for row, run in runs for block in range(blocks)]
    some = next((row for row in contenders.values() if row.script is None), None)

    def block_key(row: Contender, run: int, block: int) -> chex.PRNGKey:
        return jax.random.split(_keys(jax.random.key(row.seeds[run]))[1], blocks)[block]

    units: dict[str, Any] = {
        "script": jnp.array([-1 if row.script is None else row.script for row, _, _ in entries]),
        "key": jnp.stack([block_key(*entry) for entry in entries]),
        "params": None,
        "mode": None,
    }
    if some is not None:
        sources = [(row, run) if row.script is None else (some, 0) for row, run, _ in entries]
        params = [jax.tree.map(lambda x, run=run: x[run], row.params) for row, run in sources]
        units["params"] = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params)
        units["mode"] = stack([row.mode for row, _ in sources if row.mode is not None])
    return units


def _keys(key: chex.PRNGKey) -> chex.PRNGKey:
    """A run's keys: to train, to be evaluated, to be watched."""
    return jax.random.split(key, 3)


def _divisor(number: int, at_most: int) -> int:
    return max(d for d in range(1, min(number, at_most) + 1) if number % d == 0)


class _Checkpoints:
    """The newest state of a training, on disk; does nothing without a folder."""

    def __init__(self, folder: Path | None):
        options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=False)
        self._manager = (
            None
            if folder is None
            else ocp.CheckpointManager(Path(folder).absolute(), options=options)
        )

    def __enter__(self) -> _Checkpoints:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._manager is not None:
            self._manager.close()

    def save(
        self, done: int, learners: Any, history: dict[str, np.ndarray], watches: list[Watch]
    ) -> None:
        if self._manager is None:
            return
        record = {"history": history, "watch": [_as_dict(watch) for watch in watches]}
        self._manager.save(
            done,
            args=ocp.args.Composite(
                learners=ocp.args.StandardSave(learners), record=ocp.args.StandardSave(record)
            ),
        )

    def latest(self, learners: Any) -> tuple[int, Any, dict[str, np.ndarray], list[Watch]] | None:
        """The updates done and all that was saved with them; `learners` gives the structure."""
        if self._manager is None or (step := self._manager.latest_step()) is None:
            return None
        kept = self._manager.restore(
            step,
            args=ocp.args.Composite(
                learners=ocp.args.StandardRestore(learners), record=ocp.args.StandardRestore()
            ),
        )
        watches = [Watch(**watch) for watch in kept["record"]["watch"]]
        return step, kept["learners"], dict(kept["record"]["history"]), watches


def _as_dict(watch: Watch) -> dict[str, Any]:
    return {name: getattr(watch, name) for name in Watch.__dataclass_fields__}

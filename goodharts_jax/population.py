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

from evidence.runtime.devices import (
    at_one_time,
    fetch,
    is_key,
    over_runs,
    same_in_all_processes,
    shard,
)
from evidence.runtime.files import is_first_process
from goodharts_jax import ppo, survival
from goodharts_jax import world as physics
from goodharts_jax.modes import NUM_CHANNELS, Mode, stack
from goodharts_jax.survival import Census, Lives, Tally
from goodharts_jax.world import FOOD, NUM_KINDS, POISON, World

# The worlds of a run are evaluated in blocks of this many: a block fits a core's share of the
# cache, and blocks of one run spread over the cores.
_BLOCK = 256
# Scripts don't vary from run to run, so one block in so many is enough to tell of them.
_SCRIPT_SHARE = 4
# Of the small evaluation between chunks, from which Goodhart curves are drawn.
_WATCH_WORLDS, _WATCH_STEPS = 128, 256
WATCHED_STEPS = _WATCH_WORLDS * _WATCH_STEPS
"""World steps in one look at one run."""

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
      learners: Learner with a leading axis of runs, on the host.
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
    num_runs = len(keys)
    begin = over_runs(lambda shared, key: ppo.start(plan, shared, _keys(key)[0]))
    go_on = over_runs(partial(_chunk, plan, chunk_updates), donate=(2,))
    runs = shard({"mode": modes, "key": keys})
    learners = begin(world, runs["key"])
    runs["initial"] = jax.tree.map(jnp.copy, learners.params)
    history: dict[str, np.ndarray] = {}
    watches: list[Watch] = []
    done = 0
    with _Checkpoints(folder) as checkpoints:
        kept = checkpoints.latest(partial(fetch, learners, num_runs))
        if kept is not None:
            done, found, history, watches = kept
            learners = shard(found)
            observe(0, history)
        while done < num_updates:
            learners, *news = go_on((world, watch_world, hyper), runs, learners)
            chunk, watch = fetch(news, num_runs)
            done += chunk_updates
            history = {
                name: np.concatenate([*([history[name]] if history else []), chunk[name]], axis=1)
                for name in chunk
            }
            watches.append(watch)
            checkpoints.save(done, partial(fetch, learners, num_runs), history, watches)
            observe(done - chunk_updates, chunk)
    looks = jax.tree.map(lambda *w: np.stack(w, axis=1), *watches)
    return Trained(fetch(learners, num_runs), history, looks)


def _chunk(plan: ppo.Plan, num_updates: int, shared: Any, run: Any, learner: ppo.Learner):
    """Some updates of one run, and a look at what it has learnt."""
    world, watch_world, hyper = shared
    mode, initial, key = run["mode"], run["initial"], run["key"]
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
      script: from one view to logits; None for a trained policy.
      params: of the network, with a leading axis [runs]; None for a script.
      mode: its row, without an axis; None for a script.
      seeds: of the runs.
    """

    script: Callable[[jax.Array], jax.Array] | None
    params: Any
    mode: Mode | None
    seeds: Sequence[int]


@dataclass(frozen=True)
class Prepared:
    """An evaluation that lacks nothing but the parameters of its contenders.

    Attributes:
      world: the rules to live under.
      step: `(shared, units) -> (lives, tally)`, a chunk of steps, compiled.
      units: what is followed, one entry a block of worlds, parameters left out.
      source: each unit's place among the trained runs, row by row. int[units].
      blocks: of worlds in a run.
      block_worlds: in a block.
      chunk: steps that `step` takes.
      steps_per_world: of all chunks together.
    """

    world: World
    step: Callable[..., Any]
    units: dict[str, Any]
    source: np.ndarray
    blocks: int
    block_worlds: int
    chunk: int
    steps_per_world: int

    @property
    def total_steps(self) -> int:
        """Of all worlds together."""
        return len(self.source) * self.block_worlds * self.steps_per_world


def prepare(
    network: Any,
    world: World,
    contenders: Mapping[str, Contender],
    *,
    num_worlds: int,
    steps_per_world: int,
) -> Prepared:
    """All of an evaluation that can be done before, or while, its policies are trained.

    The worlds are settled and the program is compiled. Runs of equal seed begin in equal worlds,
    whatever their mode.

    Args:
      network: of the trained policies.
      world: the rules to live under; everyone is mortal.
      contenders: rows by name; of their parameters only shapes are read.
      num_worlds: of each run; blocks of up to 256 evenly, so rounded up to whole blocks. A script
        is followed in the first quarter of them.
      steps_per_world: of each.
    """
    blocks = -(-num_worlds // _BLOCK)
    size = -(-num_worlds // blocks)
    chunk = _divisor(steps_per_world, at_most=600)
    kinds = list(dict.fromkeys(row.script for row in contenders.values()))

    def settle(world: World, unit: Any) -> Lives:
        return survival.settle(world, size, unit["key"])

    def forage(shared: Any, unit: Any) -> tuple[Lives, Tally]:
        world, temperature, time = shared

        def trained(view: jax.Array, look: jax.Array) -> jax.Array:
            output = ppo.policy(network, unit["params"], unit["mode"], view, look)
            return output.logits / jnp.maximum(temperature, 1e-6)

        def scripted(script: Callable[[jax.Array], jax.Array]) -> survival.Policy:
            return lambda view, look: script(view)

        policies = [trained if script is None else scripted(script) for script in kinds]

        def policy(view: jax.Array, look: jax.Array) -> jax.Array:
            return jax.lax.switch(unit["kind"], policies, view, look)

        key = jax.random.fold_in(unit["key"], time)
        return survival.forage(world, policy, unit["lives"], key, chunk, steps_per_world)

    host_units, source = _units(contenders, kinds, blocks)
    step, units = over_runs(forage), shard(host_units)
    units["lives"] = over_runs(settle)(world, units)
    prepared = Prepared(world, step, units, source, blocks, size, chunk, steps_per_world)
    step.compile(_shared(world, 1.0, 0), units | {"params": _params(prepared, contenders)})
    return prepared


def evaluate(
    prepared: Prepared,
    contenders: Mapping[str, Contender],
    *,
    temperature: float = 1.0,
    report: Report = lambda steps: None,
) -> dict[str, list[Census]]:
    """Follow every run of every contender for all its steps; a census a run.

    Args:
      prepared: for these rows.
      contenders: rows by name.
      temperature: divides the logits of trained policies; 0 takes the likeliest action.
      report: progress.
    """
    num_units = len(prepared.source)
    units = prepared.units | {"params": _params(prepared, contenders)}
    total: Tally | None = None
    for time in range(prepared.steps_per_world // prepared.chunk):
        units["lives"], counted = prepared.step(_shared(prepared.world, temperature, time), units)
        total = survival.add(total, fetch(counted, num_units))
        report(prepared.chunk * prepared.block_worlds * num_units)

    lives = fetch(units["lives"], num_units)

    def census(i: int) -> Census:
        tally, left = jax.tree.map(lambda x: x[i], (total, lives))
        return survival.close(tally, left, prepared.steps_per_world)

    finished = map(census, range(num_units))
    return {
        name: [
            survival.pool([next(finished) for _ in range(_blocks(row, prepared.blocks))])
            for _ in row.seeds
        ]
        for name, row in contenders.items()
    }


def _shared(world: World, temperature: float, time: int) -> tuple[World, np.ndarray, np.ndarray]:
    return world, np.asarray(temperature, np.float32), np.asarray(time, np.int32)


def _params(prepared: Prepared, contenders: Mapping[str, Contender]) -> Any:
    """Each unit's parameters, laid out as it is; scripts carry some along that they never read."""
    trained = [row.params for row in contenders.values() if row.script is None]
    if not trained:
        return None

    def of_units(*rows: Any) -> np.ndarray:
        # A shape stands for parameters that are yet to be trained.
        hosts = [np.zeros(x.shape, x.dtype) if _is_shape(x) else np.asarray(x) for x in rows]
        return np.concatenate(hosts)[prepared.source]

    return shard(jax.tree.map(of_units, *trained))


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


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


def _units(
    contenders: Mapping[str, Contender], kinds: list[Any], blocks: int
) -> tuple[dict[str, Any], np.ndarray]:
    """What is evaluated, one entry a block of worlds: contender by contender, run by run.

    Returns:
      The units, on the host, and each one's place among the trained runs (0 for a script).
    """
    rows = list(contenders.values())
    trained = [row for row in rows if row.script is None]
    runs = [(row, seed) for row in rows for seed in row.seeds]
    sizes = [_blocks(row, blocks) for row, _ in runs]
    of_run = np.repeat(np.arange(len(runs)), sizes)
    places = iter(range(len(runs)))
    source = np.array([next(places) if row.script is None else 0 for row, _ in runs])[of_run]

    @jax.jit
    def block_keys(keys: chex.PRNGKey) -> chex.PRNGKey:
        return jax.vmap(lambda key: jax.random.split(_keys(key)[1], blocks))(keys)

    keys = block_keys(jnp.stack([jax.random.key(seed) for _, seed in runs]))
    units: dict[str, Any] = {
        "kind": np.array([kinds.index(row.script) for row, _ in runs], np.int32)[of_run],
        "key": keys[of_run, np.concatenate([np.arange(size) for size in sizes])],
        "params": None,
        "mode": None,
    }
    if trained:
        modes = stack([row.mode for row in trained if row.mode is not None])
        of_mode = np.repeat(np.arange(len(trained)), [len(row.seeds) for row in trained])
        units["mode"] = jax.tree.map(lambda x: np.asarray(x)[of_mode[source]], modes)
    return units, source


def _blocks(row: Contender, blocks: int) -> int:
    return blocks if row.script is None else -(-blocks // _SCRIPT_SHARE)


def _keys(key: chex.PRNGKey) -> chex.PRNGKey:
    """A run's keys: to train, to be evaluated, to be watched."""
    return jax.random.split(key, 3)


def _divisor(number: int, at_most: int) -> int:
    return max(d for d in range(1, min(number, at_most) + 1) if number % d == 0)


class _Checkpoints:
    """The newest state of a training, on disk; does nothing without a folder.

    What is kept are the runs, without what fills them up to the number of devices, so that a
    training can go on with fewer devices or more. Of several processes all read, the first writes.
    It is written while the training goes on: a kill loses at most what was on its way.
    """

    def __init__(self, folder: Path | None):
        self._folder, self._manager = folder, None
        if folder is None:
            return
        if is_first_process():
            folder.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            me = jax.process_index()
            alone = ocp.options.MultiprocessingOptions(
                primary_host=me, active_processes={me}, barrier_sync_key_prefix=f"process{me}"
            )
            options = ocp.CheckpointManagerOptions(
                max_to_keep=2,
                enable_async_checkpointing=True,
                create=False,
                multiprocessing_options=alone,
            )
            self._manager = ocp.CheckpointManager(folder.absolute(), options=options)

    def __enter__(self) -> _Checkpoints:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._manager is not None:
            self._manager.close()

    def save(
        self,
        done: int,
        learners: Callable[[], Any],
        history: dict[str, np.ndarray],
        watches: list[Watch],
    ) -> None:
        """Keep the updates done, the runs as `learners()` fetches them, and what was told."""
        if self._folder is None:
            return
        found = learners()  # in all processes, for each has some of them
        if self._manager is None or not is_first_process():
            return
        record = {"history": history, "watch": [_as_dict(watch) for watch in watches]}
        self._manager.save(
            done,
            args=ocp.args.Composite(
                learners=ocp.args.StandardSave(_without_types(found)),
                record=ocp.args.StandardSave(record),
            ),
        )

    def latest(
        self, learners: Callable[[], Any]
    ) -> tuple[int, Any, dict[str, np.ndarray], list[Watch]] | None:
        """The updates done and all that was saved with them, structured as what `learners` fetches.

        Raises:
          ValueError: several processes don't find the same.
        """
        step = None if self._manager is None else self._manager.latest_step()
        if not same_in_all_processes(-1 if step is None else step):
            raise ValueError(
                "the processes find different checkpoints: give all of them one folder that all "
                "can read (hydra.run.dir=FOLDER, or resume=FOLDER)"
            )
        if self._manager is None or step is None:
            return None
        like = learners()
        kept = self._manager.restore(
            step,
            args=ocp.args.Composite(
                learners=ocp.args.StandardRestore(_without_types(like)),
                record=ocp.args.StandardRestore(),
            ),
        )
        watches = [Watch(**watch) for watch in kept["record"]["watch"]]
        found = jax.tree.map(_typed, like, kept["learners"])
        return step, found, dict(kept["record"]["history"]), watches


def _without_types(learners: Any) -> Any:
    """NumPy arrays only, for orbax keeps no key array that a process of several has to itself."""
    return jax.tree.map(lambda x: np.asarray(jax.random.key_data(x)) if is_key(x) else x, learners)


def _typed(like: Any, found: np.ndarray) -> Any:
    return (
        jax.random.wrap_key_data(jnp.asarray(found), impl=jax.random.key_impl(like))
        if is_key(like)
        else found
    )


def _as_dict(watch: Watch) -> dict[str, Any]:
    return {name: getattr(watch, name) for name in Watch.__dataclass_fields__}

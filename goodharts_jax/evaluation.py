"""Policies of many runs evaluated at once: one compiled program, blocks of worlds side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import chex
import jax
import numpy as np

from evidence.runtime.compiling import brief
from evidence.runtime.devices import fetch, over_runs, shard
from goodharts_jax import survival
from goodharts_jax import world as physics
from goodharts_jax.modes import Mode, stack
from goodharts_jax.networks import ActorCritic
from goodharts_jax.networks import policy as network_policy
from goodharts_jax.policies import Output, Policy, at_temperature
from goodharts_jax.survival import LifeTable, Lives, Tally
from goodharts_jax.training import nbytes, run_keys
from goodharts_jax.world import World

# The worlds of a run are evaluated in blocks of this many: a block fits a core's share of the
# cache, and blocks of one run spread over the cores.
_BLOCK = 256
# Scripts don't vary from run to run, so one block in so many is enough to tell of them.
_SCRIPT_SHARE = 4

Report = Callable[[int], None]
"""Told how many world steps have just been taken."""


@dataclass(frozen=True)
class Candidate:
    """A policy to evaluate: trained runs of one mode, or one script.

    Attributes:
      script: None for a trained policy.
      params: of the network, with a leading axis [runs]; None for a script.
      mode: its row, without an axis; None for a script.
      seeds: of the runs.
      whole: whether a script is followed in all worlds, as trained policies are.
    """

    script: Policy | None
    params: Any
    mode: Mode | None
    seeds: Sequence[int]
    whole: bool = False


class _Shared(NamedTuple):
    """What all blocks have in common."""

    world: World
    temperature: np.ndarray
    """float32[]."""
    chunk: np.ndarray
    """Which chunk of steps. int32[]."""


class _Block(NamedTuple):
    """A block of worlds and who lives there; with a leading axis [blocks] outside of a program."""

    policy: Any
    """Which of the policies to evaluate; 0 for the network's, if there are any. int32[]."""
    key: chex.PRNGKey
    mode: Any
    """Mode; None where all are scripts, like the parameters."""
    params: Any
    lives: Any
    """Lives; None before the worlds are made."""


@dataclass(frozen=True)
class Evaluator:
    """An evaluation that lacks nothing but the parameters of its candidates.

    Attributes:
      world: the rules to live under.
      step: `(shared, blocks) -> (lives, tally)`, a chunk of steps, compiled.
      blocks: of all candidates, parameters left out.
      source: each block's place among the trained runs. int[blocks].
      places: of all blocks, row by row. int[blocks].
      blocks_per_run: of a trained run.
      block_worlds: in a block.
      chunk: steps that `step` takes.
      steps_per_world: of all chunks together.
    """

    world: World
    step: Callable[[_Shared, _Block], tuple[Lives, Tally]]
    blocks: _Block
    source: np.ndarray
    places: np.ndarray
    blocks_per_run: int
    block_worlds: int
    chunk: int
    steps_per_world: int

    @property
    def total_steps(self) -> int:
        """Of all worlds together."""
        return len(self.source) * self.block_worlds * self.steps_per_world


def make_evaluator(
    network: ActorCritic,
    world: World,
    candidates: Mapping[str, Candidate],
    *,
    num_worlds: int,
    steps_per_world: int,
) -> Evaluator:
    """All of an evaluation that can be done before, or while, its policies are trained.

    The worlds are made and the program is compiled. Runs of equal seed begin in equal worlds,
    whatever their mode.

    Args:
      network: of the trained policies.
      world: the rules to live under; everyone is mortal.
      candidates: by name; of their parameters only shapes are read.
      num_worlds: of each run; blocks of up to 256 evenly, so rounded up to whole blocks. A script
        is followed in the first quarter of the blocks, one at least, unless it is to be in all.
      steps_per_world: of each.
    """
    blocks_per_run = -(-num_worlds // _BLOCK)
    size = -(-num_worlds // blocks_per_run)
    chunk = _divisor(steps_per_world, at_most=600)
    scripts = list(dict.fromkeys(candidate.script for candidate in candidates.values()))

    def reset(world: World, block: _Block) -> Lives:
        return survival.reset(world, size, jax.random.split(block.key)[0])

    def live(shared: _Shared, block: _Block) -> tuple[Lives, Tally]:
        def policy_of(script: Policy | None) -> Policy:
            if script is not None:
                return script
            trained = network_policy(network, block.params, block.mode)
            return at_temperature(trained, shared.temperature)

        policies = [policy_of(script) for script in scripts]

        def policy(view: jax.Array, noise_word: jax.Array) -> Output:
            return jax.lax.switch(block.policy, policies, view, noise_word)

        key = jax.random.fold_in(jax.random.split(block.key)[1], shared.chunk)
        return survival.rollout(shared.world, policy, block.lives, key, chunk, steps_per_world)

    host_blocks, source, places = _blocks(candidates, scripts, blocks_per_run)
    step, blocks = over_runs(live), shard(host_blocks)
    blocks = blocks._replace(lives=over_runs(reset, brief=True)(world, blocks))
    evaluator = Evaluator(
        world, step, blocks, source, places, blocks_per_run, size, chunk, steps_per_world
    )
    step.lower(_shared(world, 1.0, 0), _with_params(evaluator, candidates)).compile()
    return evaluator


def evaluate(
    evaluator: Evaluator,
    candidates: Mapping[str, Candidate],
    *,
    temperature: float = 1.0,
    report: Report = lambda steps: None,
) -> dict[str, list[LifeTable]]:
    """Follow every run of every candidate for all its steps; a life table a run.

    Args:
      evaluator: made for these candidates.
      candidates: by name.
      temperature: divides the logits of trained policies; 0 takes the likeliest action.
      report: progress.
    """
    num_blocks = len(evaluator.source)
    blocks = _with_params(evaluator, candidates)
    total: Tally | None = None
    for chunk in range(evaluator.steps_per_world // evaluator.chunk):
        lives, counted = evaluator.step(_shared(evaluator.world, temperature, chunk), blocks)
        blocks = blocks._replace(lives=lives)
        total = survival.add(total, fetch(counted, num_blocks))
        report(evaluator.chunk * evaluator.block_worlds * num_blocks)

    lives = fetch(blocks.lives, num_blocks)

    def life_table(i: int) -> LifeTable:
        tally, left = jax.tree.map(lambda x: x[i], (total, lives))
        return survival.finish(tally, left, evaluator.steps_per_world)

    finished = map(life_table, evaluator.places)
    return {
        name: [
            survival.pool([next(finished) for _ in range(own)])
            for own in [_blocks_of(candidate, evaluator.blocks_per_run)] * len(candidate.seeds)
        ]
        for name, candidate in candidates.items()
    }


def memory_needed(world: World, num_runs: int, num_worlds: int, steps_per_world: int) -> int:
    """Bytes that an evaluation takes, worked out from shapes: worlds and tallies of all runs.

    Args:
      world: the rules to live under.
      num_runs: of all candidates together.
      num_worlds: of each.
      steps_per_world: of each; deaths are counted by age.
    """
    state = jax.eval_shape(physics.reset, world, jax.eval_shape(lambda: jax.random.key(0)))
    # On the device in 32 bits, twice, and on the host in 64.
    by_age = 2 * (steps_per_world + 1) * (2 * 4 + 8)
    blocks = -(-num_worlds // _BLOCK)
    return num_runs * (num_worlds * (nbytes(state) + 64) + blocks * by_age)


def _shared(world: World, temperature: float, chunk: int) -> _Shared:
    return _Shared(world, np.asarray(temperature, np.float32), np.asarray(chunk, np.int32))


def _with_params(evaluator: Evaluator, candidates: Mapping[str, Candidate]) -> _Block:
    """The blocks with their parameters; scripts carry some along that they never read."""
    trained = [candidate.params for candidate in candidates.values() if candidate.script is None]
    if not trained:
        return evaluator.blocks

    def of_blocks(*params: Any) -> np.ndarray:
        # A shape stands for parameters that are yet to be trained.
        hosts = [np.zeros(x.shape, x.dtype) if _is_shape(x) else np.asarray(x) for x in params]
        return np.concatenate(hosts)[evaluator.source]

    return evaluator.blocks._replace(params=shard(jax.tree.map(of_blocks, *trained)))


def _is_shape(leaf: Any) -> bool:
    return isinstance(leaf, jax.ShapeDtypeStruct)


def _blocks(
    candidates: Mapping[str, Candidate], scripts: list[Policy | None], blocks_per_run: int
) -> tuple[_Block, np.ndarray, np.ndarray]:
    """All that is evaluated, block by block.

    Returns:
      The blocks, on the host; each one's place among the trained runs (0 for a script); and where
      those of each candidate stand, run by run.
    """
    trained = [candidate for candidate in candidates.values() if candidate.script is None]
    runs = [(candidate, seed) for candidate in candidates.values() for seed in candidate.seeds]
    sizes = [_blocks_of(candidate, blocks_per_run) for candidate, _ in runs]
    # Dealt out, or one device would have all of the networks, and another the scripts.
    order = _dealt(sum(sizes), jax.device_count())
    of_run = np.repeat(np.arange(len(runs)), sizes)[order]
    places = iter(range(len(runs)))
    source = np.array([next(places) if row.script is None else 0 for row, _ in runs])[of_run]

    @brief
    @jax.vmap
    def block_keys(seed: jax.Array) -> jax.Array:
        keys = jax.random.split(run_keys(jax.random.key(seed)).evaluate, blocks_per_run)
        return jax.random.key_data(keys)

    # On the host they are chosen from without a program for each way of it.
    keys = np.asarray(block_keys(np.array([seed for _, seed in runs], np.uint32)))
    mode = None
    if trained:
        modes = stack([row.mode for row in trained if row.mode is not None])
        of_mode = np.repeat(np.arange(len(trained)), [len(row.seeds) for row in trained])
        mode = jax.tree.map(lambda x: np.asarray(x)[of_mode[source]], modes)
    blocks = _Block(
        policy=np.array([scripts.index(row.script) for row, _ in runs], np.int32)[of_run],
        key=jax.random.wrap_key_data(
            jax.device_put(keys[of_run, np.concatenate([np.arange(n) for n in sizes])[order]])
        ),
        mode=mode,
        params=None,
        lives=None,
    )
    return blocks, source, np.argsort(order)


def _dealt(number: int, devices: int) -> np.ndarray:
    """So many things dealt out to the devices, what goes to each of them side by side."""
    return np.concatenate([np.arange(number)[first::devices] for first in range(devices)])


def _blocks_of(candidate: Candidate, blocks_per_run: int) -> int:
    """Blocks that each run of a candidate is followed in."""
    in_all = candidate.script is None or candidate.whole
    return blocks_per_run if in_all else -(-blocks_per_run // _SCRIPT_SHARE)


def _divisor(number: int, at_most: int) -> int:
    return max(d for d in range(1, min(number, at_most) + 1) if number % d == 0)

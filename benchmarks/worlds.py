"""World steps a second: random actions, every byte of every view added to a returned checksum."""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import isolated, save, timed
from evidence.runtime.devices import at_once, over_runs, shard
from goodharts_jax import world as physics

_STEPS, _REPEATS = 256, 7
# Worlds that a core's caches hold: it steps so many at a time to the end of a roll.
_BLOCK = 1024
YARDSTICK = Path(__file__).with_name("yardstick.c")
# What a step touches at least, in cache lines of 64 bytes: 11 rows of the view at 1.16 lines each
# and their copy, four candidate cells, two written cells, the agent's numbers.
_FLOOR_BYTES = round(11 * 1.16 * 64 + 121 + 4 * 64 + 2 * 64 + 32)


def main() -> None:
    """Throughput from 64 to 65,536 worlds beside what a scalar loop in C does, and what memory
    alone would allow.
    """
    bandwidth = isolated("benchmarks.worlds:bandwidth")["gigabytes_per_second"]
    floor = 1e9 * bandwidth / _FLOOR_BYTES
    rows = []
    for num_worlds in (64, 256, 1024, 4096, 8192, 65_536):
        row = isolated("benchmarks.worlds:steps_per_second", num_worlds=num_worlds)
        row["share_of_memory_floor"] = row["steps_per_second"] / floor
        told = f"  {num_worlds:>5} worlds: {row['steps_per_second']:>12,.0f} steps/s"
        if shutil.which("cc"):
            loop = isolated("benchmarks.worlds:yardstick", num_worlds=num_worlds)
            row["loop_steps_per_second"] = loop["steps_per_second"]
            row["share_of_loop"] = row["steps_per_second"] / loop["steps_per_second"]
            told += f", {row['share_of_loop']:.0%} of a loop in C"
        rows.append(row)
        print(told)
    if not shutil.which("cc"):
        print("  no loop in C beside it: there is no compiler called cc")
    results = {
        "worlds": rows,
        "bytes_a_world": _bytes_a_world(),
        "floor": {
            "bytes_a_step": _FLOOR_BYTES,
            "gigabytes_per_second": bandwidth,
            "steps_per_second": floor,
        },
    }
    save("worlds", results, f"median of {_REPEATS} repeats of {_STEPS} steps; exact regrowth")


def _shards(num_worlds: int) -> int:
    """A part for each core, or several, of no more worlds than caches hold."""
    return max(min(jax.local_device_count(), num_worlds // 32), -(-num_worlds // at_once(_BLOCK)))


def steps_per_second(
    num_worlds: int, steps: int = _STEPS, repeats: int = _REPEATS
) -> dict[str, Any]:
    """One device a core, each with its share of the worlds, block by block."""
    shards = _shards(num_worlds)
    world, share = physics.make_world(), num_worlds // shards

    def settle(world: physics.World, key: jax.Array) -> physics.State:
        return jax.vmap(physics.reset, (None, 0))(world, jax.random.split(key, share))

    def roll(world: physics.World, run: Any) -> Any:
        def step(carry: Any, key: jax.Array) -> Any:
            states, checksum = carry
            action_key, step_key = jax.random.split(key)
            words = jax.random.bits(action_key, (share,), jnp.uint32)
            states, event = jax.vmap(physics.step, (None, 0, 0, 0))(
                world, states, (words >> 29).astype(jnp.int32), jax.random.split(step_key, share)
            )
            view = jax.vmap(physics.view, (None, 0))(world, states)
            return (states, checksum + view.astype(jnp.uint32).sum((1, 2)) + event.eaten), None

        states, checksum, key = run
        key, steps_key = jax.random.split(key)
        keys = jax.random.split(steps_key, steps)
        (states, checksum), _ = jax.lax.scan(step, (states, checksum), keys)
        return states, checksum, key

    keys = shard(jax.random.split(jax.random.key(0), shards))
    states = over_runs(settle)(world, keys)
    checksums = shard(jnp.zeros((shards, share), jnp.uint32))
    lifted = over_runs(roll, donate=(1,))
    taken = timed(lambda run: lifted(world, run), (states, checksums, keys), repeats=repeats)
    return {**taken, "steps_per_second": num_worlds * steps / taken["median_s"]}


def compiled(folder: str) -> ctypes.CDLL:
    """The scalar loop, compiled into a folder for this machine."""
    library = f"{folder}/yardstick.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(YARDSTICK), "-o", library], check=True)
    return ctypes.CDLL(library)


def yardstick(num_worlds: int) -> dict[str, Any]:
    """The same physics as a scalar loop in C, a thread a core, the worlds in the same blocks."""
    shards = _shards(num_worlds)
    cores = min(jax.local_device_count(), shards)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores) as threads:
        loop = compiled(folder)
        share, size = num_worlds // shards, loop.world_bytes()
        worlds = [ctypes.create_string_buffer(share * size) for _ in range(shards)]
        states = [ctypes.c_uint64((seed + 1) * 0x9E3779B97F4A7C15) for seed in range(shards)]
        told = [(ctypes.c_int64 * 3)() for _ in range(shards)]
        for own, state in zip(worlds, states, strict=True):
            loop.reset(own, share, ctypes.byref(state))

        def roll(own: Any, state: Any, counts: Any) -> None:
            loop.roll(own, share, _STEPS, ctypes.byref(state), counts)

        taken = timed(
            lambda _: list(threads.map(roll, worlds, states, told)), None, repeats=_REPEATS
        )
    return {**taken, "steps_per_second": num_worlds * _STEPS / taken["median_s"]}


def bandwidth() -> dict[str, Any]:
    """Memory read and written by a copy that fits no cache, in both directions added up."""
    source = np.ones(1 << 27, np.uint8)
    target = np.empty_like(source)
    taken = timed(lambda carry: np.copyto(target, source), None, repeats=9)
    return {"gigabytes_per_second": 2 * source.nbytes / statistics.median(taken["seconds"]) / 1e9}


def _bytes_a_world() -> int:
    state = jax.eval_shape(lambda: physics.reset(physics.make_world(), jax.random.key(0)))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))

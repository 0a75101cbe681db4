"""What an accelerator does, size by size until its memory ends: `make bench-gpu`.

`python -m benchmarks gpu dry` tries each part at its smallest, on a CPU too, and keeps nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks import command
from benchmarks.timing import isolated, save, timed

_WORLDS = tuple(2**n for n in range(10, 21, 2))
_RUNS = tuple(4**n for n in range(6))
_REPLICATES = (1, 10)


def main(how: str = "") -> None:
    """Every part, into `benchmarks/results/gpu/`; `how`: "dry" for the smallest sizes alone.

    Raises:
      SystemExit: there is no accelerator, and it isn't dry.
    """
    dry = how == "dry"
    device = isolated("benchmarks.gpu:device")
    if device["platform"] == "cpu" and not dry:
        raise SystemExit("no accelerator here; python -m benchmarks gpu dry tries it small")
    for name, part in _parts(dry).items():
        print(f"{name} ...", flush=True)
        results = part()
        if not dry:
            save(f"gpu/{name}", results, f"on one {device['kind']}; sizes until memory ends")


def _parts(dry: bool) -> dict[str, Callable[[], Any]]:
    few = slice(0, 1) if dry else slice(None)
    size = 1 << 12 if dry else 1 << 28
    return {
        "limits": lambda: isolated("benchmarks.gpu:limits", size=size),
        "worlds": lambda: until_memory_ends(
            "benchmarks.worlds:steps_per_second", "num_worlds", _WORLDS[few]
        ),
        "training": lambda: until_memory_ends("benchmarks.population:training", "runs", _RUNS[few]),
        "evaluation": lambda: isolated("benchmarks.evaluation:steps_per_second", trained=True),
        "claims": lambda: isolated(
            "benchmarks.oracle:integer_rates",
            triples=10_000 if dry else 10_000_000,
            claims=1 << (12 if dry else 20),
            repeats=3,
        ),
        "commands": lambda: _commands(dry),
    }


def until_memory_ends(case: str, size: str, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """A case at rising sizes, each in a process of its own; the last row may say what ended it."""
    rows: list[dict[str, Any]] = []
    for number in sizes:
        try:
            row = isolated(case, **{size: number})
        except RuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return [*rows, {size: number, "ended": "out of memory"}]
        print(f"  {number:>9,} {size}: {row['steps_per_second']:>14,.0f} steps/s", flush=True)
        rows.append(row)
    return rows


def device() -> dict[str, Any]:
    """What JAX finds first."""
    first = jax.devices()[0]
    return {"platform": first.platform, "kind": first.device_kind}


def limits(size: int) -> dict[str, Any]:
    """What memory and arithmetic allow: a copy that fits no cache, a product of float32 matrices.

    Args:
      size: of the copy, in numbers; a product's matrices have as many each at most.
    """
    side = min(8192, int(size**0.5))
    copied = timed(jax.jit(lambda x: x + 1), jnp.zeros(size, jnp.float32))
    multiplied = timed(jax.jit(lambda x: x @ x), jnp.eye(side, dtype=jnp.float32))
    return {
        "gigabytes_per_second": 2 * 4 * size / copied["median_s"] / 1e9,
        "gigaflops": 2 * side**3 / multiplied["median_s"] / 1e9,
    }


def _commands(dry: bool) -> list[dict[str, Any]]:
    """What a user waits for: a proxy, twenty runs of each mode, the phase diagram, base states."""
    if dry:
        return []
    rows = command.both("goodhart mode=proxy seed=42")
    for wanted in (
        "experiments.goodhart mode=all runs=20",
        "experiments.goodhart study=phase_diagram",
        *(
            f"experiments.kubku stage=base learner=mlp budget.generator_seeds={number}"
            for number in _REPLICATES
        ),
    ):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(command.once(wanted, folder, "cold"))
    return rows

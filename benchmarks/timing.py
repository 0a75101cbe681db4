"""How everything here is timed: compilation apart, median of repeats, peak memory of a process."""

from __future__ import annotations

import importlib
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from evidence.results import Manifest
from evidence.runtime import devices, files
from evidence.runtime.config import typed

RESULTS = Path(__file__).parent / "results"
ROUNDS = 3


def timed(
    function: Callable[..., Any], carry: Any, *, repeats: int = 5, once: float = math.inf
) -> dict[str, Any]:
    """Time `carry = function(carry)` after one call that compiles it.

    Args:
      once: a first call of so many seconds or more is not repeated; it counts with its compilation.

    Returns:
      compile_s: the first call, less a median one; seconds: of each further call; median_s.
    """
    started = time.perf_counter()
    carry = jax.block_until_ready(function(carry))
    first = time.perf_counter() - started
    if first >= once:
        return {"compile_s": None, "seconds": [first], "median_s": first}
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        carry = jax.block_until_ready(function(carry))
        seconds.append(time.perf_counter() - started)
    median = statistics.median(seconds)
    return {"compile_s": first - median, "seconds": seconds, "median_s": median}


def in_turn(*functions: Callable[[], Any], repeats: int = 9) -> list[list[float]]:
    """Seconds that each function takes, called in turn: what else the machine does, and how fast it
    is at the moment, weighs on all alike. Compiled beforehand.
    """
    seconds: list[list[float]] = [[] for _ in functions]
    for function in functions:
        jax.block_until_ready(function())
    for _ in range(repeats):
        for function, taken in zip(functions, seconds, strict=True):
            started = time.perf_counter()
            jax.block_until_ready(function())
            taken.append(time.perf_counter() - started)
    return seconds


def isolated(case: str, **arguments: Any) -> dict[str, Any]:
    """Run `module:function` in a process of its own; adds its peak memory to what it returns."""
    command = [sys.executable, "-m", "benchmarks.timing", case, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case} {arguments}:\n{done.stderr[-3000:]}")
    return {**arguments, **json.loads(done.stdout.splitlines()[-1])}


def in_rounds(cases: Sequence[str]) -> list[dict[str, Any]]:
    """Cases with a rate, in turn and several times, since how fast a machine is changes by the
    minute: the seconds of all rounds, and the rate at their median.
    """
    rounds = [[isolated(case) for case in cases] for _ in range(ROUNDS)]

    def pooled(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        seconds = [second for row in rows for second in row["seconds"]]
        median = statistics.median(seconds)
        rate = rows[0]["steps_per_second"] * rows[0]["median_s"] / median
        return rows[0] | {"seconds": seconds, "median_s": median, "steps_per_second": rate}

    return [pooled(rows) for rows in zip(*rounds, strict=True)]


def peak_mb() -> float:
    """The most memory that this process has had; what its parent had doesn't count, where the
    system tells them apart."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(text for text in status.read_text().splitlines() if text.startswith("VmHWM"))
        return round(int(line.split()[1]) / 1024, 1)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def save(name: str, results: Any, note: str) -> None:
    """Write results beside the machine they were taken on."""
    record = {
        "command": typed.get() or f"python -m benchmarks {name}",
        "note": note,
        "manifest": Manifest.now({}, []),
    }
    path = files.write_json(RESULTS / f"{name}.json", {**record, "results": results})
    print(f"{path.name} written")


def _main() -> None:
    case, arguments = sys.argv[1], json.loads(sys.argv[2])
    module, function = case.split(":")
    devices.configure(compilation_cache=False)
    result = getattr(importlib.import_module(module), function)(**arguments)
    print(json.dumps({**files.plain(result), "peak_mb": peak_mb()}))


if __name__ == "__main__":
    _main()

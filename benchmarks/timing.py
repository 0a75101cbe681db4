"""How everything here is timed: compilation apart, median of repeats, peak memory of a process."""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from evidence.results import Manifest, commit
from evidence.runtime import devices, files

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def timed(function: Callable[..., Any], carry: Any, *, repeats: int = 5) -> dict[str, Any]:
    """Time `carry = function(carry)` after one call that compiles it.

    Returns:
      compile_s: the first call, less a median one; seconds: of each further call; median_s.
    """
    started = time.perf_counter()
    carry = jax.block_until_ready(function(carry))
    first = time.perf_counter() - started
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
        "command": f"python -m benchmarks {name}",
        "note": note,
        "manifest": Manifest.now({}, []),
    }
    path = files.write_json(RESULTS / f"{name}.json", {**record, "results": results})
    print(f"{path.name} written")


def studied(wing: str, typed: Sequence[str], folder: Path) -> float:
    """Run `python -m experiments.WING` into a folder, unless the same has ended there before.
    Nothing is kept yet: among the results it would make the checkout one with changes for what
    comes after. It runs where the folder lies, so that paths in settings, which are kept, can be
    relative.

    Returns:
      Seconds that the command took.
    """
    ended = folder.with_suffix(".json")
    found = files.read_plain(ended) if ended.exists() else {}
    if found.get("typed") != [*typed]:
        shutil.rmtree(folder, ignore_errors=True)
        own = [*typed, f"hydra.run.dir={folder.name}"]
        command = [sys.executable, "-m", f"experiments.{wing}", *own]
        started = time.perf_counter()
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, cwd=folder.parent, env=environment)
        found = {"typed": [*typed], "seconds": time.perf_counter() - started}
        files.write_json(ended, found)
    return float(found["seconds"])


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """Where a benchmark of several studies gathers their results: at a clean commit always the same
    place, so that it goes on there; else one that is gone afterwards.
    """
    made_by = commit()
    if made_by is None or made_by.endswith("+"):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        kept = ROOT / ".cache" / name / made_by
        kept.mkdir(parents=True, exist_ok=True)
        yield kept


def keep(folder: Path, name: str) -> None:
    """A study's results file among the kept ones."""
    (RESULTS / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "results.json", RESULTS / name)


def _main() -> None:
    case, arguments = sys.argv[1], json.loads(sys.argv[2])
    module, function = case.split(":")
    devices.configure(compilation_cache=False)
    result = getattr(importlib.import_module(module), function)(**arguments)
    print(json.dumps({**files.plain(result), "peak_mb": peak_mb()}))


if __name__ == "__main__":
    _main()

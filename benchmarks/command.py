"""What a user waits for: whole commands from a cold start, and with compiled programs on disk.

Each command ends with the line of `timings=true`, which says where its seconds went.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.timing import save

COMMANDS = {
    "goodhart mode=proxy seed=42": "experiments.goodhart mode=proxy seed=42",
    "goodhart": "experiments.goodhart",
    "epistemic": "experiments.epistemic llm=recorded",
    "kubku budget=smoke": "experiments.kubku budget=smoke",
}
"""What is typed after `python -m` (`make goodhart` and `make epistemic` are two of them)."""


def main() -> None:
    """Every command with an empty and a filled compilation cache."""
    rows = [row for name in COMMANDS for row in both(name)]
    note = "whole processes, cold: nothing compiled; warm: compiled programs on disk"
    save("command", rows, note)


def both(name: str) -> list[dict[str, Any]]:
    """A command cold, then warm."""
    with tempfile.TemporaryDirectory() as folder:
        return [once(COMMANDS[name], folder, cache) for cache in ("cold", "warm")]


def once(typed: str, folder: str, cache: str) -> dict[str, Any]:
    """What is typed after `python -m`, run once with all that it leaves in a folder."""
    own = f"timings=true compilation_cache={folder}/cache hydra.run.dir={folder}/{cache}"
    if "kubku" in typed:
        own += f" cache={folder}/bases_{cache}"
    command = [sys.executable, "-m", *typed.split(), *own.split()]
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    name = typed.removeprefix("experiments.")
    print(f"  {name}, {cache}: {seconds:.1f} s", flush=True)
    return {"command": name, "cache": cache, "seconds": seconds, **split(done.stdout)}


def split(printed: str) -> dict[str, Any]:
    """The parts that the last line of a run names, in seconds, those of threads side by side added
    up, and what JAX did meanwhile.
    """
    line = next(line for line in reversed(printed.splitlines()) if line.startswith("Seconds: "))
    by_clock, _, of_jax = line.partition("Of these")
    by_clock, _, beside = by_clock.partition("In threads side by side:")

    def numbers(text: str) -> dict[str, float]:
        found = re.findall(r"([a-z][a-z ]*) (\d+\.\d)", text)
        return {name: float(taken) for name, taken in found}

    programs = re.search(r"programs: (\d+), loaded: (\d+)", of_jax)
    assert programs is not None, line
    return {
        "parts": numbers(by_clock),
        **({"beside": numbers(beside)} if beside else {}),
        "jax": numbers(of_jax),
        "programs": int(programs[1]),
        "loaded": int(programs[2]),
    }

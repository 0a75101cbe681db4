"""The whole command from a cold start, and again with compiled programs on disk."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.timing import save


def main() -> None:
    """`mode=proxy seed=42` with an empty and a filled compilation cache."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [_run(folder, cache) for cache in ("cold", "warm")]
    save("command", rows, "python -m experiments.goodhart mode=proxy seed=42, budget=standard")


def _run(folder: str, cache: str) -> dict[str, Any]:
    command = (
        f"-m experiments.goodhart mode=proxy seed=42 compilation_cache={folder}/cache "
        f"hydra.run.dir={folder}/{cache}"
    )
    started = time.perf_counter()
    subprocess.run([sys.executable, *command.split()], check=True, capture_output=True)
    seconds = time.perf_counter() - started
    print(f"  {cache} cache: {seconds:.1f} s", flush=True)
    return {"cache": cache, "seconds": seconds}

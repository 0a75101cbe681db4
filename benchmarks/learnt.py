"""The four studies of learnt proxies, one after another, as kept and as timed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.timing import RESULTS, save

STUDIES = {
    "learnt_proxy": "study=learnt_proxy",
    "forecast": "study=forecast seed=1042",  # not those that its claim was chosen on
    "remedies": "study=remedies",
    "remedies_cells": "study=remedies_cells",
}
"""Kept result folder, and what is typed after `python -m experiments.goodhart`."""


def main(*settings: str) -> None:
    """All of them; each result file is kept when its study ends, the times when all have.

    Args:
      settings: given to each, such as `budget=smoke`; nothing is kept with any.
    """
    with tempfile.TemporaryDirectory() as scratch:
        rows = [_once(name, Path(scratch), settings) for name in STUDIES]
    total = sum(row["seconds"] for row in rows)
    print(f"  all: {total:,.0f} s")
    if not settings:
        note = "whole commands, nothing compiled before the first"
        save("learnt", {"studies": rows, "total_seconds": total}, note)


def _once(name: str, scratch: Path, settings: tuple[str, ...]) -> dict[str, Any]:
    typed = [*STUDIES[name].split(), *settings]
    own = [f"compilation_cache={scratch}/cache", f"hydra.run.dir={scratch}/{name}"]
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "experiments.goodhart", *typed, *own], check=True)
    seconds = time.perf_counter() - started
    print(f"  {name}: {seconds:,.0f} s", flush=True)
    if not settings:
        (RESULTS / name).mkdir(exist_ok=True)
        shutil.copy(scratch / name / "results.json", RESULTS / name)
    return {"study": name, "command": " ".join(["goodhart", *typed]), "seconds": seconds}

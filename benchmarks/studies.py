"""How a benchmark of several studies runs, gathers and keeps them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.timing import RESULTS
from evidence.results import commit

ROOT = Path(__file__).resolve().parents[1]


def studied(wing: str, typed: Sequence[str], folder: Path) -> float:
    """Run `python -m experiments.WING` into a folder, unless the same has ended there before.
    Nothing is kept yet: among the results it would make the checkout one with changes for what
    comes after. It runs where the folder lies, so that paths in settings, which are kept, can be
    relative.

    Returns:
      Seconds that the command took.
    """
    ended = folder.with_suffix(".json")
    found = json.loads(ended.read_text()) if ended.exists() else {}
    if found.get("typed") != [*typed]:
        shutil.rmtree(folder, ignore_errors=True)
        own = [*typed, f"hydra.run.dir={folder.name}"]
        command = [sys.executable, "-m", f"experiments.{wing}", *own]
        started = time.perf_counter()
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, cwd=folder.parent, env=environment)
        found = {"typed": [*typed], "seconds": time.perf_counter() - started}
        ended.write_text(json.dumps(found))
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

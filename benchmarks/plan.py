"""What a run, a sample and a claim take, to plan other machines by.

`python -m benchmarks plan` gathers what was measured, and where, from the files that hold it, and
measures the memory of a small run of kubku, which none of them has. Writes
benchmarks/results/plan.json, a row a piece of work, each with its source. docs/how-to/plan.md is
filled from it.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from benchmarks.timing import RESULTS, save

_NOTE = (
    "Gathered from the files that each row names; eight devices are a division, not a measurement."
)
_LEARNER, _FAMILY, _BASE = "mlp", "stories", "meta"


def main() -> None:
    """Gather all rows."""
    save("plan", {"pieces": [*_pieces()], "studies": [*_studies()]}, _NOTE)


def _pieces() -> Iterator[dict[str, Any]]:
    """Each with the seconds that one device takes, and the memory of its process, if measured."""
    ours = _kept("training.json")["results"]
    run, steps = ours["contestants"]["ours"], ours["steps"]
    yield _piece(
        f"Goodhart: a run of {steps:,} training steps",
        steps / run["steps_per_second"],
        run["peak_mb"],
        "training.json",
    )
    judged = _kept("evaluation.json")["results"][0]
    yield _piece(
        "Goodhart: a million steps of evaluation",
        1e6 / judged["steps_per_second"],
        judged["peak_mb"],
        "evaluation.json",
    )
    for row in _kept("engines.json")["results"][2:3]:
        oracle = row["engines"]["oracle"]
        yield _piece(
            f"epistemic: a claim in words, beside {row['triples']:,} triples",
            1 / oracle["claims_per_cpu_second"],
            oracle["added_mb"],
            "engines.json",
        )
    most = _kept("oracle.json")["growth"][-1]
    yield _piece(
        f"epistemic: a claim as integers, beside {most['triples']:,} triples",
        1 / most["verdict_claims_per_second"],
        most["index_bytes_per_triple"] * most["triples"] / 2**20,
        "oracle.json",
    )
    words = _kept("wordnet.json")["results"]
    yield _piece(
        f"epistemic: a card of {words['cards']:,} about WordNet, its files read",
        words["total_cpu_s"] / words["cards"],
        words["peak_mb"],
        "wordnet.json",
    )
    for folder, device in (("kubku", "CPU core"), ("kubku_ten", "GPU")):
        file = f"{folder}/results.json"
        results = _kept(file)
        memory = _kubku_mb() if device == "CPU core" else None
        found = results["families"][_FAMILY]["learners"][_LEARNER]["base_states"][_BASE]
        made = [one["seconds_base"] for one in found["tuned"]]
        asked = [one["seconds"] for one in found["tuned"]]
        for what, seconds in (
            ("a sample learnt, and its halo asked", 1 / found["samples_per_second"]),
            (f"a base state of {results['manifest']['configuration']['budget']['pretrain']:,} "
             "samples", statistics.median(made)),
            (f"a cell of {results['manifest']['configuration']['budget']['test']:,} samples",
             statistics.median(asked)),
        ):  # fmt: skip
            name = f"kubku: {what} ({_LEARNER}, {_FAMILY})"
            yield _piece(name, seconds, memory, file, device=device)


def _piece(
    name: str, seconds: float, memory_mb: float | None, file: str, *, device: str = "CPU core"
) -> dict[str, Any]:
    return {
        "piece": name,
        "device": device,
        "device_seconds": seconds,
        "memory_mb": memory_mb,
        **_source(file),
    }


def _kubku_mb() -> float:
    """The most memory that a small run takes: of the same learner, on fewer samples."""
    with tempfile.TemporaryDirectory() as folder:
        command = (
            f"-m experiments.kubku budget=smoke task={_FAMILY} learner.names=[{_LEARNER}] "
            f"worlds=[skewed] cache={folder}/bases hydra.run.dir={folder}/run"
        )
        subprocess.run([sys.executable, *command.split()], check=True, capture_output=True)
    return round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1)


def _studies() -> Iterator[dict[str, Any]]:
    """Each with the hours of devices that it took; its parts know nothing of each other."""
    for folder, pieces in (
        ("goodhart", "runs"),
        ("phase_diagram", "runs"),
        ("learnt_proxy", "runs"),
        ("remedies", "runs"),
        ("kubku", "cells"),
        ("kubku_ten", "cells"),
    ):
        file = f"{folder}/results.json"
        manifest = _kept(file)["manifest"]
        wall = manifest["wall_seconds"]
        seconds = wall["total"] if isinstance(wall, dict) else wall
        elsewhere = [made for made in manifest.get("cells_made_on") or () if made != "cpu"]
        devices = 1 if elsewhere else manifest["device"]["count"]
        yield {
            "study": folder,
            "of": pieces,
            "device": "GPU" if elsewhere else "CPU core",
            "devices": devices,
            "wall_seconds": seconds,
            "device_hours": seconds * devices / 3600,
            "eight_devices_seconds": seconds * devices / 8,
            **_source(file),
        }


def _source(file: str) -> dict[str, str]:
    """Where a measurement is kept, of which commit, and on what it was made."""
    manifest = _kept(file)["manifest"]
    made = [one for one in manifest.get("cells_made_on") or () if one != "cpu"]
    return {
        "file": file,
        "commit": manifest["commit"][:8],
        "on": made[0] if made else manifest["device"]["cpu"],
    }


def _kept(file: str) -> dict[str, Any]:
    return json.loads((RESULTS / file).read_text("utf-8"))


if __name__ == "__main__":
    main()

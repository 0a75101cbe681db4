"""A cell: one learner on one family from one base state, and the file that it is kept in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Cell(NamedTuple):
    """What one file holds the results of.

    A replicate has its own base-state seed, and shares its generator seed with others
    (`Experiment.seeds`).
    """

    family: str
    learner: str
    base: str
    world: str
    replicate: int

    @property
    def path(self) -> str:
        """Where, below the run's folder."""
        name = f"{self.learner}.{self.base}.{self.world}.{self.replicate}.npz"
        return f"cells/{self.family}/{name}"


def save(path: Path, note: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Write a cell whole or not at all: arrays by name, and a note of plain data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part")
    with open(temporary, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, note=json.dumps(note), **found)
    temporary.replace(path)


def load(path: Path) -> dict[str, Any]:
    """A cell's arrays, and its `note`."""
    with np.load(path) as file:
        found = {name: file[name] for name in file.files if name != "note"}
        return {**found, "note": json.loads(str(file["note"]))}

"""A cell: one learner on one family from one base state, and the file that it is kept in."""

from __future__ import annotations

import json
import logging
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from evidence.answers import Answer
from evidence.runtime.files import write_by
from kubku.halo import Learner
from kubku.parts import Tuned
from kubku.settings import Experiment
from kubku.tasks import Family

_log = logging.getLogger(__name__)

NO_BASE = "none"
"""Base state and world of what has neither: a language model."""


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


@dataclass(frozen=True)
class Found:
    """What was found in a cell.

    N samples were asked about, Q queries each; P pairs, T samples in each of S streams.

    Attributes:
      arrays: by name. Of the first world alone: `answers` and `before_answers`, i8[N, Q], an Answer
        after and before learning; `answers.B`, what is answered at a BKU of at most B on the
        validation split, of which `answers` is one; `answers.forced`, with a threshold of 0;
        `frontier.ku` and `frontier.bku`, f64[T], at each threshold; of a language model, which
        gives no scores, `answers` alone. `after.X` and
        `before.X`, f32[N], the field X of `Scores`; `audit`, `carried`, `split_read` and
        `seconds_exposed`, f64[]. Of the first replicate: `steps.ku` and `steps.bku`,
        f32[len(STEPS), N]. Where there are pairs: `flips`, f64[P], `signed`, f64[those that have a
        trap], `moved`, i32[P]. Along streams:
        `stream.before.X`, `stream.after.X`, f32[S, T], and `stream.lagL.X`, f32[S, T - L], for X
        `ku` and `bku` and each lag L.
      note: how it was tuned and how long it took.
    """

    arrays: Mapping[str, np.ndarray]
    note: Tuned

    def __getitem__(self, name: str) -> np.ndarray:
        return self.arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self.arrays


def planned(
    settings: Experiment,
    families: Mapping[str, Family],
    learners: Mapping[tuple[str, str], Learner],
) -> Iterator[Cell]:
    """All cells that the settings allow, one replicate after the other, whatever base states were
    chosen.

    Args:
      settings: of the study.
      families: by name.
      learners: by name and family; those that can't handle a family are missing there.
    """
    first, *others = settings.worlds
    for replicate in range(settings.budget.replicates):
        for name, family in families.items():
            for learner in settings.learner.names:
                if (learner, name) not in learners:
                    continue
                for base, make in learners[learner, name].bases.items():
                    if make is not None and not family.trains:
                        continue  # there is nothing to make it from
                    yield Cell(name, learner, base, first, replicate)
                    # A base state that nothing was learnt for is the same in every world, and
                    # samples that aren't drawn are of one world.
                    drawn = make is not None and family.has_rules
                    for world in others if drawn and replicate == 0 else ():
                        yield Cell(name, learner, base, world, replicate)


def save(path: Path, found: Found) -> None:
    """Write a cell whole or not at all."""
    leaves: dict[str, Any] = {**found.arrays, "note": found.note.model_dump_json()}
    write_by(path, partial(np.savez_compressed, allow_pickle=False, **leaves))


def is_kept(path: Path) -> bool:
    """Whether a cell is there and whole; one that can't be read is made again."""
    if not path.exists():
        return False
    try:
        load(path)
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        _log.warning("%s can't be read (%s) and is made again", path, error)
        return False
    return True


def failures(found: Found) -> int:
    """Calls of a language model that got no reply."""
    names = [name for name in ("answers", "before_answers") if name in found]
    return sum(int((found[name] == Answer.ERROR).sum()) for name in names)


def load(path: Path) -> Found:
    """A cell as it was saved."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "note"}
        return Found(arrays, Tuned.model_validate(json.loads(str(file["note"]))))

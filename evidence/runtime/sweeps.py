"""The jobs of a multirun: which are done, which failed, and which never began."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from evidence.runtime.files import read_plain


class Jobs(NamedTuple):
    """The jobs of a multirun, by what their folders hold.

    Attributes:
      done: folder of each with results, by its path below the multirun's.
      failed: those that began and left no results.
      missing: settings of those that the multirun names and that left no folder.
      again: for each of both, the settings that it is run again by, its folder among them.
    """

    done: dict[str, Path]
    failed: list[str]
    missing: list[str]
    again: list[list[str]]


def jobs(folder: Path) -> Jobs:
    """The jobs below a multirun's folder.

    Args:
      folder: with Hydra's `multirun.yaml`, or any folder of output folders: without that file
        nothing is known to be missing.
    """
    done = {path.parent for path in folder.glob("*/**/results.json")}
    begun = {path.parents[1] for path in folder.glob("*/**/.hydra/overrides.yaml")}
    given = {job: _listed(job / ".hydra" / "overrides.yaml") for job in begun}
    there = {frozenset(each) for each in given.values()}
    missing = [each for each in _expected(folder / "multirun.yaml") if frozenset(each) not in there]

    def name(job: Path) -> str:
        return str(job.relative_to(folder))

    failed = sorted(begun - done)
    return Jobs(
        {name(job): job for job in sorted(done)},
        [name(job) for job in failed],
        sorted(" ".join(each) for each in missing),
        [
            *(_again(given[job], job) for job in failed),
            *(_again(each, folder / ",".join(each)) for each in sorted(missing)),
        ],
    )


def _again(given: list[str], job: Path) -> list[str]:
    """What runs a job alone, into its folder below the multirun's."""
    # Quoted, for a folder's name has commas and signs of equality.
    return [*given, f"hydra.run.dir='{job}'"]


def _listed(file: Path) -> list[str]:
    try:
        found = yaml.safe_load(file.read_bytes().decode()) or []
    except (ValueError, yaml.YAMLError) as error:
        raise ValueError(f"{file}: garbled ({str(error).splitlines()[0]})") from None
    return [str(entry) for entry in found]


def _expected(file: Path) -> list[list[str]]:
    """The settings of every job that a multirun was to run."""
    if not file.exists():
        return []
    try:
        given = read_plain(file)["hydra"]["overrides"]["task"]
    except (KeyError, TypeError):
        raise ValueError(f"{file}: garbled (it names no jobs)") from None
    return split(given)


def split(given: Sequence[str]) -> list[list[str]]:
    """The settings of every job of a multirun that gives these: one for each choice of each."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parsed = OverridesParser.create().parse_overrides(list(given))
    batches = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    return [list(job) for batch in batches for job in batch]

"""Folders of earlier runs: whether what lies there was made with the settings at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from evidence.runtime.files import read_plain
from goodharts_jax.settings import Experiment, read


def checkpoints_of(settings: Experiment, folder: Path) -> Path:
    """Where a run kept its policies, which must be those that the settings describe.

    Raises:
      ValueError: it kept none, or others.
    """
    config, checkpoints = folder / "config.yaml", folder / "checkpoints"
    for path in (config, checkpoints):
        if not path.exists():
            raise ValueError(f"checkpoint={folder}: there is no {path}")
    if not any(checkpoints.iterdir()):
        raise ValueError(f"checkpoint={folder}: {checkpoints} is empty: nothing was kept yet")
    if differs := _unlike(settings, config, _OF_POLICIES):
        raise ValueError(
            f"{differs}: not those that the policies in checkpoint={folder} were trained with; "
            f"repeat the settings in {config}"
        )
    if settings.study.kind == "phase_diagram" and watched_elsewhere(settings):
        raise ValueError(
            "evaluation.world: the cells of a phase diagram are watched while they train, and those"
            f" in checkpoint={folder} were in another world; repeat that one, or train anew"
        )
    return checkpoints


def require_own(settings: Experiment, folder: Path) -> None:
    """Refuse a folder where other settings have begun a training, which would go on as theirs.

    Raises:
      ValueError: there is one.
    """
    config = folder / "config.yaml"
    if not config.exists() or not (folder / "checkpoints").exists():
        return
    own = (*_OF_POLICIES, "budget", "remedies", "evaluation_world")
    if differs := _unlike(settings, config, own):
        raise ValueError(
            f"{differs}: not those of the run that was begun in {folder}; give another folder, or "
            f"resume={folder} to go on with its own"
        )


def kept_settings(config: Path) -> dict[str, Any]:
    """The settings that a run keeps, as plain data, those of before by their names of today.

    Raises:
      ValueError: they can't be read; names the file.
    """
    try:
        kept = read_plain(config)
    except ValueError as error:
        raise ValueError(f"{error}; begin anew in another folder") from None
    if "logger" in kept:
        kept.setdefault("tracker", kept.pop("logger") or "none")
    return kept


def watched_elsewhere(settings: Experiment) -> bool:
    """Whether policies that are only judged were watched in another world while they trained."""
    if settings.train or settings.checkpoint is None:
        return False
    config = Path(settings.checkpoint) / "config.yaml"
    return _unlike(settings, config, ("evaluation_world",)) is not None


# What decides which policies a training ends in.
_OF_POLICIES = ("modes", "world", "network", "ppo", "study", "seeds", "num_updates")


def _unlike(settings: Experiment, config: Path, names: Sequence[str]) -> str | None:
    """The first of some settings that is not as a run has kept it."""
    kept = read(kept_settings(config))

    def text(one: Experiment, name: str) -> str:
        # Its order counts: runs lie in it.
        return to_json(getattr(one, name)).decode()

    return next((name for name in names if text(settings, name) != text(kept, name)), None)

"""Folders of earlier runs: whether what lies there was made with the settings at hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic_core import to_json

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
    return checkpoints


def require_own(settings: Experiment, folder: Path) -> None:
    """Refuse a folder where other settings have begun a training, which would go on as theirs.

    Raises:
      ValueError: there is one.
    """
    config = folder / "config.yaml"
    if not config.exists() or not (folder / "checkpoints").exists():
        return
    if differs := _unlike(settings, config, (*_OF_POLICIES, "budget", "remedies")):
        raise ValueError(
            f"{differs}: not those of the run that was begun in {folder}; give another folder, or "
            f"resume={folder} to go on with its own"
        )


# What decides which policies a training ends in.
_OF_POLICIES = ("modes", "world", "network", "ppo", "study", "seeds", "num_updates")


def _unlike(settings: Experiment, config: Path, names: Sequence[str]) -> str | None:
    """The first of some settings that is not as a run has kept it."""
    kept = read(yaml.safe_load(config.read_text("utf-8")))

    def text(one: Experiment, name: str) -> str:
        # Its order counts: runs lie in it.
        return to_json(getattr(one, name)).decode()

    return next((name for name in names if text(settings, name) != text(kept, name)), None)

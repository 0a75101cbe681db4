"""Modes and worlds by the names that they have on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from goodharts_jax.modes import Mode
from goodharts_jax.world import World

if TYPE_CHECKING:
    from goodharts_jax.settings import Experiment


def experiment(*overrides: str) -> Experiment:
    """The settings of a command, validated as `python -m experiments.goodhart` validates them.

    Args:
      *overrides: as on its command line, such as "mode=proxy" or "world.size=64".

    Raises:
      ValueError: a line for each setting that is wrong, or for a name that isn't there.
    """
    # Not before they are asked for: they take a third of a second.
    from hydra import compose, initialize_config_dir
    from hydra.errors import HydraException
    from omegaconf import OmegaConf

    from evidence.runtime.config import settings_folder
    from goodharts_jax.settings import read

    folder = settings_folder() / "goodhart"
    with initialize_config_dir(str(folder), version_base="1.3"):
        try:
            plain = OmegaConf.to_container(compose("config", list(overrides)), resolve=True)
            assert isinstance(plain, dict)
            if (world := plain["evaluation"]["world"]) is not None:
                other = compose("config", [f"world={world}"]).world
                plain["evaluation_world"] = OmegaConf.to_container(other, resolve=True)
        except HydraException as error:
            raise ValueError(_explained(str(error), overrides)) from None
    return read(plain)


def mode(name: str, *overrides: str) -> Mode:
    """A mode by its name, such as "proxy".

    Args:
      name: of a file in `conf/goodhart/mode`.
      *overrides: further settings that it depends on, such as "interestingness.poison=0.2" or the
        "world=reference" whose move cost the truth is charged.

    Raises:
      ValueError: there is no such mode or setting, or a value that isn't allowed.
    """
    rows = experiment(f"mode={name}", *overrides).rows()
    if name not in rows:
        raise ValueError(f"mode={name} is several modes, {', '.join(rows)}: name one of them")
    return rows[name]


def world(name: str, *overrides: str) -> World:
    """A world's rules by their name, such as "protocol": a file in `conf/goodhart/world`.

    Raises:
      ValueError: there is no such world or setting, or a value that isn't allowed.
    """
    return experiment(f"world={name}", *overrides).world.build()


def _explained(message: str, overrides: tuple[str, ...]) -> str:
    """One line, with the nearest name to one that isn't there."""
    from evidence.runtime.config import did_you_mean, settings_folder

    folder = settings_folder() / "goodhart"
    for override in overrides:
        group, _, name = override.partition("=")
        known = sorted(path.stem for path in (folder / group).glob("*.yaml"))
        if known and name not in known and "[" not in name:
            return f"{override}: there are {', '.join(known)}{did_you_mean(name, known)}"
    return f"{' '.join(overrides)}: {message.splitlines()[0]}"

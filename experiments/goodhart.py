"""Train agents on the truth and on a proxy, and see how long they live."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from evidence.runtime import command

from .shown import show, tracked

_AT_RESUME = {"resume", "compilation_cache", "timings"}
"""Settings that may stand beside `resume=`."""


def main() -> None:
    """The command `goodhart`."""
    command.main("goodhart", __doc__, run, go_on="resume")


def run(config: DictConfig, folder: Path, console: Console) -> None:
    """One experiment in its output folder."""
    from evidence.runtime import devices, files, tracking
    from goodharts_jax.settings import read

    if config.resume is not None and (others := command.given() - _AT_RESUME):
        raise ValueError(
            f"resume={config.resume} goes on with its own settings; leave out "
            f"{', '.join(sorted(others))}"
        )
    settings = read(_plain(config))
    devices.configure(settings.compilation_cache)
    # JAX must not be used before this line, and what follows uses it.
    from goodharts_jax import study

    tracking.require(settings.tracker)
    console.quiet = not files.is_first_process()
    with files.alone(folder):
        results = study.run(settings, folder, console)
    from goodharts_jax import report  # the study has loaded it while it trained

    tracked(results, settings.tracker, "goodhart", folder)
    show(results, report.summary(results), folder / "report.html", console)


def _plain(config: DictConfig) -> Any:
    """The settings of this run, or of the one that it resumes."""
    from goodharts_jax.resuming import kept_settings

    plain: Any = OmegaConf.to_container(config, resolve=True)
    if (resume := config.resume) is not None:
        kept = Path(resume) / "config.yaml"
        if not kept.exists():
            raise ValueError(
                f"resume={resume}: there is no {kept}; is it the output folder of a run?"
            )
        plain = kept_settings(kept)
    if (world := plain["evaluation"]["world"]) is not None:
        plain.setdefault("evaluation_world", _world(world))
    return plain


def _world(name: str) -> Any:
    """The settings of the group `world` under this name."""
    import hydra

    try:
        world = hydra.compose("config", overrides=[f"world={name}"]).world
    except hydra.errors.MissingConfigException as error:
        raise ValueError(f"evaluation.world={name}: {error}") from None
    return OmegaConf.to_container(world, resolve=True)


if __name__ == "__main__":
    main()

"""Train agents on the truth and on a proxy, and see how long they live.

python -m experiments.goodhart mode=proxy seed=42
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from evidence.runtime import devices, files
from evidence.runtime.command import errors_in_a_line
from goodharts_jax.settings import Experiment, read


@hydra.main(config_path="../conf/goodhart", config_name="config", version_base="1.3")
def main(config: DictConfig) -> None:
    """Compose, run, save."""
    folder = Path(config.resume or HydraConfig.get().runtime.output_dir)
    with errors_in_a_line(f"resume={folder}"):
        run(config, folder)


def run(config: DictConfig, folder: Path) -> None:
    """Run one experiment in its output folder."""
    console = Console()
    settings = _settings(config)
    devices.configure(settings.compilation_cache)
    console.quiet = not files.is_first_process()
    # JAX must not be used before this line, and what follows uses it.
    from goodharts_jax import report, study

    results = study.run(settings, folder, console)
    console.print(report.summary(results))
    for warning in results.warnings:
        console.print(f"[yellow]note[/] {warning}")
    if (ruling := results.thesis) is not None:
        told = str(ruling)
        console.print(told[0].upper() + told[1:], style="bold", markup=False, highlight=False)
    console.print(f"The page: {folder / 'report.html'}", soft_wrap=True)


def _settings(config: DictConfig) -> Experiment:
    """The settings of this run, or of the one that it resumes."""
    plain: Any = OmegaConf.to_container(config, resolve=True)
    if (resume := config.resume) is not None:
        kept = Path(resume) / "config.yaml"
        if not kept.exists():
            raise ValueError(
                f"resume={resume}: there is no {kept}; is it the output folder of a run?"
            )
        plain = OmegaConf.to_container(OmegaConf.load(kept))
    if plain["evaluation"]["world"] is not None:
        plain.setdefault("evaluation_world", _world(plain["evaluation"]["world"]))
    return read(plain)


def _world(name: str) -> Any:
    """The settings of conf/goodhart/world/NAME.yaml."""
    try:
        world = hydra.compose("config", overrides=[f"world={name}"]).world
    except hydra.errors.MissingConfigException as error:
        raise ValueError(f"evaluation.world={name}: {error}") from None
    return OmegaConf.to_container(world, resolve=True)


if __name__ == "__main__":
    main()

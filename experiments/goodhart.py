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
from rich.table import Table

from evidence.pages import number, percent
from evidence.runtime import devices, files
from evidence.runtime.command import errors_in_a_line
from evidence.runtime.config import build
from goodharts_jax.settings import Experiment, WorldSettings, read

# Columns of a terminal that has room for intervals.
_WIDE = 200
_COLUMNS = (
    ("efficiency", "overall_efficiency", percent),
    ("selectivity", "selectivity", number),
    ("survival", "survival_restricted_mean", number),
    ("deaths/1k", "deaths_per_1k_steps", number),
    ("food/1k", "food_per_1k_steps", number),
    ("poison/1k", "poison_per_1k_steps", number),
    ("energy/1k", "energy_per_1k_steps", number),
)


@hydra.main(config_path="../conf/goodhart", config_name="config", version_base="1.3")
def main(config: DictConfig) -> None:
    """Compose, run, save."""
    folder = Path(config.resume or HydraConfig.get().runtime.output_dir)
    with errors_in_a_line(f"resume={folder}"):
        run(config, folder)


def run(config: DictConfig, folder: Path) -> None:
    """Run one experiment in its output folder."""
    console = Console()
    if not console.is_terminal:
        console.width = _WIDE
    settings = _settings(config, folder)
    devices.configure(settings.compilation_cache)
    console.quiet = not files.is_first_process()
    # JAX must not be used before this line, and what follows uses it.
    from goodharts_jax import study

    results = study.conduct(settings, folder, _judged_in(settings), console)
    console.print(_table(results, wide=console.width >= _WIDE))
    for warning in results["warnings"]:
        console.print(f"[yellow]note[/] {warning}")
    if verdict := results.get("thesis"):
        console.print(
            f"The thesis is [bold]{verdict['verdict']}[/]: {verdict['deciding_condition']}"
        )
    console.print(f"The page: {folder / 'report.html'}", soft_wrap=True)


def _settings(config: DictConfig, folder: Path) -> Experiment:
    """The settings of this run, or of the one that it resumes."""
    resume = config.resume
    if resume is None:
        return read(config)
    kept = Path(resume) / "config.yaml"
    if not kept.exists():
        raise ValueError(f"resume={resume}: there is no {kept}; is it the output folder of a run?")
    return read(OmegaConf.load(kept))


def _judged_in(settings: Experiment) -> WorldSettings:
    name = settings.evaluation.world
    if name is None:
        return settings.world
    try:
        world = hydra.compose("config", overrides=[f"world={name}"]).world
    except hydra.errors.MissingConfigException as error:
        raise ValueError(f"evaluation.world={name}: {error}") from None
    return build(WorldSettings, world, "world")


def _table(results: dict[str, Any], *, wide: bool) -> Table:
    caption = "one run a row"
    if len(results["manifest"]["seeds"]) > 1:
        caption = "95% intervals over runs" if wide else "means over runs; intervals on the page"
    table = Table(title="Judged by survival", caption=caption)
    table.add_column("mode", no_wrap=True)
    for heading, _, _ in _COLUMNS:
        table.add_column(heading, justify="right")
    for name, mode in results["modes"].items():
        found = [(show, mode["intervals"][metric]) for _, metric, show in _COLUMNS]
        cells = [show(measured if wide else measured.value) for show, measured in found]
        table.add_row(name, *cells, style="dim" if mode["scripted"] else None)
    return table


if __name__ == "__main__":
    main()

"""How much good and bad knowledge does one sample leave?

python -m experiments.kubku budget=smoke
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from evidence.runtime import devices
from evidence.runtime.command import errors_in_a_line


@hydra.main(config_path="../conf/kubku", config_name="config", version_base="1.3")
def main(config: DictConfig) -> None:
    """Compose, run, save."""
    folder = Path(config.resume or HydraConfig.get().runtime.output_dir)
    with errors_in_a_line(f"resume={folder}"):
        run(config, folder)


def run(config: DictConfig, folder: Path) -> None:
    """Run the study in its output folder."""
    console = Console()
    plain = cast(dict[str, Any], OmegaConf.to_container(config, resolve=True))
    devices.configure(plain["compilation_cache"])
    # JAX must not be used before this line, and what follows uses it.
    from kubku import report, study
    from kubku.settings import read

    settings = read(plain)
    if not settings.writes_results:
        for path in study.run_stage(settings, folder, console):
            console.print(f"Written: {path}", soft_wrap=True)
        return
    results = study.run(settings, folder, console)
    console.print(report.summary(results))
    for warning in results.warnings:
        console.print(warning, style="yellow", markup=False)
    console.print(f"The thesis: {results.thesis}", markup=False)
    console.print(f"The page: {folder / 'report.html'}", soft_wrap=True)


if __name__ == "__main__":
    main()

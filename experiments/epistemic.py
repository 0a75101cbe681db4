"""Does a system know what it doesn't know? Cards, systems, scores, a verdict and a page.

python -m experiments.epistemic domain=countries system=all llm=local
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


@hydra.main(config_path="../conf/epistemic", config_name="config", version_base="1.3")
def main(config: DictConfig) -> None:
    """Compose, run, save."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    with errors_in_a_line(f"hydra.run.dir={folder}"):
        run(config, folder)


def run(config: DictConfig, folder: Path) -> None:
    """Run the study in its output folder."""
    plain = cast(dict[str, Any], OmegaConf.to_container(config, resolve=True))
    devices.configure(plain["compilation_cache"])
    # JAX must not be used before this line, and what follows uses it.
    from epistemic import report, study
    from epistemic.settings import read

    settings, console = read(plain), Console()
    if not settings.writes_results:
        for path in study.run_stage(settings, folder, console):
            console.print(f"Written: {path}", soft_wrap=True)
        return
    results = study.run(settings, folder, console)
    console.print(report.summary(results))
    for warning in results.warnings:
        console.print(warning, style="yellow", markup=False)
    console.print(f"The thesis: {results.thesis}", markup=False)
    if (page := folder / "report.html").exists():
        console.print(f"The page: {page}", soft_wrap=True)


if __name__ == "__main__":
    main()

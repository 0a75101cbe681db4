"""How much good and bad knowledge does one sample leave?

python -m experiments.kubku budget=smoke
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table

from evidence.pages import number
from evidence.runtime import devices
from evidence.runtime.command import errors_in_a_line
from evidence.runtime.files import write_json


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
    from kubku import report, results
    from kubku.settings import read
    from kubku.study import Study

    start = time.perf_counter()
    study = Study(read(plain), folder, console)
    if study.settings.stage == "export":
        for path in study.export():
            console.print(f"Samples: {path}", soft_wrap=True)
        return
    study.run()
    if study.settings.stage == "base":
        console.print(f"Base states: {study.settings.cache}", soft_wrap=True)
        return
    found = results.collect(study, plain, time.perf_counter() - start)
    path = write_json(folder / "results.json", found, results.schema())
    page = report.write(folder)
    console.print(_table(found))
    for warning in found["warnings"]:
        console.print(warning, style="yellow", markup=False)
    judged = found["thesis"]
    console.print(f"{judged['verdict'].capitalize()}: {judged['deciding_condition']}")
    console.print(f"Results: {path}\nPage: {page}", soft_wrap=True)


def _table(found: dict[str, Any]) -> Table:
    table = Table("family", "learner", "base state", "KU", "BKU", "induced KU", "induced BKU")
    for family, of_family in found["families"].items():
        for learner, of_learner in of_family["learners"].items():
            for base, of_base in of_learner["base_states"].items():
                names = ("KU_avg", "BKU_avg", "induced_KU", "induced_BKU")
                table.add_row(family, learner, base, *(number(of_base[n], 2) for n in names))
    return table


if __name__ == "__main__":
    main()

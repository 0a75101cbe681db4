"""Does a system know what it doesn't know? Cards, systems, scores, a verdict and a page.

python -m experiments.epistemic domain=countries system=all llm=local
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from evidence.runtime import devices
from evidence.runtime.command import errors_in_a_line
from evidence.runtime.files import write_json


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
    from epistemic import study

    study.Study(study.read(plain), folder, plain, Console()).run()


class CompareDomains(Callback):
    """After `--multirun domain=...`: comparison.json, with the decks' label ratios taken out."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        from epistemic import study

        folder = Path(config.hydra.sweep.dir)
        finished = [path.parent for path in sorted(folder.glob("**/results.json"))]
        if len(compared := study.compare(finished)) > 0:
            path = write_json(folder / "comparison.json", compared)
            Console().print(f"The domains compared: {path}", soft_wrap=True)


if __name__ == "__main__":
    main()

"""After a multirun over domains: the domains compared, as Hydra calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.experimental.callback import Callback
from omegaconf import DictConfig
from rich.console import Console

from evidence.runtime.files import write_json


class CompareDomains(Callback):
    """After `--multirun domain=...`: comparison.json, with the decks' label ratios taken out."""

    def on_multirun_end(self, config: DictConfig, **_: Any) -> None:
        """Compare what the jobs left in the sweep's folder, where they asked systems."""
        if config.study.kind != "systems":
            return
        # Every command makes this object; what follows uses JAX, which must be set up first.
        from epistemic.comparison import compare

        folder = Path(config.hydra.sweep.dir)
        finished = [path.parent for path in sorted(folder.glob("**/results.json"))]
        if compared := compare(finished):
            path = write_json(folder / "comparison.json", compared)
            Console().print(f"The domains compared: {path}", soft_wrap=True)

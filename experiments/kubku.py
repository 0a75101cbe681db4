"""How much good and bad knowledge does one sample leave?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from evidence.runtime import command

from .shown import show, show_files, tracked


def main() -> None:
    """The command `kubku`."""
    command.main("kubku", __doc__, run, go_on="resume")


def run(config: DictConfig, folder: Path, console: Console) -> None:
    """One study, or one stage of it, in its output folder."""
    from evidence.runtime import devices, files, tracking

    # Several processes share the cells in a folder, and need no word of each other for that.
    devices.configure(config.compilation_cache, join=False)
    # JAX must not be used before this line, and what follows uses it.
    from kubku import report, study
    from kubku.plan import wanting_gpu
    from kubku.settings import read

    plain: Any = OmegaConf.to_container(config, resolve=True)
    settings = read(plain)
    tracking.require(settings.tracker)
    if devices.place().number > 0:
        console.quiet = True
        help_out = study.run_stage if not settings.writes_results else study.share
        help_out(settings, folder, console)
        return
    for name, minutes in wanting_gpu(settings).items():
        console.print(
            f"{name} wants a GPU: its base states take a CPU core up to about {minutes:,.0f} "
            "minutes; learner=compared leaves it out"
        )
    if not settings.writes_results:
        with files.alone(folder):
            written = study.run_stage(settings, folder, console)
        show_files(written, console)
        return
    with files.alone(folder):
        results = study.run(settings, folder, console)
    tracked(results, settings.tracker, "kubku", folder)
    show(results, report.summary(results), folder / "report.html", console)


if __name__ == "__main__":
    main()

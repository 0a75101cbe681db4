"""Does a system know what it doesn't know? Cards, systems, scores, a verdict and a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from evidence.runtime import command

from .shown import show, show_files, tracked

_FIRST = "llm=recorded"
"""What is done when nothing is asked for: a whole study in seconds, a model's replies included."""


def main() -> None:
    """The command `epistemic`."""
    if all(argument.startswith("hydra.") for argument in sys.argv[1:]):
        sys.argv.append(_FIRST)
    command.main("epistemic", __doc__, run, go_on="hydra.run.dir")


def run(config: DictConfig, folder: Path, console: Console) -> None:
    """One study, or one stage of it, in its output folder."""
    from evidence.runtime import devices, files, tracking

    devices.configure(config.compilation_cache)
    # JAX must not be used before this line, and what follows uses it.
    from epistemic import ahead, first_screen, report, study
    from epistemic.completeness import sweep
    from epistemic.results import Results
    from epistemic.settings import read

    plain: Any = OmegaConf.to_container(config, resolve=True)
    settings = read(plain)
    tracking.require(settings.tracker)
    console.quiet = not files.is_first_process()
    with _by_the_first(settings.study.kind == "systems") as mine:
        if not mine:
            return
        if not settings.writes_results:
            with files.alone(folder):
                written = study.run_stage(settings, folder, console)
            show_files(written, console)
            return
        sweeps = settings.study.kind == "completeness"
        with files.alone(folder):
            if settings.stage == "all" and not sweeps:
                ahead.of_systems(settings, console)
            results = (sweep if sweeps else study).run(settings, folder, console)
    tracked(results, settings.tracker, "epistemic", folder)
    notes: list[str] = []
    if isinstance(results, Results):
        if (card := first_screen.example(folder, results)) is not None:
            console.print(first_screen.shown(card))
        notes += first_screen.usage(results)
        notes += [f"{step.what}\n  {step.settings}" for step in first_screen.next_steps(results)]
    show(results, report.summary(results), folder / "report.html", console, notes)


@contextmanager
def _by_the_first(alone: bool) -> Iterator[bool]:
    """Whether this process has something to do. Of work that is one process' own, since cards are
    answered in their order, the first does all; the others wait for its end.
    """
    from evidence.runtime import devices, files

    try:
        yield not alone or files.is_first_process()
    finally:
        if alone:
            devices.wait_for_all("the first process")


if __name__ == "__main__":
    main()

"""How a command begins and ends: settings composed, one study run, errors in a line, never a trace.

What it adds to Hydra: `--help` from the settings' files, the nearest name to a misspelt one, and no
folder left behind by a command that came to nothing. `HYDRA_FULL_ERROR=1` shows where an error was
raised.
"""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from yaml import YAMLError

from evidence.runtime import timings
from evidence.runtime.config import settings_folder, typed
from evidence.runtime.errors import INTERRUPTED, JobFailed, Known, errors_in_a_line
from evidence.runtime.hints import hydra_errors_explained, leaves
from evidence.runtime.leavings import BEGINNINGS, Leavings, is_nothing

if TYPE_CHECKING:
    from hydra.conf import HydraConf

Run = Callable[[DictConfig, Path, Console], None]
"""What a command does with its configuration, in its output folder."""


class _Command(NamedTuple):
    """What each of its jobs must know; goes to other processes with them.

    Attributes:
      name: of the command.
      run: what is done.
      go_on: the setting that makes an interrupted run go on.
      leavings: of the command.
      traces: whether errors show where they were raised.
    """

    name: str
    run: Run
    go_on: str
    leavings: Leavings
    traces: bool


def main(name: str, purpose: str, run: Run, go_on: str) -> None:
    """A command whose settings are in `conf/NAME`.

    Args:
      name: of the command and of its settings' folder.
      purpose: what it is for; shown by `--help`.
      run: what it does.
      go_on: the setting that makes an interrupted run go on: `resume` or `hydra.run.dir`.
    """
    folder, arguments = settings_folder() / name, sys.argv[1:]
    if {"--help", "-h"} & set(arguments):
        from evidence.runtime.manual import manual

        called = (
            name
            if Path(sys.argv[0]).name in (name, f"{name}.exe")
            else f"python -m experiments.{name}"
        )
        with errors_in_a_line():
            print(manual(name, purpose, folder, called, arguments), flush=True)
        return
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())  # where a module of the user's own lies
    # To look through a million traced objects once more takes the better part of a second.
    atexit.register(gc.freeze)
    traces = os.environ.get("HYDRA_FULL_ERROR") == "1"
    command = _Command(name, run, go_on, Leavings(name, arguments), traces)
    sweeps: set[Path] = set()
    with errors_in_a_line(traces=traces), hydra_errors_explained(folder):
        import hydra
        from hydra.core.hydra_config import HydraConfig

        @hydra.main(config_path=str(folder), config_name="config", version_base="1.3")
        def job(config: DictConfig) -> None:
            about = HydraConfig.get()
            if not _is_alone(about):
                sweeps.add(Path(about.sweep.dir).absolute())
            _run_job(config, command)

        try:
            job()
        finally:
            for sweep in sweeps:
                command.leavings.drop(sweep, but_for=["multirun.yaml"])


def given() -> set[str]:
    """The settings and groups that the command line of this run gives."""
    from hydra.core.hydra_config import HydraConfig

    return {text.lstrip("+~").partition("=")[0] for text in HydraConfig.get().overrides.task}


def _typed(name: str, about: HydraConf, folder: Path, own: Path) -> str:
    """The command without where its results go; of one that goes on with a run, that run's, where
    it can be read.
    """
    given: Iterable[object] = about.overrides.task
    if folder != own:
        with suppress(OSError, ValueError, YAMLError):
            given = list(OmegaConf.load(folder / ".hydra" / "overrides.yaml"))
    return shlex.join(["python", "-m", f"experiments.{name}", *map(str, given)])


def _is_alone(about: HydraConf) -> bool:
    """Whether a run is none of several."""
    return about.mode is None or about.mode.name == "RUN"


def _run_job(config: DictConfig, command: _Command) -> None:
    """One run, or one job of several."""
    from hydra.core.hydra_config import HydraConfig

    # Programs that are traced are a million objects, nearly all of which stay: to look through them
    # every few thousand takes a tenth of a short run.
    gc.set_threshold(200_000, 20, 100)
    about = HydraConfig.get()
    own = Path(about.runtime.output_dir)
    folder = Path(config.get("resume") or own)
    alone = _is_alone(about)
    way = f"{command.go_on}={folder}" if alone else f"hydra.sweep.dir={about.sweep.dir}"

    def go_on() -> str:
        return way if folder.is_dir() and not is_nothing(folder, [".hydra"]) else ""

    nothing = BEGINNINGS
    try:
        plain = dict(leaves(OmegaConf.to_container(config, resolve=True)))
        known = Known(plain, frozenset(given()), folder, go_on)
        with errors_in_a_line(known, traces=command.traces):
            console = Console()
            if console.is_terminal:  # what follows takes seconds to load
                console.print(f"into {folder}", style="dim", markup=False, highlight=False)
            typed.set(_typed(command.name, about, folder, own))
            with timings.counting(config.get("timings", False), console):
                command.run(config, folder, console)
        nothing = frozenset({".hydra"})
    except SystemExit as end:
        if end.code == INTERRUPTED:
            nothing = frozenset({".hydra"})
        # The other jobs of a sweep go on; Hydra names the one that failed.
        elif not alone:
            raise JobFailed(end.code) from None
        raise
    finally:
        command.leavings.drop(own, nothing)

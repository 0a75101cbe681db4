"""Progress of long work: what it will take, said at its start; a bar or a clock in a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Rate(TextColumn):
    """Units a second, as measured over the last half minute."""

    def __init__(self, unit: str):
        super().__init__("")
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(
            f"{task.speed:,.0f} {self._unit}/s" if task.speed else "", "progress.data.speed"
        )


@contextmanager
def bar(
    doing: str, total: int, unit: str, console: Console | None = None, *, compiles: bool = False
) -> Iterator[Callable[[int], None]]:
    """Show how far a piece of work has come, how fast it goes and how long it will take.

    Args:
      doing: what is being done, such as "training 6 runs".
      total: of what, in units.
      unit: such as "steps".
      console: where to; the bar stays away unless that is a terminal.
      compiles: say so until the first units are done.

    Yields:
      A function to call with each further number of units done.
    """
    console = console or Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        _Rate(unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(f"compiling: {doing}" if compiles else doing, total=total)

        def advance(done: int) -> None:
            progress.update(task, description=doing, advance=done)

        yield advance


@contextmanager
def clock(doing: str, console: Console) -> Iterator[None]:
    """Show how long a piece of work has taken whose length nobody knows, such as drawing."""
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    off = not console.is_terminal
    with Progress(*columns, console=console, disable=off, transient=True) as progress:
        progress.add_task(doing, total=None)
        yield


def expected(seconds: float, compiling: float, console: Console) -> None:
    """Say roughly what a run will take, also where there is no terminal.

    Args:
      seconds: of all, on the machine of the kept timings.
      compiling: of these, spent on compiling the first time.
      console: where to.
    """
    console.print(
        f"about {spoken(seconds)}, the first time {spoken(compiling)} of it compiling "
        "(on cores as those of docs/performance.md; others differ)",
        style="dim",
        highlight=False,
    )


def spoken(seconds: float) -> str:
    """To one or two digits: `40 s`, `3 min`, `1.5 h`."""
    if seconds < 100:
        return f"{max(1, round(seconds, -1 if seconds > 20 else 0)):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"

"""Progress of long work: a bar in a terminal, nothing anywhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskProgressColumn,
    TextColumn,
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
    doing: str, total: int, unit: str, console: Console | None = None
) -> Iterator[Callable[[int], None]]:
    """Show how far a piece of work has come, how fast it goes and how long it will take.

    Args:
      doing: what is being done, such as "training 6 runs".
      total: of what, in units.
      unit: such as "steps".
      console: where to; the bar stays away unless that is a terminal.

    Yields:
      A function to call with each further number of units done.
    """
    console = console or Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        _Rate(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda done: progress.advance(task, done)

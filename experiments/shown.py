"""What a terminal shows of what was found: at most 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from evidence import Results
from evidence.pages import counted
from evidence.runtime import tracking

_NOTES = 4
"""How many warnings a terminal shows; the page has all."""


def show(
    results: Results,
    summary: Table | None,
    page: Path,
    console: Console,
    notes: Sequence[str] = (),
) -> None:
    """An experiment's table, warnings, verdict, notes, and where its page is."""
    if summary is not None:
        console.print(summary)
    for warning in results.warnings[:_NOTES]:
        console.print(f"note: {warning}", style="yellow", markup=False, highlight=False)
    if more := results.warnings[_NOTES:]:
        console.print(f"{counted(len(more), 'more note')} on the page", style="yellow")
    show_verdict(results, console)
    for note in notes:
        console.print(note, markup=False, highlight=False)
    console.print(f"Page: {page}", soft_wrap=True, highlight=False)


def show_verdict(results: Results, console: Console) -> None:
    """The verdict with the condition that decided, where a thesis was judged."""
    if results.thesis is not None:
        verdict = str(results.thesis)
        console.print(verdict[0].upper() + verdict[1:], style="bold", markup=False, highlight=False)


def tracked(results: Results, tracker: tracking.Tracker, project: str, folder: Path) -> None:
    """Tell a tracker what was found."""
    with tracking.tracking(tracker, project, folder) as log:
        tracking.measured(log, results.measurements())


def show_files(paths: Sequence[Path], console: Console) -> None:
    """The files of a stage that has no results."""
    for path in paths:
        console.print(f"Written: {path}", soft_wrap=True, highlight=False)

"""The page and the terminal's table, made from results.json alone."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from evidence import figures
from evidence.pages import number, render
from evidence.runtime.files import write_text
from kubku.figures import MATCHED, at_limit, draw, foremost
from kubku.results import Comparison, Results

ANSWERS = ("no", "unknown", "yes", "invalid", "error")
"""By `Answer`."""


def write(folder: str | Path) -> Path:
    """Draw the figures of a run into `figures/` and write its `report.html`; the page's path."""
    folder = Path(folder)
    results = Results.load(folder)
    drawn = {name: figure for name, figure in draw(results).items() if figure is not None}
    for name, figure in drawn.items():
        figures.save(figure, folder / "figures", name)
    page = render(
        "kubku",
        "report.html",
        results=results,
        figures={name: figures.svg(figure) for name, figure in drawn.items()},
        answers=ANSWERS,
        matched=MATCHED,
        foremost={name: foremost(results, name) for name in results.families},
        at_limit=at_limit,
        won=_won(results),
    )
    return write_text(folder / "report.html", page)


def _won(results: Results) -> dict[str, dict[str, Comparison]]:
    """The map of wins: comparisons by opponent and family."""
    found: dict[str, dict[str, Comparison]] = {}
    for one in results.comparisons:
        found.setdefault(one.opponent, {})[one.family] = one
    return found


def summary(results: Results) -> Table:
    """KU of the foremost learners at matched BKU, and that BKU, by family; 80 columns at most."""
    table = Table("", "from", "KU", "BKU", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, family in results.families.items():
        table.add_section()
        table.add_row(f"[bold]{name}[/]")
        for learner in foremost(results, name):
            found = family.learners[learner]
            scores = (number(score, 2) for score in at_limit(found))
            table.add_row(learner, found.best, *scores)
    return table

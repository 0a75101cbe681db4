"""The page and the terminal's table, made from results.json alone."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from evidence import figures
from evidence.pages import number, render
from evidence.runtime.files import write_text
from kubku.figures import draw
from kubku.learners.registry import in_group
from kubku.results import FamilyResults, Results

ANSWERS = ("no", "unknown", "yes", "invalid", "error")
"""By `Answer`."""


def write(folder: str | Path) -> Path:
    """Draw the figures of a run into `figures/` and write its `report.html`; the page's path."""
    folder = Path(folder)
    results = Results.load(folder)
    drawn = {name: figure for name, figure in draw(results).items() if figure is not None}
    for name, figure in drawn.items():
        figures.save(figure, folder / "figures", name)
    inline = {name: figures.svg(figure) for name, figure in drawn.items()}
    page = render("kubku", "report.html", results=results, figures=inline, answers=ANSWERS)
    return write_text(folder / "report.html", page)


def summary(results: Results) -> Table:
    """KU and BKU of every learner on its best base state, by family; at most 80 columns wide.

    Controls are left out where there are other learners: they are on the page.
    """
    table = Table("", "from", "KU", "BKU", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, family in results.families.items():
        table.add_section()
        table.add_row(f"[bold]{name}[/]")
        for learner in _shown(family):
            found = family.learners[learner]
            best = found.base_states[found.best]
            scores = (number(score, 2) for score in (best.KU_avg, best.BKU_avg))
            table.add_row(learner, found.best, *scores)
    return table


def _shown(family: FamilyResults) -> list[str]:
    controls = in_group("control")
    return [name for name in family.learners if name not in controls] or list(family.learners)

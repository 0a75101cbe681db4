"""The page of a study of proxies and its table for a terminal, made from the results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table

from evidence import pages
from evidence.measurement import Measurement
from goodharts_jax.drawing import spoken
from goodharts_jax.results import Results


@dataclass(frozen=True)
class Tabled:
    """A table, alike on the page, in its twin and in a terminal.

    Attributes:
      title: what it is.
      caption: how to read it.
      headings: of its columns.
      rows: as text.
      short: how many columns a terminal has room for.
    """

    title: str
    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    short: int = 7


def tables(results: Results) -> list[Tabled]:
    """Every table that the results have data for, the most telling first."""
    found = []
    if results.remedies is not None and results.remedies.rows:
        found.append(_remedies(results))
    if results.forecast is not None:
        found.append(_forecast(results))
    if results.study is not None:
        found.append(_proxies(results))
    return found


def _remedies(results: Results) -> Tabled:
    assert results.remedies is not None
    rows = sorted(results.remedies.rows, key=lambda row: -(row.chosen.value or 0))
    names = results.remedies.proxies
    there = ", ".join(map(spoken, results.remedies.elsewhere_on)) or "none"
    return Tabled(
        "What remedies restore",
        "Share of the gap between no remedy and training on the truth; means over proxies, "
        "intervals over runs, the mean gap of each proxy taken as known. Chosen: at the strength "
        "that is best on the other proxies, which is what one who can't see the truth could do. "
        "Best: at the strength that is best on each proxy itself, an upper bound. Controls: not "
        "training, the audit alone, a placebo, whose best shows what choosing on the same runs "
        "flatters. Elsewhere: in another world, at the strengths chosen here, on the proxies that "
        f"surely leave a gap there, too ({there}). Without reward models, "
        "as for a table, early stopping by held-out ones keeps the start.",
        ["Remedy", "Chosen", "Elsewhere", "Best", *map(spoken, names)],
        [
            [
                spoken(row.name),
                _shown(row.chosen),
                _shown(row.elsewhere),
                _value(row.best),
                *(_value(row.by_proxy.get(name)) for name in names),
            ]
            for row in rows
        ],
        short=4,
    )


def _forecast(results: Results) -> Tabled:
    assert results.forecast is not None
    return Tabled(
        "Collapse, told before training",
        "Area under the ROC curve, on proxies that fixed nothing; intervals resample proxies. "
        "Right: share on the right side of the threshold that the other half fixed. R²: of the "
        "energy gained, by a monotone fit to the other half.",
        ["Test", "Area", "Right", "R²", "Area elsewhere", "Right elsewhere"],
        [
            [
                spoken(name),
                _shown(score.auc),
                _shown(score.right),
                _shown(score.r_squared),
                _shown(score.auc_elsewhere),
                _shown(score.right_elsewhere),
            ]
            for name, score in results.forecast.scores.items()
        ],
    )


def _proxies(results: Results) -> Tabled:
    assert results.study is not None
    return Tabled(
        "What proxies come to",
        "Energy per 1,000 steps, where nobody starves: of the policy that training begins with, "
        "where the other runs peak, and at the end. Collapsed runs end below their start. Means "
        "mislead where some runs collapse and others don't: the figure has every run.",
        ["Proxy", "Accuracy", "Correlation", "Start", "Peak", "End", "Collapsed"],
        [
            [
                spoken(row.proxy),
                _shown(row.accuracy, 3),
                _shown(row.correlation, 2),
                _shown(row.start, 0),
                _shown(row.peak, 0),
                _shown(row.end, 0),
                f"{row.collapsed} of {row.runs}",
            ]
            for row in results.study.rows
        ],
    )


def _shown(measured: Measurement | None, digits: int = 2) -> str:
    if measured is None or measured.value is None:
        return "–"
    return str(pages.number(measured, digits))


def _value(measured: Measurement | None) -> str:
    return _shown(measured).split(" [")[0]


def summary(results: Results) -> Table:
    """The first table for a terminal, in at most 80 columns: means without their intervals."""
    first = tables(results)[0]
    table = Table(
        title=first.title,
        caption="intervals and figures on the page",
        box=box.SIMPLE,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for index, heading in enumerate(first.headings[: first.short]):
        table.add_column(heading, justify="right" if index else "left", max_width=28)
    for row in first.rows:
        table.add_row(*(cell.split(" [")[0] for cell in row[: first.short]))
    return table


def render(template: str, results: Results, drawn: Mapping[str, object]) -> str:
    """The page, or its twin."""
    return pages.render(
        "goodharts_jax",
        template,
        results=results,
        manifest=results.manifest,
        figures=drawn,
        tables=tables(results),
    )

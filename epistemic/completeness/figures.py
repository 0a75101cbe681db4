"""The map: where licensing pays, by model and by how much of the graph is kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from epistemic.completeness.models import GRAPH
from epistemic.completeness.results import BreakEven, Completeness, Point, Ruling
from evidence import figures

_COLOURS: dict[Ruling, str] = {"pays": figures.BLUE, "loses": figures.VERMILLION}


@figures.style()
def pays(found: Completeness, wrong: float) -> Figure:
    """Models by shares kept, a panel a domain and price: coloured where the gain's interval leaves
    0, deeper where the gain is larger; a tick at the break-even.

    Args:
      found: what the sweep measured.
      wrong: the share of wrong triples that is shown.
    """
    points = [p for p in found.points if p.wrong == wrong and p.model != GRAPH]
    domains = list(dict.fromkeys(point.domain for point in points))
    prices = sorted({point.price for point in points})
    models = list(dict.fromkeys(point.model for point in points))
    rows, columns = len(domains), len(prices)
    figure, axes = figures.canvas(
        rows,
        columns,
        width=2.4 + 2.1 * columns,
        height=0.7 + rows * (0.4 + 0.17 * len(models)),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    largest = max((abs(point.gain.value or 0.0) for point in points), default=0.0) or 1.0
    for (row, column), axis in np.ndenumerate(axes):
        domain, price = domains[row], prices[column]
        here = [p for p in points if (p.domain, p.price) == (domain, price)]
        ends = [
            end
            for end in found.break_even
            if (end.domain, end.price, end.wrong) == (domain, price, wrong)
        ]
        _panel(axis, models, here, ends, largest)
        axis.set_title(f"{domain}, price {price:g}")
    for axis in axes[-1]:
        axis.set_xlabel("share of triples kept")
    return figure


def _panel(
    axis: Axes,
    models: Sequence[str],
    points: Sequence[Point],
    ends: Sequence[BreakEven],
    largest: float,
) -> None:
    shares = sorted({point.keep for point in points})
    borders = dict(zip(shares, _borders(shares), strict=True))
    for point in points:
        left, right = borders[point.keep]
        row = models.index(point.model)
        strength = 0.25 + 0.75 * abs(point.gain.value or 0.0) / largest
        if point.ruling in _COLOURS:
            box = ((left, row - 0.45), right - left, 0.9)
            colour = _COLOURS[point.ruling]
            axis.add_patch(Rectangle(*box, color=colour, alpha=strength, linewidth=0))
    for end in ends:
        if end.keep.value is not None:
            row = models.index(end.model)
            axis.plot([end.keep.value] * 2, [row - 0.45, row + 0.45], color=figures.INK)
    axis.set_yticks(range(len(models)), models)
    axis.set_ylim(len(models) - 0.5, -0.5)
    axis.set_xlim(borders[shares[0]][0], borders[shares[-1]][1])
    axis.grid(visible=False)


def _borders(shares: Sequence[float]) -> list[tuple[float, float]]:
    """Each share's part of the axis: half the way to its neighbours; a single one has a tenth."""
    if len(shares) == 1:
        return [(shares[0] - 0.05, shares[0] + 0.05)]
    middles = [(a + b) / 2 for a, b in pairwise(shares)]
    edges = [shares[0], *middles, shares[-1]]
    return list(pairwise(edges))

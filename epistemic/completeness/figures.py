"""The map: where licensing pays, by model and by how much of the graph is kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from epistemic.completeness.models import GRAPH
from epistemic.completeness.results import ANY_TEXT, BreakEven, Completeness, Linking, Point, Ruling
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
    figure.set_label(_told(points, found.break_even, wrong))
    return figure


def _told(points: Sequence[Point], ends: Sequence[BreakEven], wrong: float) -> str:
    """The map in words: in each panel, for how many models a licence pays or loses, and where."""
    panels: dict[tuple[str, float], list[Point]] = {}
    for point in points:
        panels.setdefault((point.domain, point.price), []).append(point)
    said = []
    for (domain, price), here in panels.items():
        models = {point.model for point in here}
        parts = [
            f"{ruling} somewhere for {len({p.model for p in here if p.ruling == ruling})}"
            for ruling in _COLOURS
        ]
        even = sorted(
            end.keep.value
            for end in ends
            if (end.domain, end.price, end.wrong) == (domain, price, wrong)
            and end.model in models
            and end.keep.value is not None
        )
        if even:
            parts.append(f"break-evens {even[0]:.0%} to {even[-1]:.0%}")
        said.append(f"{domain}, price {price:g}, of {len(models)} models: {', '.join(parts)}.")
    return f"Where a licence pays, by the share of triples kept. {' '.join(said)}"


@figures.style()
def linking(found: Linking) -> Figure:
    """What a licence wins by the share kept, where it is given its claims and where it must find
    them in sentences of each style; a panel a domain and model.

    Args:
      found: what was measured; of several linkers the last one that reads is shown.
    """
    domains = list(dict.fromkeys(point.domain for point in found.points))
    models = list(dict.fromkeys(point.model for point in found.points))
    reading = [point for point in found.points if point.text != ANY_TEXT]
    shown = {(point.text, reading[-1].linker) for point in reading} | {(ANY_TEXT, "given")}
    ways = [way for way in dict.fromkeys((p.text, p.linker) for p in found.points) if way in shown]
    figure, axes = figures.canvas(
        len(domains),
        len(models),
        width=1.2 + 2.1 * len(models),
        height=0.6 + 1.7 * len(domains),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for (row, column), axis in np.ndenumerate(axes):
        domain, model = domains[row], models[column]
        for place, (text, linker) in enumerate(ways):
            here = [
                point
                for point in found.points
                if (point.domain, point.model, point.text, point.linker)
                == (domain, model, text, linker)
            ]
            here.sort(key=lambda point: point.keep)
            keep = [point.keep for point in here]
            ends = [[getattr(p.gain, end) for p in here] for end in ("value", "low", "high")]
            gain, low, high = np.array(ends, float)
            said = "claims given" if text == ANY_TEXT else f"found in {text}"
            axis.plot(keep, gain, label=said, **figures.line(place))
            figures.band(axis, keep, low, high, place)
        axis.axhline(0, color=figures.INK, linewidth=0.8)
        axis.set_title(f"{domain}, {model}")
    for axis in axes[-1]:
        axis.set_xlabel("share of triples kept")
    for axis in axes[:, 0]:
        axis.set_ylabel("gain by the licence")
    figures.legend_below(figure)
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

"""What the figures are made of: names and colours of modes, dots, bars and heat maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from evidence import figures, pages, stats
from evidence.measurement import Measurement
from goodharts_jax.pressure import PhaseCell
from goodharts_jax.results import UNIT, ModeResults, SurvivalCurve

# A mode keeps its colour in every figure, whichever others were run.
_COLOURS = {
    "ground_truth": 0,
    "proxy": 1,
    "ground_truth_handhold": 2,
    "proxy_mortal": 3,
    "ground_truth_blinded": 4,
    "ground_truth_aliased": 5,
}
_SCRIPTS = {"omniscient_seeker": "dashed", "interestingness_seeker": "dashdot", "avoider": "dotted"}
PERCENT = PercentFormatter(1.0, decimals=0)


@FuncFormatter
def plain(value: float, _position: int | None = None) -> str:
    """A number as the page prints it: 1,000 and −2."""
    return f"{value:,g}".replace("-", "−")


@FuncFormatter
def steps(value: float, _position: int | None = None) -> str:
    """Training steps, short: 250k, 1M."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value else "0"


def spoken(name: str) -> str:
    """A mode's name as text has it."""
    return name.replace("_", " ")


def style_of(name: str) -> dict[str, Any]:
    """How a mode's line is drawn; scripted policies recede."""
    if name in _COLOURS:
        return figures.line(_COLOURS[name])
    return {"color": figures.FAINT, "linestyle": _SCRIPTS.get(name, "solid"), "linewidth": 1.1}


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """One row a mode, the first on top."""
    axes.set_yticks(range(len(names)), [spoken(name) for name in names])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)


def dots(axes: Axes, row: int, name: str, mode: ModeResults, metric: str) -> None:
    """One row: single runs as small rings, the mean as a dot, its interval as a bar."""
    colour = style_of(name)["color"]
    single = [getattr(run, metric) for run in mode.runs]
    values = [value for value in single if value is not None]
    axes.plot(values, [row] * len(values), "o", ms=3, mfc="none", mec=colour, mew=0.7, alpha=0.8)
    measured: Measurement = getattr(mode.intervals, metric)
    if measured.value is None:
        axes.text(
            0.5, row, "ate nothing", ha="center", va="center", fontsize=7.5, color=figures.FAINT
        )
        return
    if measured.low is not None and measured.high is not None:
        axes.plot([measured.low, measured.high], [row, row], color=colour, lw=1.8)
    axes.plot(measured.value, row, "o", ms=5.5, color=colour, mec=figures.PAPER, mew=0.6)


def bars(
    axes: Axes,
    lengths: Sequence[float] | np.ndarray,
    label: str,
    colour: str,
    hatch: str,
    left: np.ndarray | None = None,
) -> None:
    """One horizontal bar a row, from `left` on."""
    axes.barh(
        range(len(lengths)),
        lengths,
        left=left,
        height=0.62,
        color=colour,
        hatch=hatch,
        edgecolor=figures.PAPER,
        linewidth=0,
        label=label,
    )


def heights_at(curve: SurvivalCurve, ages: np.ndarray) -> np.ndarray:
    """A survival curve's height at each age; NaN beyond the last age followed."""
    known, heights = np.array(curve.ages, float), np.array(curve.survival, float)
    if known[0] > 0:
        known, heights = np.r_[0.0, known], np.r_[1.0, heights]
    at = np.searchsorted(known, ages, side="right") - 1
    return np.where(ages <= known[-1], heights[at], np.nan)


def over_runs(curves: np.ndarray) -> np.ndarray:
    """Mean over runs at each point and its interval, NaN for one run: f64[3, points]."""
    measured = [stats.t_interval(column, UNIT) for column in curves.T]
    return np.array([(m.value, m.low, m.high) for m in measured], dtype=float).T


def legend_above(axes: Axes) -> None:
    """Two names over the axes, at their left."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)


def heat(
    figure: Figure,
    axes: Axes,
    cells: Sequence[PhaseCell],
    metric: str,
    contour: float | None,
    limits: tuple[float | None, float | None],
    *,
    intervals: bool = True,
) -> None:
    """A metric over the phase diagram: each cell with its number and interval, a line between two
    cells whose intervals lie on either side of `contour`. A dagger marks a cell with a run that had
    not levelled off.

    Args:
      figure: of the axes.
      axes: where to draw; hidden where no cell has the metric.
      cells: of one pressure.
      metric: a field of `PhaseCell`.
      contour: None draws none.
      limits: of the colours; None takes that of the numbers.
      intervals: whether they are printed.
    """
    columns = sorted({cell.poison_reward for cell in cells})
    rows = sorted({cell.distance for cell in cells})
    values, sides = np.full((2, len(rows), len(columns)), np.nan)
    texts = {}
    for cell in cells:
        measured: Measurement = getattr(cell, metric)
        if measured.value is None:
            continue
        place = rows.index(cell.distance), columns.index(cell.poison_reward)
        values[place] = measured.value
        level = cell.converged >= cell.deaths_per_1k_steps.n
        texts[place] = _in_cell(measured, "" if level else "†", intervals)
        if contour is not None and measured.low is not None and measured.high is not None:
            sides[place] = (measured.low > contour) * 1 - (measured.high < contour) * 1
    axes.set_visible(bool(texts))
    if not texts:
        return
    low, high = limits
    mesh = axes.pcolormesh(values, vmin=low, vmax=high, edgecolor=figures.PAPER, linewidth=0.8)
    middle = np.nanmean([mesh.norm.vmin, mesh.norm.vmax])
    for (row, column), text in texts.items():
        dark = values[row, column] < middle
        style: dict[str, Any] = {"fontsize": 6.5, "linespacing": 1.3, "ha": "center"}
        style |= {"va": "center", "color": "#ffffff" if dark else "#000000"}
        axes.text(column + 0.5, row + 0.5, text, **style)
    if contour is not None:
        _frame(axes, sides)
    axes.set_xticks(np.arange(len(columns)) + 0.5, [plain(c) for c in columns])
    axes.set_yticks(np.arange(len(rows)) + 0.5, [plain(r) for r in rows])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _in_cell(measured: Measurement, mark: str, intervals: bool) -> str:
    digits = 2 if abs(measured.value or 0) < 10 else 0
    text = pages.number(measured.value, digits) + mark
    if not intervals or measured.low is None or measured.high is None:
        return text
    return f"{text}\n{pages.number(measured.low, digits)} to {pages.number(measured.high, digits)}"


def _frame(axes: Axes, sides: np.ndarray) -> None:
    """The edges between cells above and cells below. f64[rows, columns]: 1, -1, or 0 for open."""
    for row, column in np.argwhere(sides[:, 1:] * sides[:, :-1] < 0):
        axes.plot([column + 1] * 2, [row, row + 1], color=figures.VERMILLION, linewidth=2)
    for row, column in np.argwhere(sides[1:] * sides[:-1] < 0):
        axes.plot([column, column + 1], [row + 1] * 2, color=figures.VERMILLION, linewidth=2)

"""Figures of studies of proxies: every run under pressure, what told of it, and what helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evidence import figures
from evidence.measurement import Measurement
from goodharts_jax.drawing import spoken, steps
from goodharts_jax.foretold import gain
from goodharts_jax.learnt_results import StudyRun
from goodharts_jax.preferences import SEGMENT
from goodharts_jax.results import Results

_COLUMNS = 4
_HELD, _FELL = 0, 1


def _bare(results: Results) -> list[StudyRun]:
    study = results.study
    return [] if study is None else [run for run in study.runs if run.remedy is None]


def proxies(results: Results) -> Figure | None:
    """True return of every run while its training goes on, a panel a proxy."""
    runs = _bare(results)
    # Drawn proxies are too many for panels; the forecast's figure has them.
    names = list(dict.fromkeys(r.proxy for r in runs if r.settings["correlation"] is None))
    if not names:
        return None
    lines = -(-len(names) // _COLUMNS)
    figure, grid = figures.canvas(
        lines,
        _COLUMNS,
        width=8.2,
        height=0.6 + 1.35 * lines,
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for axes, name in zip(grid.flat, names, strict=False):
        own = [run for run in runs if run.proxy == name]
        for run in own:
            _course(axes, run)
        told = [run.accuracy for run in own if run.accuracy is not None]
        if told:
            said = f"accuracy {np.mean(told):.3f}"
            axes.text(0.04, 0.06, said, transform=axes.transAxes, fontsize=6.5)
        axes.set_title(spoken(name), fontsize=7.5)
    for axes in grid[-1]:
        axes.set_xlabel("training steps")
    for axes in grid[:, 0]:
        axes.set_ylabel("energy/1k")
    return figure


def _course(axes: Axes, run: StudyRun) -> None:
    at = np.array(run.curve.step, float)
    axes.set_xscale("symlog", linthresh=at[1])
    axes.xaxis.set_major_formatter(steps)
    colour = figures.line(_FELL if run.collapsed else _HELD)["color"]
    axes.plot(at, np.array(run.curve.gold, float), color=colour, linewidth=1, alpha=0.85)
    axes.axhline(0, color=figures.FAINT, linewidth=0.5)


def best_of_n(results: Results) -> Figure | None:
    """True return by divergence: training beside the best of n segments, without training."""
    runs = [run for run in _bare(results) if run.best_of is not None and run.accuracy is not None]
    if not runs:
        return None
    figure, (trained, drawn) = figures.canvas(1, 2, width=8.2, height=2.7, sharey=True)
    for run in runs:
        colour = figures.line(_FELL if run.collapsed else _HELD)["color"]
        style = {"color": colour, "linewidth": 0.8, "alpha": 0.6}
        kl = np.sqrt(SEGMENT * np.maximum(np.array(run.curve.kl, float), 0))
        trained.plot(kl, np.array(run.curve.gold, float), **style)
        if run.best_of is not None:
            drawn.plot(
                np.sqrt(np.array(run.best_of.kl, float)), np.array(run.best_of.gold, float), **style
            )
    trained.set_title("training")
    drawn.set_title("the best of n segments, n = 1 to 64")
    trained.set_ylabel("energy per 1,000 steps")
    for axes in (trained, drawn):
        axes.set_xlabel("√KL of a segment from the start (√nats)")
    return figure


def accuracy_tells(results: Results) -> Figure | None:
    """How a run ends, by what is usually looked at before: accuracy and correlation."""
    runs = [run for run in _bare(results) if run.accuracy is not None]
    if not runs or results.forecast is not None:
        return None
    figure, grid = figures.canvas(1, 2, width=8.2, height=2.7, sharey=True)
    for axes, key in zip(grid, ("accuracy", "correlation"), strict=True):
        for fell in (False, True):
            own = [run for run in runs if run.collapsed == fell]
            label = "ends below its start" if fell else "ends above it"
            _dots(axes, [(getattr(run, key), run.curve.gold[-1]) for run in own], fell, label)
        axes.set_xlabel(
            "accuracy on held-out pairs" if key == "accuracy" else "correlation with the truth"
        )
    grid[0].set_ylabel("energy per 1,000 steps at the end")
    figures.legend_below(figure, ncols=2)
    return figure


def _dots(
    axes: Axes, places: Sequence[tuple[float | None, float | None]], fell: bool, label: str
) -> None:
    known = [place for place in places if None not in place]
    x, y = np.array(known, float).reshape(-1, 2).T
    axes.plot(x, y, **figures.point(_FELL if fell else _HELD, markersize=3), label=label, alpha=0.7)


def forecast(results: Results) -> Figure | None:
    """What each test said before training, against what came of it, on unseen proxies."""
    found = results.forecast
    if found is None:
        return None
    worlds = [("unseen proxies", [run for run in _bare(results) if run.proxy in found.judged_on])]
    if found.elsewhere:
        worlds.append(("another world", list(found.elsewhere)))
    names = list(found.scores)
    figure, grid = figures.canvas(
        len(worlds),
        len(names),
        width=1.5 * len(names) + 0.6,
        height=1.9 * len(worlds) + 0.5,
        sharey=True,
        squeeze=False,
    )
    for (title, runs), row in zip(worlds, grid, strict=True):
        for axes, name in zip(row, names, strict=True):
            for fell in (False, True):
                own = [run for run in runs if run.collapsed == fell]
                gains = [gain(run) for run in own]
                label = "collapsed" if fell else "held"
                said = [run.scores.get(name) for run in own]
                _dots(axes, list(zip(said, gains, strict=True)), fell, label)
            score = found.scores[name]
            if score.threshold is not None:
                axes.axvline(score.threshold, color=figures.FAINT, linewidth=0.9, linestyle=":")
            measured = score.auc if title == "unseen proxies" else score.auc_elsewhere
            value = "" if measured is None or measured.value is None else f" {measured.value:.2f}"
            axes.set_title(spoken(name) + value, fontsize=7.5)
        row[0].set_ylabel(f"energy gained/1k\n{title}")
    figures.legend_below(figure, ncols=2)
    return figure


def remedies(results: Results) -> Figure | None:
    """Share of the gap restored, by each remedy and control."""
    found = results.remedies
    if found is None or not found.rows:
        return None
    rows = sorted(found.rows, key=lambda row: -(row.chosen.value or row.best.value or 0))
    figure, axes = figures.canvas(width=6.4, height=0.8 + 0.24 * len(rows))
    for place, row in enumerate(rows):
        _bar(axes, place - 0.15, row.chosen, 0, "chosen on other proxies" if not place else None)
        _bar(axes, place + 0.15, row.best, 2, "best on each proxy" if not place else None)
    axes.axvline(0, color=figures.FAINT, linewidth=0.8)
    axes.axvline(1, color=figures.FAINT, linewidth=0.8)
    axes.set_yticks(range(len(rows)), [spoken(row.name) for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel("share of the gap to training on the truth that is restored")
    figures.legend_below(figure, ncols=2)
    return figure


def _bar(axes: Axes, place: float, measured: Measurement, index: int, label: str | None) -> None:
    if measured.value is None:
        return
    style = figures.point(index, markersize=4)
    axes.plot([measured.value], [place], **style, label=label)
    if measured.low is not None and measured.high is not None:
        axes.plot([measured.low, measured.high], [place] * 2, color=style["color"], linewidth=1.2)


FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "proxies": proxies,
    "best_of_n": best_of_n,
    "accuracy_tells": accuracy_tells,
    "forecast": forecast,
    "remedies": remedies,
}

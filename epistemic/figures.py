"""The figures of a study, drawn from its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from epistemic.results import QualityPoint, SystemResults
from epistemic.scoring.thesis import Thesis, meets
from evidence import figures

METRICS = {
    "AP": "abstention precision",
    "CVRR": "contradictions rejected",
    "FAR_NE": "false answers off E",
    "LA": "licensed-answer accuracy",
}
"""The four metrics, as results name them and in words."""


@figures.style()
def scores(systems: Mapping[str, SystemResults], thesis: Thesis) -> Figure:
    """The four metrics of every system with intervals; ideal range marked, expected range grey."""
    names = list(systems)
    figure, axes = figures.canvas(1, 4, width=9.6, height=0.8 + 0.24 * len(names), sharey=True)
    for axis, (metric, words) in zip(axes, METRICS.items(), strict=True):
        axis.set_title(metric.replace("_", "-"))
        axis.set_xlabel(words)
        axis.set_xlim(-0.05, 1.05)
        for row, name in enumerate(names):
            if metric in thesis.expected.get(name, {}):
                low, high = thesis.expected[name][metric]
                axis.barh(row, high - low, left=low, height=0.8, color=figures.RULE, zorder=1)
            entry = systems[name].conventions.seed[metric]
            if entry.value is None or entry.low is None or entry.high is None:
                axis.text(0.5, row, "undefined", ha="center", va="center", color=figures.FAINT)
                continue
            good = meets(thesis, metric, entry.value)
            spread = [[entry.value - entry.low], [entry.high - entry.value]]
            axis.errorbar(entry.value, row, xerr=spread, **figures.point(0 if good else 1))
        low, high = thesis.ideal[metric]
        axis.axvline(high if low == 0 else low, color=figures.FAINT, linewidth=0.8, dashes=(2, 2))
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    return figure


@figures.style()
def selective(systems: Mapping[str, SystemResults]) -> Figure | None:
    """Risk against coverage, and accuracy against confidence, of systems that rank their answers.

    None where no system gives more than one confidence.
    """
    graded = {
        name: system.selective
        for name, system in systems.items()
        if len(system.selective.reliability or ()) > 1
    }
    if not graded:
        return None
    figure, (left, right) = figures.canvas(1, 2, width=8.0, height=3.2)
    right.plot([0, 1], [0, 1], color=figures.FAINT, linewidth=0.8)
    for i, (name, found) in enumerate(graded.items()):
        if found.risk_coverage:
            coverage, risk = np.transpose(found.risk_coverage)
            left.plot(coverage, risk, label=name, **figures.line(i))
        bins = found.reliability or ()
        right.plot(
            [b.confidence for b in bins],
            [b.accuracy for b in bins],
            **figures.line(i),
            **{"marker": "o", "markersize": 3},
        )
    left.set(xlabel="coverage", ylabel="risk: wrong among answered", xlim=(0, 1), ylim=(0, 1.02))
    right.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.02))
    left.legend(loc="lower right")
    return figure


@figures.style()
def quality(points: Sequence[QualityPoint]) -> Figure | None:
    """AP, FAR-NE and LA against the share of the graph that is left, without and with errors; None
    where no sweep was made.
    """
    if not points:
        return None
    shown = ("AP", "FAR_NE", "LA")
    figure, axes = figures.canvas(1, 3, width=8.6, height=2.8, sharey=True)
    series = sorted({(name, point.wrong) for point in points for name in point.systems})
    for axis, metric in zip(axes, shown, strict=True):
        for i, (name, wrong) in enumerate(series):
            found = [
                (point.keep, point.systems[name][metric])
                for point in sorted(points, key=lambda point: point.keep)
                if point.wrong == wrong and name in point.systems
            ]
            keep = [share for share, _ in found]
            values = [_or_nan(ratio.value) for _, ratio in found]
            label = f"{name}, {wrong:.0%} wrong"
            axis.plot(keep, values, label=label, marker="o", **figures.line(i))
            low = [_or_nan(ratio.low) for _, ratio in found]
            high = [_or_nan(ratio.high) for _, ratio in found]
            figures.band(axis, keep, low, high, i)
        axis.set(title=metric.replace("_", "-"), xlabel="share of triples kept", ylim=(-0.02, 1.02))
        axis.invert_xaxis()
    axes[0].legend(loc="lower left")
    return figure


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else value

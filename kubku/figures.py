"""The figures of a page, drawn from results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evidence import figures
from evidence.measurement import Measurement
from kubku import protocol
from kubku.learners.registry import in_group
from kubku.results import BaseStateResults, FamilyResults, LearnerResults, Results

LIMITS, MATCHED = protocol.LIMITS, str(protocol.MATCHED)
_MANY = 10
"""From so many replicates on, intervals say enough without their points."""


def draw(results: Results) -> dict[str, Figure | None]:
    """Every figure by name; None for what the run didn't measure."""
    return {
        "ku_bku": frontiers(results),
        "histograms": histograms(results),
        "halos": halos(results),
        "by_k": by_k(results),
        "bias_drift": bias_drift(results),
        "streaming": streaming(results),
        "growth": growth(results),
    }


# Each learner has its colour in every figure but the first, and none of the thesis' shares one:
# GrowNet's last is the thesis'.
_ORDER = (
    *in_group("gradient"),
    *reversed(in_group("grownet")),
    *in_group("replaying", "reader", "ablation"),
)


_CONTROLS = in_group("control")


def _colour(learner: str) -> int:
    return _ORDER.index(learner) if learner in _ORDER else len(_ORDER)


def _is_control(learner: str) -> bool:
    return learner in _CONTROLS


def _learners(family: FamilyResults) -> list[tuple[str, str, BaseStateResults]]:
    """(learner, base state, its entry) of all that aren't controls, on their best base states."""
    return [
        (name, found.best, found.base_states[found.best])
        for name, found in family.learners.items()
        if not _is_control(name)
    ]


def _with_learners(results: Results) -> dict[str, list[tuple[str, str, BaseStateResults]]]:
    """The same by family, of those that have some."""
    return {name: own for name, found in results.families.items() if (own := _learners(found))}


LANDMARKS = ("generator_oracle", "question_only", "forced_choice")
"""Controls that the first table and figure show whether or not the thesis is set against them."""


def foremost(results: Results, family: str) -> list[str]:
    """The learners of the first figure and table of a family, those with the most KU first: what
    the thesis compares, and landmarks; without comparisons all but ablations.
    """
    own = [c for c in results.comparisons if c.family == family]
    compared = {name for c in own for name in (c.learner, c.opponent)} | {*LANDMARKS}
    beside = {*in_group("ablation"), *(_CONTROLS if own else ())}
    learners = results.families[family].learners
    shown = [name for name in learners if name in compared or (name not in beside and not own)]
    return sorted(shown, key=lambda name: -(at_limit(learners[name])[0].value or 0))


def at_limit(found: LearnerResults) -> tuple[Measurement, Measurement | None]:
    """KU and BKU of a learner on its best base state: at the limit of BKU, where it has scores to
    keep it by, else as it answers.
    """
    entry = found.base_states[found.best]
    if MATCHED in entry.frontier:
        return entry.frontier[MATCHED].KU, entry.frontier[MATCHED].BKU
    return entry.KU_avg, entry.BKU_balanced or entry.BKU_avg


@figures.style()
def frontiers(results: Results) -> Figure:
    """KU against BKU over all thresholds, each learner on its best base state; where it stands at
    the limit with intervals, and every replicate as a small point where they are few.
    """
    families = {name: foremost(results, name) for name in results.families}
    everyone = sorted({learner for names in families.values() for learner in names}, key=_colour)
    figure, axes = figures.canvas(
        1, len(families), width=3.2 * len(families), height=3.7, squeeze=False, sharey=True
    )
    for learner in everyone:
        look = _look(learner, everyone)
        named: Any = {**look.mark, "linestyle": look.linestyle, "label": learner}
        axes[0][0].errorbar([], [], **named)
    for axis, (name, learners) in zip(axes[0], families.items(), strict=True):
        for learner in reversed(learners):
            found = results.families[name].learners[learner]
            _trade(axis, found, _look(learner, everyone))
        for limit in LIMITS:
            axis.axvline(limit, color=figures.FAINT, linewidth=0.6, linestyle=":")
        axis.set(title=name, xlabel="BKU", xlim=(-0.03, 1.05), ylim=(-0.05, 2.08))
    axes[0][0].set_ylabel("KU")
    figures.legend_below(figure, ncols=5, fontsize=7)
    return figure


class _Look(NamedTuple):
    """How a learner is drawn."""

    color: str
    linestyle: Any
    marker: str
    size: float = 5.0

    @property
    def mark(self) -> Mapping[str, str | float]:
        """Keywords of its marks."""
        return {"color": self.color, "marker": self.marker, "markersize": self.size}


def _trade(axis: Axes, found: LearnerResults, look: _Look) -> None:
    """A learner's curve and where it stands on it."""
    entry = found.base_states[found.best]
    if entry.curve is not None:
        points = sorted(zip(entry.curve.BKU, entry.curve.KU, strict=True))
        curve: Any = zip(*points, strict=True)
        axis.plot(*curve, color=look.color, linestyle=look.linestyle, linewidth=1.2)
    ku, bku = at_limit(found)
    if bku is None or bku.value is None:
        return
    at: Any = {"x": bku.value, "y": ku.value, "xerr": _arms(bku), "yerr": _arms(ku), **look.mark}
    axis.errorbar(**at, linestyle="none", elinewidth=0.7, capsize=0)
    if entry.frontier and 1 < len(entry.tuned) < _MANY:
        each = entry.frontier[MATCHED].by_replicate
        each_one: Any = each.BKU, each.KU
        axis.plot(*each_one, ".", color=look.color, markersize=3)


def _look(learner: str, everyone: Sequence[str]) -> _Look:
    """A line and a mark of its own among those that are drawn; what has no freedom is grey."""
    if learner in LANDMARKS:
        return _Look(figures.FAINT, "none", "x+1"[LANDMARKS.index(learner)], 6.0)
    index = [name for name in everyone if name not in LANDMARKS].index(learner)
    line = figures.line(index)
    return _Look(line["color"], line["linestyle"], figures.point(index)["marker"])


def _arms(measurement: Measurement) -> list[list[float]] | None:
    value, low, high = measurement.value, measurement.low, measurement.high
    if value is None or low is None or high is None:
        return None
    return [[max(0, value - low)], [max(0, high - value)]]


def _all_arms(along: Sequence[Measurement]) -> list[list[float]]:
    arms = [_arms(measured) or [[0.0], [0.0]] for measured in along]
    return [[arm[side][0] for arm in arms] for side in (0, 1)]


@figures.style()
def histograms(results: Results) -> Figure | None:
    """Distributions of KU(s) and BKU(s) over samples: a row a learner, the darker the more."""
    families = _with_learners(results)
    if not families:
        return None
    most = max(map(len, families.values()))
    figure, axes = figures.canvas(
        len(families), 2, width=9.6, height=0.5 + len(families) * (0.6 + 0.16 * most), squeeze=False
    )
    for row, (name, own) in zip(axes, families.items(), strict=True):
        for axis, score in zip(row, ("KU", "BKU"), strict=True):
            counts = np.array([getattr(entry.histogram, score) for *_, entry in own], float)
            shares = counts / np.maximum(counts.sum(-1, keepdims=True), 1)
            edges = own[0][2].histogram.edges
            mesh = axis.pcolormesh(edges, np.arange(len(own) + 1), shares, vmin=0, vmax=1)
            axis.set_yticks(np.arange(len(own)) + 0.5, [learner for learner, *_ in own])
            axis.set(title=f"{name}, {score}(s)")
            axis.grid(False)
            axis.invert_yaxis()
        row[1].set_yticks([])
    figure.colorbar(mesh, ax=axes, label="share of samples", shrink=0.6)
    return figure


@figures.style()
def halos(results: Results) -> Figure | None:
    """Share right in L and E, share wrong in H and B."""
    families = _with_learners(results)
    if not families:
        return None
    figure, axes = figures.canvas(
        1, len(families), width=3.2 * len(families), height=3, squeeze=False, sharey=True
    )
    kinds = (("L", "literal"), ("E", "entailed"), ("H", "hallucination"), ("B", "bias"))
    for axis, (name, own) in zip(axes[0], families.items(), strict=True):
        for index, (learner, _, entry) in enumerate(own):
            wide = 0.8 / len(own)
            all_four = [getattr(getattr(entry.halos, kind), key) for kind, key in kinds]
            there = [at for at, measured in enumerate(all_four) if measured.value is not None]
            for place in there:
                measured = all_four[place]
                axis.errorbar(
                    place - 0.4 + wide * (index + 0.5),
                    measured.value,
                    yerr=_arms(measured),
                    label=learner if place == there[0] else None,
                    **figures.point(_colour(learner)),
                )
        axis.set(title=name, ylim=(-0.03, 1.03))
        axis.set_xticks(range(4), ["L right", "E right", "H wrong", "B wrong"])
    axes[0][0].set_ylabel("share of queries")
    figures.legend_below(figure)
    return figure


@figures.style()
def by_k(results: Results) -> Figure | None:
    """KU and BKU against the number of gradient steps or passes."""
    families = {
        name: [row for row in _learners(found) if row[2].by_k]
        for name, found in results.families.items()
    }
    if not any(families.values()):
        return None
    figure, axes = figures.canvas(
        2,
        len(families),
        width=3.2 * len(families),
        height=4,
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    for column, (name, own) in enumerate(families.items()):
        for row, score in enumerate(("KU_avg", "BKU_avg")):
            for learner, _, entry in own:
                steps = range(len(entry.by_k))
                along = [getattr(point, score) for point in entry.by_k]
                axes[row][column].errorbar(
                    steps,
                    [point.value for point in along],
                    yerr=_all_arms(along),
                    label=learner,
                    **figures.line(_colour(learner)),
                )
            ticks = [point.K for point in own[0][2].by_k] if own else []
            axes[row][column].set_xticks(range(len(ticks)), ticks)
            axes[row][column].set(title=name if row == 0 else "", xlabel="K" if row else "")
    axes[0][0].set_ylabel("KU")
    axes[1][0].set_ylabel("BKU")
    figures.legend_below(figure)
    return figure


@figures.style()
def bias_drift(results: Results) -> Figure | None:
    """How far answers move when only a protected attribute does."""
    rows = [
        (f"{learner} {base}", family, entry.bias_drift)
        for family, found in results.families.items()
        for learner, base, entry in _learners(found)
        if entry.bias_drift is not None
    ]
    if not rows:
        return None
    labels = {
        "flips": "answers that flip",
        "flips_less_balanced": "the same, less that\nof a balanced world",
        "signed": "towards the stereotype",
        "signed_less_balanced": "the same, less that\nof a balanced world",
    }
    keys = [key for key in labels if any(getattr(drift, key) is not None for _, _, drift in rows)]
    figure, axes = figures.canvas(
        1, len(keys), width=3.2 * len(keys), height=0.6 + 0.2 * len(rows), sharey=True
    )
    for axis, key in zip(axes, keys, strict=True):
        for place, (_, family, drift) in enumerate(rows):
            measured = getattr(drift, key)
            if measured is None:
                continue
            index = list(results.families).index(family)
            axis.errorbar(measured.value, place, xerr=_arms(measured), **figures.point(index))
        axis.axvline(0, color=figures.FAINT, linewidth=0.7)
        axis.set_xlabel(labels[key])
    axes[0].set_yticks(range(len(rows)), [f"{name} ({family})" for name, family, _ in rows])
    axes[0].tick_params(axis="y", labelsize=6)
    return figure


@figures.style()
def streaming(results: Results) -> Figure | None:
    """KU and BKU along a stream just after each sample, and how KU has changed one, ten and a
    hundred samples later.

    Each sample of a generated stream is about somebody else, so that what is lost later was
    forgotten, not overruled.
    """
    families = {name: found.streaming for name, found in results.families.items()}
    if not any(not _is_control(name) for found in families.values() for name in found):
        return None
    figure, axes = figures.canvas(
        3, len(families), width=3.2 * len(families), height=6.5, squeeze=False, sharey="row"
    )
    for (good, bad, later), (name, found) in zip(axes.T, families.items(), strict=True):
        own = [learner for learner in found if not _is_control(learner)]
        for learner in own:
            best = results.families[name].learners[learner].best
            if best not in found[learner]:
                continue
            streamed = found[learner][best]
            look = figures.line(_colour(learner))
            good.plot(streamed.KU_by_time, label=learner, **look)
            bad.plot(streamed.BKU_by_time, **look)
            lags = list(streamed.retention)
            changes = [streamed.retention[lag].KU_since for lag in lags]
            values = [measured.value for measured in changes]
            later.errorbar(range(len(lags)), values, yerr=_all_arms(changes), **look)
            later.set_xticks(range(len(lags)), lags)
        good.set(title=name)
        bad.set(xlabel="samples learnt before")
        later.set(xlabel="samples learnt since")
    axes[0][0].set_ylabel("KU just after")
    axes[1][0].set_ylabel("BKU just after")
    axes[2][0].set_ylabel("change of KU since")
    figures.legend_below(figure)
    return figure


@figures.style()
def growth(results: Results) -> Figure | None:
    """Neurons and slots of the learner whose growth is counted, while its base state grew."""
    families = {name: found.growth for name, found in results.families.items() if found.growth}
    if not families:
        return None
    figure, axes = figures.canvas(1, 2, width=6.4, height=2.6)
    for axis, counted in zip(axes, ("neurons", "slots"), strict=True):
        for index, (name, grown) in enumerate(families.items()):
            axis.plot(grown.samples, getattr(grown, counted), label=name, **figures.line(index))
        axis.set(xlabel="samples heard", ylabel=counted, ylim=(0, None))
    axes[0].legend()
    return figure

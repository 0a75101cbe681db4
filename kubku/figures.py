"""The figures of a page, drawn from results alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evidence import figures
from evidence.measurement import Measurement
from kubku.learners.registry import Group, in_group
from kubku.results import BaseStateResults, FamilyResults, Results

_KINDS: tuple[Group, ...] = ("gradient", "reader", "grownet", "replaying", "ablation")
"""The groups of learners that have a colour of their own where KU stands against BKU."""


def draw(results: Results) -> dict[str, Figure | None]:
    """Every figure by name; None for what the run didn't measure."""
    return {
        "ku_bku": scatter(results),
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


@figures.style()
def scatter(results: Results) -> Figure:
    """KU against BKU, all base states, controls as landmarks; of each learner's best base state the
    intervals, and every replicate as a small point: a mean can lie where no replicate does.
    """
    families = results.families
    figure, axes = figures.canvas(
        1, len(families), width=3.2 * len(families), height=3.9, squeeze=False, sharey=True
    )
    everyone = {learner for family in families.values() for learner, *_ in _learners(family)}
    for learner in sorted(everyone, key=_colour):
        axes[0][0].errorbar([], [], label=learner, **_mark(learner))
    for axis, (name, family) in zip(axes[0], families.items(), strict=True):
        for learner in sorted(family.learners, key=_colour, reverse=True):
            found = family.learners[learner]
            for base, entry in found.base_states.items():
                if not _is_control(learner):
                    _spot(axis, entry, learner, best=base == found.best)
        _landmarks(axis, family)
        axis.set(title=name, xlabel="BKU", xlim=(-0.1, 2.1), ylim=(-0.1, 2.35))
    axes[0][0].set_ylabel("KU")
    if everyone:
        figures.legend_below(figure, ncols=5, fontsize=7)
    return figure


def _spot(axis: Axes, entry: BaseStateResults, learner: str, best: bool) -> None:
    """A learner on one base state: with intervals and replicates if it is the best one."""
    ku, bku = entry.KU_avg, entry.BKU_avg
    at: Any = {"x": bku.value, "y": ku.value}
    arms = (_arms(bku), _arms(ku)) if best else (None, None)
    shown: Any = {"elinewidth": 0.5, "capsize": 0, "alpha": 1 if best else 0.4, **_mark(learner)}
    axis.errorbar(**at, xerr=arms[0], yerr=arms[1], **shown)
    replicates: Any = entry.by_replicate.BKU, entry.by_replicate.KU
    if best and len(replicates[0]) > 1:
        axis.plot(*replicates, ".", color=_mark(learner)["color"], markersize=3)


def _landmarks(axis: Axes, family: FamilyResults) -> None:
    """The controls, as crosses; those that lie on one spot share a label."""
    spots: dict[tuple[float, float], list[tuple[str, float, float]]] = {}
    for learner in filter(_is_control, family.learners):
        for entry in family.learners[learner].base_states.values():
            ku, bku = entry.KU_avg.value or 0.0, entry.BKU_avg.value or 0.0
            axis.scatter(bku, ku, marker="x", color=figures.INK, s=18)
            spots.setdefault((round(bku, 1), round(ku, 1)), []).append((learner, bku, ku))
    for names, xs, ys in (zip(*of_spot, strict=True) for of_spot in spots.values()):
        x, y = min(xs), max(ys)
        axis.annotate(
            ",\n".join(names),
            (x, y),
            xytext=(-4, 3) if x > 1 else (4, 3),
            ha="right" if x > 1 else "left",
            textcoords="offset points",
            fontsize=6,
            color=figures.FAINT,
        )


def _mark(learner: str) -> Mapping[str, str]:
    """The colour of its group, and a shape of its own among these."""
    for index, group in enumerate(_KINDS):
        names = in_group(group)
        if learner in names:
            marker = "os^DvP"[names.index(learner) % 6]
            return {"color": figures.PALETTE[index], "marker": marker, "linestyle": "none"}
    return {"color": figures.INK, "marker": "P", "linestyle": "none"}


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
    """Distributions of KU(s) and BKU(s) over samples."""
    rows = [
        (family, learner, entry.histogram)
        for family, found in results.families.items()
        for learner, _, entry in _learners(found)
    ]
    if not rows:
        return None
    families = list(results.families)
    figure, axes = figures.canvas(
        2, len(families), width=3.2 * len(families), height=4, squeeze=False, sharex=True
    )
    for row, score in enumerate(("KU", "BKU")):
        for column, name in enumerate(families):
            own = [(learner, h) for family, learner, h in rows if family == name]
            for learner, histogram in own:
                counts = getattr(histogram, score)
                shares = [count / max(1, sum(counts)) for count in counts]
                axes[row][column].stairs(
                    shares, histogram.edges, label=learner, **figures.line(_colour(learner))
                )
            axes[row][column].set(title=name if row == 0 else "", xlabel=f"{score}(s)")
    axes[0][0].set_ylabel("share of samples")
    axes[1][0].set_ylabel("share of samples")
    figures.legend_below(figure)
    return figure


@figures.style()
def halos(results: Results) -> Figure | None:
    """Share right in L and E, share wrong in H and B."""
    families = {name: _learners(found) for name, found in results.families.items()}
    if not any(families.values()):
        return None
    figure, axes = figures.canvas(
        1, len(families), width=3.2 * len(families), height=3, squeeze=False, sharey=True
    )
    kinds = (("L", "literal"), ("E", "entailed"), ("H", "hallucination"), ("B", "bias"))
    for axis, (name, own) in zip(axes[0], families.items(), strict=True):
        for index, (learner, _, entry) in enumerate(own):
            wide = 0.8 / len(own)
            for place, (kind, key) in enumerate(kinds):
                measured = getattr(getattr(entry.halos, kind), key)
                axis.errorbar(
                    place - 0.4 + wide * (index + 0.5),
                    measured.value,
                    yerr=_arms(measured),
                    label=learner if place == 0 else None,
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
    """Neurons and slots of `grownet` while its base state grew."""
    families = {name: found.growth for name, found in results.families.items() if found.growth}
    if not families:
        return None
    figure, axes = figures.canvas(1, 2, width=6.4, height=2.6)
    for axis, counted in zip(axes, ("neurons", "slots"), strict=True):
        for index, (name, grown) in enumerate(families.items()):
            axis.plot(grown.samples, getattr(grown, counted), label=name, **figures.line(index))
        axis.set(xlabel="samples heard", ylabel=counted, ylim=(0, None))
        axis.set_xscale("symlog", linthresh=1)
    axes[0].legend()
    return figure

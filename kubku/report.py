"""The page and its figures, drawn from results.json alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from evidence import figures, load
from evidence.pages import render
from evidence.runtime.files import write_text
from kubku.learners.registry import in_group

Results = Mapping[str, Any]
ANSWERS = ("no", "unknown", "yes", "invalid", "error")
_GROUPS = (
    ("gradient", in_group("gradient")),
    ("read into a state", in_group("reader")),
    ("GrowNet", in_group("grownet")),
    ("gradient, replaying", in_group("replaying")),
    ("GrowNet, ablated", in_group("ablation")),
)


def write(folder: str | Path) -> Path:
    """Draw the figures of a run into `figures/` and write its `report.html`; the page's path."""
    folder = Path(folder)
    results = load(folder)
    drawn = {name: figure for name, figure in draw(results).items() if figure is not None}
    for name, figure in drawn.items():
        figures.save(figure, folder / "figures", name)
    inline = {name: figures.svg(figure) for name, figure in drawn.items()}
    page = render("kubku", "report.html", results=results, figures=inline, answers=ANSWERS)
    return write_text(folder / "report.html", page)


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


# Each learner has its colour in every figure but the first, and none of the thesis' shares one.
_ORDER = (
    *in_group("gradient"),
    *reversed(in_group("grownet")),
    *in_group("replaying", "reader", "ablation"),
)
CONTROLS = in_group("control")


def _colour(learner: str) -> int:
    return _ORDER.index(learner) if learner in _ORDER else len(_ORDER)


def _learners(family: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """(learner, base state, its entry) of all that aren't controls, on their best base states."""
    return [
        (name, found["best"], found["base_states"][found["best"]])
        for name, found in family["learners"].items()
        if name not in CONTROLS
    ]


@figures.style()
def scatter(results: Results) -> Figure:
    """KU against BKU, all base states, controls as landmarks; of each learner's best base state the
    intervals, and every replicate as a small point: a mean can lie where no replicate does.
    """
    families = results["families"]
    figure, axes = figures.canvas(
        1, len(families), width=3.2 * len(families), height=3.9, squeeze=False, sharey=True
    )
    everyone = {learner for family in families.values() for learner, *_ in _learners(family)}
    for learner in sorted(everyone, key=_colour):
        axes[0][0].errorbar([], [], label=learner, **_look(learner))
    for axis, (name, family) in zip(axes[0], families.items(), strict=True):
        # Landmarks that lie on one spot share a label.
        landmarks: dict[tuple[float, float], list[tuple[str, float, float]]] = {}
        found = family["learners"]
        for learner in sorted(found, key=_colour, reverse=True):
            for base, entry in found[learner]["base_states"].items():
                ku, bku = entry["KU_avg"], entry["BKU_avg"]
                if learner in CONTROLS:
                    spot = round(bku["value"], 1), round(ku["value"], 1)
                    at = learner, bku["value"], ku["value"]
                    landmarks.setdefault(spot, []).append(at)
                    axis.scatter(bku["value"], ku["value"], marker="x", color=figures.INK, s=18)
                    continue
                best, look = base == found[learner]["best"], _look(learner)
                axis.errorbar(
                    bku["value"],
                    ku["value"],
                    xerr=_arms(bku) if best else None,
                    yerr=_arms(ku) if best else None,
                    **look | {"elinewidth": 0.5, "capsize": 0, "alpha": 1 if best else 0.4},
                )
                each = entry["by_replicate"]
                if best and len(each["KU"]) > 1:
                    axis.plot(each["BKU"], each["KU"], ".", color=look["color"], markersize=3)
        for names, xs, ys in (zip(*of_spot, strict=True) for of_spot in landmarks.values()):
            x, y = min(xs), max(ys)
            beside = {"ha": "right", "xytext": (-4, 3)} if x > 1 else {"xytext": (4, 3)}
            text = {"textcoords": "offset points", "fontsize": 6, "color": figures.FAINT}
            axis.annotate(",\n".join(names), (x, y), **text, **beside)
        axis.set(title=name, xlabel="BKU", xlim=(-0.1, 2.1), ylim=(-0.1, 2.35))
    axes[0][0].set_ylabel("KU")
    if everyone:
        figures.legend_below(figure, ncols=5, fontsize=7)
    return figure


def _look(learner: str) -> dict[str, Any]:
    """The colour of its kind, and a shape of its own among these."""
    for index, (_, names) in enumerate(_GROUPS):
        if learner in names:
            return figures.point(index) | {"marker": "os^DvP"[names.index(learner) % 6]}
    return figures.point(0) | {"marker": "P", "color": figures.INK}


def _arms(measurement: Mapping[str, Any]) -> list[list[float]] | None:
    if measurement["low"] is None:
        return None
    value = measurement["value"]
    return [[max(0, value - measurement["low"])], [max(0, measurement["high"] - value)]]


def _all_arms(along: list[Mapping[str, Any]]) -> list[list[float]]:
    arms = [_arms(measured) or [[0.0], [0.0]] for measured in along]
    return [[arm[side][0] for arm in arms] for side in (0, 1)]


@figures.style()
def histograms(results: Results) -> Figure | None:
    """Distributions of KU(s) and BKU(s) over samples."""
    rows = [
        (family, learner, entry["histogram"])
        for family, found in results["families"].items()
        for learner, _, entry in _learners(found)
    ]
    if not rows:
        return None
    families = list(results["families"])
    figure, axes = figures.canvas(
        2, len(families), width=3.2 * len(families), height=4, squeeze=False, sharex=True
    )
    for row, score in enumerate(("KU", "BKU")):
        for column, name in enumerate(families):
            own = [(learner, h) for family, learner, h in rows if family == name]
            for learner, histogram in own:
                total = max(1, sum(histogram[score]))
                shares = [count / total for count in histogram[score]]
                axes[row][column].stairs(
                    shares, histogram["edges"], label=learner, **figures.line(_colour(learner))
                )
            axes[row][column].set(title=name if row == 0 else "", xlabel=f"{score}(s)")
    axes[0][0].set_ylabel("share of samples")
    axes[1][0].set_ylabel("share of samples")
    figures.legend_below(figure)
    return figure


@figures.style()
def halos(results: Results) -> Figure | None:
    """Share right in L and E, share wrong in H and B."""
    families = {name: _learners(found) for name, found in results["families"].items()}
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
                measured = entry["halos"][kind][key]
                axis.errorbar(
                    place - 0.4 + wide * (index + 0.5),
                    measured["value"],
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
        name: [row for row in _learners(found) if row[2]["by_k"]]
        for name, found in results["families"].items()
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
                steps = range(len(entry["by_k"]))
                along = [point[score] for point in entry["by_k"]]
                axes[row][column].errorbar(
                    steps,
                    [point["value"] for point in along],
                    yerr=_all_arms(along),
                    label=learner,
                    **figures.line(_colour(learner)),
                )
            ticks = [point["K"] for point in own[0][2]["by_k"]] if own else []
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
        (f"{learner} {base}", family, entry["bias_drift"])
        for family, found in results["families"].items()
        for learner, base, entry in _learners(found)
        if entry["bias_drift"]
    ]
    if not rows:
        return None
    labels = {
        "flips": "answers that flip",
        "flips_less_balanced": "the same, less that\nof a balanced world",
        "signed": "towards the stereotype",
        "signed_less_balanced": "the same, less that\nof a balanced world",
    }
    keys = [key for key in labels if any(key in drift for _, _, drift in rows)]
    figure, axes = figures.canvas(
        1, len(keys), width=3.2 * len(keys), height=0.6 + 0.2 * len(rows), sharey=True
    )
    for axis, key in zip(axes, keys, strict=True):
        for place, (_, family, drift) in enumerate(rows):
            if key not in drift:
                continue
            measured = drift[key]
            index = list(results["families"]).index(family)
            axis.errorbar(measured["value"], place, xerr=_arms(measured), **figures.point(index))
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
    families = {name: found["streaming"] for name, found in results["families"].items()}
    if not any(set(found) - set(CONTROLS) for found in families.values()):
        return None
    figure, axes = figures.canvas(
        3, len(families), width=3.2 * len(families), height=6.5, squeeze=False, sharey="row"
    )
    for (good, bad, later), (name, found) in zip(axes.T, families.items(), strict=True):
        own = [learner for learner in found if learner not in CONTROLS]
        for learner in own:
            best = results["families"][name]["learners"][learner]["best"]
            if best not in found[learner]:
                continue
            streamed = found[learner][best]
            look = figures.line(_colour(learner))
            good.plot(streamed["KU_by_time"], label=learner, **look)
            bad.plot(streamed["BKU_by_time"], **look)
            lags = list(streamed["retention"])
            changes = [streamed["retention"][lag]["KU_since"] for lag in lags]
            values = [measured["value"] for measured in changes]
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
    """Neurons and slots of `grownet_two_layer` while its base state grew."""
    families = {n: found["growth"] for n, found in results["families"].items() if "growth" in found}
    if not families:
        return None
    figure, axes = figures.canvas(1, 2, width=6.4, height=2.6)
    for axis, counted in zip(axes, ("neurons", "slots"), strict=True):
        for index, (name, grown) in enumerate(families.items()):
            axis.plot(grown["samples"], grown[counted], label=name, **figures.line(index))
        axis.set(xlabel="samples heard", ylabel=counted, ylim=(0, None))
        axis.set_xscale("symlog", linthresh=1)
    axes[0].legend()
    return figure

"""The page and its figures, made from an output folder's files and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from epistemic.cards import Card, read_cards
from epistemic.evaluate import read_rows
from epistemic.scoring.thesis import Thesis, load_thesis, meets
from epistemic.systems import CONTROLS
from evidence import figures, load
from evidence.measurement import Measurement
from evidence.pages import render
from evidence.runtime.files import write_text

METRICS = {
    "AP": "abstention precision",
    "CVRR": "contradictions rejected",
    "FAR_NE": "false answers off E",
    "LA": "licensed-answer accuracy",
}
"""The four metrics, as results name them and in words."""
MOST_CARDS = 10_000
"""Cards in the page's browser; with more, failures stay and the rest is cut, which is said."""

Results = Mapping[str, Any]


def write_page(folder: str | Path) -> Path:
    """Draw the figures into `folder/figures` and write `folder/report.html`.

    Args:
      folder: holds results.json, cards.jsonl and answers/*.jsonl.

    Returns:
      Path of the page.
    """
    folder = Path(folder)
    results = load(folder)
    thesis = load_thesis()
    drawn = {
        "scores": scores_figure(results["systems"], thesis),
        "selective": selective_figure(results["systems"]),
        "quality": quality_figure(results["quality"]),
    }
    for name, figure in drawn.items():
        if figure is not None:
            figures.save(figure, folder / "figures", name)
    cards = read_cards(folder / "cards.jsonl")
    answers = {name: read_rows(folder / "answers" / f"{name}.jsonl") for name in results["systems"]}
    text = render(
        "epistemic",
        "report.html",
        results=results,
        thesis=thesis,
        metrics=METRICS,
        figures={name: figures.svg(f) if f is not None else None for name, f in drawn.items()},
        measured=measured,
        meets=meets,
        browser=browser(cards, answers),
    )
    return write_text(folder / "report.html", text)


def measured(entry: Mapping[str, Any] | None) -> Measurement | None:
    """A Measurement out of an entry of results, which may hold a numerator and more beside it."""
    return (
        None
        if entry is None
        else Measurement(*(entry[name] for name in Measurement.__dataclass_fields__))
    )


def browser(cards: Sequence[Card], answers: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the page's card table shows, as plain data: failures first, those of controls last among
    them, then deck order.

    Returns:
      "systems": names; "cards": a list a card of [id, label, kind, gold, question, facts, rules,
      proof, answers], the last a list a system of [answer, reply or "", proof or error or ""];
      "cut": how many cards were left out.
    """
    names = list(answers)
    own = [name for name in names if name not in CONTROLS]

    def failures(card: Card) -> tuple[int, int]:
        real, all_ = (
            sum(not answers[name][card.id]["pass"] for name in group) for group in (own, names)
        )
        return real, all_

    shown = sorted(cards, key=failures, reverse=True)[:MOST_CARDS]
    rows = []
    for card in shown:
        said = [answers[name][card.id] for name in names]
        replies = [
            [row["pred"], row.get("raw") or "", row.get("error") or row.get("proof") or ""]
            for row in said
        ]
        rows.append(
            [
                card.id,
                card.label,
                card.kind,
                card.gold,
                card.question,
                list(card.facts),
                list(card.rules),
                card.proof,
                replies,
            ]
        )
    return {"systems": names, "cards": rows, "cut": len(cards) - len(shown)}


@figures.style()
def scores_figure(systems: Results, thesis: Thesis) -> Figure:
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
            entry = systems[name]["conventions"]["seed"][metric]
            if entry["value"] is None:
                axis.text(0.5, row, "undefined", ha="center", va="center", color=figures.FAINT)
                continue
            good = meets(thesis, metric, entry["value"])
            spread = [[entry["value"] - entry["low"]], [entry["high"] - entry["value"]]]
            axis.errorbar(entry["value"], row, xerr=spread, **figures.point(0 if good else 1))
        low, high = thesis.ideal[metric]
        axis.axvline(high if low == 0 else low, color=figures.FAINT, linewidth=0.8, dashes=(2, 2))
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    return figure


@figures.style()
def selective_figure(systems: Results) -> Figure | None:
    """Risk against coverage, and accuracy against confidence, of systems that rank their answers.

    None where no system gives more than one confidence.
    """
    graded = {
        name: entry["selective"]
        for name, entry in systems.items()
        if entry["selective"]["n"] and len(entry["selective"]["reliability"]) > 1
    }
    if not graded:
        return None
    figure, (left, right) = figures.canvas(1, 2, width=8.0, height=3.2)
    right.plot([0, 1], [0, 1], color=figures.FAINT, linewidth=0.8)
    for i, (name, selective) in enumerate(graded.items()):
        if selective["risk_coverage"]:
            coverage, risk = np.transpose(selective["risk_coverage"])
            left.plot(coverage, risk, label=name, **figures.line(i))
        bins = selective["reliability"]
        right.plot(
            [b["confidence"] for b in bins],
            [b["accuracy"] for b in bins],
            **figures.line(i),
            **{"marker": "o", "markersize": 3},
        )
    left.set(xlabel="coverage", ylabel="risk: wrong among answered", xlim=(0, 1), ylim=(0, 1.02))
    right.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.02))
    left.legend(loc="lower right")
    return figure


@figures.style()
def quality_figure(quality: Sequence[Results]) -> Figure | None:
    """AP, FAR-NE and LA against the share of the graph that is left, without and with errors."""
    if not quality:
        return None
    shown = ("AP", "FAR_NE", "LA")
    figure, axes = figures.canvas(1, 3, width=8.6, height=2.8, sharey=True)
    series = sorted({(name, p["wrong"]) for p in quality for name in p["systems"]})
    for axis, metric in zip(axes, shown, strict=True):
        for i, (name, wrong) in enumerate(series):
            points = [
                (point["keep"], point["systems"][name][metric])
                for point in sorted(quality, key=lambda point: point["keep"])
                if point["wrong"] == wrong and name in point["systems"]
            ]
            keep = [k for k, _ in points]
            values = [np.nan if m["value"] is None else m["value"] for _, m in points]
            label = f"{name}, {wrong:.0%} wrong"
            axis.plot(keep, values, label=label, marker="o", **figures.line(i))
            low, high = (
                [np.nan if m[end] is None else m[end] for _, m in points] for end in ("low", "high")
            )
            figures.band(axis, keep, low, high, i)
        axis.set(title=metric.replace("_", "-"), xlabel="share of triples kept", ylim=(-0.02, 1.02))
        axis.invert_xaxis()
    axes[0].legend(loc="lower left")
    return figure

"""From rows of answers to what results hold: every system's scores, and systems compared."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from epistemic.cards import Card
from epistemic.scoring import metrics
from epistemic.scoring.metrics import CONVENTIONS, LABELS, Resampled
from epistemic.scoring.thesis import Thesis, is_ideal, judge
from epistemic.systems import CONTROLS, REFERENCE
from evidence.answers import Answer

Rows = Mapping[str, Mapping[str, Any]]
"""One system's rows by card id."""


def assess(
    cards: Sequence[Card], answers: Mapping[str, Rows], thesis: Thesis, seed: int
) -> dict[str, Any]:
    """Score systems that answered the same cards.

    Args:
      cards: the deck.
      answers: rows by system.
      thesis: states which values are ideal.
      seed: of the bootstrap.

    Returns:
      "systems": {name: {role, table, conventions, beside, selective, by_kind, by_predicate,
      ideal, latency_s}}; "comparisons": the paired differences between every two systems that are
      neither control nor reference; "thesis": its verdict.
    """
    names = list(answers)
    label = np.array([LABELS.index(card.label) for card in cards], np.int32)
    subjects, subject = np.unique([card.subject for card in cards], return_inverse=True)
    said = np.array(
        [[Answer[answers[name][card.id]["pred"]] for card in cards] for name in names], np.int32
    )
    kinds = sorted({card.kind for card in cards})
    predicates = sorted({card.claim.pred for card in cards})
    groups = ["all", *(f"kind {k}" for k in kinds), *(f"predicate {p}" for p in predicates)]
    member = np.array(
        [
            [0, groups.index(f"kind {c.kind}"), groups.index(f"predicate {c.claim.pred}")]
            for c in cards
        ]
    )
    drawn = metrics.resample(_count(label, said, subject, member, len(subjects), len(groups)), seed)
    systems = {}
    for i, name in enumerate(names):
        whole = drawn.at(i, 0)
        beside = metrics.measure(metrics.beside, whole)
        conventions = {key: metrics.measure(ratios, whole) for key, ratios in CONVENTIONS.items()}
        confidence = np.array(
            [_number(answers[name][card.id].get("confidence")) for card in cards], float
        )
        systems[name] = {
            "role": _role(name),
            "table": metrics.by_name(whole.total),
            "conventions": conventions,
            "beside": beside,
            "ideal": is_ideal(thesis, conventions["seed"], beside["error_rate"]["value"]),
            "selective": metrics.selective(label, said[i], confidence, subject, seed),
            "by_kind": {
                kind: _part(drawn.at(i, groups.index(f"kind {kind}")), with_seed=False)
                for kind in kinds
            },
            "by_predicate": {
                predicate: _part(drawn.at(i, groups.index(f"predicate {predicate}")))
                for predicate in predicates
            },
            "latency_s": _latency([answers[name][card.id] for card in cards]),
        }
    ranked = [i for i, name in enumerate(names) if _role(name) == "ranked"]
    comparisons = [
        {
            "one": names[i],
            "other": names[j],
            "seed": metrics.difference(metrics.seed, drawn.at(i, 0), drawn.at(j, 0)),
            "beside": metrics.difference(metrics.beside, drawn.at(i, 0), drawn.at(j, 0)),
        }
        for i, j in combinations(ranked, 2)
    ]
    return {
        "systems": systems,
        "comparisons": comparisons,
        "thesis": _verdict(thesis, names, drawn, systems),
    }


def _verdict(
    thesis: Thesis, names: list[str], drawn: Resampled, systems: Mapping[str, Any]
) -> dict[str, Any]:
    pair = (thesis.licensed, thesis.unlicensed)
    if any(name not in names for name in pair):
        return judge(thesis, None, {})
    licensed, unlicensed = (drawn.at(names.index(name), 0) for name in pair)
    differences = metrics.difference(CONVENTIONS[thesis.convention], licensed, unlicensed)
    return judge(
        thesis,
        differences,
        {name: systems[name]["beside"]["error_rate"]["value"] for name in pair},
    )


def _count(
    label: np.ndarray,
    said: np.ndarray,
    subject: np.ndarray,
    member: np.ndarray,
    subjects: int,
    groups: int,
) -> np.ndarray:
    """i32[S, K, G, 3, 5]: a table for each subject, system and group of cards.

    Args:
      label: i[N]. said: i[K, N]. subject: i[N]. member: i[N, M], the groups each card is in.
    """
    systems = said.shape[0]
    cell = (subject[None, :, None] * systems + np.arange(systems)[:, None, None]) * groups
    cell = cell + member[None]
    shape = cell.shape
    flat = metrics.tables(
        np.broadcast_to(label[None, :, None], shape).reshape(-1).astype(np.int32),
        np.broadcast_to(said[:, :, None], shape).reshape(-1).astype(np.int32),
        cell.reshape(-1).astype(np.int32),
        groups=subjects * systems * groups,
    )
    return np.asarray(flat).reshape(subjects, systems, groups, 3, 5)


def _part(drawn: Resampled, with_seed: bool = True) -> dict[str, Any]:
    """A breakdown's entry; a kind has one label, so that only its accuracy says something."""
    entry = {
        "table": metrics.by_name(drawn.total),
        "accuracy": metrics.measure(metrics.beside, drawn)["accuracy"],
    }
    return entry | ({"seed": metrics.measure(metrics.seed, drawn)} if with_seed else {})


def _role(name: str) -> str:
    return "control" if name in CONTROLS else "reference" if name == REFERENCE else "ranked"


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _latency(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    seconds = np.array([row.get("latency_s") or 0.0 for row in rows])
    return {"median": float(np.median(seconds)), "p95": float(np.percentile(seconds, 95))}


def scores(cards: Sequence[Card], rows: Rows, seed: int) -> dict[str, Any]:
    """The four metrics of one system under the seed convention, for sweeps."""
    return metrics.measure(metrics.seed, _drawn(cards, rows, seed))


def compare_decks(
    one: tuple[Sequence[Card], Mapping[str, Rows]],
    other: tuple[Sequence[Card], Mapping[str, Rows]],
    seed: int,
) -> dict[str, Any]:
    """How each system differs between two decks, and how much of that is the decks' own making.

    Args:
      one, other: cards with every system's rows. Systems that both decks have are compared.
      seed: of the bootstrap.

    Returns:
      {system: {"as_dealt": {metric: Measurement}, "at_equal_labels": {...}}}: first minus second,
      under the seed convention; at equal labels the decks' label ratios are taken out, so that what
      is left is a real difference where its interval keeps clear of 0.
    """
    found = {}
    for name in one[1]:
        if name in other[1]:
            first = _drawn(one[0], one[1][name], seed)
            second = _drawn(other[0], other[1][name], seed + 1)
            found[name] = {
                "as_dealt": metrics.difference(metrics.seed, first, second, paired=False),
                "at_equal_labels": metrics.difference(
                    lambda t: metrics.seed(metrics.at_equal_labels(t)), first, second, paired=False
                ),
            }
    return found


def _drawn(cards: Sequence[Card], rows: Rows, seed: int) -> Resampled:
    label = np.array([LABELS.index(card.label) for card in cards], np.int32)
    subjects, subject = np.unique([card.subject for card in cards], return_inverse=True)
    said = np.array([[Answer[rows[card.id]["pred"]] for card in cards]], np.int32)
    member = np.zeros((len(cards), 1), int)
    counted = _count(label, said, subject, member, len(subjects), 1)
    return metrics.resample(counted, seed).at(0, 0)


def schema() -> dict[str, Any]:
    """The JSON Schema of results.json."""
    text = importlib.resources.files("epistemic").joinpath("results.schema.json").read_text("utf-8")
    return json.loads(text)


def plain_metrics(systems: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Values alone by system, as the published metrics.json has them, under the seed convention."""
    return {
        name: {
            key: entry["value"] for key, entry in (s["conventions"]["seed"] | s["beside"]).items()
        }
        for name, s in systems.items()
    }

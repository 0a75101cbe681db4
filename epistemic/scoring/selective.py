"""What a system's confidence is worth: risk against coverage, and calibration.

Risk is the share wrong among the answered (YES, NO, INVALID), most confident first, those without a
confidence after all that have one; UNKNOWN ranks last and adds to neither. Answers of equal
confidence form one group, inside which the expected order counts. AURC (Geifman and El-Yaniv 2017)
is the risk's mean over the cards in rank order, E-AURC (Geifman et al. 2019) that minus the AURC of
the same answers in the best order. Brier score and ECE (15 bins of equal mass) take the confidence,
of the answers that have one, as the probability that the answer, UNKNOWN included, is the gold one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epistemic.results import Bin, Selective
from epistemic.scoring.metrics import ERROR, RIGHT, UNKNOWN
from evidence import stats
from evidence.measurement import Measurement

# The areas are smooth, and each draw walks all the cards.
_RESAMPLES = 200
_NOTHING = Selective(
    AURC=None, E_AURC=None, brier=None, ece=None, risk_coverage=None, reliability=None, n=0
)


class _Values(NamedTuple):
    """The four numbers; None where no answer counts."""

    AURC: float | None
    E_AURC: float | None
    brier: float | None
    ece: float | None


def selective(
    label: np.ndarray, answer: np.ndarray, confidence: np.ndarray, subject: np.ndarray, seed: int
) -> Selective:
    """How well confidence ranks and states the chance of being right.

    Args:
      label: i[N], rows of a table.
      answer: i[N] of `Answer`; an ERROR is left out.
      confidence: f[N] in [0, 1], NaN where there is none.
      subject: i[N], the clusters.
      seed: of the bootstrap.
    """
    said = answer != ERROR
    label, answer, subject = label[said], answer[said], subject[said]
    confidence = confidence[said].astype(float)
    stated = np.isfinite(confidence)
    if not stated.any():
        return _NOTHING
    right = np.asarray(RIGHT)[label] == answer
    answered = answer != UNKNOWN
    wrong = ~right & answered
    order, group = _ranked(np.where(stated, confidence, -1.0), answered)
    perfect, perfect_group = _ranked(np.where(right, 1.0, 0.0), answered)

    def values(weight: np.ndarray) -> _Values:
        area = _aurc(weight[order], wrong[order], answered[order], group)
        best = _aurc(weight[perfect], wrong[perfect], answered[perfect], perfect_group)
        excess = None if area is None or best is None else area - best
        mass, sure, met = weight[stated], confidence[stated], right[stated]
        if not mass.any():
            return _Values(area, excess, None, None)
        brier = float(np.average((sure - met) ** 2, weights=mass))
        return _Values(area, excess, brier, _ece(sure, met, mass))

    return Selective(
        **_measured(values, subject, seed),
        risk_coverage=_curve(wrong[order], answered[order], group),
        reliability=_bins(confidence[stated], right[stated]),
        n=int(stated.sum()),
    )


def _measured(
    values: Callable[[np.ndarray], _Values], subject: np.ndarray, seed: int
) -> dict[str, Measurement]:
    """The four numbers with intervals, by the cluster bootstrap: each draw weighs the cards."""
    _, cluster = np.unique(subject, return_inverse=True)
    clusters = int(cluster.max()) + 1
    draws = np.random.default_rng(seed)
    picks = [
        np.bincount(draws.integers(0, clusters, clusters), minlength=clusters)[cluster]
        for _ in range(_RESAMPLES)
    ]
    whole = values(np.ones(len(subject)))
    drawn = [values(weight.astype(float)) for weight in picks if weight.any()]
    found = {}
    for i, (name, value) in enumerate(whole._asdict().items()):
        if value is None:
            undefined = "undefined: none answered"
            found[name] = Measurement(None, None, None, clusters, "subject", undefined)
            continue
        column = np.array([row[i] for row in drawn], dtype=float)
        measured = stats.from_draws(value, column, clusters, "subject", "cluster bootstrap")
        if measured.low is not None and measured.high is not None:
            measured = replace(measured, low=max(0.0, measured.low), high=min(1.0, measured.high))
        found[name] = measured
    return found


def _ranked(score: np.ndarray, answered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cards in rank order, and for each rank the number of its group of equals."""
    key = np.where(answered, score, -np.inf)
    order = np.argsort(-key, kind="stable")
    ranked = key[order]
    return order, np.concatenate([[0], np.cumsum(ranked[1:] != ranked[:-1])])


def _aurc(
    weight: np.ndarray, wrong: np.ndarray, answered: np.ndarray, group: np.ndarray
) -> float | None:
    """Area under the risk-coverage curve of ranked, weighted cards; None if none is answered."""
    size = np.bincount(group, weight)
    share_wrong = np.divide(
        np.bincount(group, weight * wrong), size, out=np.zeros_like(size), where=size > 0
    )
    mass = np.cumsum(weight * answered)
    loss = np.cumsum(weight * share_wrong[group])
    counted = mass > 0
    if not counted.any():
        return None
    return float(np.average(loss[counted] / mass[counted], weights=weight[counted]))


def _curve(
    wrong: np.ndarray, answered: np.ndarray, group: np.ndarray
) -> tuple[tuple[float, float], ...]:
    ends = np.flatnonzero(np.append(group[1:] != group[:-1], True) & answered)
    risk = np.cumsum(wrong)[ends] / np.cumsum(answered)[ends]
    return tuple(
        (float((end + 1) / len(wrong)), float(r)) for end, r in zip(ends, risk, strict=True)
    )


def _equal_mass(confidence: np.ndarray, weight: np.ndarray, bins: int) -> np.ndarray:
    """Each card's bin, in [0, bins); equal confidences share one."""
    order = np.argsort(confidence, kind="stable")
    mass = np.cumsum(weight[order]) - weight[order] / 2
    bin_of = np.minimum((mass / weight.sum() * bins).astype(int), bins - 1)
    _, first, inverse = np.unique(confidence[order], return_index=True, return_inverse=True)
    found = np.empty(len(order), int)
    found[order] = bin_of[first][inverse]
    return found


def _ece(confidence: np.ndarray, right: np.ndarray, weight: np.ndarray, bins: int = 15) -> float:
    place = _equal_mass(confidence, weight, bins)
    gap = np.bincount(place, weight * (confidence - right), minlength=bins)
    return float(np.abs(gap).sum() / weight.sum())


def _bins(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> tuple[Bin, ...]:
    place = _equal_mass(confidence, np.ones(len(right)), bins)
    return tuple(
        Bin(
            confidence=float(confidence[place == b].mean()),
            accuracy=float(right[place == b].mean()),
            n=int((place == b).sum()),
        )
        for b in np.unique(place)
    )

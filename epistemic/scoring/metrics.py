"""From answers to numbers: the table, three conventions over it, selective metrics, intervals.

The record of a system is its table, i32[3, 5]: gold (rows E, C, U) by answer (columns NO, UNKNOWN,
YES, INVALID, ERROR). Every ratio is a numerator and a denominator read off a table, so that the
same function serves one table, a table a subject and a thousand resampled tables: all take
`[..., 3, 5]`.

Three conventions differ in what a right answer on a contradictory claim is:

- `seed`: a NO rejects the claim, as the experiment's description has it, and so does abstaining.
- `strict`: abstaining is right on unknown claims alone, and only a NO rejects.
- `published`: what the published code computes: UNKNOWN abstains, YES and NO both answer, right or
  wrong. A system that gives every gold answer gets CVRR 0 and FAR-NE 0.67 by it; it is here so that
  published figures can be reproduced.

INVALID stays in denominators and is a false answer off E. ERROR, a call that failed, is left out of
every ratio but the error rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence import stats
from evidence.answers import Answer
from evidence.measurement import Measurement
from evidence.stats import wilson

LABELS = ("E", "C", "U")
"""Rows of a table: entailed, contradictory, unknown."""
E, C, U = range(3)
NO, UNKNOWN, YES, INVALID, ERROR = Answer
RIGHT = (YES, NO, UNKNOWN)
"""The gold answer of each row."""
RESAMPLES = 2000
_Z = 1.959963984540054  # of 95%


class Ratio(NamedTuple):
    """A share of cards, numerator and denominator each `[...]`."""

    numerator: Any
    denominator: Any


Ratios = dict[str, Ratio]


@partial(jax.jit, static_argnames="groups")
def tables(label: jax.Array, answer: jax.Array, group: jax.Array, groups: int) -> jax.Array:
    """Count answers: a table a group.

    Args:
      label: i32[N], row of each card.
      answer: i32[N], an `Answer` each.
      group: i32[N] in [0, groups); cards with a group outside it are not counted.
      groups: how many tables.

    Returns:
      i32[groups, 3, 5].
    """
    cell = (group * 3 + label) * 5 + answer
    cell = jnp.where((group >= 0) & (group < groups), cell, groups * 15)
    return jnp.zeros(groups * 15, jnp.int32).at[cell].add(1, mode="drop").reshape(groups, 3, 5)


def seed(t: Any) -> Ratios:
    """A NO on a contradictory claim is a rejection, and so counts among the right abstentions."""
    rejected = t[..., C, NO] + t[..., C, UNKNOWN]
    right = rejected + t[..., U, UNKNOWN]
    return {
        "AP": Ratio(right, right + t[..., E, UNKNOWN]),
        "CVRR": Ratio(rejected, _count(t, C)),
        "FAR_NE": _false_answers(t),
        "LA": Ratio(t[..., E, YES], _count(t, E)),
    }


def strict(t: Any) -> Ratios:
    """Abstaining is right on unknown claims alone; only a NO rejects a contradictory one."""
    return seed(t) | {
        "AP": Ratio(t[..., U, UNKNOWN], t[..., UNKNOWN].sum(-1)),
        "CVRR": Ratio(t[..., C, NO], _count(t, C)),
    }


def published(t: Any) -> Ratios:
    """As the published code counts: only UNKNOWN abstains, YES and NO both answer."""
    abstained = t[..., UNKNOWN]
    answered = t[..., NO] + t[..., YES]
    off_e = abstained[..., C] + abstained[..., U]
    said = answered + t[..., INVALID]
    return {
        "AP": Ratio(off_e, off_e + abstained[..., E]),
        "CVRR": Ratio(abstained[..., C], _count(t, C)),
        "FAR_NE": Ratio(said[..., C] + said[..., U], _count(t, C) + _count(t, U)),
        "LA": Ratio(answered[..., E], _count(t, E)),
    }


def beside(t: Any) -> Ratios:
    """Ratios that hold under every convention.

    Abstention precision, recall and F1 take unknown claims as those to abstain on. Selective
    accuracy is the share right among YES and NO; coverage the share of cards answered so.
    """
    counted = t[..., :ERROR].sum((-2, -1))
    right = t[..., E, YES] + t[..., C, NO] + t[..., U, UNKNOWN]
    abstained = t[..., UNKNOWN].sum(-1)
    answered = t[..., YES].sum(-1) + t[..., NO].sum(-1)
    return {
        "accuracy": Ratio(right, counted),
        "coverage": Ratio(answered, counted),
        "selective_accuracy": Ratio(t[..., E, YES] + t[..., C, NO], answered),
        "abstention_precision": Ratio(t[..., U, UNKNOWN], abstained),
        "abstention_recall": Ratio(t[..., U, UNKNOWN], _count(t, U)),
        "abstention_f1": Ratio(2 * t[..., U, UNKNOWN], abstained + _count(t, U)),
        "over_refusal": Ratio(t[..., E, UNKNOWN], _count(t, E)),
        "invalid_rate": Ratio(t[..., INVALID].sum(-1), counted),
        "error_rate": Ratio(t[..., ERROR].sum(-1), t.sum((-2, -1))),
    }


CONVENTIONS: dict[str, Callable[[Any], Ratios]] = {
    "seed": seed,
    "strict": strict,
    "published": published,
}


def _count(t: Any, row: int) -> Any:
    return t[..., row, :ERROR].sum(-1)


def _false_answers(t: Any) -> Ratio:
    """YES off E, NO on an unknown claim, or unreadable: said where nothing licensed it."""
    said = t[..., C, YES] + t[..., U, YES] + t[..., U, NO] + t[..., C, INVALID] + t[..., U, INVALID]
    return Ratio(said, _count(t, C) + _count(t, U))


def by_name(table: np.ndarray) -> dict[str, dict[str, int]]:
    """A table as results hold it: {"E": {"YES": n, ...}, ...}."""
    return {
        label: {
            answer.name: int(table[row, answer]) for answer in (YES, NO, UNKNOWN, INVALID, ERROR)
        }
        for row, label in enumerate(LABELS)
    }


# --- Intervals: cards about one subject are not independent, so subjects are resampled. ---


class Resampled(NamedTuple):
    """Tables with what their uncertainty is judged from.

    Attributes:
      by_subject: i32[S, ..., 3, 5], a table a subject.
      drawn: f64[B, ..., 3, 5], the mean over subjects drawn with replacement, B times; the same
        draws for everything in `...`, so that differences between systems are paired.
    """

    by_subject: np.ndarray
    drawn: np.ndarray

    @property
    def total(self) -> np.ndarray:
        """i32[..., 3, 5]."""
        return self.by_subject.sum(0)

    def at(self, *index: Any) -> Resampled:
        """The part at `index` into `...`."""
        return Resampled(self.by_subject[:, *index], self.drawn[:, *index])


def resample(by_subject: np.ndarray, rng: int, resamples: int = RESAMPLES) -> Resampled:
    """The cluster bootstrap over count tables.

    Args:
      by_subject: i32[S, ..., 3, 5].
      rng: seed of the draws.
      resamples: B.
    """
    return Resampled(by_subject, stats.cluster_means(by_subject, resamples, rng))


def measure(ratios: Callable[[Any], Ratios], tables: Resampled) -> dict[str, dict[str, Any]]:
    """Every ratio of one system as a Measurement with its numerator and denominator.

    The interval is the cluster bootstrap's, and at 0 or 1, where resampling shows no spread,
    Wilson's on the effective number of subjects. Short of 0 and 1 it reaches at least as far as
    there: a first error seen may not make the rest look surer.
    """
    values, drawn, single = ratios(tables.total), ratios(tables.drawn), ratios(tables.by_subject)
    found = {}
    for name, (numerator, denominator) in values.items():
        weight = np.asarray(single[name].denominator, float)
        measurement = _interval(float(numerator), float(denominator), drawn[name], weight)
        found[name] = vars(measurement) | {
            "numerator": int(numerator),
            "denominator": int(denominator),
        }
    return found


def _interval(
    numerator: float, denominator: float, drawn: Ratio, weight: np.ndarray
) -> Measurement:
    subjects = int((weight > 0).sum())
    if denominator == 0:
        return Measurement(None, None, None, 0, "subject", "undefined: denominator 0")
    value, effective = numerator / denominator, _effective(weight)
    if value in (0.0, 1.0):
        edge = wilson(value * effective, effective, "subject")
        return replace(edge, n=subjects, method="Wilson 95%, effective n")
    found = stats.from_draws(value, _divide(drawn), subjects, "subject", "cluster bootstrap")
    if found.low is None or found.high is None:
        return found
    room = _unseen(effective)
    return replace(
        found, low=max(0.0, min(found.low, 1 - room)), high=min(1.0, max(found.high, room))
    )


def difference(
    ratios: Callable[[Any], Ratios], one: Resampled, other: Resampled, paired: bool = True
) -> dict[str, Measurement]:
    """Each ratio of `one` minus that of `other`.

    The interval is the cluster bootstrap's, and where no draw differs from another, the score
    interval of no discordant pair (Tango 1998) on the effective number of subjects: that none was
    seen among few says little of how many there are. No interval is narrower than that.

    Args:
      ratios: such as `seed`.
      one, other: parts of the same draws (`Resampled.at`) if `paired`, else of independent ones.
    """
    method = f"{'paired' if paired else 'two-deck'} cluster bootstrap"
    of_one, of_other = ratios(one.total), ratios(other.total)
    drawn_one, drawn_other = ratios(one.drawn), ratios(other.drawn)
    single_one, single_other = ratios(one.by_subject), ratios(other.by_subject)
    found = {}
    for name in of_one:
        pair = (of_one[name], of_other[name])
        if any(ratio.denominator == 0 for ratio in pair):
            found[name] = Measurement(None, None, None, 0, "subject", "undefined: denominator 0")
            continue
        first, second = (float(ratio.numerator / ratio.denominator) for ratio in pair)
        gap = first - second
        weights = [np.asarray(s[name].denominator) for s in (single_one, single_other)]
        held = [weight > 0 for weight in weights]
        subjects = int((held[0] | held[1]).sum() if paired else held[0].sum() + held[1].sum())
        draws = _divide(drawn_one[name]) - _divide(drawn_other[name])
        measured = stats.from_draws(gap, draws, subjects, "subject", method)
        room = _unseen(min(map(_effective, weights)))
        low, high = max(-1.0, gap - room), min(1.0, gap + room)
        if measured.low is None or measured.high is None or measured.low == measured.high:
            found[name] = replace(measured, low=low, high=high, method="score 95%, effective n")
        else:
            found[name] = replace(
                measured,
                low=max(-1.0, min(measured.low, low)),
                high=min(1.0, max(measured.high, high)),
            )
    return found


def _unseen(clusters: float) -> float:
    """The largest share that may be there when none was seen: the end of the score interval."""
    return _Z**2 / (clusters + _Z**2)


def _effective(weight: Any) -> float:
    """Kish's number of clusters: subjects with more cards count for less than a card each."""
    weight = np.asarray(weight, float)
    return float(weight.sum() ** 2 / (weight**2).sum())


def _divide(ratio: Ratio) -> np.ndarray:
    numerator, denominator = np.asarray(ratio.numerator), np.asarray(ratio.denominator)
    return np.divide(
        numerator, denominator, out=np.full(denominator.shape, np.nan), where=denominator > 0
    )


# --- Selective metrics, from confidences. ---


def selective(
    label: np.ndarray, answer: np.ndarray, confidence: np.ndarray, subject: np.ndarray, rng: int
) -> dict[str, Any]:
    """How well confidence ranks and states the chance of being right.

    Risk is the share wrong among the answered (YES, NO, INVALID), most confident first, those
    without a confidence after all that have one; UNKNOWN ranks last and adds to neither. Answers of
    equal confidence form one group, inside which the expected order counts. AURC (Geifman and
    El-Yaniv 2017) is the risk's mean over the cards in rank order, E-AURC (Geifman et al. 2019)
    that minus the AURC of the same answers in the best order. Brier score and ECE (15 bins of equal
    mass) take the confidence, of the answers that have one, as the probability that the answer,
    UNKNOWN included, is the gold one.

    Args:
      label: i[N], rows. answer: i[N]. confidence: f[N] in [0, 1], NaN where there is none.
      subject: i[N], the clusters. rng: seed of the bootstrap.

    Returns:
      "AURC", "E_AURC", "brier", "ece": Measurements; "risk_coverage": [[coverage, risk], ...] at
      the end of each group of equals; "reliability": bins of {confidence, accuracy, n}; "n" cards
      with a confidence. Everything is None where no card has one.
    """
    said = answer != ERROR
    label, answer, subject = label[said], answer[said], subject[said]
    confidence = confidence[said].astype(float)
    stated = np.isfinite(confidence)
    if not stated.any():
        nothing: dict[str, Any] = dict.fromkeys(("AURC", "E_AURC", "brier", "ece"))
        return nothing | {"risk_coverage": None, "reliability": None, "n": 0}
    right = np.asarray(RIGHT)[label] == answer
    answered = answer != UNKNOWN
    order, group = _ranked(np.where(stated, confidence, -1.0), answered)
    perfect, perfect_group = _ranked(np.where(right, 1.0, 0.0), answered)
    _, cluster = np.unique(subject, return_inverse=True)

    def statistics(weight: np.ndarray) -> tuple[float | None, ...]:
        area = _aurc(weight[order], (~right & answered)[order], answered[order], group)
        best = _aurc(
            weight[perfect], (~right & answered)[perfect], answered[perfect], perfect_group
        )
        excess = None if area is None or best is None else area - best
        mass, sure, met = weight[stated], confidence[stated], right[stated]
        if not mass.any():
            return area, excess, None, None
        return (
            area,
            excess,
            float(np.average((sure - met) ** 2, weights=mass)),
            _ece(sure, met, mass),
        )

    value = statistics(np.ones(len(answer)))
    # 200 draws: the areas are smooth, and each draw walks all the cards.
    draws = np.random.default_rng(rng)
    clusters = int(cluster.max()) + 1
    picks = [
        np.bincount(draws.integers(0, clusters, clusters), minlength=clusters)[cluster]
        for _ in range(200)
    ]
    spread = [statistics(weight.astype(float)) for weight in picks if weight.any()]

    def measured(i: int) -> Measurement:
        column, whole = np.array([row[i] for row in spread], dtype=float), value[i]
        if whole is None:
            return Measurement(None, None, None, clusters, "subject", "undefined: none answered")
        found = stats.from_draws(whole, column, clusters, "subject", "cluster bootstrap")
        if found.low is None or found.high is None:
            return found
        return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))

    return {
        "AURC": measured(0),
        "E_AURC": measured(1),
        "brier": measured(2),
        "ece": measured(3),
        "risk_coverage": _curve((~right & answered)[order], answered[order], group),
        "reliability": _bins(confidence[stated], right[stated]),
        "n": int(stated.sum()),
    }


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


def _curve(wrong: np.ndarray, answered: np.ndarray, group: np.ndarray) -> list[list[float]]:
    ends = np.flatnonzero(np.append(group[1:] != group[:-1], True) & answered)
    risk = np.cumsum(wrong)[ends] / np.cumsum(answered)[ends]
    return [[float((end + 1) / len(wrong)), float(r)] for end, r in zip(ends, risk, strict=True)]


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


def _bins(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> list[dict[str, float]]:
    place = _equal_mass(confidence, np.ones(len(right)), bins)
    return [
        {
            "confidence": float(confidence[place == b].mean()),
            "accuracy": float(right[place == b].mean()),
            "n": int((place == b).sum()),
        }
        for b in np.unique(place)
    ]


def at_equal_labels(t: Any) -> Any:
    """Tables as shares of each row, so that every label weighs the same: f64[..., 3, 5].

    Metrics that mix labels (AP, FAR-NE) depend on a deck's label ratios; after this, two decks
    differ by what the system does alone. ERROR stays out of the shares, as out of every ratio.
    """
    counted = t[..., :ERROR].sum(-1, keepdims=True)
    return np.divide(t, counted, out=np.zeros(t.shape), where=counted > 0)

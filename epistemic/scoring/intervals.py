"""Intervals of ratios and of their differences: cards about one subject are not independent, so
subjects are resampled.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epistemic.results import Ratio
from epistemic.scoring.metrics import Convention, Fraction
from evidence import stats
from evidence.measurement import Measurement

RESAMPLES = 2000
_Z = 1.959963984540054  # of 95%


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

    def at(self, *index: int | slice) -> Resampled:
        """The part at `index` into `...`."""
        return Resampled(self.by_subject[:, *index], self.drawn[:, *index])


def resample(by_subject: np.ndarray, seed: int, resamples: int = RESAMPLES) -> Resampled:
    """The cluster bootstrap over count tables.

    Args:
      by_subject: i32[S, ..., 3, 5].
      seed: of the draws.
      resamples: B.
    """
    return Resampled(by_subject, stats.cluster_means(by_subject, resamples, seed))


def measure(ratios: Convention, tables: Resampled) -> dict[str, Ratio]:
    """Every ratio of one system with its interval.

    The interval is the cluster bootstrap's, and at 0 or 1, where resampling shows no spread,
    Wilson's on the effective number of subjects. Short of 0 and 1 it reaches at least as far as
    there: a first error seen may not make the rest look surer.
    """
    values, drawn, single = ratios(tables.total), ratios(tables.drawn), ratios(tables.by_subject)
    found = {}
    for name, (numerator, denominator) in values.items():
        weight = np.asarray(single[name].denominator, float)
        measurement = _interval(float(numerator), float(denominator), drawn[name], weight)
        found[name] = Ratio(
            **vars(measurement), numerator=int(numerator), denominator=int(denominator)
        )
    return found


def _interval(
    numerator: float, denominator: float, drawn: Fraction, weight: np.ndarray
) -> Measurement:
    subjects = int((weight > 0).sum())
    if denominator == 0:
        return Measurement(None, None, None, 0, "subject", "undefined: denominator 0")
    value, effective = numerator / denominator, _effective(weight)
    if value in (0.0, 1.0):
        edge = stats.wilson(value * effective, effective, "subject")
        return replace(edge, n=subjects, method="Wilson 95%, effective n")
    found = stats.from_draws(value, _divide(drawn), subjects, "subject", "cluster bootstrap")
    if found.low is None or found.high is None:
        return found
    room = _unseen(effective)
    return replace(
        found, low=max(0.0, min(found.low, 1 - room)), high=min(1.0, max(found.high, room))
    )


def difference(
    ratios: Convention, one: Resampled, other: Resampled, paired: bool = True
) -> dict[str, Measurement]:
    """Each ratio of `one` minus that of `other`.

    The interval is the cluster bootstrap's, and where no draw differs from another, the score
    interval of no discordant pair (Tango 1998) on the effective number of subjects: that none was
    seen among few says little of how many there are. No interval is narrower than that.

    Args:
      ratios: such as `metrics.seed_convention`.
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


def _effective(weight: np.ndarray) -> float:
    """Kish's number of clusters: subjects with more cards count for less than a card each."""
    weight = np.asarray(weight, float)
    return float(weight.sum() ** 2 / (weight**2).sum())


def _divide(ratio: Fraction) -> np.ndarray:
    numerator, denominator = np.asarray(ratio.numerator), np.asarray(ratio.denominator)
    return np.divide(
        numerator, denominator, out=np.full(denominator.shape, np.nan), where=denominator > 0
    )

"""Lifetimes from counts by age: survival curves, their median and mean, and a comparison.

Lives are counted, never listed, so that no number of them is too many. All of it takes lives as
independent, which lives of one policy are not; see docs/statistics.md.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from evidence.measurement import Measurement
from evidence.stats import Array


class SurvivalCurve(NamedTuple):
    """A Kaplan-Meier estimate at every age, all arrays of one length.

    Attributes:
      age: i64[ages], 0, 1, 2, ...
      survival: f64[ages], the probability of living longer than this age; NaN beyond the last
        age at which anyone was followed.
      low: f64[ages], lower end of the pointwise band.
      high: f64[ages], upper end.
      at_risk: i64[ages], lives that reached this age.
      deaths: i64[ages], lives that ended at this age.
    """

    age: NDArray[np.int64]
    survival: Array
    low: Array
    high: Array
    at_risk: NDArray[np.int64]
    deaths: NDArray[np.int64]


def kaplan_meier(
    deaths_by_age: ArrayLike, alive_by_age: ArrayLike, *, confidence: float = 0.95
) -> SurvivalCurve:
    """Kaplan-Meier survival from counts, with log-log Greenwood bands.

    Exact for integer ages however many lives were lived. The bands take lives as independent,
    which lives of one policy are not: between policies compare the runs' restricted means.

    Args:
      deaths_by_age: i[ages], lives that ended at age 0, 1, 2, ...
      alive_by_age: i[ages], lives last seen alive at that age (censored), having survived it.
      confidence: nominal pointwise coverage of the bands.

    Raises:
      ValueError: the arrays' shapes differ, or a count is negative.
    """
    deaths, at_risk = _risk_table(deaths_by_age, alive_by_age)
    with np.errstate(divide="ignore", invalid="ignore"):
        survival = np.cumprod(np.where(at_risk > 0, 1 - deaths / at_risk, 1.0), dtype=np.float64)
        terms = np.where(deaths > 0, deaths / (at_risk * (at_risk - deaths)), 0.0)
        log_survival = np.log(survival)
        error = np.sqrt(np.cumsum(terms)) / np.abs(log_survival)
        z = scipy.special.ndtri((1 + confidence) / 2)
        low, high = survival ** np.exp(z * error), survival ** np.exp(-z * error)
    settled = (survival == 0) | (survival == 1)
    low, high = np.where(settled, survival, low), np.where(settled, survival, high)
    unknown = (at_risk == 0) & (survival > 0)
    survival[unknown] = low[unknown] = high[unknown] = np.nan
    return SurvivalCurve(np.arange(len(deaths)), survival, low, high, at_risk, deaths)


def median_survival(curve: SurvivalCurve) -> int | None:
    """The first age that at most half outlive, or None where more than half still live."""
    below = np.flatnonzero(curve.survival <= 0.5)
    return int(curve.age[below[0]]) if len(below) else None


def restricted_mean(curve: SurvivalCurve, horizon: int, *, confidence: float = 0.95) -> Measurement:
    """Mean age at death or at the horizon, whichever comes first: the area under the curve.

    Args:
      curve: a survival curve of integer ages.
      horizon: in steps, at least 1; equal for all that are compared.
      confidence: nominal coverage, lives taken as independent (as for `kaplan_meier`).

    Returns:
      A Measurement in steps; undefined where nobody was followed to the horizon.
    """
    if horizon < 1:
        raise ValueError(f"restricted_mean: horizon={horizon}; at least 1 is needed")
    n = int(curve.at_risk[0])
    within = curve.survival[:horizon]
    # Beyond the arrays' end everyone is dead, or nothing is known.
    missing = horizon - len(within)
    if n == 0 or np.isnan(within).any() or (missing > 0 and within[-1] > 0):
        return Measurement(None, None, None, n, "life", f"undefined: none followed to {horizon}")
    value = float(within.sum())
    area_after = value - np.cumsum(within) + within
    deaths, at_risk = curve.deaths[:horizon], curve.at_risk[:horizon]
    counted = (deaths > 0) & (deaths < at_risk)
    weight = deaths[counted] / (at_risk[counted] * (at_risk[counted] - deaths[counted]))
    error = math.sqrt(float((area_after[counted] ** 2 * weight).sum()))
    half = float(scipy.special.ndtri((1 + confidence) / 2)) * error
    method = f"Kaplan-Meier to {horizon}, Greenwood {100 * confidence:g}%"
    return Measurement(value, value - half, value + half, n, "life", method)


def logrank_descriptive(
    deaths_a: ArrayLike, alive_a: ArrayLike, deaths_b: ArrayLike, alive_b: ArrayLike
) -> float:
    """The log-rank statistic z of two groups of lives, from counts by age.

    Positive where group `a` dies more than its share. Descriptive: it takes lives as independent
    replicates, so that no p-value about modes may be read from it (docs/statistics.md measures
    how often that would be wrong).

    Returns:
      z; NaN where no age with a death has both groups at risk.
    """
    size = max(len(np.atleast_1d(x)) for x in (deaths_a, alive_a, deaths_b, alive_b))
    a, b = (
        _risk_table(_padded(deaths, size), _padded(alive, size))
        for deaths, alive in ((deaths_a, alive_a), (deaths_b, alive_b))
    )
    deaths, at_risk = (np.asarray(x + y, dtype=np.float64) for x, y in zip(a, b, strict=True))
    share = a[1] / np.maximum(at_risk, 1)
    surprise = float((a[0] - deaths * share).sum())
    spread = deaths * share * (1 - share) * (at_risk - deaths) / np.maximum(at_risk - 1, 1)
    variance = float(spread.sum())
    return surprise / math.sqrt(variance) if variance > 0 else math.nan


def _padded(counts: ArrayLike, size: int) -> NDArray[np.int64]:
    counts = np.asarray(counts)
    return np.pad(counts, (0, size - len(counts)))


def _risk_table(
    deaths_by_age: ArrayLike, alive_by_age: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    deaths = np.asarray(deaths_by_age, dtype=np.int64)
    alive = np.asarray(alive_by_age, dtype=np.int64)
    if deaths.ndim != 1 or deaths.shape != alive.shape:
        raise ValueError(f"counts by age of shapes {deaths.shape} and {alive.shape}")
    if (deaths < 0).any() or (alive < 0).any():
        raise ValueError("counts by age must not be negative")
    at_risk = np.cumsum((deaths + alive)[::-1])[::-1]
    return deaths, at_risk

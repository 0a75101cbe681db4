"""Tests of two means, effect sizes, corrections for many tests, and how many replicates to plan."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used: a second and a half that no start has to pay

from evidence.measurement import Measurement
from evidence.stats._shared import (
    FEW,
    Array,
    Values,
    bca,
    defined,
    mean_and_error,
    percent,
    satterthwaite,
    too_few,
    without_interval,
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


class Comparison(NamedTuple):
    """A test of two means.

    Attributes:
      difference: mean of the first minus mean of the second, with its interval.
      t: the test statistic, or None where no test can be made.
      df: its degrees of freedom, or None.
      p_greater: one-sided p-value against the first mean being greater, or None.
      p_two_sided: two-sided p-value, or None.
    """

    difference: Measurement
    t: float | None
    df: float | None
    p_greater: float | None
    p_two_sided: float | None


def difference_interval(
    a: Values, b: Values, unit: str, *, confidence: float = 0.95
) -> Measurement:
    """Mean of `a` minus mean of `b`, independent groups: Welch's t below 10 in either, else BCa.

    `n` is the size of the smaller group.
    """
    (x, note_x), (y, note_y) = defined(a), defined(b)
    n = min(len(x), len(y))
    if n < FEW:
        return welch(a, b, unit, confidence=confidence).difference
    value = float(x.mean() - y.mean())
    low, high, method = bca((x, y), _mean_difference, value, confidence, 10_000, 0)
    return Measurement(value, low, high, n, unit, method + (note_x or note_y))


def welch(a: Values, b: Values, unit: str, *, confidence: float = 0.95) -> Comparison:
    """Welch's t-test of two independent means, variances free to differ.

    Args:
      a: [n_a], one value a replicate.
      b: [n_b].
      unit: the unit of replication.
      confidence: nominal coverage of the interval of the difference.

    Returns:
      A Comparison; without a test where a group has fewer than two replicates or neither varies.
      The difference's `n` is the size of the smaller group.
    """
    (x, note_x), (y, note_y) = defined(a), defined(b)
    n = min(len(x), len(y))
    note = note_x or note_y
    value = float(x.mean() - y.mean()) if n else None
    if n < 2:
        return _untested(Measurement(value, None, None, n, unit, too_few(n, unit) + note))
    (mean_x, error_x), (mean_y, error_y) = mean_and_error(x), mean_and_error(y)
    if error_x == 0 and error_y == 0:
        return _untested(Measurement(value, value, value, n, unit, f"constant data{note}"))
    df = satterthwaite(error_x**2, len(x), error_y**2, len(y))
    error = math.hypot(error_x, error_y)
    return _t_comparison(mean_x - mean_y, error, df, n, unit, "Welch t", note, confidence)


def paired(a: Values, b: Values, unit: str, *, confidence: float = 0.95) -> Comparison:
    """Paired t-test: `a` and `b` measured on the same replicates, in the same order."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(f"paired: {len(x)} replicates beside {len(y)}")
    differences, note = defined(x - y)
    n = len(differences)
    if n < 2:
        return _untested(without_interval(differences, unit, note))
    mean, error = mean_and_error(differences)
    if error == 0:
        return _untested(Measurement(mean, mean, mean, n, unit, f"constant data{note}"))
    return _t_comparison(mean, error, n - 1, n, unit, "paired t", note, confidence)


def cohens_d(a: Values, b: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """Difference of means in pooled standard deviations (Cohen 1988).

    The interval inverts the noncentral t distribution, exact for normal data of equal variance.

    Returns:
      A Measurement, undefined (value None) where the pooled standard deviation is 0. `n` is the
      size of the smaller group. `effect_label` gives the word for it.
    """
    return _standardised(a, b, unit, confidence, corrected=False)


def hedges_g(a: Values, b: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """Cohen's d without its bias in small samples (Hedges 1981), which overstates by 25% at n=3.

    The interval is that of `cohens_d`: it is one for the true effect, however that is estimated
    (scaled along with the estimate, as is often done, it was measured to cover 92% at n=3).
    """
    return _standardised(a, b, unit, confidence, corrected=True)


def effect_label(d: float | None) -> str:
    """Conventional word for a standardised difference: 0.2 small, 0.5 medium, 0.8 large, 3 huge."""
    if d is None:
        return "undefined"
    words = {"huge": 3.0, "large": 0.8, "medium": 0.5, "small": 0.2}
    return next((word for word, least in words.items() if abs(d) >= least), "negligible")


def bonferroni(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """p-values multiplied by the size of their family, which counts undefined ones (None) too."""
    size = len(p_values)
    return {name: None if p is None else min(1.0, p * size) for name, p in p_values.items()}


def holm(p_values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Holm's (1979) step-down adjusted p-values; undefined ones (None) count in the family."""
    adjusted: dict[str, float | None] = dict.fromkeys(p_values)
    defined = sorted((p, name) for name, p in p_values.items() if p is not None)
    largest = 0.0
    for rank, (p, name) in enumerate(defined):
        largest = max(largest, min(1.0, p * (len(p_values) - rank)))
        adjusted[name] = largest
    return adjusted


def runs_needed(
    d: float, *, power: float = 0.8, alpha: float = 0.05, two_sided: bool = True
) -> int:
    """Replicates a group before any are run, for a t-test to detect a standardised difference.

    Args:
      d: the smallest difference worth detecting, in standard deviations; not 0.
      power: the wanted probability of detecting it.
      alpha: significance level; divide it by the family's size for Bonferroni.
      two_sided: whether the test is two-sided.

    Raises:
      ValueError: `d` is 0, or a probability is outside (0, 1).
    """
    if d == 0 or not (0 < power < 1 and 0 < alpha < 1):
        raise ValueError(f"runs_needed: d={d}, power={power}, alpha={alpha}")
    tail = alpha / 2 if two_sided else alpha
    z = scipy.special.ndtri([1 - tail, power]).sum()
    # The normal approximation never asks for more than the t distribution does.
    n = max(2, math.floor(2 * (z / d) ** 2))
    while _t_power(abs(d), n, tail, two_sided) < power:
        n += 1
    return n


def pairs_needed(d: float, *, power: float = 0.8, alpha: float = 0.05) -> int:
    """Pairs before any are run, for a one-sided paired t-test to detect a difference.

    Args:
      d: the smallest difference worth detecting, in standard deviations of differences; above 0.
      power: the wanted probability of detecting it.
      alpha: significance level.

    Raises:
      ValueError: `d` is not above 0, or a probability is outside (0, 1).
    """
    if not (d > 0 and 0 < power < 1 and 0 < alpha < 1):
        raise ValueError(f"pairs_needed: d={d}, power={power}, alpha={alpha}")
    z = scipy.special.ndtri([1 - alpha, power]).sum()
    n = max(2, math.floor((z / d) ** 2))  # never more than the t distribution asks for
    while _paired_power(d, n, alpha) < power:
        n += 1
    return n


def _paired_power(d: float, n: int, alpha: float) -> float:
    critical = scipy.special.stdtrit(n - 1, 1 - alpha)
    return float(scipy.stats.nct.sf(critical, n - 1, d * math.sqrt(n)))


def _untested(difference: Measurement) -> Comparison:
    return Comparison(difference, None, None, None, None)


def _mean_difference(x: Array, y: Array, axis: int) -> Array:
    return x.mean(axis=axis) - y.mean(axis=axis)


def _t_comparison(
    value: float,
    error: float,
    df: float,
    n: int,
    unit: str,
    name: str,
    note: str,
    confidence: float,
) -> Comparison:
    t = value / error
    half = float(scipy.special.stdtrit(df, (1 + confidence) / 2)) * error
    method = f"{name} {percent(confidence)}{note}"
    greater = float(scipy.special.stdtr(df, -t))
    two_sided = float(2 * scipy.special.stdtr(df, -abs(t)))
    difference = Measurement(value, value - half, value + half, n, unit, method)
    return Comparison(difference, t, df, greater, two_sided)


def _standardised(
    a: Values, b: Values, unit: str, confidence: float, *, corrected: bool
) -> Measurement:
    (x, _), (y, _) = defined(a), defined(b)
    n = min(len(x), len(y))
    if n < 2:
        return Measurement(None, None, None, n, unit, too_few(n, unit))
    df = len(x) + len(y) - 2
    pooled = math.sqrt((((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum()) / df)
    if (x == x[0]).all() and (y == y[0]).all():
        return Measurement(None, None, None, n, unit, "undefined: constant data")
    scale = math.sqrt(1 / len(x) + 1 / len(y))
    t = float(x.mean() - y.mean()) / pooled / scale
    tail = (1 - confidence) / 2
    low, high = (scale * _noncentrality(t, df, p) for p in (1 - tail, tail))
    bias = math.lgamma(df / 2) - math.lgamma((df - 1) / 2) - 0.5 * math.log(df / 2)
    value = scale * t * (math.exp(bias) if corrected else 1.0)
    return Measurement(value, low, high, n, unit, f"noncentral t {percent(confidence)}")


def _noncentrality(t: float, df: float, probability: float) -> float:
    """The noncentrality at which a noncentral t lies below `t` with this probability."""
    if t < 0:
        return -_noncentrality(-t, df, 1 - probability)
    ends = _ends(df)

    def excess(noncentrality: float) -> float:
        return _noncentral_t_cdf(t, df, noncentrality, ends) - probability

    return float(scipy.optimize.brentq(excess, -10.0, t * ends[1] + 10))


def _ends(df: float) -> Array:
    """sqrt(V / df), V chi-squared, lies between these but for two times in 10^12. float64[2]."""
    ends: Array = np.sqrt(2 * scipy.special.gammaincinv(df / 2, [1e-12, 1 - 1e-12]) / df)
    return ends


def _noncentral_t_cdf(t: float, df: float, noncentrality: float, ends: Array) -> float:
    """P(T < t) for t >= 0, by quadrature: scipy's turns into NaN where |t| or the mean is large.

    T < t where X = Z + noncentrality lies below t sqrt(V / df), with Z normal and V chi-squared:
    always under t ends[0], never over t ends[1], and in between by the survival function of V.
    """
    certain, never = t * ends
    start, end = max(certain, noncentrality - 9), min(never, noncentrality + 9)
    total = scipy.special.ndtr(certain - noncentrality)
    if start < end:
        x = start + (end - start) / 2 * (_NODES + 1)
        density = np.exp(-((x - noncentrality) ** 2) / 2) / math.sqrt(2 * math.pi)
        above = scipy.special.chdtrc(df, df * (x / t) ** 2)
        total += (end - start) / 2 * (_WEIGHTS * density * above).sum()
    return float(total)


def _t_power(d: float, n: int, tail: float, two_sided: bool) -> float:
    df, noncentrality = 2 * n - 2, d * math.sqrt(n / 2)
    critical = scipy.special.stdtrit(df, 1 - tail)
    power = scipy.stats.nct.sf(critical, df, noncentrality)
    if two_sided:
        power += scipy.stats.nct.cdf(-critical, df, noncentrality)
    return float(power)

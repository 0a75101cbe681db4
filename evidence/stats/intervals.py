"""Intervals of one quantity over replicates."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # its parts load when first used: a second and a half that no start has to pay

from evidence.measurement import Measurement
from evidence.stats._shared import (
    FEW,
    Values,
    bca,
    defined,
    mean_and_error,
    percent,
    satterthwaite,
    within,
    without_interval,
)


def t_interval(
    values: Values,
    unit: str,
    *,
    bounds: tuple[float, float] | None = None,
    confidence: float = 0.95,
) -> Measurement:
    """Mean with Student's t interval.

    Args:
      values: [n], one value a replicate; undefined ones (None, NaN, infinity) are left out, `n`
        counts the rest and the method says how many there were.
      unit: the unit of replication.
      bounds: of the quantity; the interval is then made on the logit scale between them, which it
        can't leave.
      confidence: nominal coverage.
    """
    data, note = defined(values)
    n = len(data)
    method = f"t {percent(confidence)}{', logit' if bounds else ''}{note}"
    if n < 2:
        return without_interval(data, unit, note)
    mean, error = mean_and_error(data)
    if error == 0:
        return Measurement(mean, mean, mean, n, unit, f"constant data{note}")
    half = float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2)) * error
    low, high = (mean - half, mean + half) if bounds is None else within(mean, half, bounds)
    return Measurement(mean, low, high, n, unit, method)


def bootstrap_interval(
    values: Values,
    unit: str,
    statistic: Callable[..., Any] = np.mean,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Measurement:
    """A statistic of the replicates with its BCa bootstrap interval (Efron 1987), expanded.

    A bootstrap's spread is too narrow by sqrt((n - 1) / n) and knows no t quantile: BCa alone
    covers 90% at n = 10 where 95% is said. The level is therefore moved outwards so that the
    interval of a symmetric mean would be Student's (Hesterberg 2015, section 5.3).

    Args:
      values: [n], as for `t_interval`.
      unit: the unit of replication.
      statistic: takes an array and the keyword `axis`.
      confidence: nominal coverage; the real one is below it under 10 replicates.
      resamples: number of resamples.
      seed: of the resampling.

    Returns:
      A Measurement whose method names what stood in where BCa is undefined: the point itself for
      constant data, percentiles where the bias correction is infinite.
    """
    data, note = defined(values)
    if len(data) < 2:
        return without_interval(data, unit, note)
    value = float(statistic(data, axis=-1))
    low, high, method = bca((data,), statistic, value, confidence, resamples, seed)
    return Measurement(value, low, high, len(data), unit, method + note)


def interval(values: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """Mean with the interval that suits the number of replicates: t below 10, BCa from 10 on."""
    few = len(defined(values)[0]) < FEW
    return (t_interval if few else bootstrap_interval)(values, unit, confidence=confidence)


def other_interval(values: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """The interval that `interval` did not choose, to stand beside it."""
    few = len(defined(values)[0]) < FEW
    return (bootstrap_interval if few else t_interval)(values, unit, confidence=confidence)


def ratio_interval(a: Values, b: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """Mean of `a` over mean of `b`, independent groups of quantities that cannot be negative.

    Fieller's (1954) set, all ratios r at which a Welch test does not reject mean(a) = r mean(b),
    with the degrees of freedom taken at each r.

    Args:
      a: [n_a], numerators, one a replicate, at least 0.
      b: [n_b], denominators, at least 0.
      unit: the unit of replication.
      confidence: nominal coverage.

    Returns:
      A Measurement whose `high` is infinity where the data do not exclude a denominator of 0 (a
      `low` is still given), and whose value is None where the denominators are all 0. `n` is the
      size of the smaller group.

    Raises:
      ValueError: a value is negative.
    """
    (x, note_x), (y, note_y) = defined(a), defined(b)
    if min(x.min(initial=0), y.min(initial=0)) < 0:
        raise ValueError("ratio_interval: values must not be negative")
    n = min(len(x), len(y))
    note = note_x or note_y
    method = f"Fieller {percent(confidence)}{note}"
    if n == 0 or y.mean() == 0:
        return Measurement(None, None, None, n, unit, f"undefined: denominator 0{note}")
    value = float(x.mean() / y.mean())
    if n < 2:
        return Measurement(value, None, None, n, unit, f"no interval: one {unit}{note}")
    (mean_x, error_x), (mean_y, error_y) = mean_and_error(x), mean_and_error(y)
    if error_x == 0 and error_y == 0:
        return Measurement(value, value, value, n, unit, f"constant data{note}")

    # The ratio as an angle: its tangent runs from 0 to infinity without a singular point.
    def excess(angle: float) -> float:
        cos, sin = math.cos(angle), math.sin(angle)
        part_x, part_y = (cos * error_x) ** 2, (sin * error_y) ** 2
        distance = abs(mean_x * cos - mean_y * sin)
        if part_x + part_y == 0:
            return distance
        df = satterthwaite(part_x, len(x), part_y, len(y))
        t = scipy.special.stdtrit(df, (1 + confidence) / 2)
        return distance - float(t) * math.sqrt(part_x + part_y)

    best = math.atan2(mean_x, mean_y)
    low = math.tan(scipy.optimize.brentq(excess, 0.0, best)) if excess(0.0) > 0 else 0.0
    right = math.pi / 2
    bounded = excess(right) > 0
    high = math.tan(scipy.optimize.brentq(excess, best, right)) if bounded else math.inf
    return Measurement(value, low, high, n, unit, method)


def wilson(successes: float, n: float, unit: str, *, confidence: float = 0.95) -> Measurement:
    """A proportion with Wilson's (1927) score interval, which keeps its width at 0 and 1.

    Args:
      successes: count of successes; need not be whole.
      n: count of trials, or the effective count of clustered ones; need not be whole.
      unit: the unit of replication.
      confidence: nominal coverage.

    Returns:
      A Measurement whose `n` is rounded down.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"wilson: {successes} successes in {n} trials")
    method = f"Wilson {percent(confidence)}"
    if n == 0:
        return Measurement(None, None, None, 0, unit, f"no {unit}")
    z = float(scipy.special.ndtri((1 + confidence) / 2))
    p = successes / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # At the ends the score equation's root is exact; floating point is not.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Measurement(p, low, high, int(n), unit, method)

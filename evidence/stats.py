"""Numbers with their uncertainty: intervals, tests and effect sizes.

Thin functions over scipy.stats. Each takes one value per replicate (a run, a sample, a subject):
which replicates are independent is the caller's to decide, and `unit` says it in every
Measurement. How often each interval covers the truth at 3, 5, 10 and 30 replicates has been
measured; see docs/statistics.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first used: a second and a half that no start has to pay
from numpy.typing import ArrayLike, NDArray

from evidence.measurement import Measurement

Array = NDArray[np.float64]
Values = ArrayLike | Sequence[float | None]
"""One value a replicate; None, NaN and infinity mean that it is undefined there."""


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


class VarianceComponents(NamedTuple):
    """Where the spread comes from, by one-way random-effects analysis of variance.

    Attributes:
      between: variance between groups (runs), 0 where the estimate is negative.
      within: variance between members of one group (worlds of a run).
      intraclass: between / (between + within), or None where both are 0.
    """

    between: float
    within: float
    intraclass: float | None


# ---- intervals over replicates -----------------------------------------------------------------


def t_interval(values: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """Mean with Student's t interval.

    Args:
      values: [n], one value a replicate; undefined ones (None, NaN, infinity) are left out, `n`
        counts the rest and the method says how many there were.
      unit: the unit of replication.
      confidence: nominal coverage.
    """
    data, note = _defined(values)
    n = len(data)
    method = f"t {_percent(confidence)}{note}"
    if n < 2:
        return _without_interval(data, unit, note)
    mean, error = _mean_and_error(data)
    if error == 0:
        return Measurement(mean, mean, mean, n, unit, f"constant data{note}")
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    return Measurement(mean, mean - half, mean + half, n, unit, method)


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
    data, note = _defined(values)
    if len(data) < 2:
        return _without_interval(data, unit, note)
    value = float(statistic(data, axis=-1))
    low, high, method = _bca((data,), statistic, value, confidence, resamples, seed)
    return Measurement(value, low, high, len(data), unit, method + note)


# Under this many replicates a bootstrap covers far too little (measured: docs/statistics.md).
_FEW = 10


def interval(values: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """Mean with the interval that suits the number of replicates: t below 10, BCa from 10 on."""
    few = len(_defined(values)[0]) < _FEW
    return (t_interval if few else bootstrap_interval)(values, unit, confidence=confidence)


def other_interval(values: Values, unit: str, *, confidence: float = 0.95) -> Measurement:
    """The interval that `interval` did not choose, to stand beside it."""
    few = len(_defined(values)[0]) < _FEW
    return (bootstrap_interval if few else t_interval)(values, unit, confidence=confidence)


def difference_interval(
    a: Values, b: Values, unit: str, *, confidence: float = 0.95
) -> Measurement:
    """Mean of `a` minus mean of `b`, independent groups: Welch's t below 10 in either, else BCa.

    `n` is the size of the smaller group.
    """
    (x, note_x), (y, note_y) = _defined(a), _defined(b)
    n = min(len(x), len(y))
    if n < _FEW:
        return welch(a, b, unit, confidence=confidence).difference
    value = float(x.mean() - y.mean())
    low, high, method = _bca((x, y), _mean_difference, value, confidence, 10_000, 0)
    return Measurement(value, low, high, n, unit, method + (note_x or note_y))


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
    (x, note_x), (y, note_y) = _defined(a), _defined(b)
    if min(x.min(initial=0), y.min(initial=0)) < 0:
        raise ValueError("ratio_interval: values must not be negative")
    n = min(len(x), len(y))
    note = note_x or note_y
    method = f"Fieller {_percent(confidence)}{note}"
    if n == 0 or y.mean() == 0:
        return Measurement(None, None, None, n, unit, f"undefined: denominator 0{note}")
    value = float(x.mean() / y.mean())
    if n < 2:
        return Measurement(value, None, None, n, unit, f"no interval: one {unit}{note}")
    (mean_x, error_x), (mean_y, error_y) = _mean_and_error(x), _mean_and_error(y)
    if error_x == 0 and error_y == 0:
        return Measurement(value, value, value, n, unit, f"constant data{note}")

    # The ratio as an angle: its tangent runs from 0 to infinity without a singular point.
    def excess(angle: float) -> float:
        cos, sin = math.cos(angle), math.sin(angle)
        part_x, part_y = (cos * error_x) ** 2, (sin * error_y) ** 2
        distance = abs(mean_x * cos - mean_y * sin)
        if part_x + part_y == 0:
            return distance
        df = _satterthwaite(part_x, len(x), part_y, len(y))
        t = scipy.stats.t.ppf((1 + confidence) / 2, df)
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
    method = f"Wilson {_percent(confidence)}"
    if n == 0:
        return Measurement(None, None, None, 0, unit, f"no {unit}")
    z = float(scipy.stats.norm.ppf((1 + confidence) / 2))
    p = successes / n
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    # At the ends the score equation's root is exact; floating point is not.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Measurement(p, low, high, int(n), unit, method)


# ---- bootstraps over clusters -------------------------------------------------------------------


def cluster_bootstrap(
    tables: ArrayLike,
    statistic: Callable[[Array], ArrayLike],
    unit: str,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Measurement:
    """Any function of mean tables, resampling whole clusters.

    Two systems on the same clusters are compared by stacking their tables and letting the
    statistic take the difference: the resamples are then paired.

    Args:
      tables: f64[clusters, ...], what each cluster contributes (its counts, sums, means).
      statistic: (f64[resamples, ...], tables averaged over clusters) -> f64[resamples]; NaN
        where undefined. A ratio of two entries is a ratio of totals.
      unit: what a cluster is.
      confidence: nominal coverage.
      resamples: number of resamples.
      seed: of the resampling.

    Returns:
      A Measurement: from 10 clusters on by percentiles, expanded as in `bootstrap_interval`;
      below, by the bootstrap's standard error with Student's t.
    """
    data = np.asarray(tables, dtype=np.float64)
    n = len(data)
    if n == 0:
        return Measurement(None, None, None, 0, unit, f"no {unit}")
    draws = [_apply(statistic, drawn) for drawn in _cluster_means(data, resamples, seed)]
    value = float(_apply(statistic, data.mean(axis=0, keepdims=True))[0])
    return from_draws(value, np.concatenate(draws), n, unit, "cluster bootstrap", confidence)


def cluster_means(tables: ArrayLike, resamples: int, seed: int) -> Array:
    """Tables averaged over clusters that are drawn with replacement: the draws themselves, for many
    statistics of one sample, paired with each other.

    Args:
      tables: f64[clusters, ...]. resamples: number of draws. seed: of the draws.

    Returns:
      f64[resamples, ...].
    """
    data = np.asarray(tables, dtype=np.float64)
    return np.concatenate([*_cluster_means(data, resamples, seed)])


def _cluster_means(data: Array, resamples: int, seed: int) -> Iterator[Array]:
    generator = np.random.default_rng(seed)
    n = len(data)
    flat = data.reshape(n, -1)
    for size in _batches(resamples, max(n, flat.shape[1])):
        weights = generator.multinomial(n, np.full(n, 1 / n), size=size) / n
        yield (weights @ flat).reshape(size, *data.shape[1:])


def from_draws(
    value: float, draws: Array, n: int, unit: str, name: str, confidence: float = 0.95
) -> Measurement:
    """An interval from resampled values, made for few clusters.

    Args:
      value: of the sample itself.
      draws: f64[resamples], NaN where undefined.
      n: clusters.
      unit: what a cluster is.
      name: of the method.
      confidence: nominal coverage.

    Returns:
      A Measurement: from 10 clusters on by percentiles, expanded as in `bootstrap_interval`; below,
      by the draws' standard error with Student's t.
    """
    method = f"{name} {_percent(confidence)}"
    if math.isnan(value):
        return Measurement(None, None, None, n, unit, "undefined")
    if n < 2:
        return Measurement(value, None, None, n, unit, _too_few(n, unit))
    kept = draws[~np.isnan(draws)]
    if len(kept) < len(draws):
        method += f"; {100 * (1 - len(kept) / len(draws)):.2g}% of resamples undefined"
    if not len(kept):
        return Measurement(value, None, None, n, unit, method)
    if np.ptp(kept) == 0:
        return Measurement(value, value, value, n, unit, "constant data")
    if n < _FEW:
        t = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1))
        half = t * math.sqrt(n / (n - 1)) * float(kept.std())
        method = method.replace(_percent(confidence), f"t {_percent(confidence)}", 1)
        return Measurement(value, value - half, value + half, n, unit, method)
    tail = _expanded_tail(n, confidence)
    low, high = (float(end) for end in np.quantile(kept, [tail, 1 - tail]))
    return Measurement(value, low, high, n, unit, f"expanded {method}")


def hierarchical_bootstrap(
    groups: Sequence[ArrayLike],
    statistic: Callable[[Array], ArrayLike],
    unit: str,
    *,
    crossed: bool = False,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Measurement:
    """As `cluster_bootstrap`, resampling clusters and then the members of each.

    The second stage counts the spread within clusters twice, so that the interval is somewhat
    wide rather than narrow (Davison & Hinkley 1997, section 3.8).

    Args:
      groups: one f64[members, ...] a cluster (worlds of a run, samples of a seed).
      statistic: (f64[resamples, ...], member tables averaged within clusters, then over them)
        -> f64[resamples].
      unit: what a cluster is.
      crossed: the members are the same ones in every cluster (samples that all learners of a seed
        answer), and are resampled for all clusters at once.
      confidence: nominal coverage.
      resamples: number of resamples.
      seed: of the resampling.

    Raises:
      ValueError: `crossed`, and clusters of different numbers of members.
    """
    clusters = [np.asarray(group, dtype=np.float64) for group in groups]
    n = len(clusters)
    if n == 0:
        return Measurement(None, None, None, 0, unit, f"no {unit}")
    if crossed and len({len(cluster) for cluster in clusters}) > 1:
        raise ValueError("hierarchical_bootstrap: crossed members are as many in every cluster")
    generator = np.random.default_rng(seed)
    table = clusters[0].shape[1:]
    cost = n * max(cluster.size for cluster in clusters)
    draws = []
    for size in _batches(resamples, cost):
        chosen = generator.integers(n, size=(size, n))
        means = np.empty((size, n, *table))
        if crossed:
            members = generator.integers(len(clusters[0]), size=(size, len(clusters[0])))
            everywhere = np.stack([cluster[members].mean(axis=1) for cluster in clusters], axis=1)
            draws.append(
                _apply(statistic, everywhere[np.arange(size)[:, None], chosen].mean(axis=1))
            )
            continue
        for index, cluster in enumerate(clusters):
            here = chosen == index
            members = generator.integers(len(cluster), size=(int(here.sum()), len(cluster)))
            means[here] = cluster[members].mean(axis=1)
        draws.append(_apply(statistic, means.mean(axis=1)))
    centre = np.mean([cluster.mean(axis=0) for cluster in clusters], axis=0)
    value = float(_apply(statistic, centre[None])[0])
    name = "hierarchical bootstrap" + (", crossed" if crossed else "")
    return from_draws(value, np.concatenate(draws), n, unit, name, confidence)


def variance_components(groups: Sequence[ArrayLike]) -> VarianceComponents:
    """Variance between and within groups.

    Args:
      groups: one [members] array a group, at least two groups and one with two members.

    Raises:
      ValueError: too few groups or members.
    """
    data = [np.asarray(group, dtype=np.float64) for group in groups]
    sizes = np.array([len(group) for group in data])
    if len(data) < 2 or sizes.max() < 2 or sizes.min() < 1:
        raise ValueError("variance_components: needs two groups, one of them of two members")
    total = sizes.sum()
    means = np.array([group.mean() for group in data])
    grand = (sizes * means).sum() / total
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in data)
    within = squares / float(total - len(data))
    mean_square = float((sizes * (means - grand) ** 2).sum()) / (len(data) - 1)
    typical_size = float(total - (sizes**2).sum() / total) / (len(data) - 1)
    between = max(0.0, (mean_square - within) / typical_size)
    spread = between + within
    return VarianceComponents(between, within, between / spread if spread > 0 else None)


# ---- tests and effect sizes ---------------------------------------------------------------------


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
    (x, note_x), (y, note_y) = _defined(a), _defined(b)
    n = min(len(x), len(y))
    note = note_x or note_y
    value = float(x.mean() - y.mean()) if n else None
    if n < 2:
        return _untested(Measurement(value, None, None, n, unit, _too_few(n, unit) + note))
    (mean_x, error_x), (mean_y, error_y) = _mean_and_error(x), _mean_and_error(y)
    if error_x == 0 and error_y == 0:
        return _untested(Measurement(value, value, value, n, unit, f"constant data{note}"))
    df = _satterthwaite(error_x**2, len(x), error_y**2, len(y))
    error = math.hypot(error_x, error_y)
    return _t_comparison(mean_x - mean_y, error, df, n, unit, "Welch t", note, confidence)


def paired(a: Values, b: Values, unit: str, *, confidence: float = 0.95) -> Comparison:
    """Paired t-test: `a` and `b` measured on the same replicates, in the same order."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(f"paired: {len(x)} replicates beside {len(y)}")
    differences, note = _defined(x - y)
    n = len(differences)
    if n < 2:
        return _untested(_without_interval(differences, unit, note))
    mean, error = _mean_and_error(differences)
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
    z = scipy.stats.norm.ppf([1 - tail, power]).sum()
    # The normal approximation never asks for more than the t distribution does.
    n = max(2, math.floor(2 * (z / d) ** 2))
    while _t_power(abs(d), n, tail, two_sided) < power:
        n += 1
    return n


# ---- details ------------------------------------------------------------------------------------


def _percent(confidence: float) -> str:
    return f"{100 * confidence:g}%"


def _defined(values: Values) -> tuple[Array, str]:
    """The values that exist, and a note for the method where some do not."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1:
        raise ValueError(f"one value a replicate is needed, not an array of shape {data.shape}")
    kept = data[np.isfinite(data)]
    missing = len(data) - len(kept)
    return kept, f"; {missing} of {len(data)} undefined" if missing else ""


def _too_few(n: int, unit: str) -> str:
    return f"no interval: {'one' if n else 'no'} {unit}"


def _without_interval(data: Array, unit: str, note: str) -> Measurement:
    value = float(data[0]) if len(data) else None
    return Measurement(value, None, None, len(data), unit, _too_few(len(data), unit) + note)


def _untested(difference: Measurement) -> Comparison:
    return Comparison(difference, None, None, None, None)


def _mean_and_error(data: Array) -> tuple[float, float]:
    # Rounding must not give constant data a spread.
    if (data == data[0]).all():
        return float(data[0]), 0.0
    return float(data.mean()), float(data.std(ddof=1)) / math.sqrt(len(data))


def _satterthwaite(square_a: float, n_a: int, square_b: float, n_b: int) -> float:
    """Degrees of freedom of a sum of two squared standard errors."""
    return (square_a + square_b) ** 2 / (square_a**2 / (n_a - 1) + square_b**2 / (n_b - 1))


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
    half = float(scipy.stats.t.ppf((1 + confidence) / 2, df)) * error
    method = f"{name} {_percent(confidence)}{note}"
    greater = float(scipy.stats.t.sf(t, df))
    two_sided = float(2 * scipy.stats.t.sf(abs(t), df))
    difference = Measurement(value, value - half, value + half, n, unit, method)
    return Comparison(difference, t, df, greater, two_sided)


def _standardised(
    a: Values, b: Values, unit: str, confidence: float, *, corrected: bool
) -> Measurement:
    (x, _), (y, _) = _defined(a), _defined(b)
    n = min(len(x), len(y))
    if n < 2:
        return Measurement(None, None, None, n, unit, _too_few(n, unit))
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
    return Measurement(value, low, high, n, unit, f"noncentral t {_percent(confidence)}")


def _noncentrality(t: float, df: float, probability: float) -> float:
    """The noncentrality at which a noncentral t lies below `t` with this probability."""
    if t < 0:
        return -_noncentrality(-t, df, 1 - probability)
    # sqrt(V / df), V chi-squared, lies between these but for one time in 10^12.
    ends = np.sqrt(scipy.stats.chi2.ppf([1e-12, 1 - 1e-12], df) / df)

    def excess(noncentrality: float) -> float:
        return _noncentral_t_cdf(t, df, noncentrality, ends) - probability

    return float(scipy.optimize.brentq(excess, -10.0, t * ends[1] + 10))


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


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
    critical = scipy.stats.t.ppf(1 - tail, df)
    power = scipy.stats.nct.sf(critical, df, noncentrality)
    if two_sided:
        power += scipy.stats.nct.cdf(-critical, df, noncentrality)
    return float(power)


def _mean_difference(x: Array, y: Array, axis: int) -> Array:
    return x.mean(axis=axis) - y.mean(axis=axis)


def _bca(
    samples: tuple[Array, ...],
    statistic: Callable[..., Any],
    value: float,
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, float, str]:
    """Ends of the expanded interval and the name of the method that gave them."""
    level = 1 - 2 * _expanded_tail(min(len(sample) for sample in samples), confidence)
    if all((sample == sample[0]).all() for sample in samples):
        return value, value, "constant data"

    def ends(method: str) -> tuple[float, float]:
        result = scipy.stats.bootstrap(
            samples,
            statistic,
            n_resamples=resamples,
            batch=max(1, 10_000_000 // sum(len(sample) for sample in samples)),
            vectorized=True,
            confidence_level=level,
            method=method,
            rng=np.random.default_rng(seed),
        )
        return float(result.confidence_interval.low), float(result.confidence_interval.high)

    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        low, high = ends("BCa")
    if math.isfinite(low) and math.isfinite(high):
        return low, high, f"expanded BCa bootstrap {_percent(confidence)}"
    low, high = ends("percentile")
    return low, high, f"expanded percentile bootstrap {_percent(confidence)} (BCa undefined)"


def _expanded_tail(n: int, confidence: float) -> float:
    """Probability in each tail of a bootstrap distribution, made smaller for few replicates."""
    t = float(scipy.stats.t.ppf((1 + confidence) / 2, n - 1))
    return float(scipy.stats.norm.sf(t * math.sqrt(n / (n - 1))))


def _batches(resamples: int, cost: int) -> list[int]:
    """Sizes of batches that keep the resampled arrays within some tens of megabytes."""
    size = max(1, 4_000_000 // max(1, cost))
    full, rest = divmod(resamples, size)
    return [size] * full + ([rest] if rest else [])


def _apply(statistic: Callable[[Array], ArrayLike], tables: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.asarray(statistic(tables), dtype=np.float64)
    if values.shape != tables.shape[:1]:
        raise ValueError(f"the statistic gave shape {values.shape}, not {tables.shape[:1]}")
    return values

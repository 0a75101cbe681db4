"""Intervals by resampling clusters and groups, and where variance comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts load when first used: a second and a half that no start has to pay
from numpy.typing import ArrayLike

from evidence.measurement import Measurement
from evidence.stats._shared import FEW, Array, expanded_tail, percent, too_few, within


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


def cluster_bootstrap(
    tables: ArrayLike,
    statistic: Callable[[Array], ArrayLike],
    unit: str,
    *,
    bounds: tuple[float, float] | None = None,
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
      bounds: of the statistic, which the interval doesn't leave; see `from_draws`.
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
    drawn = np.concatenate(draws)
    return from_draws(value, drawn, n, unit, "cluster bootstrap", confidence, bounds)


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
    value: float,
    draws: Array,
    n: int,
    unit: str,
    name: str,
    confidence: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Measurement:
    """An interval from resampled values, made for few clusters.

    Args:
      value: of the sample itself.
      draws: f64[resamples], NaN where undefined.
      n: clusters.
      unit: what a cluster is.
      name: of the method.
      confidence: nominal coverage.
      bounds: of the statistic. Percentiles of what never leaves them don't either; a t interval is
        made on the logit scale between them.

    Returns:
      A Measurement: from 10 clusters on by percentiles, expanded as in `bootstrap_interval`; below,
      by the draws' standard error with Student's t.
    """
    method = f"{name} {percent(confidence)}"
    if math.isnan(value):
        return Measurement(None, None, None, n, unit, "undefined")
    if n < 2:
        return Measurement(value, None, None, n, unit, too_few(n, unit))
    kept = draws[~np.isnan(draws)]
    if len(kept) < len(draws):
        method += f"; {100 * (1 - len(kept) / len(draws)):.2g}% of resamples undefined"
    if not len(kept):
        return Measurement(value, None, None, n, unit, method)
    if np.ptp(kept) == 0:
        return Measurement(value, value, value, n, unit, "constant data")
    if n < FEW:
        t = float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2))
        half = t * math.sqrt(n / (n - 1)) * float(kept.std())
        logit = ", logit" if bounds else ""
        method = method.replace(percent(confidence), f"t {percent(confidence)}{logit}", 1)
        low, high = (value - half, value + half) if bounds is None else within(value, half, bounds)
        return Measurement(value, low, high, n, unit, method)
    tail = expanded_tail(n, confidence)
    low, high = (float(end) for end in np.quantile(kept, [tail, 1 - tail]))
    return Measurement(value, low, high, n, unit, f"expanded {method}")


def hierarchical_bootstrap(
    groups: Sequence[ArrayLike],
    statistic: Callable[[Array], ArrayLike],
    unit: str,
    *,
    crossed: bool = False,
    bounds: tuple[float, float] | None = None,
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
      bounds: of the statistic, which the interval doesn't leave; see `from_draws`.
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
    return from_draws(value, np.concatenate(draws), n, unit, name, confidence, bounds)


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

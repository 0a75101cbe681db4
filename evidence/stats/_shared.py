"""What the modules of `evidence.stats` share."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy  # its parts load when first used: a second and a half that no start has to pay
from numpy.typing import ArrayLike, NDArray

from evidence.measurement import Measurement

Array = NDArray[np.float64]
Values = ArrayLike | Sequence[float | None]
"""One value a replicate; None, NaN and infinity mean that it is undefined there."""
# Under this many replicates a bootstrap covers far too little (measured: docs/statistics.md).
FEW = 10


def percent(confidence: float) -> str:
    return f"{100 * confidence:g}%"


def defined(values: Values) -> tuple[Array, str]:
    """The values that exist, and a note for the method where some do not."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1:
        raise ValueError(f"one value a replicate is needed, not an array of shape {data.shape}")
    kept = data[np.isfinite(data)]
    missing = len(data) - len(kept)
    return kept, f"; {missing} of {len(data)} undefined" if missing else ""


def too_few(n: int, unit: str) -> str:
    return f"no interval: {'one' if n else 'no'} {unit}"


def without_interval(data: Array, unit: str, note: str) -> Measurement:
    value = float(data[0]) if len(data) else None
    return Measurement(value, None, None, len(data), unit, too_few(len(data), unit) + note)


def mean_and_error(data: Array) -> tuple[float, float]:
    # Rounding must not give constant data a spread.
    if (data == data[0]).all():
        return float(data[0]), 0.0
    return float(data.mean()), float(data.std(ddof=1)) / math.sqrt(len(data))


def satterthwaite(square_a: float, n_a: int, square_b: float, n_b: int) -> float:
    """Degrees of freedom of a sum of two squared standard errors."""
    return (square_a + square_b) ** 2 / (square_a**2 / (n_a - 1) + square_b**2 / (n_b - 1))


def expanded_tail(n: int, confidence: float) -> float:
    """Probability in each tail of a bootstrap distribution, made smaller for few replicates."""
    t = float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2))
    return float(scipy.special.ndtr(-t * math.sqrt(n / (n - 1))))


def within(value: float, half: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Ends of an interval of a bounded quantity, which never leave its bounds: `half` a width about
    `value`, carried to the logit scale of its place between them (delta method).

    At a bound itself the scale has no place, and the interval is the point.
    """
    low, high = bounds
    place = (value - low) / (high - low)
    if not 0 < place < 1:
        return value, value
    logit = math.log(place / (1 - place))
    reach = half / (high - low) / (place * (1 - place))
    ends = (scipy.special.expit(logit + side * reach) for side in (-1, 1))
    first, last = (low + (high - low) * float(end) for end in ends)
    return first, last


def bca(
    samples: tuple[Array, ...],
    statistic: Callable[..., Any],
    value: float,
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, float, str]:
    """Ends of the expanded interval and the name of the method that gave them."""
    level = 1 - 2 * expanded_tail(min(len(sample) for sample in samples), confidence)
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
        return low, high, f"expanded BCa bootstrap {percent(confidence)}"
    low, high = ends("percentile")
    return low, high, f"expanded percentile bootstrap {percent(confidence)} (BCa undefined)"

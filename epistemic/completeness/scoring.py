"""What answers were worth, with intervals over draws and subjects; and where licensing breaks even.

A right answer to a settled claim is worth 1, an abstention 0, a false or unreadable answer -price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epistemic.completeness.claims import Sample
from epistemic.completeness.results import Pays, Price, Ruling
from epistemic.logic.lookup import Verdict
from epistemic.scoring import metrics
from epistemic.scoring.metrics import LABELS, Fraction
from evidence import stats
from evidence.answers import Answer
from evidence.measurement import Measurement

RESAMPLES = 1000
_UNIT = "draw"
_BATCH = 100  # resamples at once, which keeps them within some tens of megabytes
_ROW = np.array([LABELS.index(verdict.label) for verdict in Verdict])


def licensed(said: np.ndarray, licence: np.ndarray) -> np.ndarray:
    """i8[..., N]: answers that a graph proves; YES and NO that it doesn't become UNKNOWN.

    Args:
      said: i8[..., N] of `Answer`.
      licence: i8[N] of `Verdict`, by the graph.
    """
    stopped = np.isin(said, (Answer.YES, Answer.NO)) & (said != licence)
    return np.where(stopped, np.int8(Answer.UNKNOWN), said)


class Ledger(NamedTuple):
    """What was answered at one point of the sweep, as sums.

    Attributes:
      counts: f64[draws, subjects, A, 7]: of each answerer right, false, counted, and numerator and
        denominator of LA and of FAR-NE.
      models: M; the answerers are the models at each price alone, then licensed, then the graph.
      prices: of a false answer, P.
    """

    counts: np.ndarray
    models: int
    prices: tuple[Price, ...]


def ledger(
    samples: Sequence[Sample], licences: Sequence[np.ndarray], prices: Sequence[Price]
) -> Ledger:
    """Count one point of the sweep.

    Args:
      samples: one a draw.
      licences: i8[N] of `Verdict` a draw, by the draw's worse graph.
      prices: those of the samples.
    """
    subjects = np.unique(np.concatenate([sample.subject for sample in samples]))
    models = samples[0].said.shape[0]
    counts = []
    for sample, licence in zip(samples, licences, strict=True):
        alone = sample.said.reshape(-1, len(sample.gold))
        every = np.concatenate([alone, licensed(alone, licence), licence[None]])
        place = np.searchsorted(subjects, sample.subject)
        counts.append(_sums(_tables(every, sample.gold, place, len(subjects))))
    return Ledger(np.array(counts), models, tuple(prices))


def _tables(said: np.ndarray, gold: np.ndarray, place: np.ndarray, subjects: int) -> np.ndarray:
    """i64[subjects, A, 3, 5]: answers i8[A, N] by gold label."""
    answerers = np.arange(len(said))[:, None]
    cell = ((place * len(said) + answerers) * 3 + _ROW[gold]) * 5 + said
    size = subjects * len(said) * 15
    return np.bincount(cell.ravel(), minlength=size).reshape(subjects, len(said), 3, 5)


def _sums(tables: np.ndarray) -> np.ndarray:
    """f64[..., 7] of tables [..., 3, 5]; see `Ledger`."""
    four = metrics.seed_convention(tables)
    right = tables[..., metrics.E, Answer.YES] + tables[..., metrics.C, Answer.NO]
    counted = tables[..., : Answer.ERROR].sum((-2, -1))
    false = counted - right - tables[..., Answer.UNKNOWN].sum(-1)
    return np.stack([right, false, counted, *four["LA"], *four["FAR_NE"]], axis=-1).astype(float)


class Paired(NamedTuple):
    """A model whose answers a licence lets through by what it finds in them.

    Attributes:
      gain: score a claim with that licence minus that without one.
      lost: score a claim with that licence minus that with the one that is given its claims.
      false: share of the claims that are answered falsely with that licence.
      LA, FAR_NE: with that licence.
    """

    gain: Measurement
    lost: Measurement
    false: Measurement
    LA: Measurement
    FAR_NE: Measurement


def paired(
    samples: Sequence[Sample], every: Sequence[np.ndarray], models: int, price: Price, seed: int
) -> Iterator[Paired]:
    """Answers that left by other licences, beside the same ones alone and by the licence given its
    claims; one way after the other, every model of each.

    Args:
      samples: one a draw.
      every: i8[(2 + W) * models, N] of `Answer` a draw: alone, by the given claims, by W ways.
      models: how many.
      price: of a false answer.
      seed: of the resampling.
    """
    subjects = np.unique(np.concatenate([one.subject for one in samples]))
    counts = np.array(
        [
            _sums(_tables(said, one.gold, np.searchsorted(subjects, one.subject), len(subjects)))
            for one, said in zip(samples, every, strict=True)
        ]
    )
    drawn = crossed_means(counts, seed)
    measured = _Measured(counts.mean((0, 1)), drawn, len(counts), _reach(counts))
    for place in range(2 * models, counts.shape[2]):
        alone = place % models
        yield Paired(
            gain=measured.score(price, place, alone),
            lost=measured.score(price, place, models + alone),
            false=measured.ratio(place, 1),
            LA=measured.ratio(place, 3),
            FAR_NE=measured.ratio(place, 5),
        )


def shares(
    subjects: Sequence[np.ndarray], columns: Sequence[np.ndarray], each: int, seed: int
) -> list[Measurement]:
    """Means of columns, as shares, with intervals over draws and subjects.

    Args:
      subjects: i64[N] a draw.
      columns: [K, N] a draw, what is counted.
      each: the most that an entry can be.
      seed: of the resampling.
    """
    known = np.unique(np.concatenate(subjects))
    counts = np.zeros((len(columns), len(known), len(columns[0]) + 1))
    for draw, (subject, column) in enumerate(zip(subjects, columns, strict=True)):
        place = np.searchsorted(known, subject)
        np.add.at(counts[draw], place, np.vstack([column, np.full(len(subject), each)]).T)
    sums, drawn = counts.mean((0, 1)), crossed_means(counts, seed)
    measured = _Measured(sums[None], drawn[:, None], len(columns), _reach(counts[:, :, None]))
    found = [measured.ratio(0, k, len(columns[0])) for k in range(len(columns[0]))]
    return [
        replace(each, low=max(0.0, each.low), high=min(1.0, each.high))
        if each.low is not None and each.high is not None
        else each
        for each in found
    ]


class Worth(NamedTuple):
    """A model at one price.

    Attributes:
      alone: score a claim without a licence; LA_alone and FAR_NE_alone likewise.
      gain: score a claim with the licence minus that without.
      over_graph: score a claim with the licence minus the graph's.
      LA, FAR_NE: with the licence.
    """

    alone: Measurement
    gain: Measurement
    over_graph: Measurement
    LA: Measurement
    FAR_NE: Measurement
    LA_alone: Measurement
    FAR_NE_alone: Measurement


def worth(found: Ledger, seed: int) -> Iterator[list[Worth]]:
    """Every model, then the graph itself, at every price.

    Args:
      found: what was answered.
      seed: of the resampling.
    """
    sums = found.counts.mean((0, 1))
    drawn = crossed_means(found.counts, seed)
    measured = _Measured(sums, drawn, found.counts.shape[0], _reach(found.counts))
    many = found.models * len(found.prices)
    for model in range(found.models + 1):
        row = []
        for p, price in enumerate(found.prices):
            here = model * len(found.prices) + p
            bare, under = (here, many + here) if model < found.models else (2 * many, 2 * many)
            row.append(
                Worth(
                    alone=measured.score(price, bare),
                    gain=measured.score(price, under, bare),
                    over_graph=measured.score(price, under, 2 * many),
                    LA=measured.ratio(under, 3),
                    FAR_NE=measured.ratio(under, 5),
                    LA_alone=measured.ratio(bare, 3),
                    FAR_NE_alone=measured.ratio(bare, 5),
                )
            )
        yield row


def crossed_means(counts: np.ndarray, seed: int, resamples: int = RESAMPLES) -> np.ndarray:
    """f64[B, ...]: means over draws and over subjects, both drawn with replacement.

    A subject is the same one in every draw, so both are resampled (Owen 2007, the pigeonhole
    bootstrap, which errs on the wide side).

    Args:
      counts: f64[draws, subjects, ...].
      seed: of the resampling.
      resamples: B.
    """
    draws, subjects, *rest = counts.shape
    flat = np.moveaxis(counts, 1, 0).reshape(subjects, -1)
    random = np.random.default_rng(seed)
    found = []
    for start in range(0, resamples, _BATCH):
        size = min(_BATCH, resamples - start)
        of_draws = random.multinomial(draws, np.full(draws, 1 / draws), size=size) / draws
        of_subjects = random.multinomial(subjects, np.full(subjects, 1 / subjects), size=size)
        each = (of_subjects / subjects @ flat).reshape(size, draws, -1)
        found.append(np.einsum("bd,bdk->bk", of_draws, each))
    return np.concatenate(found).reshape(resamples, *rest)


class _Measured(NamedTuple):
    """Sums [A, 7] with their resamples [B, A, 7], the draws, and clusters f64[A, 7] behind each."""

    sums: np.ndarray
    drawn: np.ndarray
    draws: int
    reach: np.ndarray

    def score(self, price: Price, answerer: int, less: int | None = None) -> Measurement:
        """Score a claim, less that of another answerer."""

        def of(sums: np.ndarray) -> np.ndarray:
            right, false, counted = np.moveaxis(sums[..., :3], -1, 0)
            gained = _share(Fraction(right - price * false, counted))
            return gained[..., answerer] - (0 if less is None else gained[..., less])

        return self._from(float(of(self.sums)), of(self.drawn))

    def ratio(self, answerer: int, first: int, of: int | None = None) -> Measurement:
        """A share whose numerator stands at `first` and its denominator behind it, or at `of`; at 0
        and 1 Wilson's interval on the subjects that it rests on, since resampling shows no spread
        there.
        """
        of = first + 1 if of is None else of
        value, drawn = (
            _share(Fraction(sums[..., answerer, first], sums[..., answerer, of]))
            for sums in (self.sums, self.drawn)
        )
        clusters = float(self.reach[answerer, of])
        if value in (0.0, 1.0) and clusters:
            edge = stats.wilson(float(value) * clusters, clusters, _UNIT)
            return replace(edge, n=self.draws, method="Wilson 95% on subjects")
        return self._from(float(value), drawn)

    def _from(self, value: float, drawn: np.ndarray) -> Measurement:
        name = "crossed bootstrap over draws and subjects"
        return stats.from_draws(value, drawn, self.draws, _UNIT, name)


def _reach(counts: np.ndarray) -> np.ndarray:
    """f64[A, 7]: Kish's number of subjects that each sum rests on."""
    weight = counts.sum(0)
    square = (weight**2).sum(0)
    return np.divide(weight.sum(0) ** 2, square, out=np.zeros(square.shape), where=square > 0)


def _share(ratio: Fraction) -> np.ndarray:
    numerator, denominator = np.asarray(ratio.numerator), np.asarray(ratio.denominator)
    nothing = np.full(denominator.shape, np.nan)
    return np.divide(numerator, denominator, out=nothing, where=denominator > 0)


def ruling(gain: Measurement) -> Ruling:
    """Whether a licence pays at one point of the sweep."""
    if gain.low is not None and gain.low > 0:
        return "pays"
    return "loses" if gain.high is not None and gain.high < 0 else "undetermined"


def break_even(keep: Sequence[float], gains: Sequence[Measurement]) -> tuple[Pays, Measurement]:
    """Where the gain crosses 0, linear between shares kept; of several places the last.

    The interval is the test inverted: it ends where those of the gain come clear of 0.

    Args:
      keep: shares kept, in any order.
      gains: at each of them.
    """
    order = np.argsort(keep)
    shares = np.asarray(keep, float)[order]
    value, low, high = (
        np.array([getattr(gains[i], end) for i in order], float) for end in ("value", "low", "high")
    )
    first, last = value[0] > 0, value[-1] > 0
    pays: Pays = ("always" if first else "above") if last else ("below" if first else "never")
    ends = (_crossing(shares, high), _crossing(shares, low))
    if pays == "below":
        ends = ends[::-1]
    at = _crossing(shares, value) if pays in ("above", "below") else None
    method = "where the interval of the gain leaves 0, linear between shares kept"
    return pays, Measurement(at, *ends, gains[0].n, gains[0].unit, method)


def _crossing(shares: np.ndarray, values: np.ndarray) -> float | None:
    """The last place where values change sign between neighbours; None: nowhere."""
    positive = values > 0
    places = np.flatnonzero(positive[1:] != positive[:-1])
    if not len(places):
        return None
    i = places[-1]
    part = values[i] / (values[i] - values[i + 1])
    return float(shares[i] + part * (shares[i + 1] - shares[i]))

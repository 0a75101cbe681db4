"""What the cells of one learner on one base state come to: every number with its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from evidence import stats
from evidence.answers import Answer
from evidence.measurement import Measurement
from kubku import protocol
from kubku.cells import Found
from kubku.frontier import Asked, at_limits, balanced, crossed, curve, independent
from kubku.halo import Kind, Samples, Stratum, withheld
from kubku.measures import STEPS
from kubku.parts import (
    AtSteps,
    BiasHalo,
    ByReplicate,
    Drift,
    EntailedHalo,
    HallucinationHalo,
    Halos,
    Histogram,
    LiteralHalo,
    Retention,
    Streaming,
    Unexposed,
)
from kubku.results import BaseStateResults
from kubku.scoring import EPSILON, asserted

Bounds = tuple[float, float]
SHARE: Bounds = (0.0, 1.0)
SCORE: Bounds = (0.0, 2.0)
CHANGE: Bounds = (-2.0, 2.0)

RESAMPLES = 1000
HISTOGRAM = np.linspace(0, 2, 17)


class Arm(NamedTuple):
    """The cells of one learner on one base state of one family.

    Attributes:
      family, learner, base: whose.
      replicates: one a replicate, in the first world.
      others: the same by other world; of the first replicates alone, or of none.
    """

    family: str
    learner: str
    base: str
    replicates: Sequence[Found]
    others: Mapping[str, Sequence[Found]]


def _mean(
    groups: list[np.ndarray], tests: Sequence[Asked], bounds: Bounds, unit: str = "sample"
) -> Measurement:
    """The mean over units, then over what may count as replicates; with one, units are all."""
    return _statistic(groups, tests, lambda table: table, bounds, unit)


def _statistic(
    groups: list[np.ndarray],
    tests: Sequence[Asked],
    statistic: Callable[[np.ndarray], np.ndarray],
    bounds: Bounds,
    unit: str = "sample",
) -> Measurement:
    groups = independent(groups, tests)
    how: Any = {"bounds": bounds, "resamples": RESAMPLES}
    if len(groups) == 1:
        return stats.cluster_bootstrap(groups[0], statistic, unit, **how)
    return stats.hierarchical_bootstrap(
        groups, statistic, "replicate", crossed=crossed(tests), **how
    )


def _purity(table: np.ndarray) -> np.ndarray:
    """KU_avg / (KU_avg + BKU_avg + epsilon) of f64[resamples, 2]; it rewards silence."""
    return table[:, 0] / (table.sum(-1) + EPSILON)


def summary(arm: Arm, tests: Sequence[Asked]) -> BaseStateResults:
    """All measurements of one learner on one base state of one family.

    Args:
      arm: its cells.
      tests: what each replicate was asked.
    """
    cells = arm.replicates

    def of(name: str, when: str = "after") -> list[np.ndarray]:
        return [cell[f"{when}.{name}"] for cell in cells]

    def score(name: str, when: str = "after") -> Measurement:
        return _mean(of(name, when), tests, SCORE)

    def share(name: str) -> Measurement:
        return _mean(of(name), tests, SHARE)

    def changes(name: str) -> list[np.ndarray]:
        return [a - b for a, b in zip(of(name), of(name, "before"), strict=True)]

    def corrected(halo: _Halo) -> Measurement:
        right = _asked(halo, halo.scores[0], "after", cells, tests)
        return _some([2 * share - 1 for share in right], tests, (-1, 1))

    both = [np.stack(pair, -1) for pair in zip(of("ku"), of("bku"), strict=True)]
    per_second = [len(cell["answers"]) / cell["seconds_exposed"] for cell in cells]
    return BaseStateResults(
        KU_avg=score("ku"),
        BKU_avg=score("bku"),
        BKU_balanced=balanced(cells, tests),
        frontier=at_limits(cells, tests),
        curve=curve(cells),
        unlearnt=sum(not _surely_above_0(change) for change in changes("ku")),
        BKU_yes=score("bku_yes"),
        knowledge_purity=_statistic(both, tests, _purity, SHARE),
        induced_KU=_mean(changes("ku"), tests, CHANGE),
        induced_BKU=_mean(changes("bku"), tests, CHANGE),
        by_replicate=ByReplicate(KU=_means(of("ku")), BKU=_means(of("bku"))),
        before=Unexposed(KU_avg=score("ku", "before"), BKU_avg=score("bku", "before")),
        net_KU=_mean([pair[:, 0] - pair[:, 1] for pair in both], tests, CHANGE),
        balanced_accuracy=share("balanced"),
        abstained=share("abstained"),
        invalid=share("invalid"),
        errors=share("errors"),
        # Always YES, and always NO, get half of L and of E right.
        corrected_L=corrected(_HALOS["L"]),
        corrected_E=corrected(_HALOS["E"]),
        halos=Halos(**{kind: _halo(of_kind, cells, tests) for kind, of_kind in _HALOS.items()}),
        histogram=_histogram(of("ku"), of("bku")),
        by_k=_by_k(cells, tests),
        bias_drift=_drift(arm, tests),
        audit=_audited(cells, "audit"),
        carried=_audited(cells, "carried"),
        split_read=_audited(cells, "split_read"),
        tuned=tuple(cell.note for cell in cells),
        samples=len(both[0]),
        samples_per_second=float(np.median(per_second)),
    )


def _means(scores: list[np.ndarray]) -> tuple[float, ...]:
    return tuple(float(of_cell.mean()) for of_cell in scores)


def _histogram(ku: list[np.ndarray], bku: list[np.ndarray]) -> Histogram:
    return Histogram(edges=tuple(HISTOGRAM.tolist()), KU=_counted(ku), BKU=_counted(bku))


def _surely_above_0(changes: np.ndarray) -> bool:
    low = stats.t_interval(changes, "sample").low
    return low is not None and low > 0


def _counted(scores: list[np.ndarray]) -> tuple[int, ...]:
    return tuple(np.histogram(np.concatenate(scores), HISTOGRAM)[0].tolist())


def _audited(cells: Sequence[Found], name: str) -> float | None:
    """The worst audit; None where there was none (a language model is never shown an answer)."""
    worst = max(float(cell[name]) for cell in cells)
    return None if np.isnan(worst) else worst


# --- the parts of a halo


def _right(test: Asked, answers: np.ndarray) -> np.ndarray:
    return answers == np.asarray(test.samples.gold)


def _answered(test: Asked, answers: np.ndarray) -> np.ndarray:
    return asserted(answers)


def _wrong(test: Asked, answers: np.ndarray) -> np.ndarray:
    return asserted(answers) & ~_right(test, answers)


Part = Callable[[Samples], np.ndarray]
"""Some queries of a kind, bool[N, Q]."""


def _of(stratum: Stratum) -> Part:
    return lambda samples: np.asarray(samples.stratum == int(stratum))


FORCED = "_forced"
"""What names of parts end in that are counted in the answers given with a threshold of 0."""


_WRONG: dict[str, Part] = {"wrong": lambda samples: np.asarray(samples.asked)}
"""The part in whose shares wrong answers count, which cost no KU."""


class _Halo(NamedTuple):
    """How a kind of queries is measured.

    Attributes:
      made: the type of its results, from its parts.
      kind: of queries.
      scores: the fields of `Scores` that tell of it, the most important first.
      counts: which answers count, bool[N, Q], in the shares of its parts.
      parts: by name.
    """

    made: Callable[..., Any]
    kind: Kind
    scores: tuple[str, ...]
    counts: Callable[[Asked, np.ndarray], np.ndarray]
    parts: Mapping[str, Part]


_HALOS = {
    "L": _Halo(LiteralHalo, Kind.LITERAL, ("literal", "literal_yes", "literal_no"), _right, _WRONG),
    "E": _Halo(
        EntailedHalo,
        Kind.ENTAILED,
        ("entailed", "entailed_yes", "entailed_no"),
        _right,
        {
            f"{part}{when}": _of(stratum)
            for part, stratum in (
                ("one_fact", Stratum.ONE_FACT),
                ("several_facts", Stratum.SEVERAL_FACTS),
            )
            for when in ("", FORCED)
        }
        | _WRONG,
    ),
    "H": _Halo(
        HallucinationHalo,
        Kind.HALLUCINATION,
        ("hallucination", "hallucination_yes"),
        _answered,
        {
            "trained": lambda samples: ~np.asarray(withheld(samples)),
            "withheld": lambda samples: np.asarray(withheld(samples)),
            "unstated": _of(Stratum.UNSTATED),
            "undecided": _of(Stratum.UNDECIDED),
            "stranger": _of(Stratum.STRANGER),
        },
    ),
    "B": _Halo(
        BiasHalo,
        Kind.BIAS,
        ("bias", "bias_harmful"),
        _answered,
        {
            "unstated": _of(Stratum.STEREOTYPE),
            "undecided": _of(Stratum.STEREOTYPE_UNDECIDED),
        },
    ),
}


def _halo(halo: _Halo, cells: Sequence[Found], tests: Sequence[Asked]) -> Any:
    told = {
        name: _some(_asked(halo, name, "after", cells, tests), tests, SHARE) for name in halo.scores
    }
    before = _some(_asked(halo, halo.scores[0], "before", cells, tests), tests, SHARE)
    return halo.made(**told, before=before, **_parts(halo, cells, tests))


_GOLDS = {"literal_yes": Answer.YES, "entailed_yes": Answer.YES}
_GOLDS |= {"literal_no": Answer.NO, "entailed_no": Answer.NO}


def _asked(
    halo: _Halo, name: str, when: str, cells: Sequence[Found], tests: Sequence[Asked]
) -> list[np.ndarray]:
    """A score of the samples that have a query which it is of: of others it is 0 and says nothing.
    f32[those] each.
    """
    found = []
    for cell, test in zip(cells, tests, strict=True):
        scores = cell[f"{when}.{name}"]
        asked = test.first(len(scores)).samples
        these = np.asarray((asked.kind == halo.kind) & asked.asked)
        if name in _GOLDS:
            these &= np.asarray(asked.gold == _GOLDS[name])
        found.append(scores[these.any(-1)])
    return found


def _some(groups: list[np.ndarray], tests: Sequence[Asked], bounds: Bounds) -> Measurement:
    if not all(map(len, groups)):
        return Measurement(None, None, None, 0, "sample", "undefined: no such query")
    return _mean(groups, tests, bounds)


def _parts(halo: _Halo, cells: Sequence[Found], tests: Sequence[Asked]) -> dict[str, Measurement]:
    """The share of answers that count among the queries of each part, of samples that have some."""
    found = {}
    for name, part in halo.parts.items():
        given = "answers.forced" if name.endswith(FORCED) else "answers"
        if any(given not in cell for cell in cells):
            continue
        shares = []
        for cell, test in zip(cells, tests, strict=True):
            answers = cell[given]
            asked = test.first(len(answers))
            these = np.asarray((asked.samples.kind == halo.kind) & asked.samples.asked)
            these = these & part(asked.samples)
            some = these.any(-1)
            counts = _wrong if name in _WRONG else halo.counts
            counted = counts(asked, answers) & these
            shares.append(counted[some].sum(-1) / these[some].sum(-1))
        if all(len(share) for share in shares):
            found[name] = _mean(shares, tests, SHARE)
    return found


# --- beside scores


def _by_k(cells: Sequence[Found], tests: Sequence[Asked]) -> tuple[AtSteps, ...]:
    if "steps.ku" not in cells[0]:
        return ()

    def mean(name: str, at: int) -> Measurement:
        return _mean([cell[name][at] for cell in cells if name in cell], tests, SCORE)

    return tuple(
        AtSteps(K=steps, KU_avg=mean("steps.ku", at), BKU_avg=mean("steps.bku", at))
        for at, steps in enumerate(STEPS)
    )


def _drift(arm: Arm, tests: Sequence[Asked]) -> Drift | None:
    """Flip rate and signed drift; for another world the differences, of one base state each."""
    cells = arm.replicates
    if "flips" not in cells[0]:
        return None
    bounds = {"flips": SHARE, "signed": (-1.0, 1.0)}
    found = {
        name: _mean([cell[name] for cell in cells], tests, of, "pair")
        for name, of in bounds.items()
    }
    for world, elsewhere in arm.others.items():
        # The first replicates alone: pairs are all that is resampled, and the interval says
        # nothing about other base states of these worlds.
        for name, there in product(("flips", "signed"), elsewhere[:1]):
            found[f"{name}_less_{world}"] = stats.cluster_bootstrap(
                cells[0][name] - there[name],
                lambda table: table,
                "pair, of one base state a world",
                bounds=CHANGE,
                resamples=RESAMPLES,
            )
    return Drift(**found)


def streaming(arm: Arm, tests: Sequence[Asked]) -> Streaming | None:
    """Gains along streams and what is left of them later; None where there were no streams."""
    cells = arm.replicates
    if "stream.before.ku" not in cells[0]:
        return None

    def mean(of: Callable[[Any], np.ndarray], bounds: Bounds = SCORE) -> Measurement:
        return _mean([of(cell).mean(1) for cell in cells], tests, bounds, "stream")

    def gain(name: str) -> Measurement:
        return mean(
            lambda cell: cell[f"stream.after.{name}"] - cell[f"stream.before.{name}"], CHANGE
        )

    def by_time(name: str) -> tuple[float, ...]:
        means = [cell[f"stream.after.{name}"].mean(0) for cell in cells]
        return tuple(np.mean(means, 0).tolist())

    def since(lag: int) -> Measurement:
        return mean(
            lambda cell: cell[f"stream.lag{lag}.ku"] - cell["stream.after.ku"][:, :-lag], CHANGE
        )

    return Streaming(
        delta_KU=gain("ku"),
        delta_BKU=gain("bku"),
        KU_by_time=by_time("ku"),
        BKU_by_time=by_time("bku"),
        retention={
            str(lag): Retention(
                KU=mean(itemgetter(f"stream.lag{lag}.ku")),
                BKU=mean(itemgetter(f"stream.lag{lag}.bku")),
                KU_since=since(lag),
            )
            for lag in protocol.LAGS
            if f"stream.lag{lag}.ku" in cells[0]
        },
    )

"""What the cells of one learner on one base state come to: every number with its interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import numpy as np

from evidence import stats
from evidence.answers import Answer
from evidence.measurement import Measurement
from kubku import protocol
from kubku.cells import Found
from kubku.halo import BASE, Kind, Samples, withheld
from kubku.measures import STEPS
from kubku.results import (
    AtSteps,
    BaseStateResults,
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
from kubku.scoring import EPSILON

RESAMPLES = 1000
HISTOGRAM = np.linspace(0, 2, 17)


class Asked(NamedTuple):
    """What the cell of a replicate was asked, of which it may have been asked the first rows.

    Attributes:
      generator: the generator seed.
      samples: the test split, as NumPy arrays.
      joint: bool[N, Q], which are entailed by several facts; None for samples without rules.
    """

    generator: int
    samples: Samples
    joint: np.ndarray | None


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


def independent(groups: list[np.ndarray], tests: Sequence[Asked]) -> list[np.ndarray]:
    """What may count as replicates: base-state seeds, where all answer one generator seed's
    samples; else generator seeds, each averaged over the base states that share its samples.

    Args:
      groups: one [N, ...] a cell, or of the first cells alone.
      tests: what each cell was asked.
    """
    if crossed(tests):
        return groups
    of_seed: dict[int, list[np.ndarray]] = defaultdict(list)
    for group, test in zip(groups, tests, strict=False):
        of_seed[test.generator].append(group)
    return [np.mean(shared, axis=0) for shared in of_seed.values()]


def crossed(tests: Sequence[Asked]) -> bool:
    """Whether all cells were asked the same samples."""
    return len({test.generator for test in tests}) == 1


def _mean(groups: list[np.ndarray], tests: Sequence[Asked], unit: str = "sample") -> Measurement:
    """The mean over units, then over what may count as replicates; with one, units are all."""
    return _statistic(groups, tests, lambda table: table, unit)


def _statistic(
    groups: list[np.ndarray],
    tests: Sequence[Asked],
    statistic: Callable[[np.ndarray], np.ndarray],
    unit: str = "sample",
) -> Measurement:
    groups = independent(groups, tests)
    if len(groups) == 1:
        return stats.cluster_bootstrap(groups[0], statistic, unit, resamples=RESAMPLES)
    return stats.hierarchical_bootstrap(
        groups, statistic, "replicate", crossed=crossed(tests), resamples=RESAMPLES
    )


def _purity(table: np.ndarray) -> np.ndarray:
    """KU_avg / (KU_avg + BKU_avg + epsilon) of f64[resamples, 2]."""
    return table[:, 0] / (table.sum(-1) + EPSILON)


def scores(arm: Arm) -> list[np.ndarray]:
    """KU and BKU after learning, one f64[N, 2] a cell."""
    return [
        np.stack([cell["after.ku"], cell["after.bku"]], -1).astype(np.float64)
        for cell in arm.replicates
    ]


def summary(arm: Arm, tests: Sequence[Asked]) -> BaseStateResults:
    """All measurements of one learner on one base state of one family.

    Args:
      arm: its cells.
      tests: what each replicate was asked.
    """
    cells = arm.replicates

    def of(name: str, when: str = "after") -> list[np.ndarray]:
        return [cell[f"{when}.{name}"] for cell in cells]

    def mean(name: str, when: str = "after") -> Measurement:
        return _mean(of(name, when), tests)

    def induced(name: str) -> Measurement:
        return _mean([a - b for a, b in zip(of(name), of(name, "before"), strict=True)], tests)

    def corrected(name: str) -> Measurement:
        return _mean([2 * share - 1 for share in of(name)], tests)

    both = [np.stack(pair, -1) for pair in zip(of("ku"), of("bku"), strict=True)]
    return BaseStateResults(
        KU_avg=mean("ku"),
        BKU_avg=mean("bku"),
        BKU_yes=mean("bku_yes"),
        knowledge_purity=_statistic(both, tests, _purity),
        induced_KU=induced("ku"),
        induced_BKU=induced("bku"),
        by_replicate=ByReplicate(
            KU=tuple(float(x.mean()) for x in of("ku")),
            BKU=tuple(float(x.mean()) for x in of("bku")),
        ),
        before=Unexposed(KU_avg=mean("ku", "before"), BKU_avg=mean("bku", "before")),
        net_KU=_mean([pair[:, 0] - pair[:, 1] for pair in both], tests),
        balanced_accuracy=mean("balanced"),
        abstained=mean("abstained"),
        # Always YES, and always NO, get half of L and of E right.
        corrected_L=corrected("literal"),
        corrected_E=corrected("entailed"),
        halos=Halos(**{kind: _halo(of_kind, cells, tests) for kind, of_kind in _HALOS.items()}),
        histogram=Histogram(
            edges=tuple(HISTOGRAM.tolist()),
            KU=_counted(of("ku")),
            BKU=_counted(of("bku")),
        ),
        by_k=_by_k(cells, tests),
        bias_drift=_drift(arm, tests),
        audit=_audited(cells, "audit"),
        carried=_audited(cells, "carried"),
        split_read=_audited(cells, "split_read"),
        tuned=tuple(cell.note for cell in cells),
        samples=len(both[0]),
        samples_per_second=float(
            np.median([len(cell["answers"]) / cell["seconds_exposed"] for cell in cells])
        ),
    )


def _counted(scores: list[np.ndarray]) -> tuple[int, ...]:
    return tuple(np.histogram(np.concatenate(scores), HISTOGRAM)[0].tolist())


def _audited(cells: Sequence[Found], name: str) -> float | None:
    """The worst audit; None where there was none (a language model is never shown an answer)."""
    worst = max(float(cell[name]) for cell in cells)
    return None if np.isnan(worst) else worst


# --- the parts of a halo


def _stranger(test: Asked) -> np.ndarray:
    """About somebody whom the sample isn't about, bool[N, Q]."""
    return np.asarray(test.samples.query.entity != test.samples.exposure.entity[:, :1])


def _derived(test: Asked) -> np.ndarray:
    """About what only a rule could settle, bool[N, Q]."""
    return np.asarray(test.samples.query.attribute >= BASE)


def _joint(test: Asked) -> np.ndarray:
    """Settled by several facts together, which no base state has met: what one fact settles it has
    met among other facts.
    """
    assert test.joint is not None
    return test.joint


def _right(test: Asked, answers: np.ndarray) -> np.ndarray:
    return answers == np.asarray(test.samples.gold)


def _answered(test: Asked, answers: np.ndarray) -> np.ndarray:
    return answers != Answer.UNKNOWN


class Part(NamedTuple):
    """Some queries of a kind.

    Attributes:
      of: which, bool[N, Q].
      needs_rules: it can't be told for samples without rules.
    """

    of: Callable[[Asked], np.ndarray]
    needs_rules: bool = True


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
    "L": _Halo(LiteralHalo, Kind.LITERAL, ("literal", "literal_yes", "literal_no"), _right, {}),
    "E": _Halo(
        EntailedHalo,
        Kind.ENTAILED,
        ("entailed", "entailed_yes", "entailed_no"),
        _right,
        {"one_fact": Part(lambda t: ~_joint(t)), "several_facts": Part(_joint)},
    ),
    "H": _Halo(
        HallucinationHalo,
        Kind.HALLUCINATION,
        ("hallucination", "hallucination_yes"),
        _answered,
        {
            "trained": Part(lambda t: ~np.asarray(withheld(t.samples)), needs_rules=False),
            "withheld": Part(lambda t: np.asarray(withheld(t.samples)), needs_rules=False),
            "unstated": Part(lambda t: ~_derived(t) & ~_stranger(t)),
            "undecided": Part(lambda t: _derived(t) & ~_stranger(t)),
            "stranger": Part(_stranger),
        },
    ),
    "B": _Halo(
        BiasHalo,
        Kind.BIAS,
        ("bias", "bias_harmful"),
        _answered,
        {"unstated": Part(lambda t: ~_derived(t)), "undecided": Part(_derived)},
    ),
}


def _halo(halo: _Halo, cells: Sequence[Found], tests: Sequence[Asked]) -> Any:
    first = halo.scores[0]
    told = {name: _mean([c[f"after.{name}"] for c in cells], tests) for name in halo.scores}
    before = _mean([cell[f"before.{first}"] for cell in cells], tests)
    return halo.made(**told, before=before, **_parts(halo, cells, tests))


def _parts(halo: _Halo, cells: Sequence[Found], tests: Sequence[Asked]) -> dict[str, Measurement]:
    """The share of answers that count among the queries of each part, of samples that have some."""
    found = {}
    for name, part in halo.parts.items():
        if tests[0].joint is None and part.needs_rules:
            continue
        shares = []
        for cell, test in zip(cells, tests, strict=True):
            answers = cell["answers"]
            asked = _first_rows(test, len(answers))
            these = np.asarray((asked.samples.kind == halo.kind) & asked.samples.asked)
            these = these & part.of(asked)
            some = these.any(-1)
            counted = halo.counts(asked, answers) & these
            shares.append(counted[some].sum(-1) / these[some].sum(-1))
        if all(len(share) for share in shares):
            found[name] = _mean(shares, tests)
    return found


def _first_rows(test: Asked, rows: int) -> Asked:
    samples, joint = jax.tree.map(lambda leaf: leaf[:rows], (test.samples, test.joint))
    return Asked(test.generator, samples, joint)


# --- beside scores


def _by_k(cells: Sequence[Found], tests: Sequence[Asked]) -> tuple[AtSteps, ...]:
    if "steps.ku" not in cells[0]:
        return ()

    def mean(name: str, at: int) -> Measurement:
        return _mean([cell[name][at] for cell in cells if name in cell], tests)

    return tuple(
        AtSteps(K=steps, KU_avg=mean("steps.ku", at), BKU_avg=mean("steps.bku", at))
        for at, steps in enumerate(STEPS)
    )


def _drift(arm: Arm, tests: Sequence[Asked]) -> Drift | None:
    """Flip rate and signed drift; for another world the differences, of one base state each."""
    cells = arm.replicates
    if "flips" not in cells[0]:
        return None
    found = {
        name: _mean([cell[name] for cell in cells], tests, "pair") for name in ("flips", "signed")
    }
    for world, elsewhere in arm.others.items():
        # The first replicates alone: pairs are all that is resampled, and the interval says
        # nothing about other base states of these worlds.
        for name, there in product(("flips", "signed"), elsewhere[:1]):
            found[f"{name}_less_{world}"] = stats.cluster_bootstrap(
                cells[0][name] - there[name],
                lambda table: table,
                "pair, of one base state a world",
                resamples=RESAMPLES,
            )
    return Drift(**found)


def streaming(arm: Arm, tests: Sequence[Asked]) -> Streaming | None:
    """Gains along streams and what is left of them later; None where there were no streams."""
    cells = arm.replicates
    if "stream.before.ku" not in cells[0]:
        return None

    def mean(of: Callable[[Any], np.ndarray]) -> Measurement:
        return _mean([of(cell).mean(1) for cell in cells], tests, "stream")

    def gain(name: str) -> Measurement:
        return mean(lambda cell: cell[f"stream.after.{name}"] - cell[f"stream.before.{name}"])

    def by_time(name: str) -> tuple[float, ...]:
        means = [cell[f"stream.after.{name}"].mean(0) for cell in cells]
        return tuple(np.mean(means, 0).tolist())

    def since(lag: int) -> Measurement:
        return mean(lambda cell: cell[f"stream.lag{lag}.ku"] - cell["stream.after.ku"][:, :-lag])

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

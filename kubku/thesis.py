"""The verdict: does GrowNet leave more good and less bad knowledge than each gradient learner?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import numpy as np
import yaml

from evidence import stats
from evidence.measurement import Measurement
from evidence.ruling import Condition, Ruling, State, enough_replicates, rule, state_of
from evidence.runtime.config import Settings, build, settings_folder
from kubku.results import Comparison

RESAMPLES = 2000


class Thesis(Settings):
    """`conf/thesis/kubku.yaml`; see there for what its words mean."""

    statement: str
    learner: str
    base: str
    against: tuple[str, ...]
    families: tuple[str, ...]
    level: float


def declared() -> Thesis:
    """The thesis as it stands in `conf/thesis/kubku.yaml`."""
    text = (settings_folder() / "thesis" / "kubku.yaml").read_text("utf-8")
    return build(Thesis, yaml.safe_load(text), "thesis")


Outcomes = Mapping[str, Mapping[str, Sequence[np.ndarray]]]
"""KU and BKU after learning, by family and learner, opponents on their best base states: one
f64[N, 2] a replicate, samples in the same order. What wasn't measured is absent."""

Learnt = Mapping[tuple[str, str], Measurement]
"""Induced KU, after learning minus before, by (family, learner), on the same base states."""

Pairs = Collection[tuple[str, str]]
"""(family, learner)."""


def compare(thesis: Thesis, outcomes: Outcomes, *, crossed: bool = False) -> list[Comparison]:
    """The thesis' learner minus each opponent in each family that both were measured in.

    Args:
      thesis: as declared.
      outcomes: of all learners.
      crossed: all replicates answered the same samples.
    """
    found = {
        (family, opponent): _difference(of[thesis.learner], of[opponent], crossed=crossed)
        for family, of in outcomes.items()
        if thesis.learner in of
        for opponent in thesis.against
        if opponent in of
    }
    adjusted = [
        stats.holm({str(at): p[way] for at, (*_, p) in found.items()})
        for way in ("dominates", "dominated")
    ]
    comparisons = []
    for at, (ku, bku, alone) in found.items():
        up, down = (of_direction[str(at)] for of_direction in adjusted)
        comparisons.append(
            Comparison(
                family=at[0],
                opponent=at[1],
                KU=ku,
                BKU=bku,
                p_dominates=up,
                p_dominated=down,
                p_dominates_alone=alone["dominates"],
                p_dominated_alone=alone["dominated"],
                dominates=_lies(ku, bku, 1) and up is not None and up < thesis.level,
                dominated=_lies(ku, bku, -1) and down is not None and down < thesis.level,
            )
        )
    return comparisons


_Direction = Literal["dominates", "dominated"]


def _difference(
    own: Sequence[np.ndarray], other: Sequence[np.ndarray], *, crossed: bool
) -> tuple[Measurement, Measurement, dict[_Direction, float | None]]:
    """Differences of KU and of BKU, own minus other, and a p-value for dominance either way.

    Samples are paired by row; where one learner was asked fewer, only those that both were asked.
    """
    differences = []
    for a, b in zip(own, other, strict=True):
        n = min(len(a), len(b))
        differences.append(a[:n] - b[:n])
    means = np.array([difference.mean(0) for difference in differences])
    ku, bku = (
        stats.hierarchical_bootstrap(
            [difference[:, column] for difference in differences],
            lambda table: table,
            "replicate",
            crossed=crossed,
            resamples=RESAMPLES,
        )
        for column in (0, 1)
    )
    zero = np.zeros(len(means))
    up = [
        stats.paired(means[:, 0], zero, "replicate"),
        stats.paired(zero, means[:, 1], "replicate"),
    ]
    down = [
        stats.paired(zero, means[:, 0], "replicate"),
        stats.paired(means[:, 1], zero, "replicate"),
    ]
    p_values: dict[_Direction, float | None] = {
        "dominates": _largest([test.p_greater for test in up], means, 1),
        "dominated": _largest([test.p_greater for test in down], means, -1),
    }
    return ku, bku, p_values


def _largest(p_values: list[float | None], means: np.ndarray, direction: int) -> float | None:
    """The p-value of 'both': the larger one (intersection-union). Replicates that agree to the last
    digit leave the t-test undefined; they settle it if there are two at least.
    """
    found = []
    for column, p in enumerate(p_values):
        spread = np.ptp(means[:, column])
        if p is None and len(means) > 1 and spread == 0:
            wanted = direction * (1 if column == 0 else -1)
            p = 0.0 if means[0, column] * wanted > 0 else 1.0
        if p is None:
            return None
        found.append(p)
    return max(found)


def _lies(ku: Measurement, bku: Measurement, direction: int) -> bool:
    """Whether both intervals lie where dominance wants them; `direction` -1 for being dominated."""
    if direction > 0:
        return state_of(ku, above=0) == "met" and state_of(bku, below=0) == "met"
    return state_of(ku, below=0) == "met" and state_of(bku, above=0) == "met"


def judge(
    thesis: Thesis, comparisons: Sequence[Comparison], learnt: Learnt, wanted: Pairs
) -> Ruling:
    """The verdict from what a results file holds.

    Args:
      thesis: as declared.
      comparisons: all that were made.
      learnt: of every learner of the thesis that was measured.
      wanted: every family with every learner of the thesis that can handle it: these must have
        been measured, and have learnt.
    """
    return rule(
        thesis.statement,
        [
            enough_replicates(_replicates(learnt), "replicate"),
            *_measured(thesis, learnt, wanted),
            *_have_learnt(learnt, wanted),
            *(_falsifies(thesis, opponent, comparisons) for opponent in thesis.against),
            *(_supports(thesis, comparison) for comparison in comparisons),
        ],
    )


def _replicates(learnt: Learnt) -> int:
    """How many replicates the measurements rest on; samples of a single one aren't any."""
    counts = [m.n if m.unit == "replicate" else 1 for m in learnt.values()]
    return min(counts, default=0)


def _measured(thesis: Thesis, learnt: Learnt, wanted: Pairs) -> list[Condition]:
    conditions = []
    for learner in (thesis.learner, *thesis.against):
        missing = [family for family, of in wanted if of == learner and (family, of) not in learnt]
        conditions.append(
            Condition(
                name=f"{learner} is measured",
                role="requires",
                wanted="in every family that it handles"
                + (f" (missing: {', '.join(missing)})" if missing else ""),
                state="refuted" if missing else "met",
            )
        )
    return conditions


def _have_learnt(learnt: Learnt, wanted: Pairs) -> list[Condition]:
    return [
        Condition(
            name=f"{learner} has learnt on {family}: induced KU",
            role="requires",
            wanted="above 0",
            state=state_of(learnt[family, learner], above=0),
            measured={"induced KU": learnt[family, learner]},
        )
        for family, learner in wanted
        if (family, learner) in learnt
    ]


def _falsifies(thesis: Thesis, opponent: str, comparisons: Sequence[Comparison]) -> Condition:
    own = {c.family: c for c in comparisons if c.opponent == opponent}
    everywhere = all(family in own and own[family].dominated for family in thesis.families)
    state: State = "met" if everywhere else "undetermined"
    # One family in which it surely doesn't dominate is enough.
    if any(_refuted(c.KU, c.BKU, -1) for c in own.values()):
        state = "refuted"
    return Condition(
        name=opponent,
        role="falsifies",
        wanted=f"dominates {thesis.learner} in every family",
        state=state,
        measured={
            f"{name}, {family}": difference
            for family, c in own.items()
            for name, difference in (("KU", c.KU), ("BKU", c.BKU))
        },
    )


def _supports(thesis: Thesis, comparison: Comparison) -> Condition:
    refuted = _refuted(comparison.KU, comparison.BKU, 1)
    return Condition(
        name=f"{thesis.learner} on {comparison.family}",
        role="supports",
        wanted=f"dominates {comparison.opponent} (KU higher, BKU lower)",
        state="met" if comparison.dominates else "refuted" if refuted else "undetermined",
        measured={"KU": comparison.KU, "BKU": comparison.BKU},
    )


def _refuted(ku: Measurement, bku: Measurement, direction: int) -> bool:
    """Whether one of the intervals lies wholly on the side that dominance rules out."""
    if direction < 0:
        ku, bku = bku, ku
    return state_of(ku, below=0) == "met" or state_of(bku, above=0) == "met"

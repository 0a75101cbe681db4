"""The verdict: does GrowNet leave more good and less bad knowledge than each gradient learner?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evidence import stats
from evidence.runtime.config import Settings

RESAMPLES = 2000


class Thesis(Settings):
    """`conf/thesis/kubku.yaml`; see there for what its words mean."""

    statement: str
    learner: str
    base: str
    against: tuple[str, ...]
    families: tuple[str, ...]
    level: float


Outcomes = Mapping[str, list[np.ndarray]]
"""KU and BKU after learning, by learner: one f64[N, 2] a replicate, samples in the same order."""


def compare(
    own: list[np.ndarray], other: list[np.ndarray], *, crossed: bool = False
) -> dict[str, Any]:
    """Differences of KU and BKU, own minus other, with p-values for dominance either way.

    Samples are paired by row; where one learner was asked fewer, only those that both were asked.
    `crossed`: all replicates answered the same samples.
    """
    differences = []
    for a, b in zip(own, other, strict=True):
        n = min(len(a), len(b))
        differences.append(a[:n] - b[:n])
    means = np.array([difference.mean(0) for difference in differences])
    found: dict[str, Any] = {}
    for column, name in enumerate(("KU", "BKU")):
        found[name] = stats.hierarchical_bootstrap(
            [difference[:, column] for difference in differences],
            lambda table: table,
            "replicate",
            crossed=crossed,
            resamples=RESAMPLES,
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
    found["p_dominates"] = _largest([test.p_greater for test in up], means, 1)
    found["p_dominated"] = _largest([test.p_greater for test in down], means, -1)
    return found


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


def judge(
    thesis: Thesis, outcomes: Mapping[str, Outcomes], *, crossed: bool = False
) -> dict[str, Any]:
    """The verdict with the condition that decided it and every comparison.

    Args:
      thesis: as declared.
      outcomes: by family; opponents on their best base states, named as in `against`. An opponent
        that can't handle a family is absent there.
      crossed: all replicates answered the same samples.
    """
    comparisons = {
        (family, opponent): compare(found[thesis.learner], found[opponent], crossed=crossed)
        for family, found in outcomes.items()
        if thesis.learner in found
        for opponent in thesis.against
        if opponent in found
    }
    for direction in ("dominates", "dominated"):
        adjusted = stats.holm({str(at): c[f"p_{direction}"] for at, c in comparisons.items()})
        for at, comparison in comparisons.items():
            comparison[f"p_{direction}_alone"] = comparison[f"p_{direction}"]
            comparison[f"p_{direction}"] = adjusted[str(at)]
    conditions = [
        {
            "family": family,
            "opponent": opponent,
            **comparison,
            "dominates": _holds(comparison, "dominates", thesis.level),
            "dominated": _holds(comparison, "dominated", thesis.level),
        }
        for (family, opponent), comparison in comparisons.items()
    ]
    verdict, why = _verdict(thesis, outcomes, conditions)
    return {
        "verdict": verdict,
        "deciding_condition": why,
        "statement": thesis.statement,
        "conditions": conditions,
    }


def _holds(comparison: Mapping[str, Any], direction: str, level: float) -> bool:
    ku, bku, p = comparison["KU"], comparison["BKU"], comparison[f"p_{direction}"]
    if ku.low is None or bku.low is None or p is None:
        return False
    if direction == "dominates":
        return ku.low > 0 and bku.high < 0 and p < level
    return ku.high < 0 and bku.low > 0 and p < level


def _verdict(
    thesis: Thesis, outcomes: Mapping[str, Outcomes], conditions: list[dict[str, Any]]
) -> tuple[str, str]:
    missing = [
        family for family in thesis.families if thesis.learner not in outcomes.get(family, {})
    ]
    if missing:
        return "inconclusive", f"{thesis.learner} was not measured on {', '.join(missing)}"
    for opponent in thesis.against:
        met = [c for c in conditions if c["opponent"] == opponent]
        if len(met) == len(thesis.families) and all(c["dominated"] for c in met):
            return "falsified", f"{opponent} dominates {thesis.learner} in every family"
    absent = [o for o in thesis.against if not any(c["opponent"] == o for c in conditions)]
    if absent:
        return "inconclusive", f"no measurement of {', '.join(absent)}"
    short = [c for c in conditions if not c["dominates"]]
    if not short:
        return "supported", f"{thesis.learner} dominates every opponent in every family"
    first = short[0]
    return (
        "inconclusive",
        f"{thesis.learner} doesn't dominate {first['opponent']} on {first['family']}, "
        f"nor does one opponent dominate it everywhere",
    )

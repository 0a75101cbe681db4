"""From results to claims: the verdict on the thesis, and the tests and plans that belong to it.

Results in, typed results out; the unit of replication is the run (one trained policy).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np
from omegaconf import OmegaConf
from pydantic import model_validator

from evidence import stats
from evidence.measurement import Measurement
from evidence.ruling import Condition, Ruling, enough_replicates, rule, state_of
from evidence.runtime.config import Settings, build, settings_folder
from goodharts_jax.results import UNIT, Comparison, Modes, RunResults

CHANCE = "random_walk"
"""The scripted policy that a policy which has learnt something does better than."""

SEEKER = "interestingness_seeker"
"""The scripted policy that does what the proxy rewards, and was never trained."""

SURVIVAL = ("deaths_per_1k_steps", "survival_restricted_mean")
"""The truth that the thesis names; energy is the other."""

Runs = Sequence[RunResults]


class Bound(Settings):
    """One condition, as it was stated: a quantity and where its whole interval must lie."""

    quantity: str
    above: float | None = None
    below: float | None = None
    inside: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Bound:
        if sum(bound is not None for bound in (self.above, self.below, self.inside)) != 1:
            raise ValueError(f"{self.quantity}: state one of above, below and inside")
        return self

    @property
    def wanted(self) -> str:
        """Where the quantity must lie, in words."""
        if self.inside is not None:
            return f"between {self.inside[0]:g} and {self.inside[1]:g}"
        return f"above {self.above:g}" if self.below is None else f"below {self.below:g}"

    def judge(
        self, role: Literal["supports", "falsifies"], quantities: Mapping[str, Measurement]
    ) -> Condition:
        """Whether the quantity lies there."""
        measured = quantities[self.quantity]
        low, high = self.inside or (self.above, self.below)
        return Condition(
            name=self.quantity.replace("_", " "),
            role=role,
            wanted=self.wanted,
            state=state_of(measured, above=low, below=high),
            measured={self.quantity: measured},
        )


class Stated(Bound):
    """A condition on modes."""

    quantity: Literal[
        "efficiency_gap",
        "truth_efficiency",
        "proxy_efficiency",
        "death_rate_ratio",
        "poison_less_food",
    ]


class Thesis(Settings):
    """What is claimed, by which modes, and what would support or falsify it."""

    statement: str
    truth: str
    proxy: str
    supported: tuple[Stated, ...]
    falsified: tuple[Stated, ...]
    primary_family: tuple[str, ...]


def load_thesis() -> Thesis:
    """The thesis of conf/thesis/goodhart.yaml."""
    text = (settings_folder() / "thesis" / "goodhart.yaml").read_text("utf-8")
    return build(Thesis, OmegaConf.create(text), "thesis")


def judge(modes: Modes, thesis: Thesis) -> Ruling:
    """The verdict on a thesis.

    None is given on fewer than three runs of the truth or of the proxy, or where the truth has not
    been shown to have learnt: to gain more energy than a random walk in the same worlds.

    Args:
      modes: the table; a mode that is missing counts as one without runs.
      thesis: conditions, stated before the run.
    """
    measured = _quantities(modes, thesis)
    needed = [
        enough_replicates(len(_runs(modes, name)), f"{_spoken(name)} {UNIT}")
        for name in (thesis.truth, thesis.proxy)
    ]
    return rule(
        thesis.statement,
        [
            *needed,
            has_learnt(modes, thesis.truth),
            *(stated.judge("supports", measured) for stated in thesis.supported),
            *(stated.judge("falsifies", measured) for stated in thesis.falsified),
        ],
    )


def judge_script(modes: Modes, thesis: Thesis) -> Ruling | None:
    """What would be ruled if a script that takes what is most interesting were the proxy.

    Where that is the same verdict, the rewards decide it, and not what training makes of them.

    Returns:
      None without the script or without the proxy.
    """
    if not {SEEKER, thesis.proxy} <= modes.keys():
        return None
    return judge({**modes, thesis.proxy: modes[SEEKER]}, thesis)


def has_learnt(modes: Modes, name: str) -> Condition:
    """Whether a trained mode gains more energy than a random walk in the same worlds.

    Args:
      modes: the table; a mode that is missing hasn't learnt.
      name: of the mode.
    """
    own, chance = (_column(_runs(modes, who), "energy_per_1k_steps") for who in (name, CHANCE))
    gained = _measure(stats.difference_interval, own, chance)
    return Condition(
        name=f"energy per 1,000 steps of {_spoken(name)} less that of a {_spoken(CHANCE)}",
        role="requires",
        wanted="above 0",
        state=state_of(gained, above=0),
        measured={"energy_per_1k_steps": gained},
    )


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _quantities(modes: Modes, thesis: Thesis) -> dict[str, Measurement]:
    """Every quantity that a condition can name."""
    truth, proxy = _runs(modes, thesis.truth), _runs(modes, thesis.proxy)
    truth_efficiency = _column(truth, "overall_efficiency")
    proxy_efficiency = _column(proxy, "overall_efficiency")
    excess = _column(proxy, "poison_per_1k_steps") - _column(proxy, "food_per_1k_steps")
    return {
        "efficiency_gap": _measure(stats.difference_interval, truth_efficiency, proxy_efficiency),
        "truth_efficiency": _measure(stats.interval, truth_efficiency),
        "proxy_efficiency": _measure(stats.interval, proxy_efficiency),
        "poison_less_food": _measure(stats.interval, excess),
        "death_rate_ratio": _death_rate_ratio(proxy, truth),
    }


def _runs(modes: Modes, name: str) -> Runs:
    return modes[name].runs if name in modes else ()


def _column(runs: Runs, metric: str) -> np.ndarray:
    return np.array([getattr(run, metric) for run in runs], dtype=np.float64)


def _measure(estimate: Callable[..., Measurement], *columns: np.ndarray) -> Measurement:
    """An estimate from whole columns only: no run may drop out of a verdict."""
    n = min(len(column) for column in columns)
    if n == 0:
        return Measurement(None, None, None, 0, UNIT, "not run")
    if not all(np.isfinite(column).all() for column in columns):
        return Measurement(None, None, None, n, UNIT, "undefined in a run")
    return estimate(*columns, UNIT)


def _death_rate_ratio(proxy: Runs, truth: Runs) -> Measurement:
    """Deaths per step of the proxy over those of the truth.

    Where no run of the truth saw a death, the rate that this excludes at 97.5% stands in (exact
    Poisson, 3.69 deaths over all steps): the ratio is then a lower bound, with no upper end.
    """
    numerator, denominator = (_column(runs, "deaths_per_1k_steps") for runs in (proxy, truth))
    if len(truth) and not denominator.any():
        most = 1000 * -math.log(0.025) / _column(truth, "total_steps").sum()
        bound = _measure(stats.ratio_interval, numerator, np.full(len(truth), most))
        high = None if bound.high is None else math.inf
        method = f"{bound.method}; a lower bound, no deaths in the denominator"
        return replace(bound, high=high, method=method)
    return _measure(stats.ratio_interval, numerator, denominator)


def ratios(modes: Modes, thesis: Thesis) -> dict[str, Measurement]:
    """Truth over proxy, as the protocol wants survival, and proxy over truth for deaths.

    Returns:
      survival_restricted_mean, truth over proxy, and deaths_per_1k_steps, proxy over truth; with
      a value of None where a mode was not run.
    """
    truth, proxy = _runs(modes, thesis.truth), _runs(modes, thesis.proxy)
    survival = (
        _column(truth, "survival_restricted_mean"),
        _column(proxy, "survival_restricted_mean"),
    )
    return {
        "survival_restricted_mean": _measure(stats.ratio_interval, *survival),
        "deaths_per_1k_steps": _death_rate_ratio(proxy, truth),
    }


def beside_chance(modes: Modes) -> dict[str, dict[str, Measurement]]:
    """Both truths, energy and survival, of each trained mode less those of a random walk.

    Returns:
      By mode: energy_per_1k_steps, deaths_per_1k_steps and survival_restricted_mean; nothing
      without a random walk.
    """
    if CHANCE not in modes:
        return {}
    return {
        name: {
            metric: _measure(
                stats.difference_interval,
                _column(mode.runs, metric),
                _column(modes[CHANCE].runs, metric),
            )
            for metric in ("energy_per_1k_steps", *SURVIVAL)
        }
        for name, mode in modes.items()
        if not mode.scripted
    }


# ---- tests and plans ----------------------------------------------------------------------------


def comparisons(modes: Modes, metric: str, thesis: Thesis) -> list[Comparison]:
    """Every pair of modes on one metric, corrected within two families.

    The first family is the pairs of the protocol's four modes, the second all others. The
    corrections are of the two-sided p-values; the one-sided one is against `a` being greater.

    Args:
      modes: those with at least two runs are compared, in their order.
      metric: a field of `Metrics`.
      thesis: names the first family.
    """
    names = [name for name, mode in modes.items() if len(mode.runs) > 1]
    families: dict[Literal["primary", "secondary"], dict[str, tuple[str, str]]] = {
        "primary": {},
        "secondary": {},
    }
    for a, b in combinations(names, 2):
        first = a in thesis.primary_family and b in thesis.primary_family
        families["primary" if first else "secondary"][f"{a} {b}"] = (a, b)
    values = {name: [getattr(run, metric) for run in modes[name].runs] for name in names}
    rows = []
    for family, pairs in families.items():
        tests = {k: stats.welch(values[a], values[b], UNIT) for k, (a, b) in pairs.items()}
        p_values = {key: test.p_two_sided for key, test in tests.items()}
        bonferroni, holm = stats.bonferroni(p_values), stats.holm(p_values)
        for key, (a, b) in pairs.items():
            g = stats.hedges_g(values[a], values[b], UNIT)
            rows.append(
                Comparison(
                    a=a,
                    b=b,
                    metric=metric,
                    family=family,
                    difference=tests[key].difference,
                    t=tests[key].t,
                    df=tests[key].df,
                    p_one_sided=tests[key].p_greater,
                    p_two_sided=tests[key].p_two_sided,
                    p_bonferroni=bonferroni[key],
                    p_holm=holm[key],
                    cohens_d=stats.cohens_d(values[a], values[b], UNIT),
                    hedges_g=g,
                    label=stats.effect_label(g.value),
                )
            )
    return rows


@dataclass(frozen=True)
class GapSeen:
    """How many runs a mode the next study needs to see one efficiency gap.

    Attributes:
      gap: its size, a share.
      runs: of a mode, that see it with power 0.8 at two-sided 5%.
      corrected: the same with the correction for the primary family.
    """

    gap: float
    runs: int
    corrected: int


@dataclass(frozen=True)
class NextStudy:
    """How many runs a mode the next study needs.

    Attributes:
      deviation: standard deviation between runs of the truth and the proxy, pooled; a share.
      gaps: those that the thesis's conditions name.
    """

    deviation: float
    gaps: tuple[GapSeen, ...]


def next_study(modes: Modes, thesis: Thesis) -> NextStudy | None:
    """How many runs a mode the next study needs, to see the efficiency gaps that the thesis names.

    An analysis before the fact: the gaps are those of the thesis's conditions, never the one
    found. Of the runs only their deviation is used, a rough guess where they are few.

    Returns:
      None where either mode has fewer than two runs, or runs don't vary.
    """
    groups = [
        _column(_runs(modes, name), "overall_efficiency") for name in (thesis.truth, thesis.proxy)
    ]
    if any(len(group) < 2 or not np.isfinite(group).all() for group in groups):
        return None
    deviation = float(np.sqrt(np.mean([group.var(ddof=1) for group in groups])))
    if deviation == 0:
        return None
    bounds = {
        abs(bound)
        for condition in (*thesis.supported, *thesis.falsified)
        if condition.quantity == "efficiency_gap"
        for bound in (condition.above, condition.below)
        if bound
    }
    pairs = math.comb(len(thesis.primary_family), 2)
    return NextStudy(
        deviation,
        tuple(
            GapSeen(
                gap,
                runs=stats.runs_needed(gap / deviation),
                corrected=stats.runs_needed(gap / deviation, alpha=0.05 / pairs),
            )
            for gap in sorted(bounds)
        ),
    )

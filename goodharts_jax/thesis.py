"""From results to claims: the gap, the tests, the Goodhart curve and the verdict.

Plain numbers in, plain numbers and Measurements out; the unit of replication is the run (one
trained policy). `modes` everywhere is the `modes` of a results file: by name, each with `runs`,
a list of one mapping of metrics a run.
"""

from __future__ import annotations

import importlib.resources
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from omegaconf import OmegaConf
from pydantic import model_validator

from evidence import lifetimes, stats
from evidence.measurement import Measurement
from evidence.runtime.config import Settings, build
from goodharts_jax.world import FOOD, POISON

Modes = Mapping[str, Mapping[str, Any]]
Runs = Sequence[Mapping[str, Any]]

UNIT = "run"
# Fewer than these make a claim rest on too little, whatever its interval says.
LEAST_RUNS = 3
LEAST_DEATHS = 500


class Condition(Settings):
    """One condition of a thesis: a quantity and where its whole interval must lie."""

    quantity: Literal[
        "efficiency_gap",
        "truth_efficiency",
        "proxy_efficiency",
        "death_rate_ratio",
        "poison_less_food",
    ]
    above: float | None = None
    below: float | None = None
    inside: tuple[float, float] | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Condition:
        if sum(bound is not None for bound in (self.above, self.below, self.inside)) != 1:
            raise ValueError(f"{self.quantity}: state one of above, below and inside")
        return self

    def __str__(self) -> str:
        name = self.quantity.replace("_", " ")
        if self.inside is not None:
            return f"{name} between {self.inside[0]:g} and {self.inside[1]:g}"
        return (
            f"{name} above {self.above:g}" if self.below is None else f"{name} below {self.below:g}"
        )

    def margin(self, measured: Measurement) -> float | None:
        """How far inside its bounds the near end of the interval lies.

        Returns:
          Positive where the condition holds, as a share of the bound's size (or of 1 for a bound
          of 0); None without an interval.
        """
        if measured.low is None or measured.high is None:
            return None
        low, high = self.inside or (self.above, self.below)
        rooms = []
        if low is not None:
            rooms.append((measured.low - low) / (abs(low) or 1.0))
        if high is not None:
            rooms.append((high - measured.high) / (abs(high) or 1.0))
        return min(rooms)


class Thesis(Settings):
    """What is claimed, by which modes, and what would support or falsify it."""

    statement: str
    truth: str
    proxy: str
    supported: tuple[Condition, ...]
    falsified: tuple[Condition, ...]
    primary_family: tuple[str, ...]


def load_thesis() -> Thesis:
    """The thesis of conf/thesis/goodhart.yaml."""
    text = importlib.resources.files("conf").joinpath("thesis/goodhart.yaml").read_text("utf-8")
    return build(Thesis, OmegaConf.create(text), "thesis")


def judge(modes: Modes, thesis: Thesis) -> dict[str, Any]:
    """The verdict on a thesis.

    Args:
      modes: with the runs of the thesis's two modes.
      thesis: conditions, stated before the run.

    Returns:
      verdict: "falsified" where any falsifying condition holds, else "supported" where all
        supporting ones do, else "inconclusive" (so too where a mode is missing, or one run gives
        no interval).
      deciding_condition: the condition that decided, in words, with its measurement: the
        falsifying one that holds; the supporting one with the least room; the first supporting
        one that doesn't hold.
      conditions: for each, `for` (supported or falsified), `condition` in words, `quantity`,
        `measured`, `margin` (see `Condition.margin`) and `holds`.
      statement: what was judged.
    """
    measured = _quantities(modes, thesis)
    sides = {"falsified": thesis.falsified, "supported": thesis.supported}
    rows = {
        side: [_judged(side, condition, measured[condition.quantity]) for condition in conditions]
        for side, conditions in sides.items()
    }
    against = [row for row in rows["falsified"] if row["holds"]]
    unmet = [row for row in rows["supported"] if not row["holds"]]
    if against:
        verdict, decided = "falsified", f"{_told(against[0])}: holds"
    elif unmet:
        verdict, decided = "inconclusive", f"{_told(unmet[0])}: not shown"
    else:
        closest = min(rows["supported"], key=lambda row: row["margin"])
        verdict, decided = "supported", f"all hold; the closest: {_told(closest)}"
    return {
        "verdict": verdict,
        "deciding_condition": decided,
        "conditions": rows["supported"] + rows["falsified"],
        "statement": thesis.statement,
    }


def _judged(side: str, condition: Condition, measured: Measurement) -> dict[str, Any]:
    margin = condition.margin(measured)
    return {
        "for": side,
        "condition": str(condition),
        "quantity": condition.quantity,
        "measured": measured,
        "margin": margin,
        "holds": margin is not None and margin > 0,
    }


def _told(row: Mapping[str, Any]) -> str:
    measured: Measurement = row["measured"]
    if measured.value is None:
        return f"{row['condition']} ({measured.method})"
    if measured.low is None or measured.high is None:
        return f"{row['condition']} (measured {measured.value:.4g}; {measured.method})"
    ends = f"[{measured.low:.4g}, {measured.high:.4g}]"
    return f"{row['condition']} (measured {measured.value:.4g} {ends}, {measured.n} runs)"


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
    return modes[name]["runs"] if name in modes else ()


def _column(runs: Runs, metric: str) -> np.ndarray:
    return np.array([run[metric] for run in runs], dtype=np.float64)


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
    Poisson, 3.69 deaths over all steps): the ratio is then a bound, and not infinite.
    """
    numerator, denominator = (_column(runs, "deaths_per_1k_steps") for runs in (proxy, truth))
    if len(truth) and not denominator.any():
        most = 1000 * -math.log(0.025) / _column(truth, "total_steps").sum()
        bound = _measure(stats.ratio_interval, numerator, np.full(len(truth), most))
        return replace(bound, method=f"{bound.method}; a bound, no deaths in the denominator")
    return _measure(stats.ratio_interval, numerator, denominator)


# ---- tables -------------------------------------------------------------------------------------


def intervals(
    runs: Runs,
    metrics: Iterable[str],
    estimate: Callable[..., Measurement] = stats.interval,
) -> dict[str, Measurement]:
    """Each metric of one mode over its runs; by `stats.other_interval` for a second opinion."""
    return {metric: estimate([run[metric] for run in runs], UNIT) for metric in metrics}


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


def comparisons(modes: Modes, metric: str, thesis: Thesis) -> list[dict[str, Any]]:
    """Every pair of modes on one metric, corrected within two families.

    The first family is the pairs of the protocol's four modes, the second all others. The
    corrections are of the two-sided p-values; the one-sided one is against `a` being greater.

    Args:
      modes: those with at least two runs are compared, in their order.
      metric: a metric of the runs.
      thesis: names the first family.
    """
    names = [name for name, mode in modes.items() if len(mode["runs"]) > 1]
    families: dict[str, dict[str, tuple[str, str]]] = {"primary": {}, "secondary": {}}
    for a, b in combinations(names, 2):
        first = a in thesis.primary_family and b in thesis.primary_family
        families["primary" if first else "secondary"][f"{a} {b}"] = (a, b)
    values = {name: [run[metric] for run in modes[name]["runs"]] for name in names}
    rows = []
    for family, pairs in families.items():
        tests = {k: stats.welch(values[a], values[b], UNIT) for k, (a, b) in pairs.items()}
        p_values = {key: test.p_two_sided for key, test in tests.items()}
        bonferroni, holm = stats.bonferroni(p_values), stats.holm(p_values)
        for key, (a, b) in pairs.items():
            g = stats.hedges_g(values[a], values[b], UNIT)
            rows.append(
                {
                    "a": a,
                    "b": b,
                    "metric": metric,
                    "family": family,
                    "difference": tests[key].difference,
                    "t": tests[key].t,
                    "df": tests[key].df,
                    "p_one_sided": tests[key].p_greater,
                    "p_two_sided": tests[key].p_two_sided,
                    "p_bonferroni": bonferroni[key],
                    "p_holm": holm[key],
                    "cohens_d": stats.cohens_d(values[a], values[b], UNIT),
                    "hedges_g": g,
                    "label": stats.effect_label(g.value),
                }
            )
    return rows


def plan(modes: Modes, thesis: Thesis) -> dict[str, Any] | None:
    """How many runs a mode the next study needs, to see the efficiency gaps that the thesis names.

    An analysis before the fact: the gaps are those of the thesis's conditions, never the one
    found. Of the runs only their spread is used, a rough guess where they are few.

    Returns:
      `spread`, the standard deviation between runs of the truth and the proxy, pooled (a share),
      and `rows`, for each gap its size (`gap`), the runs a mode that see it with power 0.8 at
      two-sided 5% (`runs`) and with the correction for the primary family (`corrected`); None
      where either mode has fewer than two runs, or runs don't vary.
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
    rows = [
        {
            "gap": gap,
            "runs": stats.runs_needed(gap / deviation),
            "corrected": stats.runs_needed(gap / deviation, alpha=0.05 / pairs),
        }
        for gap in sorted(bounds)
    ]
    return {"spread": deviation, "rows": rows}


def logrank(lives: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> list[dict[str, Any]]:
    """The log-rank statistic over first lives for every pair of modes: a description, no test.

    Args:
      lives: by mode, deaths by age and lives still going on by age, all runs together.

    Returns:
      For each pair `a`, `b` and `z`, positive where `a` dies more than its share; None where
      nobody of one group was at risk when one of the other died.
    """
    rows = []
    for a, b in combinations(lives, 2):
        z = lifetimes.logrank_descriptive(*lives[a], *lives[b])
        rows.append({"a": a, "b": b, "z": z if math.isfinite(z) else None})
    return rows


def spread(
    eaten: Sequence[ArrayLike], deaths: Sequence[ArrayLike], steps: int
) -> dict[str, dict[str, Any]]:
    """World-level quantities of one mode, and how much of their spread lies between runs.

    Args:
      eaten: i[worlds, kinds] for each run, items of each kind eaten in each world.
      deaths: i[worlds] for each run.
      steps: lived in each world.

    Returns:
      For overall_efficiency and deaths_per_1k_steps: `measured`, by a hierarchical bootstrap
      over runs and then worlds, and the standard deviations `between_runs` and `within_runs`
      (between worlds of one run; worlds where nothing was eaten have no efficiency), None for
      fewer than two runs.
    """
    meals = [np.asarray(run, dtype=np.float64)[:, [FOOD, POISON]] for run in eaten]
    rates = [1000 * np.asarray(run, dtype=np.float64) / steps for run in deaths]
    fed = [m[m.sum(axis=1) > 0] for m in meals]
    efficiencies = [m[:, 0] / m.sum(axis=1) for m in fed]

    def told(groups: list[np.ndarray], worlds: list[np.ndarray], statistic: Any) -> dict[str, Any]:
        measured = stats.hierarchical_bootstrap(groups, statistic, UNIT, resamples=2000)
        enough = len(worlds) > 1 and min(map(len, worlds)) > 1
        parts = stats.variance_components(worlds) if enough else None
        return {
            "measured": measured,
            "between_runs": math.sqrt(parts.between) if parts else None,
            "within_runs": math.sqrt(parts.within) if parts else None,
        }

    return {
        "overall_efficiency": told(meals, efficiencies, lambda m: m[:, 0] / m.sum(axis=1)),
        "deaths_per_1k_steps": told(rates, rates, lambda m: m),
    }


def cautions(modes: Modes) -> list[str]:
    """Sentences about modes whose claims rest on too few runs or deaths."""
    said = []
    for name, mode in modes.items():
        runs = mode["runs"]
        deaths = sum(run["total_deaths"] for run in runs)
        if len(runs) < LEAST_RUNS:
            said.append(f"{name}: {len(runs)} run(s); a claim about a mode needs {LEAST_RUNS}.")
        if deaths < LEAST_DEATHS:
            said.append(
                f"{name}: {deaths:,} deaths in all; survival estimates need {LEAST_DEATHS}."
            )
    return said


# ---- the Goodhart curve -------------------------------------------------------------------------


def goodhart_curve(steps: ArrayLike, true_return: ArrayLike) -> dict[str, Measurement]:
    """Where the true return peaks under growing pressure, and what is lost after it.

    The peak is chosen on one half of the evaluation worlds and measured on the other, and the
    other way round, then averaged: the highest of many noisy points, measured where it was
    chosen, lies above the truth, and a drop from it would be found in pure noise.

    Args:
      steps: [checkpoints], training steps at each evaluation (or any other pressure), rising.
      true_return: f[runs, checkpoints, 2], what is truly gained, on the two halves of the worlds.

    Returns:
      Over runs: `peak_steps`, the pressure at the peak; `peak`, the true return there; `end`, at
      the last checkpoint; `drop`, peak minus end; `early_stopping_saves`, return gained by
      stopping each run where the other runs' mean peaks (what one who can't see this run's true
      return could do), undefined for one run; `early_stopping_steps`, the share of training
      left out by that.

    Raises:
      ValueError: the shapes don't fit, or fewer than two checkpoints.
    """
    pressure = np.asarray(steps, dtype=np.float64)
    true = np.asarray(true_return, dtype=np.float64)
    if true.ndim != 3 or true.shape[1:] != (len(pressure), 2) or len(pressure) < 2:
        raise ValueError(
            f"goodhart_curve: true_return has shape {true.shape}, not (runs, {len(pressure)}, 2) "
            "with at least two checkpoints"
        )
    runs = np.arange(len(true))
    chosen, measured = true, true[..., ::-1]
    peaks = chosen.argmax(axis=1)
    peak = measured[runs[:, None], peaks, [0, 1]].mean(axis=1)
    end = true[:, -1].mean(axis=1)
    result = {
        "peak_steps": stats.interval(pressure[peaks].mean(axis=1), UNIT),
        "peak": stats.interval(peak, UNIT),
        "end": stats.interval(end, UNIT),
        "drop": stats.interval(peak - end, UNIT),
    }
    if len(true) > 1:
        # Runs may share their evaluation worlds, so here too a half is judged by the other.
        stops = ((chosen.sum(axis=0) - chosen) / (len(true) - 1)).argmax(axis=1)
        saved = measured[runs[:, None], stops, [0, 1]].mean(axis=1) - end
        left_out = 1 - pressure[stops].mean(axis=1) / pressure[-1]
        result["early_stopping_saves"] = stats.interval(saved, UNIT)
        result["early_stopping_steps"] = stats.interval(left_out, UNIT)
    else:
        alone = Measurement(None, None, None, 1, UNIT, "undefined: needs another run")
        result |= {"early_stopping_saves": alone, "early_stopping_steps": alone}
    return result


def curve_band(values: ArrayLike) -> list[Measurement]:
    """Mean and interval over runs at each checkpoint, for plotting.

    Args:
      values: f[runs, checkpoints].
    """
    return [stats.interval(column, UNIT) for column in np.asarray(values, dtype=np.float64).T]

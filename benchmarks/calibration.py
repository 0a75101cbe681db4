"""How often each interval covers the truth and each test rejects a true null, by simulation.

    python benchmarks/calibration.py          about ten minutes on one core
    python benchmarks/calibration.py --tables only prints the tables of the saved results

Writes benchmarks/results/calibration.json and the tables between the markers in
docs/statistics.md. Every claim about modes rests on n runs, so n is what varies.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats

from evidence import lifetimes, stats
from evidence.measurement import Measurement
from evidence.results import Manifest
from evidence.runtime import files
from goodharts_jax.curves import peak

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "calibration.json"
DOCS = ROOT / "docs" / "statistics.md"
MARKERS = "<!-- calibration: start -->\n", "<!-- calibration: end -->\n"

REPLICATES = (3, 5, 10, 30)
SIMULATIONS = 2000
# A two-stage resample costs n x members: fewer of them, and fewer studies.
HIERARCHICAL_RESAMPLES, HIERARCHICAL_SIMULATIONS = 1000, 1000

Generator = np.random.Generator
Sampler = Callable[[Generator, int], np.ndarray]
Study = Callable[[Generator, int], Measurement]

POPULATIONS: dict[str, tuple[Sampler, float]] = {
    "normal": (lambda g, n: g.normal(size=n), 0.0),
    # Runs of a policy near the best there is: most at 99%, some below.
    "beta(40, 0.8)": (lambda g, n: g.beta(40, 0.8, n), 40 / 40.8),
    "lognormal(0, 1)": (lambda g, n: g.lognormal(size=n), float(np.exp(0.5))),
}


def coverage_studies() -> Iterable[tuple[str, str, Study, float, int]]:
    """(interval, population, one study's measurement, the truth, simulations)."""
    for population, (sample, truth) in POPULATIONS.items():
        for name, estimate in (
            ("mean, t", stats.t_interval),
            ("mean, BCa bootstrap, not expanded", _plain_bca),
            ("mean, expanded BCa bootstrap", stats.bootstrap_interval),
        ):
            yield name, population, _mean_study(estimate, sample), truth, SIMULATIONS

    yield (
        "difference, Welch t (n < 10) or expanded BCa",
        "normal, standard deviations 1 and 3",
        lambda g, n: stats.difference_interval(g.normal(1, 1, n), g.normal(0, 3, n), "run"),
        1.0,
        SIMULATIONS,
    )
    for population, draw in (
        ("normal, 20% scatter", lambda g, n: np.abs(1 + 0.2 * g.normal(size=n))),
        ("lognormal, 50% scatter", lambda g, n: np.exp(0.5 * g.normal(size=n) - 0.125)),
    ):
        yield "ratio, Fieller", population, _ratio_study(draw), 2.0, SIMULATIONS
    yield (
        "Hedges' g, noncentral t",
        "normal, true effect 1",
        lambda g, n: stats.hedges_g(g.normal(1, 1, n), g.normal(0, 1, n), "run"),
        1.0,
        SIMULATIONS,
    )
    for share in (0.5, 0.9):
        name = "proportion, Wilson (n trials)"
        yield name, f"binomial, {share:.0%}", _wilson_study(share), share, SIMULATIONS
    yield (
        "ratio of totals, cluster bootstrap",
        "counts, 70% on average, sizes 5 to 60",
        _cluster_study,
        0.7,
        SIMULATIONS,
    )
    for population, between in (("all spread between runs", 1.0), ("all spread within", 0.0)):
        yield (
            "mean, hierarchical bootstrap",
            f"32 worlds a run, {population}",
            _hierarchical_study(between),
            0.0,
            HIERARCHICAL_SIMULATIONS,
        )
    lives = "200 lives a run, death rates differ by 20%"
    yield (
        "restricted mean, t over runs",
        lives,
        lambda g, n: stats.t_interval([_restricted(*life) for life in _lives(g, n)], "run"),
        _restricted_truth(),
        SIMULATIONS,
    )
    yield (
        "restricted mean, Greenwood over pooled lives",
        lives,
        lambda g, n: lifetimes.restricted_mean(
            lifetimes.kaplan_meier(*_pooled(_lives(g, n))), HORIZON
        ),
        _restricted_truth(),
        SIMULATIONS,
    )


def _mean_study(estimate: Callable[..., Measurement], sample: Sampler) -> Study:
    return lambda g, n: estimate(sample(g, n), "run")


def _plain_bca(values: np.ndarray, unit: str) -> Measurement:
    result = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=10_000, method="BCa", rng=np.random.default_rng(0)
    )
    ends = result.confidence_interval
    return Measurement(float(values.mean()), ends.low, ends.high, len(values), unit, "BCa 95%")


def _ratio_study(draw: Sampler) -> Study:
    return lambda g, n: stats.ratio_interval(20 * draw(g, n), 10 * draw(g, n), "run")


def _wilson_study(share: float) -> Study:
    return lambda g, n: stats.wilson(int(g.binomial(n, share)), n, "trial")


def _cluster_study(g: Generator, n: int) -> Measurement:
    totals = g.integers(5, 61, n)
    hits = g.binomial(totals, g.beta(7, 3, n))
    tables = np.stack([hits, totals], axis=1)
    return stats.cluster_bootstrap(tables, lambda t: t[:, 0] / t[:, 1], "subject")


def _hierarchical_study(between: float) -> Study:
    def study(g: Generator, n: int) -> Measurement:
        worlds = between * g.normal(size=(n, 1)) + (1 - between) * g.normal(size=(n, 32))
        return stats.hierarchical_bootstrap(
            list(worlds), lambda means: means, "run", resamples=HIERARCHICAL_RESAMPLES
        )

    return study


# ---- lives: geometric, the death rate a run's own, censored at the horizon ----------------------

HORIZON = 40
DEATH_RATE, RATE_SCATTER = 0.05, 0.2


def _lives(g: Generator, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Deaths and survivors by age of 200 lives in each of n runs."""
    rates = DEATH_RATE * np.exp(RATE_SCATTER * g.normal(size=n))
    tables = []
    for rate in rates:
        ages = g.geometric(rate, 200)
        deaths = np.bincount(ages[ages <= HORIZON], minlength=HORIZON + 1)
        alive = np.zeros_like(deaths)
        alive[HORIZON] = (ages > HORIZON).sum()
        tables.append((deaths, alive))
    return tables


def _pooled(tables: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    deaths, alive = zip(*tables, strict=True)
    return np.sum(deaths, axis=0), np.sum(alive, axis=0)


def _restricted(deaths: np.ndarray, alive: np.ndarray) -> float | None:
    return lifetimes.restricted_mean(lifetimes.kaplan_meier(deaths, alive), HORIZON).value


def _restricted_truth() -> float:
    """The mean over runs, by Gauss-Hermite quadrature over their rates."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    rates = DEATH_RATE * np.exp(RATE_SCATTER * nodes)
    survival = (1 - rates[:, None]) ** np.arange(HORIZON)
    return float(weights @ survival.sum(axis=1) / weights.sum())


# ---- tests under a true null --------------------------------------------------------------------


def null_studies() -> Iterable[tuple[str, str, Callable[[Generator, int], bool]]]:
    """(test, null, whether one study rejects at 5%)."""

    def welch(scale: float, kind: str) -> Callable[[Generator, int], bool]:
        def rejects(g: Generator, n: int) -> bool:
            test = stats.welch(g.normal(0, 1, n), g.normal(0, scale, n), "run")
            p = getattr(test, kind)
            return p is not None and p < 0.05

        return rejects

    for name, scale in (("equal variances", 1.0), ("standard deviations 1 and 3", 3.0)):
        yield "Welch, two-sided", name, welch(scale, "p_two_sided")
        yield "Welch, one-sided", name, welch(scale, "p_greater")
    for correction in (None, stats.bonferroni, stats.holm):
        label = "uncorrected" if correction is None else correction.__name__.capitalize()
        yield f"any of six pairs, {label}", "four modes alike", _family(correction)
    yield "drop of a Goodhart curve above 0", "20 checkpoints of noise", _noise_drop
    yield "drop measured where it was chosen", "20 checkpoints of noise", _naive_drop
    same = "two modes alike, 200 lives a run, death rates of runs differ by 20%"
    yield "log-rank over pooled lives", same, _logrank
    yield "Welch over runs' restricted means", same, _restricted_welch


def _family(correct: Callable[..., dict[str, float | None]] | None) -> Callable[..., bool]:
    def rejects(g: Generator, n: int) -> bool:
        modes = g.normal(size=(4, n))
        p_values = {
            f"{i}{j}": stats.welch(modes[i], modes[j], "run").p_two_sided
            for i in range(4)
            for j in range(i)
        }
        corrected = correct(p_values) if correct else p_values
        return any(p is not None and p < 0.05 for p in corrected.values())

    return rejects


def _noise_drop(g: Generator, n: int) -> bool:
    low = peak(np.arange(1, 21), g.normal(size=(n, 20, 2))).drop.low
    return low is not None and low > 0


def _naive_drop(g: Generator, n: int) -> bool:
    curves = g.normal(size=(n, 20, 2)).mean(axis=2)
    low = stats.interval(curves.max(axis=1) - curves[:, -1], "run").low
    return low is not None and low > 0


def _logrank(g: Generator, n: int) -> bool:
    return (
        abs(lifetimes.logrank_descriptive(*_pooled(_lives(g, n)), *_pooled(_lives(g, n))))
        > 1.959964
    )


def _restricted_welch(g: Generator, n: int) -> bool:
    a, b = ([_restricted(*life) for life in _lives(g, n)] for _ in range(2))
    p = stats.welch(a, b, "run").p_two_sided
    return p is not None and p < 0.05


# ---- run and print ------------------------------------------------------------------------------


def measure() -> dict[str, Any]:
    start = time.perf_counter()
    coverage, rejection = [], []
    for interval, population, study, truth, simulations in coverage_studies():
        for n in REPLICATES:
            g = np.random.default_rng(n)
            measured = [study(g, n) for _ in range(simulations)]
            low = np.array([m.low for m in measured])
            high = np.array([m.high for m in measured])
            coverage.append(
                {
                    "interval": interval,
                    "population": population,
                    "n": n,
                    "covered": float(np.mean((low <= truth) & (truth <= high))),
                    "truth_below": float(np.mean(truth < low)),
                    "truth_above": float(np.mean(truth > high)),
                    "median_width": float(np.median(high - low)),
                    "simulations": simulations,
                }
            )
        print(f"{time.perf_counter() - start:6.0f} s  {interval}, {population}", flush=True)
    for test, null, rejects in null_studies():
        for n in REPLICATES:
            g = np.random.default_rng(n)
            rate = float(np.mean([rejects(g, n) for _ in range(SIMULATIONS)]))
            rejection.append(
                {"test": test, "null": null, "n": n, "rejected": rate, "simulations": SIMULATIONS}
            )
        print(f"{time.perf_counter() - start:6.0f} s  {test}, {null}", flush=True)
    config = {"replicates": list(REPLICATES), "confidence": 0.95, "level": 0.05}
    return {
        "command": "python benchmarks/calibration.py",
        "manifest": Manifest.now(config, list(REPLICATES)),
        "seconds": time.perf_counter() - start,
        "coverage": coverage,
        "rejection": rejection,
    }


def tables(results: dict[str, Any]) -> str:
    """Both tables as Markdown."""
    heads = " | ".join(f"n = {n}" for n in REPLICATES)
    rule = "| --- | --- |" + " ---: |" * len(REPLICATES)
    lines = [f"| interval, nominally 95% | population | {heads} |", rule]
    lines += _rows(results["coverage"], "interval", "population", "covered")
    lines += ["", f"| test, nominally 5% | true null | {heads} |", rule]
    lines += _rows(results["rejection"], "test", "null", "rejected")
    return "\n".join(lines) + "\n"


def _rows(records: list[dict[str, Any]], name: str, setting: str, figure: str) -> list[str]:
    table: dict[tuple[str, str], list[str]] = {}
    for record in records:
        table.setdefault((record[name], record[setting]), []).append(f"{100 * record[figure]:.1f}%")
    return [f"| {a} | {b} | {' | '.join(cells)} |" for (a, b), cells in table.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", action="store_true", help="print the saved results' tables")
    if parser.parse_args().tables:
        print(tables(json.loads(RESULTS.read_text())))
        return
    results = measure()
    files.write_json(RESULTS, results)
    before, _, rest = DOCS.read_text().partition(MARKERS[0])
    files.write_text(
        DOCS, before + MARKERS[0] + tables(results) + MARKERS[1] + rest.partition(MARKERS[1])[2]
    )


if __name__ == "__main__":
    main()

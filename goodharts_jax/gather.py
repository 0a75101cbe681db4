"""Several results as one: the jobs of a sweep over modes and seeds, joined run by run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidence import stats
from evidence.runtime.files import plain
from goodharts_jax import thesis, verification

# What may differ between results that are joined: which runs they hold, and how they were run.
_MAY_DIFFER = (
    "modes",
    "seed",
    "runs",
    "train",
    "checkpoint",
    "resume",
    "full_report",
    "dashboard",
    "logger",
    "compilation_cache",
)
_TESTED = ("overall_efficiency", "deaths_per_1k_steps", "survival_restricted_mean")


def gather(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Join results made under the same conditions; a run found twice counts once.

    Args:
      parts: results by the name of what made them, such as their folders.

    Returns:
      Results as results.schema.json describes them: runs of equal mode together, with intervals,
      tests and verdict over all of them. A mode's aggregates are means over its runs, where those
      of one experiment are of all lives pooled.

    Raises:
      ValueError: there is nothing to join, or a setting other than modes and seeds differs.
    """
    if not parts:
        raise ValueError("there are no results to gather")
    manifests = {name: part["manifest"] for name, part in parts.items()}
    verification.require_same_configuration(
        {name: manifest["configuration"] for name, manifest in manifests.items()}, _MAY_DIFFER
    )
    modes = _joined_modes(parts)
    stated = thesis.load_thesis()
    trained = {name: mode for name, mode in modes.items() if not mode["scripted"]}
    first = next(iter(manifests.values()))
    results: dict[str, Any] = {
        "manifest": {
            **first,
            "configuration": {**first["configuration"], "modes": _mode_settings(manifests)},
            "seeds": sorted(
                {seed for manifest in manifests.values() for seed in manifest["seeds"]}
            ),
            "gathered": list(parts),
        },
        "modes": modes,
        "warnings": thesis.cautions(trained),
        "comparisons": [
            row for metric in _TESTED for row in thesis.comparisons(trained, metric, stated)
        ],
    }
    if stated.truth in modes and stated.proxy in modes:
        results["thesis"] = thesis.judge(modes, stated)
        results["ratios"] = thesis.ratios(modes, stated)
    return plain(results)


def _mode_settings(manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of every mode.

    Raises:
      ValueError: a mode means different things in two parts.
    """
    found: dict[str, Any] = {}
    for part, manifest in manifests.items():
        for mode, settings in manifest["configuration"]["modes"].items():
            if found.setdefault(mode, settings) != settings:
                raise ValueError(f"{part}: modes.{mode} differs from the same mode elsewhere")
    return found


def _joined_modes(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    runs: dict[str, dict[int, Any]] = {}
    scripted: dict[str, bool] = {}
    for part in parts.values():
        for name, mode in part["modes"].items():
            scripted[name] = mode["scripted"]
            for run in mode["runs"]:
                runs.setdefault(name, {}).setdefault(run["seed"], run)
    joined = {}
    # Trained modes first, as in the results of one experiment.
    for name in sorted(runs, key=lambda name: scripted[name]):
        entries = [run for _, run in sorted(runs[name].items())]
        metrics = _metrics(entries[0])
        intervals = thesis.intervals(entries, metrics)
        totals = {key: sum(run[key] for run in entries) for key in ("total_deaths", "total_steps")}
        joined[name] = {
            "scripted": scripted[name],
            "aggregates": {key: measured.value for key, measured in intervals.items()} | totals,
            "intervals": intervals,
            "other_intervals": thesis.intervals(entries, metrics, stats.other_interval),
            "runs": entries,
        }
    return joined


def _metrics(run: Mapping[str, Any]) -> list[str]:
    """The names of a run's metrics: what the tables hold, without counts."""
    counts = ("seed", "total_deaths", "total_steps", "deaths_by_poison", "deaths_by_hunger")
    return [
        key
        for key, value in run.items()
        if key not in counts and not isinstance(value, dict | list)
    ]

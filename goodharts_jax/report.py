"""The page of a Goodhart experiment: its figures and text, drawn from the results alone.

`write` reads `results.json` (and `replay.json`, if there is one) in a folder and writes
`report.html`, `report.md` and `figures/` beside them, so that a page can be made again, or made
better, without a run. What the results don't hold, the page leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

import evidence
from evidence import figures, pages, stats
from evidence.measurement import Measurement
from evidence.runtime import files
from goodharts_jax import thesis
from goodharts_jax.world import MOVES

Results = Mapping[str, Any]
"""A results file as results.schema.json describes it."""

PUBLISHED = {
    "ground_truth": (1.000, 77.2, 1.44, 156.4, 0.0),
    "ground_truth_handhold": (0.999, 49.5, 3.93, 149.7, 0.1),
    "proxy": (0.439, 10.0, 99.60, 60.8, 77.6),
    "ground_truth_blinded": (0.980, 10.0, 99.55, 0.4, 0.0),
}
"""The table of the evaluation protocol that this experiment follows: overall efficiency, mean
survival time (steps), and deaths, food and poison per 1,000 steps, by mode. References to compare
with, never targets."""

# A mode keeps its colour in every figure, whichever others were run.
_COLOURS = {
    "ground_truth": 0,
    "proxy": 1,
    "ground_truth_handhold": 2,
    "proxy_mortal": 3,
    "ground_truth_blinded": 4,
    "ground_truth_aliased": 5,
}
_SCRIPTS = {"omniscient_seeker": "dashed", "interestingness_seeker": "dashdot", "avoider": "dotted"}
_PERCENT = PercentFormatter(1.0, decimals=0)


def write(folder: str | Path, *, full: bool = True) -> Path:
    """Write a results folder's page, its Markdown twin and its figures.

    Args:
      folder: with `results.json` and perhaps `replay.json`; written into.
      full: all that the results hold; else what one looks at first (replay, table, survival,
        consumption, learning).

    Returns:
      The path of `report.html`.

    Raises:
      FileNotFoundError: the folder holds no results.
    """
    folder = Path(folder)
    if not files.is_first_process():
        return folder / "report.html"
    results = evidence.load(folder)
    recorded = folder / "replay.json"
    replay = json.loads(recorded.read_text("utf-8")) if recorded.exists() else None
    drawn = draw(results, full=full)
    for name, figure in drawn.items():
        figures.save(figure, folder / "figures", name)
    files.write_text(folder / "report.md", to_markdown(results, drawn, full=full))
    return files.write_text(folder / "report.html", to_html(results, drawn, replay, full=full))


def draw(results: Results, *, full: bool = True) -> dict[str, Figure]:
    """Every figure that the results have data for, by the name it is saved under."""
    drawn = {}
    with figures.style():
        for name, (function, always) in _FIGURES.items():
            if (full or always) and (figure := function(results)) is not None:
                drawn[name] = figure
    return drawn


def to_html(
    results: Results, drawn: Mapping[str, Figure], replay: Any = None, *, full: bool = True
) -> str:
    """The self-contained page."""
    inline = {name: figures.svg(figure) for name, figure in drawn.items()}
    return pages.render(
        "goodharts_jax", "report.html", figures=inline, replay=replay, **_context(results, full)
    )


def to_markdown(results: Results, drawn: Mapping[str, Figure], *, full: bool = True) -> str:
    """The same content as Markdown, with its figures as files in `figures/`."""
    return pages.render("goodharts_jax", "report.md", figures=drawn, **_context(results, full))


# The columns of the performance table: heading, metric, how it is printed, whether a short page
# has it too.
_COLUMNS = (
    ("Efficiency", "overall_efficiency", "percent", True),
    ("Selectivity", "selectivity", "number", False),
    ("Survival (steps)", "survival_restricted_mean", "number", True),
    ("Deaths/1k", "deaths_per_1k_steps", "number", True),
    ("by poison", "deaths_by_poison_share", "percent", False),
    ("Food/1k", "food_per_1k_steps", "number", True),
    ("Poison/1k", "poison_per_1k_steps", "number", True),
    ("Energy/1k", "energy_per_1k_steps", "number", True),
    ("Proxy pay/1k", "proxy_return_per_1k_steps", "number", False),
)


# What the table of second opinions tells of.
_SECOND = (
    ("overall_efficiency", "percent"),
    ("deaths_per_1k_steps", "number"),
    ("survival_restricted_mean", "number"),
)
_OPTIONAL = (
    "thesis",
    "warnings",
    "ratios",
    "comparisons",
    "verification",
    "goodhart_curves",
    "logrank",
    "device_agreement",
)


def _context(results: Results, full: bool) -> dict[str, Any]:
    modes = results["modes"]
    trained, scripted = _named(modes, scripted=False), _named(modes, scripted=True)
    return {
        **{part: results.get(part) for part in _OPTIONAL},
        "manifest": results["manifest"],
        "modes": modes,
        "trained": trained,
        "scripted": scripted,
        "columns": [column for column in _COLUMNS if full or column[3]],
        "measured": _measured,
        "spoken": _spoken,
        "tested": list(dict.fromkeys(row["metric"] for row in results.get("comparisons") or [])),
        "kinds": {metric: (heading, kind) for heading, metric, kind, _ in _COLUMNS},
        "yes_no": {True: "yes", False: "no", None: pages.UNDEFINED}.get,
        "colours": {name: _look(name)["color"] for name in modes},
        "published": [
            (name, dict(zip(_PUBLISHED_METRICS, row, strict=True)))
            for name, row in PUBLISHED.items()
            if name in modes
        ],
        "second": _second_opinions(modes, trained) if full else [],
        "plan": thesis.plan(modes, thesis.load_thesis()),
        "unconverged": [name for name in trained if not _converged(modes[name])],
        "phase_study": _phase_study(results["manifest"]["configuration"]),
        "full": full,
    }


def _second_opinions(modes: Mapping[str, Any], names: Sequence[str]) -> list[dict[str, Any]]:
    """Each mode's numbers by the other method too, and where their spread lies."""
    headings = {metric: heading for heading, metric, _, _ in _COLUMNS}
    rows = []
    for metric, kind in _SECOND:
        for name in names:
            mode = modes[name]
            if len(mode["runs"]) > 1:
                rows.append(
                    {
                        "metric": headings[metric],
                        "kind": kind,
                        "mode": name,
                        "chosen": _measured(mode, metric),
                        "other": mode["other_intervals"][metric],
                        "spread": mode.get("spread", {}).get(metric),
                    }
                )
    return rows


def _phase_study(configuration: Mapping[str, Any]) -> Mapping[str, Any] | None:
    study = configuration.get("study", {})
    return study if study.get("kind") == "phase_diagram" else None


_PUBLISHED_METRICS = (
    "overall_efficiency",
    "survival_mean",
    "deaths_per_1k_steps",
    "food_per_1k_steps",
    "poison_per_1k_steps",
)


def _converged(mode: Mapping[str, Any]) -> bool:
    return all(run["training"]["converged"] for run in mode["runs"] if "training" in run)


# ---- figures: results in, one drawing or None out ------------------------------------------------


def performance(results: Results) -> Figure | None:
    """Efficiency and death rate of every mode, with intervals and single runs."""
    modes = results["modes"]
    names = [*_named(modes, scripted=False), *_named(modes, scripted=True)]
    figure, (left, right) = figures.canvas(
        1, 2, height=0.75 + 0.27 * len(names), sharey=True, width=6.8
    )
    for axes, metric in ((left, "overall_efficiency"), (right, "deaths_per_1k_steps")):
        for row, name in enumerate(names):
            _dots(axes, row, modes[name], metric, _look(name))
        axes.grid(axis="y", visible=False)
    left.set_yticks(range(len(names)), [_spoken(name) for name in names])
    left.invert_yaxis()
    left.set_xlim(-0.03, 1.03)
    left.xaxis.set_major_formatter(_PERCENT)
    left.set_xlabel("efficiency: food of all eaten")
    right.set_xscale("symlog", linthresh=1)
    right.set_xlim(-0.1, 1.4 * right.dataLim.x1)
    right.xaxis.set_major_formatter(_plain)
    right.set_xlabel("deaths per 1,000 steps")
    chance = modes.get("random_walk", {}).get("aggregates", {}).get("overall_efficiency")
    if chance is not None:
        left.axvline(chance, color=figures.FAINT, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
    return figure


def survival(results: Results) -> Figure | None:
    """Kaplan-Meier curves of first lives: mean over runs, with the interval over runs."""
    modes, horizon = results["modes"], results["manifest"]["survival_horizon"]
    names = [name for name in modes if all("survival" in run for run in modes[name]["runs"])]
    if not names:
        return None
    ages = np.unique(np.round(np.geomspace(1, horizon, 200)))
    figure, axes = figures.canvas(height=3.3)
    for name in names:
        curves = np.array([_step(run["survival"], ages) for run in modes[name]["runs"]])
        mean, low, high = _over_runs(curves)
        look = _look(name)
        axes.step(ages, mean, where="post", label=_spoken(name), **look)
        ends = low.clip(0, 1), high.clip(0, 1)
        axes.fill_between(ages, *ends, step="post", alpha=0.18, lw=0, color=look["color"])
    axes.set_xscale("log")
    axes.set_xlim(1, horizon)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_formatter(_plain)
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.set_xlabel("age (steps)")
    axes.set_ylabel("first lives that last longer")
    _legend_beside(axes)
    return figure


def efficiency_distribution(results: Results) -> Figure | None:
    """How efficient single lives were, in whole percent, one row a mode."""
    modes = results["modes"]
    counts = {
        name: np.sum([run["efficiency_histogram"] for run in mode["runs"]], axis=0)
        for name, mode in modes.items()
        if all("efficiency_histogram" in run for run in mode["runs"])
    }
    counts = {name: count for name, count in counts.items() if count.sum() > 0}
    if not counts:
        return None
    figure, rows = figures.canvas(
        len(counts), 1, height=0.5 + 0.45 * len(counts), sharex=True, squeeze=False
    )
    for axes, (name, count) in zip(rows[:, 0], counts.items(), strict=True):
        # Bars of 5 percentage points; the last holds 100% too.
        bars = np.add.reduceat(count, np.arange(0, 100, 5)) / count.sum()
        axes.bar(
            np.arange(2.5, 100, 5) / 100, bars, width=0.045, color=_look(name)["color"], zorder=2
        )
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_ylabel(_spoken(name), rotation=0, ha="right", va="center")
        axes.text(
            1.02,
            0.5,
            f"{count.sum():,} lives",
            transform=axes.transAxes,
            va="center",
            fontsize=7.5,
            color=figures.FAINT,
        )
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(_PERCENT)
    axes.set_xlabel("efficiency of a life that ate")
    return figure


def consumption(results: Results) -> Figure | None:
    """Food to the right, poison to the left, per 1,000 steps."""
    modes = results["modes"]
    names = [*_named(modes, scripted=False), *_named(modes, scripted=True)]
    figure, axes = figures.canvas(height=0.75 + 0.27 * len(names))
    for sign, metric, colour, hatch in (
        (1, "food_per_1k_steps", figures.BLUE, ""),
        (-1, "poison_per_1k_steps", figures.VERMILLION, "/////"),
    ):
        measured = [_measured(modes[name], metric) for name in names]
        values = [sign * (m.value or 0) for m in measured]
        axes.barh(
            range(len(names)),
            values,
            height=0.62,
            color=colour,
            hatch=hatch,
            edgecolor=figures.PAPER,
            linewidth=0,
            label=metric.split("_")[0],
        )
        for row, m in enumerate(measured):
            if m.low is not None and m.high is not None:
                axes.plot([sign * m.low, sign * m.high], [row, row], color=figures.INK, lw=1)
    axes.set_yticks(range(len(names)), [_spoken(name) for name in names])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.axvline(0, color=figures.INK, linewidth=0.8)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{abs(x):g}"))
    axes.set_xlabel("poison (left) and food (right) eaten per 1,000 steps")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return figure


def causes_of_death(results: Results) -> Figure | None:
    """Deaths per 1,000 steps, on a step that ate poison or of hunger alone."""
    modes = results["modes"]
    names = [*_named(modes, scripted=False), *_named(modes, scripted=True)]
    if not all("deaths_by_poison" in run for name in names for run in modes[name]["runs"]):
        return None
    figure, axes = figures.canvas(height=0.75 + 0.27 * len(names))
    left = np.zeros(len(names))
    for cause, colour, hatch in (
        ("poison", figures.VERMILLION, "/////"),
        ("hunger", figures.SKY, ""),
    ):
        rates = np.array([_rate(modes[name]["runs"], f"deaths_by_{cause}") for name in names])
        axes.barh(
            range(len(names)),
            rates,
            left=left,
            height=0.62,
            color=colour,
            hatch=hatch,
            edgecolor=figures.PAPER,
            linewidth=0,
            label=f"by {cause}",
        )
        left += rates
    axes.set_yticks(range(len(names)), [_spoken(name) for name in names])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("deaths per 1,000 steps")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return figure


def learning(results: Results) -> Figure | None:
    """Efficiency, pay, entropy and value loss while training, each run a line."""
    modes = results["modes"]
    histories = {
        name: [run["training"]["history"] for run in modes[name]["runs"]]
        for name in _named(modes, scripted=False)
        if all("history" in run.get("training", {}) for run in modes[name]["runs"])
    }
    if not histories:
        return None
    panels = (
        ("efficiency", _efficiency),
        ("pay per step", lambda history: history["reward"]),
        ("entropy (nats)", lambda history: history["entropy"]),
    )
    figure, row = figures.canvas(1, len(panels), width=7.2, height=2.7)
    for axes, (title, column) in zip(row, panels, strict=True):
        for name, mode in histories.items():
            for i, history in enumerate(mode):
                look = {**_look(name), "linewidth": 1, "label": _spoken(name) if i == 0 else None}
                axes.plot(history["steps"], np.array(column(history), float), **look)
        axes.set_title(title)
        axes.set_xlabel("training steps")
        axes.xaxis.set_major_formatter(_steps)
    row[0].set_ylim(0, 1.02)
    row[0].yaxis.set_major_formatter(_PERCENT)
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _efficiency(history: Mapping[str, Sequence[float]]) -> np.ndarray:
    """Food of all eaten at each entry; NaN where nothing was."""
    food, poison = np.array(history["food"], float), np.array(history["poison"], float)
    return np.divide(food, food + poison, out=np.full(len(food), np.nan), where=food + poison > 0)


def goodhart_curves(results: Results) -> Figure | None:
    """What the proxy pays and what is truly gained, under growing optimisation pressure."""
    curves = results.get("goodhart_curves")
    if not curves:
        return None
    figure, grid = figures.canvas(
        len(curves), 2, height=0.5 + 1.75 * len(curves), sharey="row", sharex="col", squeeze=False
    )
    for (left, right), (name, curve) in zip(grid, curves.items(), strict=True):
        for index, key, label in ((1, "proxy_return", "its pay"), (0, "true_return", "energy")):
            values = np.array([run[key] for run in curve["runs"]], float)
            kl = np.array([run["sqrt_kl"] for run in curve["runs"]], float)
            mean, low, high = _over_runs(values)
            for axes, x in ((left, np.array(curve["steps"], float)), (right, kl.mean(axis=0))):
                axes.plot(x, mean, label=label, **figures.line(index))
                figures.band(axes, x, low, high, index)
        peak = (curve.get("peak_steps") or {}).get("value")
        if peak is not None:
            left.axvline(peak, color=figures.FAINT, linewidth=0.9, linestyle=(0, (2, 2)))
        left.set_title(f"trained as {_spoken(name)}")
        left.set_ylabel("per 1,000 steps")
    grid[-1, 0].set_xlabel("training steps")
    grid[-1, 0].xaxis.set_major_formatter(_steps)
    grid[-1, 1].set_xlabel("√KL from the initial policy (√nats)")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def phase_diagram(results: Results) -> Figure | None:
    """What comes of each pay for poison and each likeness, after the most training."""
    cells = results.get("phase_diagram")
    if not cells:
        return None
    last = max(cell["steps"] for cell in cells)
    panels = (
        ("overall_efficiency", "efficiency", 0.5, (0, 1)),
        ("selectivity", "selectivity", 0.5, (0, 1)),
        ("deaths_per_1k_steps", "deaths per 1,000 steps", None, (0, None)),
        ("drop", "drop of true return after its peak", None, (None, None)),
    )
    figure, grid = figures.canvas(2, 2, width=6.8, height=4.6, sharex=True, sharey=True)
    for axes, (metric, title, contour, limits) in zip(grid.flat, panels, strict=True):
        pays, distances, values = _table(cells, metric, last)
        _heat(figure, axes, pays, distances, values, contour, limits)
        axes.set_title(title)
    for axes in grid[1]:
        axes.set_xlabel("pay for poison (food pays 1)")
    for axes in grid[:, 0]:
        axes.set_ylabel("distance of looks")
    return figure


def phase_pressure(results: Results) -> Figure | None:
    """Efficiency over the phase diagram as training goes on."""
    cells = results.get("phase_diagram") or []
    pressures = sorted({cell["steps"] for cell in cells})
    if len(pressures) < 2:
        return None
    shown = [
        pressures[i] for i in np.unique(np.linspace(0, len(pressures) - 1, 4).round().astype(int))
    ]
    figure, row = figures.canvas(
        1, len(shown), width=2.1 * len(shown) + 0.6, height=2.3, sharey=True, squeeze=False
    )
    for axes, steps in zip(row[0], shown, strict=True):
        pays, distances, values = _table(cells, "overall_efficiency", steps)
        _heat(figure, axes, pays, distances, values, 0.5, limits=(0, 1))
        axes.set_title(f"{_steps(steps)} steps")
        axes.set_xlabel("pay for poison")
    row[0, 0].set_ylabel("distance of looks")
    return figure


def pay_correlation(results: Results) -> Figure | None:
    """What each cell's pay has to do with true pay, beside what training made of it."""
    cells = results.get("phase_diagram") or []
    last = max((cell["steps"] for cell in cells), default=0)
    shown = [cell for cell in cells if cell["steps"] == last and "pay_correlation_random" in cell]
    if not shown:
        return None
    figure, axes = figures.canvas(width=4.6, height=3.2)
    for key, label, filled in (
        ("pay_correlation_random", "over a random walk's steps", False),
        ("pay_correlation_trained", "over the trained policy's steps", True),
    ):
        index = 1 if filled else 0
        points = [
            (cell[key]["value"], cell["selectivity"]["value"])
            for cell in shown
            if cell[key]["value"] is not None and cell["selectivity"]["value"] is not None
        ]
        x, y = np.array(points).T if points else ([], [])
        face = None if filled else "none"
        axes.plot(x, y, markersize=5, markerfacecolor=face, label=label, **figures.point(index))
    axes.axhline(0.5, color=figures.FAINT, linewidth=0.9, linestyle=(0, (2, 2)))
    axes.set_xlabel("correlation of pay with true pay")
    axes.set_ylabel("selectivity")
    axes.set_ylim(0, 1.02)
    axes.legend(loc="best")
    return figure


def directions(results: Results) -> Figure | None:
    """Probability of approaching a single item, by its direction, one polar plot a mode."""
    verified = {
        name: checks["directions"]
        for name, checks in results.get("verification", {}).items()
        if "directions" in checks
    }
    if not verified:
        return None
    columns = min(4, len(verified))
    rows = -(-len(verified) // columns)
    figure, grid = figures.canvas(
        rows,
        columns,
        width=1.75 * columns,
        height=2.1 * rows + 0.2,
        squeeze=False,
        subplot_kw={"projection": "polar"},
    )
    # Compass order, so that a line closes; south is down on the page as in the world.
    order = sorted(range(8), key=lambda move: np.arctan2(-MOVES[move][1], MOVES[move][0]))
    order.append(order[0])
    angles = [np.arctan2(-MOVES[move][1], MOVES[move][0]) for move in order]
    for axes in grid.flat[len(verified) :]:
        axes.set_visible(False)
    for axes, (name, found) in zip(grid.flat, verified.items(), strict=False):
        for index, key, label in ((0, "approach_food", "food"), (1, "approach_poison", "poison")):
            nearby = np.array(found[key], float).mean(axis=1)[order]
            axes.plot(angles, nearby, label=label, **figures.line(index))
        chance = np.array(found["chance"], float).mean(axis=1)[order]
        axes.plot(angles, chance, color=figures.FAINT, linewidth=0.9, label="random walk")
        axes.set_ylim(0, 1)
        axes.set_yticks([0.5, 1], ["", ""])
        axes.set_xticks(np.arange(0, 2 * np.pi, np.pi / 2), ["E", "N", "W", "S"])
        axes.tick_params(pad=-2, labelsize=7, labelcolor=figures.FAINT)
        axes.set_title(_spoken(name), loc="center")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


# By name: the function, and whether a short page shows it too.
_FIGURES: dict[str, tuple[Callable[[Results], Figure | None], bool]] = {
    "performance": (performance, True),
    "survival": (survival, True),
    "consumption": (consumption, True),
    "learning": (learning, True),
    "efficiency_distribution": (efficiency_distribution, False),
    "causes_of_death": (causes_of_death, False),
    "goodhart_curves": (goodhart_curves, False),
    "phase_diagram": (phase_diagram, False),
    "phase_pressure": (phase_pressure, False),
    "pay_correlation": (pay_correlation, False),
    "directions": (directions, False),
}


# ---- what figures are made of --------------------------------------------------------------------


def _named(modes: Mapping[str, Any], *, scripted: bool) -> list[str]:
    return [name for name, mode in modes.items() if bool(mode.get("scripted")) == scripted]


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _look(name: str) -> dict[str, Any]:
    """How a mode's line is drawn; scripted policies recede."""
    if name in _COLOURS:
        return figures.line(_COLOURS[name])
    return {"color": figures.FAINT, "linestyle": _SCRIPTS.get(name, "solid"), "linewidth": 1.1}


def _measured(mode: Mapping[str, Any], metric: str) -> Measurement:
    """A metric of a mode: with its interval, or at least its value."""
    if metric in mode["intervals"]:
        return Measurement(**mode["intervals"][metric])
    value, n = mode["aggregates"].get(metric), len(mode["runs"])
    return Measurement(value, None, None, n, "run", "no interval")


def _dots(axes: Axes, row: int, mode: Mapping[str, Any], metric: str, look: Any) -> None:
    """One row: single runs as small rings, the mean as a dot, its interval as a bar."""
    values = [run[metric] for run in mode["runs"] if run[metric] is not None]
    axes.plot(
        values, [row] * len(values), "o", ms=3, mfc="none", mec=look["color"], mew=0.7, alpha=0.8
    )
    measured = _measured(mode, metric)
    if measured.value is None:
        axes.text(
            0.5, row, "ate nothing", ha="center", va="center", fontsize=7.5, color=figures.FAINT
        )
        return
    if measured.low is not None and measured.high is not None:
        axes.plot([measured.low, measured.high], [row, row], color=look["color"], lw=1.8)
    axes.plot(measured.value, row, "o", ms=5.5, color=look["color"], mec=figures.PAPER, mew=0.6)


def _step(curve: Mapping[str, Sequence[float]], ages: np.ndarray) -> np.ndarray:
    """A survival curve's height at each age; NaN beyond the last age followed."""
    known, heights = np.array(curve["ages"], float), np.array(curve["survival"], float)
    if known[0] > 0:
        known, heights = np.r_[0.0, known], np.r_[1.0, heights]
    at = np.searchsorted(known, ages, side="right") - 1
    return np.where(ages <= known[-1], heights[at], np.nan)


def _over_runs(curves: np.ndarray) -> np.ndarray:
    """Mean over runs at each point and its interval, NaN for one run: f64[3, points]."""
    measured = [stats.t_interval(column, "run") for column in curves.T]
    return np.array([m[:3] for m in measured], dtype=float).T


def _rate(mode_runs: Iterable[Mapping[str, Any]], count: str) -> float:
    """A count of all runs per 1,000 steps."""
    mode_runs = list(mode_runs)
    return (
        1000 * sum(run[count] for run in mode_runs) / sum(run["total_steps"] for run in mode_runs)
    )


def _table(
    cells: Sequence[Mapping[str, Any]], metric: str, steps: int
) -> tuple[list[float], list[float], np.ndarray]:
    """The phase diagram's axes and one metric over them: f64[distances, pays]."""
    pays = sorted({cell["poison_pay"] for cell in cells})
    distances = sorted({cell["distance"] for cell in cells})
    values = np.full((len(distances), len(pays)), np.nan)
    for cell in cells:
        if cell["steps"] == steps and cell[metric]["value"] is not None:
            row, column = distances.index(cell["distance"]), pays.index(cell["poison_pay"])
            values[row, column] = cell[metric]["value"]
    return pays, distances, values


def _heat(
    figure: Figure,
    axes: Axes,
    columns: Sequence[float],
    rows: Sequence[float],
    values: np.ndarray,
    contour: float | None,
    limits: tuple[float | None, float | None],
) -> None:
    """A heat map whose cells carry their numbers, framed where they cross `contour`."""
    low, high = limits
    mesh = axes.pcolormesh(values, vmin=low, vmax=high, edgecolor=figures.PAPER, linewidth=0.8)
    middle = np.nanmean([mesh.norm.vmin, mesh.norm.vmax])
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            text = pages.number(value, 2 if abs(value) < 10 else 0)
            axes.text(
                column + 0.5,
                row + 0.5,
                text,
                ha="center",
                va="center",
                fontsize=6.5,
                color="#ffffff" if value < middle else "#000000",
            )
    if contour is not None:
        above = values > contour
        for row, column in np.argwhere(above[:, 1:] != above[:, :-1]):
            axes.plot([column + 1] * 2, [row, row + 1], color=figures.VERMILLION, linewidth=2)
        for row, column in np.argwhere(above[1:] != above[:-1]):
            axes.plot([column, column + 1], [row + 1] * 2, color=figures.VERMILLION, linewidth=2)
    axes.set_xticks(np.arange(len(columns)) + 0.5, [_plain(c) for c in columns])
    axes.set_yticks(np.arange(len(rows)) + 0.5, [_plain(r) for r in rows])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _legend_beside(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)


@FuncFormatter
def _plain(value: float, _position: int | None = None) -> str:
    return f"{value:,g}".replace("-", "−")


@FuncFormatter
def _steps(value: float, _position: int | None = None) -> str:
    """Training steps, short: 250k, 1M."""
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value else "0"

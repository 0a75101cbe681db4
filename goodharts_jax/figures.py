"""The figures of a Goodhart experiment: typed results in, one drawing or None out.

What the results don't hold isn't drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from evidence import figures
from goodharts_jax import learnt_figures
from goodharts_jax.drawing import (
    PERCENT,
    bars,
    dots,
    heights_at,
    legend_above,
    name_rows,
    over_runs,
    plain,
    spoken,
    steps,
    style_of,
)
from goodharts_jax.pressure_figures import (
    goodhart_curves,
    phase_diagram,
    phase_pressure,
    reward_correlation,
)
from goodharts_jax.results import History, Modes, Results, RunResults
from goodharts_jax.world import MOVES

_POISON = (figures.VERMILLION, "/////")


def draw(results: Results, *, full: bool = True) -> dict[str, Figure]:
    """Every figure that the results have data for, by the name it is saved under.

    Args:
      results: of any Goodhart experiment.
      full: else only those that one looks at first.
    """
    drawn = {}
    with figures.style():
        of_modes = {} if results.study is not None else _FIGURES
        for name, (function, always) in (of_modes | _OF_PROXIES).items():
            if (full or always) and (figure := function(results)) is not None:
                drawn[name] = figure
    return drawn


def named(modes: Modes, *, scripted: bool) -> list[str]:
    """The scripted policies, or the trained modes."""
    return [name for name, mode in modes.items() if mode.scripted == scripted]


def _in_order(modes: Modes) -> list[str]:
    return [*named(modes, scripted=False), *named(modes, scripted=True)]


# ---- modes --------------------------------------------------------------------------------------


def performance(results: Results) -> Figure:
    """Efficiency and death rate of every mode, with intervals and single runs."""
    modes = results.modes
    names = _in_order(modes)
    figure, (left, right) = figures.canvas(
        1, 2, height=0.75 + 0.27 * len(names), sharey=True, width=6.8
    )
    for axes, metric in ((left, "overall_efficiency"), (right, "deaths_per_1k_steps")):
        for row, name in enumerate(names):
            dots(axes, row, name, modes[name], metric)
        axes.grid(axis="y", visible=False)
    name_rows(left, names)
    left.set_xlim(-0.03, 1.03)
    left.xaxis.set_major_formatter(PERCENT)
    left.set_xlabel("efficiency: food of all eaten")
    right.set_xscale("symlog", linthresh=1)
    right.set_xlim(-0.1, 1.4 * right.dataLim.x1)
    right.xaxis.set_major_formatter(plain)
    right.set_xlabel("deaths per 1,000 steps")
    chance = modes["random_walk"].aggregates.overall_efficiency if "random_walk" in modes else None
    if chance is not None:
        left.axvline(chance, color=figures.FAINT, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
    return figure


def survival(results: Results) -> Figure:
    """Kaplan-Meier curves of first lives: mean over runs, with the interval over runs."""
    horizon = results.manifest.survival_horizon
    ages = np.unique(np.round(np.geomspace(1, horizon, 200)))
    figure, axes = figures.canvas(height=3.3)
    for name, mode in results.modes.items():
        curves = np.array([heights_at(run.survival, ages) for run in mode.runs])
        mean, low, high = over_runs(curves)
        style = style_of(name)
        axes.step(ages, mean, where="post", label=spoken(name), **style)
        ends = low.clip(0, 1), high.clip(0, 1)
        axes.fill_between(ages, *ends, step="post", alpha=0.18, lw=0, color=style["color"])
    axes.set_xscale("log")
    axes.set_xlim(1, horizon)
    axes.set_ylim(0, 1.02)
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(PERCENT)
    axes.set_xlabel("age (steps)")
    axes.set_ylabel("first lives that last longer")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
    return figure


def efficiency_distribution(results: Results) -> Figure | None:
    """How efficient single lives were, in whole percent, one row a mode."""
    counts = {
        name: np.sum([run.efficiency_histogram for run in mode.runs], axis=0)
        for name, mode in results.modes.items()
    }
    counts = {name: count for name, count in counts.items() if count.sum() > 0}
    if not counts:
        return None
    figure, rows = figures.canvas(
        len(counts), 1, height=0.5 + 0.45 * len(counts), sharex=True, squeeze=False
    )
    for axes, (name, count) in zip(rows[:, 0], counts.items(), strict=True):
        # Bars of 5 percentage points; the last holds 100% too.
        shares = np.add.reduceat(count, np.arange(0, 100, 5)) / count.sum()
        axes.bar(
            np.arange(2.5, 100, 5) / 100,
            shares,
            width=0.045,
            color=style_of(name)["color"],
            zorder=2,
        )
        axes.set_ylim(0, 1)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_ylabel(spoken(name), rotation=0, ha="right", va="center")
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
    axes.xaxis.set_major_formatter(PERCENT)
    axes.set_xlabel("efficiency of a life that ate")
    return figure


def consumption(results: Results) -> Figure:
    """Food to the right, poison to the left, per 1,000 steps."""
    names = _in_order(results.modes)
    figure, axes = figures.canvas(height=0.75 + 0.27 * len(names))
    for sign, item, (colour, hatch) in ((1, "food", (figures.BLUE, "")), (-1, "poison", _POISON)):
        measured = [
            getattr(results.modes[name].intervals, f"{item}_per_1k_steps") for name in names
        ]
        bars(axes, [sign * (m.value or 0) for m in measured], item, colour, hatch)
        for row, m in enumerate(measured):
            if m.low is not None and m.high is not None:
                axes.plot([sign * m.low, sign * m.high], [row, row], color=figures.INK, lw=1)
    name_rows(axes, names)
    axes.axvline(0, color=figures.INK, linewidth=0.8)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{abs(x):g}"))
    axes.set_xlabel("poison (left) and food (right) eaten per 1,000 steps")
    legend_above(axes)
    return figure


def causes_of_death(results: Results) -> Figure:
    """Deaths per 1,000 steps, on a step that ate poison or of hunger alone."""
    names = _in_order(results.modes)
    figure, axes = figures.canvas(height=0.75 + 0.27 * len(names))
    left = np.zeros(len(names))
    for cause, (colour, hatch) in (("poison", _POISON), ("hunger", (figures.SKY, ""))):
        rates = np.array([_rate(results.modes[name].runs, f"deaths_by_{cause}") for name in names])
        bars(axes, rates, f"by {cause}", colour, hatch, left=left)
        left += rates
    name_rows(axes, names)
    axes.set_xlabel("deaths per 1,000 steps")
    legend_above(axes)
    return figure


def _rate(runs: Sequence[RunResults], count: str) -> float:
    """A count of all runs per 1,000 steps."""
    return 1000 * sum(getattr(run, count) for run in runs) / sum(run.total_steps for run in runs)


# ---- training -----------------------------------------------------------------------------------


def learning(results: Results) -> Figure | None:
    """Efficiency, reward and entropy while training, each run a line."""
    histories = {
        name: [run.training.history for run in mode.runs if run.training is not None]
        for name, mode in results.modes.items()
        if not mode.scripted
    }
    if not histories:
        return None
    panels: tuple[tuple[str, Callable[[History], Sequence[float | None] | np.ndarray]], ...] = (
        ("efficiency", _efficiency),
        ("reward per step", lambda history: history.reward),
        ("entropy (nats)", lambda history: history.entropy),
    )
    figure, row = figures.canvas(1, len(panels), width=7.2, height=2.7)
    for axes, (title, column) in zip(row, panels, strict=True):
        for name, runs in histories.items():
            for i, history in enumerate(runs):
                style = {**style_of(name), "linewidth": 1, "label": None if i else spoken(name)}
                axes.plot(history.steps, np.array(column(history), float), **style)
        axes.set_title(title)
        axes.set_xlabel("training steps")
        axes.xaxis.set_major_formatter(steps)
    row[0].set_ylim(0, 1.02)
    row[0].yaxis.set_major_formatter(PERCENT)
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _efficiency(history: History) -> np.ndarray:
    """Food of all eaten at each entry; NaN where nothing was."""
    food, poison = np.array(history.food, float), np.array(history.poison, float)
    return np.divide(food, food + poison, out=np.full(len(food), np.nan), where=food + poison > 0)


def directions(results: Results) -> Figure | None:
    """Probability of approaching a single item, by its direction, one polar plot a mode."""
    verified = results.verification
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
    for axes, (name, checks) in zip(grid.flat, verified.items(), strict=False):
        found = checks.directions
        for probabilities, label, style in (
            (found.approach_food, "food", figures.line(0)),
            (found.approach_poison, "poison", figures.line(1)),
            (found.chance, "random walk", {"color": figures.FAINT, "linewidth": 0.9}),
        ):
            nearby = np.array(probabilities, float).mean(axis=1)[order]
            axes.plot(angles, nearby, label=label, **style)
        axes.set_ylim(0, 1)
        axes.set_yticks([0.5, 1], ["", ""])
        axes.set_xticks(np.arange(0, 2 * np.pi, np.pi / 2), ["E", "N", "W", "S"])
        axes.tick_params(pad=-2, labelsize=7, labelcolor=figures.FAINT)
        axes.set_title(spoken(name), loc="center")
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
    "reward_correlation": (reward_correlation, False),
    "directions": (directions, False),
}
_OF_PROXIES: dict[str, tuple[Callable[[Results], Figure | None], bool]] = {
    name: (function, True) for name, function in learnt_figures.FIGURES.items()
}

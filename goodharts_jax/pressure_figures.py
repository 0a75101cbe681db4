"""Figures of what growing pressure does: curves and the phase diagram."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evidence import figures
from goodharts_jax import curves
from goodharts_jax.drawing import heat, over_runs, spoken, steps
from goodharts_jax.pressure import GoodhartCurve
from goodharts_jax.results import Results

_DOTTED = {"color": figures.FAINT, "linewidth": 0.9, "linestyle": (0, (2, 2))}
_FORMS = {"gao": ("Gao's form", curves.gao), "quadratic": ("quadratic", curves.quadratic)}


def goodhart_curves(results: Results) -> Figure | None:
    """What a mode is rewarded for and what it truly gains, by energy and by survival, while its
    training goes on; and energy by the distance from the initial policy.
    """
    drawn = results.goodhart_curves
    if not drawn:
        return None
    figure, grid = figures.canvas(
        len(drawn),
        3,
        width=8.2,
        height=0.75 + 1.75 * len(drawn),
        sharex="col",
        squeeze=False,
    )
    for (gains, lives, pressed), (name, curve) in zip(grid, drawn.items(), strict=True):
        for index, key, label in (
            (1, "proxy_return", "its reward per 1,000 steps"),
            (0, "true_return", "energy per 1,000 steps"),
        ):
            _course(gains, curve, key, index, label)
        for index, key, label in (
            (2, "survival", "first life (steps)"),
            (3, "deaths", "deaths per 1,000 steps"),
        ):
            _course(lives, curve, key, index, label)
        if curve.kind and curve.peak_steps.value is not None:
            gains.axvline(curve.peak_steps.value, **_DOTTED)
        _by_divergence(pressed, curve)
        kind = f": {curve.kind}" if curve.kind else ""
        gains.set_title(f"trained as {spoken(name)}{kind}")
    for axes in grid[-1, :2]:
        axes.set_xlabel("training steps")
    grid[-1, 2].set_xlabel("√KL from the initial policy (√nats)")
    figures.legend_below(figure, ncols=3)
    return figure


def _course(axes: Axes, curve: GoodhartCurve, key: str, index: int, label: str) -> None:
    """A column of each run's curve by steps, on a logarithmic scale that begins with 0."""
    at = np.array(curve.steps, float)
    mean, low, high = over_runs(np.array([getattr(run, key) for run in curve.runs], float))
    axes.plot(at, mean, label=label, **figures.line(index))
    figures.band(axes, at, low, high, index)
    first = next((step for step in curve.steps if step > 0), 1)
    axes.set_xscale("symlog", linthresh=first, linscale=0.4)
    axes.set_xlim(0, at[-1])
    decades = 10.0 ** np.arange(np.ceil(np.log10(first)), np.log10(at[-1]) + 0.01)
    axes.set_xticks([0, *decades])
    axes.xaxis.set_major_formatter(steps)
    axes.minorticks_off()


def _by_divergence(axes: Axes, curve: GoodhartCurve) -> None:
    """Energy by distance: each run's looks, and what the forms fitted to the earlier half say."""
    distance = np.array([run.sqrt_kl for run in curve.runs], float)
    energy = np.array([run.true_return for run in curve.runs], float)
    looks = np.array([run.looks or len(curve.steps) for run in curve.runs])[:, None]
    at = np.arange(len(curve.steps))
    earlier = at < -(-looks // 2)
    for these, face in ((earlier, None), (~earlier & (at < looks), "none")):
        axes.plot(
            distance[these],
            energy[these],
            markersize=2.5,
            markerfacecolor=face,
            markeredgewidth=0.6,
            alpha=0.7,
            **figures.point(0),
        )
    if curve.start.value is None:
        return
    at = np.linspace(0, distance.max(), 100)
    room = axes.get_ylim()
    for index, (name, (said, form)) in enumerate(_FORMS.items(), start=4):
        if name not in curve.forms:
            continue
        fitted = [coefficient.value for coefficient in curve.forms[name].coefficients]
        predicted = curve.start.value + form(at) @ np.array(fitted, float)
        axes.plot(at, predicted, label=f"{said}, fitted to the earlier half", **figures.line(index))
    axes.set_ylim(room)


# ---- the phase diagram --------------------------------------------------------------------------


def phase_diagram(results: Results) -> Figure | None:
    """What comes of each reward for poison and each distance, after the most training."""
    if not results.phase_diagram:
        return None
    last = max(cell.steps for cell in results.phase_diagram)
    cells = [cell for cell in results.phase_diagram if cell.steps == last]
    panels = (
        ("overall_efficiency", "efficiency", 0.5, (0, 1)),
        ("selectivity", "selectivity", 0.5, (0, 1)),
        ("deaths_per_1k_steps", "deaths per 1,000 steps", None, (0, None)),
        ("gain", "energy per 1,000 steps, gained by training", 0.0, (None, None)),
    )
    columns = len({cell.poison_reward for cell in cells})
    rows = len({cell.distance for cell in cells})
    figure, grid = figures.canvas(
        2, 2, width=1.6 + 1.55 * columns, height=1.4 + 0.8 * rows, sharex=True, sharey=True
    )
    for axes, (metric, title, contour, limits) in zip(grid.flat, panels, strict=True):
        heat(figure, axes, cells, metric, contour, limits)
        axes.set_title(title)
    for axes in grid[1]:
        axes.set_xlabel("reward for poison (food's is 1)")
    for axes in grid[:, 0]:
        axes.set_ylabel("distance of appearances")
    return figure


def phase_pressure(results: Results) -> Figure | None:
    """Selectivity over the phase diagram as training goes on."""
    pressures = sorted({cell.steps for cell in results.phase_diagram})
    if len(pressures) < 2:
        return None
    shown = [
        pressures[i] for i in np.unique(np.linspace(0, len(pressures) - 1, 4).round().astype(int))
    ]
    figure, row = figures.canvas(
        1, len(shown), width=2.1 * len(shown) + 0.6, height=2.3, sharey=True, squeeze=False
    )
    for axes, pressure in zip(row[0], shown, strict=True):
        cells = [cell for cell in results.phase_diagram if cell.steps == pressure]
        heat(figure, axes, cells, "selectivity", 0.5, (0, 1), intervals=False)
        axes.set_title(f"{steps(pressure)} steps")
        axes.set_xlabel("reward for poison")
    row[0, 0].set_ylabel("distance of appearances")
    return figure


def reward_correlation(results: Results) -> Figure | None:
    """What each cell's reward has to do with the true one, beside what training made of it."""
    last = max((cell.steps for cell in results.phase_diagram), default=0)
    shown = [cell for cell in results.phase_diagram if cell.steps == last]
    if not shown:
        return None
    figure, axes = figures.canvas(width=4.6, height=3.2)
    for index, visits, label, face in (
        (0, "random", "over a random walk's steps", "none"),
        (1, "trained", "over the trained policy's steps", None),
    ):
        pairs = [
            (getattr(cell, f"reward_correlation_{visits}").value, cell.selectivity.value)
            for cell in shown
        ]
        points = [pair for pair in pairs if None not in pair]
        x, y = np.array(points).T if points else ([], [])
        axes.plot(x, y, markersize=5, markerfacecolor=face, label=label, **figures.point(index))
    axes.axhline(0.5, **_DOTTED)
    axes.set_xlabel("correlation of reward with true reward")
    axes.set_ylabel("selectivity")
    axes.set_ylim(0, 1.02)
    axes.legend(loc="best")
    return figure

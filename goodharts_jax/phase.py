"""The phase diagram: what comes of how wrong the pay is, how alike things look, and pressure.

A cell of the diagram is a mode that is paid 1 for food and something else for poison, sees the
two at a distance from each other through noise, and cannot starve while it learns. All cells and
seeds train as one population; the looks that the host takes at it between chunks
(`watch.Watch`) are the diagram's third axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evidence import stats
from goodharts_jax.modes import Mode, make_mode
from goodharts_jax.thesis import LEAST_DEATHS, LEAST_RUNS, UNIT, goodhart_curve
from goodharts_jax.watch import WATCHED_STEPS, Watch
from goodharts_jax.world import FOOD, POISON

# Looks at the diagram: after a sixteenth of the training, a quarter, half, all.
_PRESSURES = (1 / 16, 1 / 4, 1 / 2, 1)


def cell_mode(poison_pay: float, distance: float, noise: float) -> Mode:
    """One cell: food and poison look `distance` apart, both well apart from an empty cell."""
    near, far = 1 - distance / 2, 1 + distance / 2
    return make_mode((near, near), (far, far), 1.0, poison_pay, mortal=False, noise=noise)


def cells(
    grid: Sequence[tuple[float, float]],
    watch: Watch,
    steps: Sequence[int],
    random_walk: dict[str, float],
    true_pay: Sequence[float],
) -> list[dict[str, Any]]:
    """The diagram's cells at each pressure, with intervals over runs.

    Args:
      grid: poison pay and distance of each cell.
      watch: leading axes [cells * runs, looks], cell by cell.
      steps: training steps at each look.
      random_walk: what a random walk meets, `food` and `poison` a step.
      true_pay: energy of food and of poison.
    """
    runs = len(watch.kl) // len(grid)
    looks = sorted({max(0, round(len(steps) * share) - 1) for share in _PRESSURES})
    found = []
    for index, (poison_pay, distance) in enumerate(grid):
        own = slice(index * runs, (index + 1) * runs)
        food, poison = (np.asarray(x)[own].mean(-1) for x in (watch.food, watch.poison))
        deaths, energy = np.asarray(watch.deaths)[own].mean(-1), np.asarray(watch.energy)[own]
        items = np.asarray(watch.items, np.float64)[own].mean(-2)
        pay = (1.0, poison_pay)
        by_chance = pay_correlation(random_walk["food"], random_walk["poison"], pay, true_pay)
        for look in looks:
            eaten = food[:, look] + poison[:, look]
            rates = [
                rate[:, look] / items[:, look, kind]
                for rate, kind in ((food, FOOD), (poison, POISON))
            ]
            trained = [
                pay_correlation(food[run, look], poison[run, look], pay, true_pay)
                for run in range(runs)
            ]
            found.append(
                {
                    "poison_pay": poison_pay,
                    "distance": distance,
                    "steps": steps[look],
                    "overall_efficiency": _over_runs(_ratio(food[:, look], eaten)),
                    "selectivity": _over_runs(_ratio(rates[0], rates[0] + rates[1])),
                    "deaths_per_1k_steps": _over_runs(1000 * deaths[:, look]),
                    "drop": _drop(steps[: look + 1], 1000 * energy[:, : look + 1]),
                    "pay_correlation_random": stats.Measurement(
                        by_chance, None, None, 1, "evaluation", "random walk"
                    ),
                    "pay_correlation_trained": _over_runs(np.array(trained, float)),
                }
            )
    return found


def cautions(found: Sequence[dict[str, Any]]) -> list[str]:
    """Sentences about cells, as `cells` gives them, that rest on too few runs or deaths."""
    said = []
    runs = min((cell["deaths_per_1k_steps"].n for cell in found), default=LEAST_RUNS)
    if runs < LEAST_RUNS:
        said.append(f"{runs} run(s) a cell; a claim about a cell needs {LEAST_RUNS}.")
    few = 0
    for cell in found:
        rate = cell["deaths_per_1k_steps"]
        few += (rate.value or 0) / 1000 * rate.n * WATCHED_STEPS < LEAST_DEATHS
    if few:
        said.append(
            f"{few} of {len(found)} cells saw fewer than {LEAST_DEATHS} deaths; theirs are rough "
            "death rates."
        )
    return said


def pay_correlation(
    food: float, poison: float, pay: Sequence[float], true_pay: Sequence[float]
) -> float | None:
    """Correlation of proxy and true pay over the steps of a policy; None where one never varies.

    Args:
      food: meals of food a step; every other step but those with poison eats nothing.
      poison: likewise.
      pay: the proxy's, for food and poison.
      true_pay: likewise.
    """
    weight = np.array([1 - food - poison, food, poison])
    proxy, truth = np.array([0.0, *pay]), np.array([0.0, *true_pay])
    proxy, truth = proxy - weight @ proxy, truth - weight @ truth
    spread = np.sqrt((weight @ proxy**2) * (weight @ truth**2))
    return float(weight @ (proxy * truth) / spread) if spread > 0 else None


def _drop(steps: Sequence[int], energy: np.ndarray) -> stats.Measurement:
    if len(steps) < 2:
        return stats.Measurement(None, None, None, len(energy), UNIT, "undefined: one look")
    return goodhart_curve(steps, energy)["drop"]


def _over_runs(values: np.ndarray) -> stats.Measurement:
    return stats.interval(values, UNIT)


def _ratio(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.divide(part, total, out=np.full(part.shape, np.nan), where=total > 0)

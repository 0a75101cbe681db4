"""The phase diagram: what comes of how wrong the reward is, how alike things look, and pressure.

A cell of the diagram is a mode that is rewarded with 1 for food and something else for poison, sees
the two at a distance from each other through noise, and cannot starve while it learns. All cells
and seeds train as one population; what the host counts between chunks (`watch.Watch`) is the
diagram's third axis.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evidence import stats
from evidence.measurement import Measurement
from goodharts_jax import curves
from goodharts_jax.assessment import LEAST_DEATHS, LEAST_RUNS
from goodharts_jax.modes import Mode, make_mode
from goodharts_jax.results import UNIT, PhaseCell, Totals
from goodharts_jax.watch import WATCHED_STEPS, Watch
from goodharts_jax.world import FOOD, POISON

# Where the diagram is read: after a sixteenth of the training, a quarter, half, all.
_PRESSURES = (1 / 16, 1 / 4, 1 / 2, 1)


def cell_mode(poison_reward: float, distance: float, noise: float) -> Mode:
    """One cell: food and poison look `distance` apart, both well apart from an empty cell."""
    near, far = 1 - distance / 2, 1 + distance / 2
    return make_mode((near, near), (far, far), 1.0, poison_reward, mortal=False, noise=noise)


def cells(
    grid: Sequence[tuple[float, float]],
    watch: Watch,
    steps: Sequence[int],
    random_walk: Totals,
    true_reward: tuple[float, float],
) -> list[PhaseCell]:
    """The diagram's cells at each pressure, with intervals over runs.

    Args:
      grid: poison's reward and distance of each cell.
      watch: leading axes [cells * runs, checkpoints], cell by cell.
      steps: training steps at each checkpoint.
      random_walk: what one eats in the same worlds.
      true_reward: energy of food and of poison.
    """
    runs = len(watch.kl) // len(grid)
    pressures = sorted({max(0, round(len(steps) * share) - 1) for share in _PRESSURES})
    met = [getattr(random_walk, f"{item}_per_1k_steps") / 1000 for item in ("food", "poison")]
    found = []
    for index, (poison_reward, distance) in enumerate(grid):
        own = slice(index * runs, (index + 1) * runs)
        food, poison = (np.asarray(x)[own].mean(-1) for x in (watch.food, watch.poison))
        deaths, energy = np.asarray(watch.deaths)[own].mean(-1), np.asarray(watch.energy)[own]
        items = np.asarray(watch.items, np.float64)[own].mean(-2)
        reward = (1.0, poison_reward)
        by_chance = reward_correlation(met[0], met[1], reward, true_reward)
        for at in pressures:
            eaten = food[:, at] + poison[:, at]
            rates = [
                rate[:, at] / items[:, at, kind] for rate, kind in ((food, FOOD), (poison, POISON))
            ]
            trained = [
                reward_correlation(food[run, at], poison[run, at], reward, true_reward)
                for run in range(runs)
            ]
            found.append(
                PhaseCell(
                    poison_reward=poison_reward,
                    distance=distance,
                    steps=steps[at],
                    overall_efficiency=_over_runs(_ratio(food[:, at], eaten)),
                    selectivity=_over_runs(_ratio(rates[0], rates[0] + rates[1])),
                    deaths_per_1k_steps=_over_runs(1000 * deaths[:, at]),
                    drop=_drop(steps[: at + 1], 1000 * energy[:, : at + 1]),
                    reward_correlation_random=Measurement(
                        by_chance, None, None, 1, "evaluation", "random walk"
                    ),
                    reward_correlation_trained=_over_runs(np.array(trained, float)),
                )
            )
    return found


def cautions(found: Sequence[PhaseCell]) -> list[str]:
    """Sentences about cells that rest on too few runs or deaths."""
    said = []
    runs = min((cell.deaths_per_1k_steps.n for cell in found), default=LEAST_RUNS)
    if runs < LEAST_RUNS:
        said.append(f"{runs} run(s) a cell; a claim about a cell needs {LEAST_RUNS}.")
    few = 0
    for cell in found:
        rate = cell.deaths_per_1k_steps
        few += (rate.value or 0) / 1000 * rate.n * WATCHED_STEPS < LEAST_DEATHS
    if few:
        said.append(
            f"{few} of {len(found)} cells saw fewer than {LEAST_DEATHS} deaths; theirs are rough "
            "death rates."
        )
    return said


def reward_correlation(
    food: float, poison: float, reward: Sequence[float], true_reward: Sequence[float]
) -> float | None:
    """Correlation of proxy and true reward over a policy's steps; None where one never varies.

    Args:
      food: meals of food a step; every other step but those with poison eats nothing.
      poison: likewise.
      reward: the proxy's, for food and poison.
      true_reward: likewise.
    """
    weight = np.array([1 - food - poison, food, poison])
    proxy, truth = np.array([0.0, *reward]), np.array([0.0, *true_reward])
    proxy, truth = proxy - weight @ proxy, truth - weight @ truth
    scale = np.sqrt((weight @ proxy**2) * (weight @ truth**2))
    return float(weight @ (proxy * truth) / scale) if scale > 0 else None


def _drop(steps: Sequence[int], energy: np.ndarray) -> Measurement:
    if len(steps) < 2:
        return Measurement(None, None, None, len(energy), UNIT, "undefined: one look")
    return curves.peak(steps, energy).drop


def _over_runs(values: np.ndarray) -> Measurement:
    return stats.interval(values, UNIT)


def _ratio(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.divide(part, total, out=np.full(part.shape, np.nan), where=total > 0)

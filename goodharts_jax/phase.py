"""The phase diagram: what comes of how wrong the reward is, how alike things look, and pressure.

A cell of the diagram is a mode that is rewarded with 1 for food and something else for poison, sees
the two at a distance from each other through noise, and cannot starve while it learns. All cells
and seeds train as one population; what the host counts between chunks (`watch.Watch`) is the
diagram's third axis.

Neither item is brighter: their appearances have one norm, and one has the other's channels swapped.
Were one of them brighter, an agent that is not rewarded for it would go for it
or leave it by that alone, and a cell would tell of brightness as much as of distance. Training each
cell with both assignments instead would take twice the runs and average two outcomes that differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import numpy as np

from evidence import stats
from evidence.measurement import Measurement
from goodharts_jax import curves
from goodharts_jax.assessment import LEAST_DEATHS
from goodharts_jax.modes import Mode, make_mode
from goodharts_jax.pressure import PhaseCell, Returns
from goodharts_jax.results import UNIT, Totals
from goodharts_jax.watch import WATCHED_AGE, Watch
from goodharts_jax.world import FOOD, POISON

FARTHEST = 2.0
"""Distance between appearances of norm 1 that are opposites."""
# A claim about a cell needs this many.
_LEAST_RUNS = 5
# Where the diagram is read: after a sixteenth of the training, a quarter, half, all.
_PRESSURES = (1 / 16, 1 / 4, 1 / 2, 1)


def appearances(distance: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Of food and poison: of norm 1, `distance` apart, each with the other's channels swapped."""
    apart = math.asin(distance / FARTHEST)
    food = math.cos(math.pi / 4 - apart), math.sin(math.pi / 4 - apart)
    return food, food[::-1]


def cell_mode(poison_reward: float, distance: float, noise: float) -> Mode:
    """One cell."""
    return make_mode(*appearances(distance), 1.0, poison_reward, mortal=False, noise=noise)


def cells(
    grid: Sequence[tuple[float, float]],
    watch: Watch,
    steps: Sequence[int],
    random_walk: Totals,
    true_reward: tuple[float, float],
    converged: Sequence[bool],
) -> list[PhaseCell]:
    """The diagram's cells at each pressure, with intervals over runs.

    Args:
      grid: poison's reward and distance of each cell.
      watch: leading axes [cells * runs, looks], cell by cell; the first look is at untrained ones.
      steps: training steps at each look.
      random_walk: what one eats in the same worlds.
      true_reward: energy of food and of poison.
      converged: whether each run had levelled off. [cells * runs].
    """
    runs = len(watch.kl) // len(grid)
    shares = np.asarray(steps[1:]) / steps[-1]
    looks = sorted({1 + int(np.abs(shares - share).argmin()) for share in _PRESSURES})
    met = [getattr(random_walk, f"{item}_per_1k_steps") / 1000 for item in ("food", "poison")]
    found = []
    for index, (poison_reward, distance) in enumerate(grid):
        own = slice(index * runs, (index + 1) * runs)
        counted = jax.tree.map(lambda x, own=own: np.asarray(x, np.float64)[own], watch)
        found += [
            _cell(
                counted,
                look,
                steps,
                (poison_reward, distance),
                true_reward,
                met,
                converged=sum(converged[own]),
            )
            for look in looks
        ]
    return found


def _cell(
    watch: Watch,
    look: int,
    steps: Sequence[int],
    at: tuple[float, float],
    true_reward: tuple[float, float],
    met: Sequence[float],
    *,
    converged: int,
) -> PhaseCell:
    """What the runs of one cell, `at` a reward for poison and a distance, show at a look."""
    reward = (1.0, at[0])
    food, poison = (np.asarray(x[:, look]).mean(-1) for x in (watch.food, watch.poison))
    lying = np.asarray(watch.items[:, look]).mean(-2)
    often, seldom = food / lying[:, FOOD], poison / lying[:, POISON]
    energy, deaths = 1000 * np.asarray(watch.energy), 1000 * np.asarray(watch.deaths)
    correlations = [
        reward_correlation(own_food, own_poison, reward, true_reward)
        for own_food, own_poison in zip(food, poison, strict=True)
    ]
    return PhaseCell(
        poison_reward=at[0],
        distance=at[1],
        steps=steps[look],
        overall_efficiency=_over_runs(_ratio(food, food + poison)),
        selectivity=_over_runs(_ratio(often, often + seldom)),
        deaths_per_1k_steps=_over_runs(deaths[:, look].mean(-1)),
        drop=curves.peak(steps[: look + 1], energy[:, : look + 1]).drop,
        reward_correlation_random=Measurement(
            reward_correlation(met[0], met[1], reward, true_reward),
            None,
            None,
            1,
            "evaluation",
            "random walk",
        ),
        reward_correlation_trained=_over_runs(np.array(correlations, float)),
        converged=converged,
        trained=_returns(watch, look),
        untrained=_returns(watch, 0),
        gain=_over_runs((energy[:, look] - energy[:, 0]).mean(-1)),
    )


def _returns(watch: Watch, look: int) -> Returns:
    energy, survival, reward = (
        np.asarray(x[:, look]).mean(-1) for x in (watch.energy, watch.survival, watch.reward)
    )
    return Returns(
        energy_per_1k_steps=_over_runs(1000 * energy),
        survival=_over_runs(survival),
        reward_per_1k_steps=_over_runs(1000 * reward),
    )


def cautions(found: Sequence[PhaseCell], watched_worlds: int) -> list[str]:
    """Sentences about cells that rest on too few runs, too little training or too few deaths."""
    said = []
    runs = min((cell.deaths_per_1k_steps.n for cell in found), default=_LEAST_RUNS)
    if runs < _LEAST_RUNS:
        said.append(f"{runs} run(s) a cell; a claim about a cell needs {_LEAST_RUNS}.")
    last = [cell for cell in found if cell.steps == max(one.steps for one in found)]
    rising = sum(cell.converged < cell.deaths_per_1k_steps.n for cell in last)
    if rising:
        said.append(
            f"{rising} of {len(last)} cells have a run that had not levelled off: they tell what "
            "this much training makes, not where it ends."
        )
    few, watched_steps = 0, watched_worlds * WATCHED_AGE
    for cell in found:
        rate = cell.deaths_per_1k_steps
        few += (rate.value or 0) / 1000 * rate.n * watched_steps < LEAST_DEATHS
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


def _over_runs(values: np.ndarray) -> Measurement:
    return stats.interval(values, UNIT)


def _ratio(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    return np.divide(part, total, out=np.full(part.shape, np.nan), where=total > 0)

"""Whether training on a pay will collapse, told before any training.

A pay is what an agent is rewarded with in place of gold. It collapses if an agent that optimises it
ends with less gold than it started with: where it pays more to stay beside an item than to eat what
is good, say, which a small problem round one item tells exactly. A score is one number a pay, the
greater the likelier the collapse. Tables are f64[S, NUM_ACTIONS], of a pay for moves from S cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts load when first used
from numpy.typing import ArrayLike, NDArray

from evidence.stats import Array
from goodharts_jax.world import FOOD, MOVES, NUM_ACTIONS, POISON

Pay = Callable[[jax.Array, jax.Array], jax.Array]
"""Any function of views uint8[N, V, V] and actions int32[N]; gives float32[N]."""
BLOCK_RADIUS = 2  # a block is the cells as near an item, but for the item's own
DISCOUNT = 0.97
_SLACK = 0.05  # share of the greatest gold that an honest behaviour may miss


class SmallProblem(NamedTuple):
    """An exact Markov decision process: one item, and the S = 24 cells round it.

    Attributes:
      views: from each cell, all but the item empty. uint8[S, V, V].
      successor: cell that each move leads to; S where it eats or leaves. int32[S, NUM_ACTIONS].
      eats: whether the move is onto the item. bool[S, NUM_ACTIONS].
      leaves: whether it is out of the block. bool[S, NUM_ACTIONS].
    """

    views: NDArray[np.uint8]
    successor: NDArray[np.int32]
    eats: NDArray[np.bool_]
    leaves: NDArray[np.bool_]


class SmallWorld(NamedTuple):
    """Both items' problems and the empty between them, where moves that eat or leave lead.

    Attributes:
      food: the problem round food. poison: that round poison.
      views: of food's cells, poison's and the empty, S = 49. uint8[S, V, V].
      kernel: probability that a move leads to each cell. f64[S, NUM_ACTIONS, S].
    """

    food: SmallProblem
    poison: SmallProblem
    views: NDArray[np.uint8]
    kernel: Array


def small_problem(view_size: int, item: int) -> SmallProblem:
    """The problem round FOOD or POISON; cells go row by row from the north-west."""
    if view_size % 2 == 0 or view_size <= 2 * BLOCK_RADIUS:
        raise ValueError(f"view_size: {view_size} is not odd and {2 * BLOCK_RADIUS + 1} or more")
    near = range(-BLOCK_RADIUS, BLOCK_RADIUS + 1)
    # (dy, dx) from the item to the agent.
    cells = np.array([(dy, dx) for dy in near for dx in near if (dy, dx) != (0, 0)])
    size = len(cells)
    views = np.zeros((size, view_size, view_size), np.uint8)
    views[np.arange(size), *(view_size // 2 - cells).T] = item
    arrivals = cells[:, None] + np.array(MOVES)[:, ::-1]
    eats = (arrivals == 0).all(axis=-1)
    leaves = np.abs(arrivals).max(axis=-1) > BLOCK_RADIUS
    index = (arrivals[:, :, None] == cells).all(axis=-1).argmax(axis=-1)
    return SmallProblem(views, np.where(eats | leaves, size, index).astype(np.int32), eats, leaves)


def small_world(view_size: int, found: float = 0.5) -> SmallWorld:
    """Both problems in one world.

    A move in the empty leads with a chance, `found` > 0, into a block, to each of the 48 cells
    alike. A block holds an item with a chance of .4 if 2% of the world's cells do, of .6 if 4% do.
    """
    food, poison = (small_problem(view_size, item) for item in (FOOD, POISON))
    each = len(food.views)
    empty, cells = 2 * each, np.eye(2 * each + 1)
    kernel = np.empty((empty + 1, NUM_ACTIONS, empty + 1))
    kernel[:each] = cells[np.where(food.successor < each, food.successor, empty)]
    kernel[each:empty] = cells[each + poison.successor]  # 24, no cell of its own, is the empty
    kernel[empty] = np.append(np.full(empty, found / empty), 1 - found)
    views = np.concatenate([food.views, poison.views, np.zeros_like(food.views[:1])])
    return SmallWorld(food, poison, views, kernel)


def pay_table(problem: SmallProblem | SmallWorld, pay: Pay) -> Array:
    """What a pay gives for each move from each cell. f64[S, NUM_ACTIONS]."""
    cells = len(problem.views)
    views = jnp.repeat(jnp.asarray(problem.views), NUM_ACTIONS, axis=0)
    actions = jnp.tile(jnp.arange(NUM_ACTIONS, dtype=jnp.int32), cells)
    paid = np.asarray(pay(views, actions), np.float64)
    if paid.shape != actions.shape or not np.isfinite(paid).all():
        raise ValueError(f"pay: shape {paid.shape}; needed are {len(actions)} finite numbers")
    return paid.reshape(cells, NUM_ACTIONS)


def gold_pay(views: jax.Array, actions: jax.Array, energy: ArrayLike = (0, 1, -2)) -> jax.Array:
    """Gold as a Pay: the energy of what stands where the move leads, by kind. float32[N]."""
    dx, dy = jnp.array(MOVES)[actions].T
    middle = views.shape[-1] // 2
    kind = views[jnp.arange(len(views)), middle + dy, middle + dx]
    return jnp.asarray(energy, jnp.float32)[kind]


def best_without_eating(problem: SmallProblem, table: Array) -> float:
    """Greatest mean pay a step of an endless walk that never eats and never leaves.

    The greatest mean weight of a cycle, exact: Karp (1978, A characterization of the minimum cycle
    mean in a digraph), with a source that leads everywhere. Minus infinity without a cycle.
    """
    cells = len(table)
    weight = np.where(problem.eats | problem.leaves, -np.inf, table)
    # best[k, s]: the most that k moves from s are paid, where Karp has moves to s.
    best = np.zeros((cells + 1, cells))
    for k in range(cells):
        best[k + 1] = (weight + np.append(best[k], 0)[problem.successor]).max(axis=1)
    best = best[:, np.isfinite(best[-1])]
    means = (best[-1] - best[:-1]) / np.arange(cells, 0, -1)[:, None]
    return float(means.min(axis=0).max(initial=-np.inf))


def best_idle(world: SmallWorld, table: Array) -> float:
    """The most that a step pays without eating: beside food, beside poison or in the empty."""
    tables = np.split(table[:-1], 2)
    beside = map(best_without_eating, (world.food, world.poison), tables)
    return max(*beside, float(table[-1].max()))


def hover(world: SmallWorld, table: Array, gold_pays: ArrayLike, start_pays: ArrayLike) -> float:
    """The best idle pay less what agents trained on gold are paid, in deviations.

    `gold_pays` is the pay on their steps, float[n]; `start_pays` that on steps of the policy that
    training starts from, float[m], whose deviation is meant.
    """
    gap = best_idle(world, table) - np.asarray(gold_pays, np.float64).mean()
    return _in_deviations(gap, np.asarray(start_pays, np.float64).std(), table)


def hover_from_start(world: SmallWorld, table: Array, start_pays: ArrayLike) -> float:
    """The same less what the start policy itself is paid: no agent trained on gold is needed."""
    return hover(world, table, start_pays, start_pays)


def temptation(world: SmallWorld, table: Array, gold: Array) -> float:
    """The best pay without good less the best pay of the good; needs no rollouts.

    Exact, in the long run of the small world. Without good: no more gold than the best that never
    eats, be it hovering, wandering or eating poison for what food gives. The good: nearly the most
    gold there is. In deviations over all cells and moves; constants and positive factors are free.
    """
    none, most = best_idle(world, gold), (_best(world, gold) * gold).sum()
    tempted = _best(world, table, limit=(gold, none))
    honest = _best(world, table, limit=(-gold, -none - (1 - _SLACK) * (most - none)))
    return _in_deviations(((tempted - honest) * table).sum(), table.std(), table)


def foretold_loss(world: SmallWorld, table: Array, gold: Array) -> float:
    """Gold that the pay's best policy misses in the small world, of the most there is to gain.

    0: it gains all; 1: as little as without eating; more: it eats poison. Ties go to more gold.
    """
    got, most = ((_best_policy(world, paid, gold) * gold).sum() for paid in (table, gold))
    return float((most - got) / (most - best_idle(world, gold)))


def inaccuracy(pay_returns: Array, gold_returns: Array) -> float | None:
    """Share of pairs of segments that a pay ranks otherwise than gold; None without a pair.

    Takes sums over segments, float[pairs, 2]. Equals in gold don't count, equals in pay count half.
    """
    paid, gold = (np.diff(sums, axis=1)[:, 0] for sums in (pay_returns, gold_returns))
    agree = np.sign(paid * gold)[gold != 0]
    return float((1 - agree.mean()) / 2) if len(agree) else None


def decorrelation(pays: ArrayLike, golds: ArrayLike) -> float:
    """1 less Pearson's correlation of pay and gold by step, float[steps] both; 1 for a constant."""
    both = np.array([pays, golds], np.float64)
    x, y = both - both.mean(axis=1, keepdims=True)
    return float(1 - x @ y / np.sqrt((x @ x) * (y @ y))) if np.ptp(both, axis=1).all() else 1.0


def shaping_basis(world: SmallWorld) -> Array:
    """An orthonormal basis of what `projected_angle` projects out. f64[S * NUM_ACTIONS, S]."""
    return np.linalg.qr(_shaping(world, DISCOUNT))[0]


def projected_angle(basis: Array, table: Array, gold: Array) -> float:
    """Angle between pay and gold as far as policies can earn them differently, in radians.

    Karwowski et al. (2023, Goodhart's Law in Reinforcement Learning). Both are vectors over cells
    and moves. Projected out: DISCOUNT * E[Phi(s')] - Phi(s) for every potential Phi: 49 directions,
    constants among them, of which `basis` is made. Differences of discounted occupancies span the
    rest. pi / 2 if none.
    """
    vectors = np.stack([table, gold]).reshape(2, -1)
    rest = vectors - vectors @ basis @ basis.T
    norms = np.sqrt((rest**2).sum(axis=1))
    if (norms <= 1e-9 * np.sqrt((vectors**2).sum(axis=1))).any():
        return np.pi / 2
    a, b = rest / norms[:, None]
    return 2 * float(np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


def occupancy_distance(world: SmallWorld, table: Array, gold: Array) -> float:
    """Total variation between occupancies of the pay's best policy and of gold's, in [0, 1].

    After Laidlaw et al. (2024, Correlated Proxies), who bound hacking by how far occupancies move
    from a reference policy's. Discounted by DISCOUNT; the other breaks the ties of each.
    """
    paid, golden = _best_policy(world, table, gold), _best_policy(world, gold, table)
    return float(np.abs(paid - golden).sum() / 2)


def auc(scores: ArrayLike, collapsed: ArrayLike) -> float | None:
    """Chance that a pay that collapsed, bool[n], has the greater score, float[n], ties half.

    The area under the receiver's operating curve; None with one class.
    """
    values, yes = np.asarray(scores, np.float64), np.asarray(collapsed, bool)
    if yes.all() or not yes.any():
        return None
    return float((1 + np.sign(values[yes, None] - values[~yes]).mean()) / 2)


def best_threshold(scores: ArrayLike, collapsed: ArrayLike) -> float | None:
    """The score above which to foretell collapse, half way between two; None with one class.

    It has the greatest share of collapses foretold less that of false alarms (Youden 1950).
    """
    values, yes = np.asarray(scores, np.float64), np.asarray(collapsed, bool)
    if yes.all() or not yes.any():
        return None
    known = np.unique(values)
    cuts = np.append((known[1:] + known[:-1]) / 2, known[-1])
    above = values > cuts[:, None]
    return float(cuts[(above[:, yes].mean(axis=1) - above[:, ~yes].mean(axis=1)).argmax()])


def accuracy_at(threshold: float, scores: ArrayLike, collapsed: ArrayLike) -> float:
    """Share of pays told rightly if those with a greater score are said to collapse."""
    return float(np.mean((np.asarray(scores) > threshold) == np.asarray(collapsed, bool)))


def r_squared(
    scores_fit: ArrayLike, loss_fit: ArrayLike, scores: ArrayLike, loss: ArrayLike
) -> float | None:
    """Share of the variance of `loss` [n] that `scores` [n] explain by a fit to other pays [m].

    The fit is a rising curve (isotonic regression), straight between points. None: all lose alike.
    """
    x, group, count = np.unique(scores_fit, return_inverse=True, return_counts=True)
    mean = np.bincount(group, np.asarray(loss_fit)) / count
    curve = scipy.optimize.isotonic_regression(mean, weights=count).x
    losses = np.asarray(loss, np.float64)
    missed = losses - np.interp(np.asarray(scores, np.float64), x, curve)
    return float(1 - (missed**2).mean() / losses.var()) if np.ptp(losses) > 0 else None


def _in_deviations(gap: float, deviation: float, table: Array) -> float:
    # A deviation counts as no less than a millionth of the greatest pay.
    return float(gap / (max(deviation, 1e-6 * np.abs(table).max()) or 1.0))


def _shaping(world: SmallWorld, discount: float) -> Array:
    """discount * E[Phi(s')] - Phi(s), a column a potential. f64[S * NUM_ACTIONS, S]."""
    here = np.repeat(np.eye(len(world.views)), NUM_ACTIONS, axis=0)
    return discount * world.kernel.reshape(here.shape) - here


def _best(
    world: SmallWorld, table: Array, limit: tuple[Array, float] | None = None, discount: float = 1.0
) -> Array:
    """Share of time of each cell and move under what earns most of a table. f64[S, NUM_ACTIONS].

    A linear program over such shares (Puterman 1994, Markov Decision Processes, 6.9 and 8.8): those
    of the long run or, discounted, from a start anywhere. `limit`: a table, the most to be earned.
    """
    flow = -_shaping(world, discount).T
    found = scipy.optimize.linprog(
        -1e3 * table.ravel() / (np.abs(table).max() or 1.0),  # its tolerance of 1e-7 is absolute
        A_ub=None if limit is None else limit[0].reshape(1, -1),
        b_ub=None if limit is None else limit[1],
        A_eq=np.vstack([flow, np.ones(flow.shape[1])]),
        b_eq=np.append(np.full(len(flow), (1 - discount) / len(flow)), 1.0),
    )
    if found.status != 0:
        raise ArithmeticError(f"forecast: a linear program has no solution: {found.message}")
    return found.x.reshape(table.shape)


def _best_policy(world: SmallWorld, table: Array, then: Array) -> Array:
    """Discounted shares under a best policy; `then` breaks ties, then an arbitrary order does."""
    order = np.random.default_rng(0).random(table.shape)
    first, second = (x / (np.ptp(x) or 1.0) for x in (table, then))
    return _best(world, first + 1e-3 * second + 1e-7 * order, discount=DISCOUNT)

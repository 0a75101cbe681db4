"""The idea behind the pay correlations of the phase diagram, against an exact measure of it.

Karwowski et al. (2023, Goodhart's law in reinforcement learning) compare two rewards by their
angle after projection onto the directions in which occupancy measures can differ: what a policy
earns depends on nothing else of a reward. That needs a table of all states, so here is a torus
small enough for one. `phase.reward_correlation` needs only how often a policy eats what.
"""

import itertools

import numpy as np
import pytest
import scipy.stats

from goodharts_jax.phase import reward_correlation
from goodharts_jax.world import MOVES

SIZE, DISCOUNT = 5, 0.9
STATES, ACTIONS = SIZE * SIZE, len(MOVES)


def _arrivals() -> np.ndarray:
    """Where each move from each cell leads. int[STATES, ACTIONS]."""
    cells = itertools.product(range(SIZE), range(SIZE))
    return np.array(
        [[(y + dy) % SIZE * SIZE + (x + dx) % SIZE for dx, dy in MOVES] for y, x in cells]
    )


ARRIVAL = _arrivals()
# Row s of FLOW: what leaves cell s less what discounted arrivals bring. Occupancy measures are the
# non-negative solutions of FLOW @ occupancy = (1 - DISCOUNT) start.
FLOW = np.repeat(np.eye(STATES), ACTIONS, axis=1)
np.subtract.at(FLOW, (ARRIVAL.ravel(), np.arange(STATES * ACTIONS)), DISCOUNT)


def occupancy(policy: np.ndarray) -> np.ndarray:
    """Discounted share of time in each cell with each move, from a start anywhere; sums to 1."""
    step = np.zeros((STATES, STATES))
    np.add.at(step, (np.arange(STATES)[:, None], ARRIVAL), policy)
    start = np.full(STATES, 1 / STATES)
    visits = np.linalg.solve(np.eye(STATES) - DISCOUNT * step.T, (1 - DISCOUNT) * start)
    return (visits[:, None] * policy).ravel()


def reward(pays: np.ndarray, items: np.ndarray) -> np.ndarray:
    """What each move pays: `pays` of the kind of item (0 for none) where it leads."""
    return pays[items][ARRIVAL].ravel()


def projected(rewards: np.ndarray) -> np.ndarray:
    """The part of a reward that policies can earn differently: without its part in FLOW's rows."""
    return rewards - FLOW.T @ np.linalg.lstsq(FLOW.T, rewards, rcond=None)[0]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Of the exact angle between two rewards."""
    a, b = projected(a), projected(b)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def correlation(weight: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Of two rewards over the steps of a policy, as `reward_correlation` has it for any kinds."""
    a, b = a - weight @ a, b - weight @ b
    return float(weight @ (a * b) / np.sqrt((weight @ a**2) * (weight @ b**2)))


@pytest.fixture
def draw():
    return np.random.default_rng(0)


def some_policies(draw, number):
    return draw.dirichlet(np.full(ACTIONS, 0.3), size=(number, STATES))


def some_items(draw, kinds):
    items = np.zeros(STATES, int)
    cells = draw.permutation(STATES)
    for kind in range(1, kinds + 1):
        items[cells[3 * kind - 3 : 3 * kind]] = kind
    return items


WALK = np.full((STATES, ACTIONS), 1 / ACTIONS)


def test_occupancies_flow_and_returns_are_products_with_them(draw):
    policy = some_policies(draw, 1)[0]
    measure = occupancy(policy)
    assert measure.min() > 0 and measure.sum() == pytest.approx(1)
    np.testing.assert_allclose(FLOW @ measure, (1 - DISCOUNT) / STATES, atol=1e-12)
    # By the other road: values by iteration of Bellman's equation.
    pays = draw.normal(size=(STATES, ACTIONS))
    values = np.zeros(STATES)
    for _ in range(400):
        values = (policy * (pays + DISCOUNT * values[ARRIVAL])).sum(axis=1)
    assert measure @ pays.ravel() == pytest.approx((1 - DISCOUNT) * values.mean())


def test_projection_keeps_what_policies_earn_differently_and_nothing_else(draw):
    first, second = (occupancy(policy) for policy in some_policies(draw, 2))
    rewards = draw.normal(size=STATES * ACTIONS)
    assert rewards @ (first - second) == pytest.approx(projected(rewards) @ (first - second))
    # Shaping by a potential (Ng, Harada & Russell 1999) lies in FLOW's rows: it is projected away.
    shaping = FLOW.T @ draw.normal(size=STATES)
    np.testing.assert_allclose(projected(shaping), 0, atol=1e-10)


def test_reward_correlation_is_the_correlation_over_steps(draw):
    """From rates of eating alone, as the phase diagram has it, and from the whole table."""
    items = some_items(draw, 2)
    truth, proxy = (reward(np.array([0, 1, poison]), items) for poison in (-2.0, 0.5))
    for policy in (WALK, *some_policies(draw, 3)):
        weight = occupancy(policy)
        food, poison = (weight @ (items[ARRIVAL].ravel() == kind) for kind in (1, 2))
        found = reward_correlation(food, poison, (1.0, 0.5), (1.0, -2.0))
        assert found == pytest.approx(correlation(weight, truth, proxy))


def test_correlation_over_a_random_walk_orders_proxies_as_the_exact_angle_does(draw):
    """200 proxies that pay anything for six kinds of items: nearly the same order, and sign.

    Nearly: the correlation counts all of a reward, the angle what policies can make of it.
    """
    items = some_items(draw, 6)
    truth = reward(np.r_[0, draw.normal(size=6)], items)
    proxies = [reward(np.r_[0, draw.normal(size=6)], items) for _ in range(200)]
    exact = np.array([cosine(truth, proxy) for proxy in proxies])
    found = np.array([correlation(occupancy(WALK), truth, proxy) for proxy in proxies])
    assert scipy.stats.spearmanr(exact, found).statistic > 0.98
    clear = np.abs(exact) > 0.15
    assert clear.sum() > 100
    assert (np.sign(exact) == np.sign(found))[clear].all()


def test_pays_of_the_phase_diagram_turn_as_the_exact_angle_does(draw):
    """Pay for poison from -2 (the truth) to 2: further off by either measure, step by step."""
    pays = (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0)
    for _ in range(5):
        items = some_items(draw, 2)
        truth = reward(np.array([0, 1, -2.0]), items)
        proxies = [reward(np.array([0, 1, poison]), items) for poison in pays]
        exact = [cosine(truth, proxy) for proxy in proxies]
        found = [correlation(occupancy(WALK), truth, proxy) for proxy in proxies]
        assert exact[0] == pytest.approx(1) and found[0] == pytest.approx(1)
        assert (np.diff(exact) < 0).all() and (np.diff(found) < 0).all()
        np.testing.assert_allclose(found, exact, atol=0.2)
        # The truth and the worst proxy are opposed by both.
        assert exact[-1] < 0 and found[-1] < 0


def test_what_the_correlation_misses(draw):
    """A shaped reward teaches the same, at angle 0; over steps it correlates poorly with it.

    And the visits of a trained policy can hide a proxy's fault: where poison is never eaten, all
    pays for it correlate alike. So neither number is alignment.
    """
    items = some_items(draw, 2)
    truth = reward(np.array([0, 1, -2.0]), items)
    shaped = truth + FLOW.T @ draw.normal(scale=3, size=STATES)
    assert cosine(truth, shaped) == pytest.approx(1)
    assert correlation(occupancy(WALK), truth, shaped) < 0.6
    best = np.zeros((STATES, ACTIONS))
    values = np.zeros(STATES)
    for _ in range(400):
        gains = truth.reshape(STATES, ACTIONS) + DISCOUNT * values[ARRIVAL]
        values = gains.max(axis=1)
    best[np.arange(STATES), gains.argmax(axis=1)] = 1
    weight = occupancy(best)
    assert weight @ (items[ARRIVAL].ravel() == 2) < 1e-3
    opposite = reward(np.array([0, 1, 2.0]), items)
    assert cosine(truth, opposite) < 0 < 0.9 < correlation(weight, truth, opposite)

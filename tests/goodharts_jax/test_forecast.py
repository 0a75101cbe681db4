"""The forecast of collapse: small problems against the physics, scores by hand and by brute force,
and planted pays that must, and must not, look dangerous."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goodharts_jax import forecast, world
from goodharts_jax.forecast import DISCOUNT, SmallProblem
from goodharts_jax.world import FOOD, MOVES, NUM_ACTIONS, POISON

VIEW = 7
CELLS = [(dy, dx) for dy in range(-2, 3) for dx in range(-2, 3) if (dy, dx) != (0, 0)]
EAST = MOVES.index((1, 0))


@pytest.fixture(scope="module")
def small():
    return forecast.small_world(VIEW)


@pytest.fixture(scope="module")
def gold(small):
    return forecast.pay_table(small, forecast.gold_pay)


@pytest.fixture
def draw():
    return np.random.default_rng(0)


def hovering(views, actions, bonus=0.5):
    """Gold, and part of a meal for standing beside food, whatever the move."""
    middle = VIEW // 2
    near = views[:, middle - 1 : middle + 2, middle - 1 : middle + 2]
    return forecast.gold_pay(views, actions) + bonus * (near == FOOD).any(axis=(1, 2))


def angle_of(small, table, gold):
    return forecast.projected_angle(forecast.shaping_basis(small), table, gold)


def shaping(small, potential):
    """What a potential adds to each move, written apart from the module's own."""
    return DISCOUNT * np.einsum("sat,t->sa", small.kernel, potential) - potential[:, None]


def walk(small, policy, steps, draw):
    """Cells and moves of a policy that is a table of probabilities. int[steps, 2]."""
    cell, made = len(small.views) - 1, []
    for _ in range(steps):
        move = draw.choice(NUM_ACTIONS, p=policy[cell])
        made.append((cell, move))
        cell = draw.choice(len(small.views), p=small.kernel[cell, move])
    return np.array(made)


@pytest.fixture(scope="module")
def rollouts(small, gold):
    """Steps of an agent that is best for gold, and of a random walk."""
    draw = np.random.default_rng(1)
    share = forecast._best_policy(small, gold, gold)
    expert = share / share.sum(axis=1, keepdims=True)
    random = np.full_like(expert, 1 / NUM_ACTIONS)
    return walk(small, expert, 4000, draw), walk(small, random, 4000, draw)


def paid(table, steps):
    return table[steps[:, 0], steps[:, 1]]


# The small problem and the physics.


def test_a_cell_by_hand():
    problem = forecast.small_problem(5, FOOD)
    west, far_west = CELLS.index((0, -1)), CELLS.index((0, -2))
    view = np.zeros((5, 5), int)
    view[2, 3] = FOOD
    assert problem.views[west].tolist() == view.tolist()
    assert problem.eats[west].tolist() == [move == (1, 0) for move in MOVES]
    assert not problem.leaves[west].any()
    assert problem.successor[west].tolist() == [
        24 if move == (1, 0) else CELLS.index((move[1], move[0] - 1)) for move in MOVES
    ]
    assert problem.successor[far_west, EAST] == west
    assert problem.leaves[far_west].tolist() == [dx < 0 for dx, _ in MOVES]
    # Eight cells eat with one move each; the corners keep three moves, the edges five.
    assert problem.eats.sum() == 8
    assert problem.leaves.sum() == 4 * 5 + 12 * 3


RULES = world.make_world(12, VIEW // 2, food=(0, 1), poison=(0, 1))


@jax.jit
@partial(jax.vmap, in_axes=(None, 0, 0))
def live(item, offset, action):
    """A move from beside one item, which lies in a corner so that all goes over the edges."""
    corner = jnp.array([0, 11])
    grid = jnp.zeros((RULES.size + VIEW - 1,) * 2, jnp.uint8)
    state = world.State(
        grid=world._write(RULES, grid, corner, item),
        position=(corner + offset) % RULES.size,
        energy=jnp.int32(100_000),
        age=jnp.int32(0),
        items=jnp.array([0, item == FOOD, item == POISON], jnp.int32),
    )
    after, event = world.step(RULES, state, action, jax.random.key(0))
    return world.view(RULES, state), event.eaten, world.view(RULES, after)


@pytest.mark.parametrize("item", [FOOD, POISON])
def test_the_problem_is_what_the_physics_does(item):
    """Every move from every cell, as `world.view` and `world.step` have it."""
    problem = forecast.small_problem(VIEW, item)
    offsets = np.repeat(np.array(CELLS), NUM_ACTIONS, axis=0)
    actions = np.tile(np.arange(NUM_ACTIONS), len(CELLS))
    views, eaten, after = (np.asarray(x) for x in live(jnp.uint8(item), offsets, actions))
    np.testing.assert_array_equal(views, np.repeat(problem.views, NUM_ACTIONS, axis=0))
    np.testing.assert_array_equal(eaten, item * problem.eats.ravel())
    stays = ~(problem.eats | problem.leaves).ravel()
    successor = problem.successor.ravel()
    np.testing.assert_array_equal(successor < len(CELLS), stays)
    np.testing.assert_array_equal(after[stays], problem.views[successor[stays]])
    # Out of the block is what leaves it, and the item is still where it was.
    y, x = (np.argwhere(after == item)[:, 1:] - VIEW // 2).T
    assert len(y) == (~problem.eats).sum()
    leaves = problem.leaves.ravel()[~problem.eats.ravel()]
    np.testing.assert_array_equal(np.maximum(abs(y), abs(x)) > 2, leaves)
    energy = np.array([0.0, 1.0, -2.0])
    np.testing.assert_array_equal(forecast.gold_pay(views, actions), energy[eaten])


def test_the_small_world_joins_both_problems(small, gold):
    np.testing.assert_allclose(small.kernel.sum(axis=-1), 1)
    assert small.views.shape == (49, VIEW, VIEW)
    for i, problem in enumerate((small.food, small.poison)):
        block = small.kernel[24 * i : 24 * i + 24]
        ends = problem.eats | problem.leaves
        np.testing.assert_array_equal(block[..., 48] == 1, ends)
        np.testing.assert_array_equal(block[~ends].argmax(-1) - 24 * i, problem.successor[~ends])
    assert not small.views[48].any()
    np.testing.assert_allclose(small.kernel[48, :, 48], 0.5)
    np.testing.assert_allclose(small.kernel[48, :, :48], 0.5 / 48)
    np.testing.assert_array_equal(gold[:24], small.food.eats)
    np.testing.assert_array_equal(gold[24:48], -2 * small.poison.eats)
    # A wider view of the same cells changes no pay that looks at the item alone.
    wide = forecast.small_world(11)
    np.testing.assert_array_equal(forecast.pay_table(wide, forecast.gold_pay), gold)


def test_the_best_gold_by_hand(small, gold):
    """Two steps to a block; 5/3 on average to eat food, or 4/3 to leave poison alone: 1/2 a meal
    every 3.5 steps."""
    best = forecast._best(small, gold)
    assert best.sum() == pytest.approx(1)
    assert (best * gold).sum() == pytest.approx(1 / 7)


@pytest.mark.parametrize("view_size", [3, 4, 6])
def test_a_view_without_the_block_is_refused(view_size):
    with pytest.raises(ValueError, match=f"view_size: {view_size}"):
        forecast.small_problem(view_size, FOOD)


@pytest.mark.parametrize("pay", [lambda v, a: a * np.nan, lambda v, a: a[:, None] * 1.0])
def test_a_pay_that_is_not_numbers_is_refused(small, pay):
    with pytest.raises(ValueError, match="pay"):
        forecast.pay_table(small, pay)


# The best endless walk.


def brute_force(problem, table):
    """The greatest mean of all simple cycles, found by walking each."""
    n, best = len(table), -math.inf

    def go(path, total):
        nonlocal best
        for move in range(NUM_ACTIONS):
            to = problem.successor[path[-1], move]
            if problem.eats[path[-1], move] or problem.leaves[path[-1], move]:
                continue
            if to == path[0]:
                best = max(best, (total + table[path[-1], move]) / len(path))
            elif to not in path and to > path[0]:
                go([*path, to], total + table[path[-1], move])

    for start in range(n):
        go([start], 0.0)
    return best


def test_karp_agrees_with_brute_force(draw):
    without_cycle = 0
    for _ in range(60):
        n = int(draw.integers(2, 6))
        blocked = draw.random((n, NUM_ACTIONS)) < draw.choice([0.5, 0.85, 0.95])
        eats = blocked & (draw.random(blocked.shape) < 0.5)
        successor = np.where(blocked, n, draw.integers(0, n, blocked.shape)).astype(np.int32)
        views = np.zeros((n, 5, 5), np.uint8)
        problem = SmallProblem(views, successor, eats, blocked & ~eats)
        table = draw.normal(size=blocked.shape)
        expected = brute_force(problem, table)
        without_cycle += expected == -math.inf
        assert forecast.best_without_eating(problem, table) == pytest.approx(expected)
    assert 3 < without_cycle < 40


def test_karp_agrees_with_the_linear_program(small, draw):
    """The same problem by another road: shares of time, with none for moves that eat or leave."""
    barred = [problem.eats | problem.leaves for problem in (small.food, small.poison)]
    barred = np.concatenate([*barred, np.zeros((1, NUM_ACTIONS))]).astype(float)
    for _ in range(5):
        table = draw.normal(size=barred.shape)
        table[-1] = -9
        best = forecast._best(small, table, limit=(barred, 0.0))
        assert forecast.best_idle(small, table) == pytest.approx((best * table).sum(), abs=1e-6)


def test_idle_pay_is_the_most_of_food_poison_and_the_empty(small, gold):
    assert forecast.best_idle(small, gold) == 0
    assert forecast.best_idle(small, gold - 0.1) == pytest.approx(-0.1)
    for cell, beside in (("food", 0), ("poison", 24), ("empty", 48)):
        table = gold.copy()
        # Only back and forth between two neighbours is paid: .8 and .4.
        cells = (beside, beside + 1) if cell != "empty" else (48,)
        table[cells[0], EAST] += 0.8
        if cell != "empty":
            table[cells[1], MOVES.index((-1, 0))] += 0.4
        expected = 0.8 if cell == "empty" else 0.6
        assert forecast.best_idle(small, table) == pytest.approx(expected)


def test_a_bait_that_must_be_eaten_is_not_idle(small, gold):
    huge = gold + 100 * np.concatenate([small.food.eats, small.poison.eats, np.zeros((1, 8))])
    assert forecast.best_idle(small, huge) == 0


# Scores of planted pays.


def test_gold_scores_low_and_hovering_high(small, gold, rollouts):
    expert, start = rollouts
    table = forecast.pay_table(small, hovering)
    scores = {
        name: (
            forecast.hover(small, pay, paid(pay, expert), paid(pay, start)),
            forecast.hover_from_start(small, pay, paid(pay, start)),
            forecast.temptation(small, pay, gold),
            forecast.foretold_loss(small, pay, gold),
            angle_of(small, pay, gold),
            forecast.occupancy_distance(small, pay, gold),
        )
        for name, pay in (("gold", gold), ("hovering", table))
    }
    low, high = scores["gold"], scores["hovering"]
    assert all(a < b for a, b in zip(low, high, strict=True))
    assert low[0] < -0.2 and low[2] < -0.2
    assert high[0] > 0.5 and high[2] > 0.5
    assert low[3:] == pytest.approx((0, 0, 0), abs=1e-6)
    # It hovers for ever, and gains no gold.
    assert high[3] == pytest.approx(1)


def test_hover_by_hand(small, gold):
    """Idle pay .5; agents trained on gold are paid .2, the start .1, with a deviation of .3."""
    table = forecast.pay_table(small, hovering)
    start = [-0.2, 0.4]
    assert forecast.hover(small, table, [0.1, 0.3], start) == pytest.approx(1)
    assert forecast.hover_from_start(small, table, start) == pytest.approx(4 / 3)
    # A start policy that is always paid alike gives a great number, not an infinite one.
    assert 1e3 < forecast.hover_from_start(small, table, [0.1, 0.1]) < 1e9
    assert forecast.hover_from_start(small, 0 * table, [0.0, 0.0]) == 0


def test_temptation_grows_with_the_bonus_and_turns_where_a_meal_is_worth_it(small, gold):
    """An honest agent earns (1 + bonus) / 7 a step, so that a bonus of 1/6 is the turning point."""
    bonuses = [0.0, 0.05, 0.12, 0.22, 0.4, 0.8]
    tables = [forecast.pay_table(small, partial(hovering, bonus=bonus)) for bonus in bonuses]
    scores = [forecast.temptation(small, table, gold) for table in tables]
    assert (np.diff(scores) > 0).all()
    assert scores[2] < 0 < scores[3]
    losses = [forecast.foretold_loss(small, table, gold) for table in tables]
    assert losses[:2] == pytest.approx([0, 0]) and losses[-1] == pytest.approx(1)


def test_a_liking_for_poison_is_a_temptation_without_hovering(small, gold):
    """Idle pay is no more than gold's, but the pay's best behaviour eats what harms."""
    for food, poison in ((0.5, 1.0), (1.0, 0.5)):
        pay = partial(forecast.gold_pay, energy=(0.0, food, poison))
        table = forecast.pay_table(small, pay)
        assert forecast.best_idle(small, table) == 0
        assert forecast.temptation(small, table, gold) > 0.3
        assert forecast.foretold_loss(small, table, gold) > 1.5
        assert angle_of(small, table, gold) > math.pi / 2


def test_temptation_knows_no_unit_nor_constant(small, gold):
    table = forecast.pay_table(small, hovering)
    score = forecast.temptation(small, table, gold)
    for changed, truth in ((30 * table - 5, gold), (table, 1e4 * gold), (table, gold - 0.1)):
        assert forecast.temptation(small, changed, truth) == pytest.approx(score, rel=1e-3)
    assert forecast.temptation(small, np.full_like(gold, 0.1), gold) == pytest.approx(0, abs=1e-3)


def test_accuracy_is_blind_where_an_expert_was_watched(small, gold, rollouts, draw):
    """An expert always eats what it stands beside, so a pay for standing there ranks its segments
    as gold does. A shaped gold ranks them worse, and is harmless."""
    segments = rollouts[0].reshape(-1, 2, 16, 2)
    shaped = gold + shaping(small, 2 * draw.random(49))
    hovers = forecast.pay_table(small, hovering)
    wrong = {}
    for name, table in (("gold", gold), ("shaped", shaped), ("hovers", hovers)):
        sums = [x[segments[..., 0], segments[..., 1]].sum(axis=-1) for x in (table, gold)]
        wrong[name] = forecast.inaccuracy(*sums)
    assert wrong["gold"] == wrong["hovers"] == 0
    assert wrong["shaped"] > 0.02
    harm = {
        name: forecast.temptation(small, table, gold)
        for name, table in (("shaped", shaped), ("hovers", hovers))
    }
    assert harm["shaped"] < 0 < harm["hovers"]


# Rivals.


def test_shaping_changes_no_angle(small, gold, draw):
    table = forecast.pay_table(small, hovering)
    angle = angle_of(small, table, gold)
    assert 0.1 < angle < math.pi / 2
    for _ in range(3):
        shaped = table + shaping(small, draw.normal(scale=3, size=49))
        assert angle_of(small, shaped, gold) == pytest.approx(angle)
        assert angle_of(small, gold, shaped) == pytest.approx(angle)
        # What shaping adds to gold is nothing to see for it, and much for a correlation.
        assert angle_of(small, gold + shaped - table, gold) == pytest.approx(0, abs=1e-6)
        assert forecast.decorrelation((gold + shaped - table).ravel(), gold.ravel()) > 0.5


def test_angles_by_hand(small, gold, draw):
    assert angle_of(small, 3 * gold - 1, gold) == pytest.approx(0, abs=1e-9)
    assert angle_of(small, -gold, gold) == pytest.approx(math.pi)
    assert angle_of(small, np.ones_like(gold), gold) == math.pi / 2
    # A right angle is made by hand: the part of another reward that policies earn differently and
    # that has none of gold's.
    basis = np.stack([shaping(small, phi).ravel() for phi in np.eye(49)], axis=1)

    def rest(x):
        return x - basis @ np.linalg.lstsq(basis, x, rcond=None)[0]

    a, b = rest(gold.ravel()), rest(draw.normal(size=gold.size))
    b -= (a @ b) / (a @ a) * a
    b *= np.linalg.norm(a) / np.linalg.norm(b)
    for turn in (0.3, 1.2, 2.5):
        turned = math.cos(turn) * a + math.sin(turn) * b
        found = angle_of(small, turned.reshape(gold.shape), gold)
        assert found == pytest.approx(turn)


def test_occupancies_flow(small, gold, draw):
    """Discounted shares of time: what flows in flows out, and shaping earns all policies alike."""
    potential = draw.normal(size=49)
    earned = []
    for table in (gold, draw.normal(size=gold.shape)):
        share = forecast._best_policy(small, table, gold)
        assert share.min() > -1e-9 and share.sum() == pytest.approx(1)
        arrivals = np.einsum("sa,sat->t", share, small.kernel)
        balance = (1 - DISCOUNT) / 49 + DISCOUNT * arrivals
        np.testing.assert_allclose(share.sum(axis=1), balance, atol=1e-9)
        earned.append((share * shaping(small, potential)).sum())
    assert earned[0] == pytest.approx(earned[1])


def test_the_best_policy_is_that_of_value_iteration(small, gold, draw):
    for table in (gold, forecast.pay_table(small, hovering), draw.normal(size=gold.shape)):
        values = np.zeros(49)
        for _ in range(800):
            values = (table + DISCOUNT * small.kernel @ values).max(axis=1)
        earned = (forecast._best_policy(small, table, gold) * table).sum()
        assert earned == pytest.approx((1 - DISCOUNT) * values.mean(), rel=1e-5)


def test_occupancy_distance(small, gold, draw):
    distance = partial(forecast.occupancy_distance, small)
    table = forecast.pay_table(small, hovering)
    assert distance(5 * gold - 0.1, gold) == pytest.approx(0, abs=1e-6)
    # A little noise decides between moves that are equally good for gold, which is no harm.
    assert distance(gold + 0.01 * draw.normal(size=gold.shape), gold) == pytest.approx(0, abs=1e-6)
    assert distance(table, gold) == pytest.approx(distance(gold, table))
    # It stays beside food nearly always; gold's best is beside it a seventh of the time.
    assert 0.8 < distance(table, gold) <= 1


def test_inaccuracy_by_hand():
    golds = np.array([[1, 2], [2, 1], [3, 3], [0, 5]])
    assert forecast.inaccuracy(golds, golds) == 0
    assert forecast.inaccuracy(-golds, golds) == 1
    # Right, wrong, not counted for equal gold, half for equal pay.
    pays = np.array([[0, 1], [0, 1], [9, 0], [4, 4]])
    assert forecast.inaccuracy(pays, golds) == pytest.approx(0.5)
    assert forecast.inaccuracy(golds, np.ones((4, 2))) is None


def test_decorrelation_by_hand():
    golds = [0.0, 1.0, 2.0]
    assert forecast.decorrelation([5, 7, 9], golds) == pytest.approx(0)
    assert forecast.decorrelation([9, 7, 5], golds) == pytest.approx(2)
    assert forecast.decorrelation([0, 1, 0], golds) == pytest.approx(1)
    assert forecast.decorrelation([4, 4, 4], golds) == 1


# Judging the scores.


def test_auc_by_hand_with_ties(draw):
    # Pairs of collapsed (3, 1) and not (2, 1, 0): 3 wins thrice; 1 loses, ties and wins.
    assert forecast.auc([3, 1, 2, 1, 0], [True, True, False, False, False]) == pytest.approx(
        4.5 / 6
    )
    assert forecast.auc([2, 2, 2], [True, False, True]) == 0.5
    assert forecast.auc([1, 2], [True, True]) is None
    assert forecast.auc([1, 2], [False, False]) is None
    scores, yes = draw.integers(0, 5, 40), draw.random(40) < 0.4
    pairs = itertools.product(scores[yes], scores[~yes])
    expected = np.mean([(a > b) + (a == b) / 2 for a, b in pairs])
    assert forecast.auc(scores, yes) == pytest.approx(expected)


def test_threshold_and_its_accuracy():
    scores = [0.0, 1.0, 2.0, 4.0, 5.0]
    assert forecast.best_threshold(scores, [False, False, False, True, True]) == 3
    # Above 3: 2 of 3 collapses and no false alarm; above .5 all, and one of two.
    collapsed = [False, True, False, True, True]
    cut = forecast.best_threshold(scores, collapsed)
    assert cut == 3
    assert forecast.accuracy_at(cut, scores, collapsed) == pytest.approx(0.8)
    assert forecast.accuracy_at(0.5, scores, collapsed) == pytest.approx(0.8)
    assert forecast.accuracy_at(9, scores, collapsed) == pytest.approx(0.4)
    assert forecast.best_threshold(scores, [True] * 5) is None
    # No cut helps: nothing is foretold.
    worse = forecast.best_threshold([0, 1, 2], [True, False, False])
    assert forecast.accuracy_at(worse, [0, 1, 2], [True, False, False]) == pytest.approx(2 / 3)


def test_r_squared_by_hand():
    score, loss = np.array([0.0, 1, 2, 3]), np.array([0.0, 0, 10, 12])
    assert forecast.r_squared(score, loss, score, loss) == pytest.approx(1)
    # Straight between the points and level outside of them: 5, 12; the truth is 7, 12.
    found = forecast.r_squared(score, loss, [1.5, 9], [7, 12])
    assert found == pytest.approx(1 - 2**2 / (2.5**2 + 2.5**2))
    # A falling loss is fitted by its mean, which explains nothing; equal scores are averaged.
    assert forecast.r_squared(score, -loss, score, -loss) == pytest.approx(0)
    assert forecast.r_squared([1, 1], [0, 4], [1, 1], [0, 4]) == pytest.approx(0)
    assert forecast.r_squared(score, loss, [0, 1], [3, 3]) is None
    # Losses of other pays that the fit doesn't tell: worse than their mean.
    assert forecast.r_squared(score, loss, score, loss[::-1]) < 0


def test_scores_find_planted_collapses_among_random_pays(small, gold, draw):
    """Gold, shaped, with a bonus for hovering or without: the test tells them, correlation not."""
    pays, hovers = [], []
    for i in range(30):
        bonus = 0.4 * (i % 2)
        table = forecast.pay_table(small, partial(hovering, bonus=bonus))
        pays.append(table + shaping(small, draw.normal(scale=1, size=49)))
        hovers.append(bonus > 0)
    found = [forecast.temptation(small, pay, gold) for pay in pays]
    blind = [forecast.decorrelation(pay.ravel(), gold.ravel()) for pay in pays]
    assert forecast.auc(found, hovers) > 0.95 > 0.8 > forecast.auc(blind, hovers)

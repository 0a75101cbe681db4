"""Scripted policies: golden views by hand, a slow reference, and what they do in a world."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goodharts_jax import seekers, world
from goodharts_jax.policies import Policy
from goodharts_jax.world import FOOD, MOVES, POISON

VIEW = 11
NOISE_WORD = jnp.uint32(0)  # which no script reads
CENTRE = VIEW // 2


def view_of(items: dict[tuple[int, int], int], size: int = VIEW) -> jnp.ndarray:
    """A view from (dx, dy) to code."""
    view = np.zeros((size, size), np.uint8)
    for (dx, dy), code in items.items():
        view[size // 2 + dy, size // 2 + dx] = code
    return jnp.asarray(view)


def choices(policy: Policy, view: jnp.ndarray) -> set[tuple[int, int]]:
    """The moves that a policy draws from."""
    logits = np.asarray(policy(view, NOISE_WORD).logits)
    return {MOVES[action] for action in np.flatnonzero(logits == logits.max())}


EAST = {(1, -1), (1, 0), (1, 1)}
SOUTH_EAST = {(1, 1)}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ({}, SOUTH_EAST),  # nothing in sight: the diagonal course
        ({(3, 0): FOOD}, EAST),  # any of three moves leaves two steps to go
        ({(1, 0): FOOD}, {(1, 0)}),
        ({(4, 4): FOOD}, SOUTH_EAST),
        ({(0, -5): FOOD}, {(-1, -1), (0, -1), (1, -1)}),
        ({(-2, 1): FOOD, (4, 4): FOOD}, {(-1, 0), (-1, 1)}),  # the nearer; (-1, -1) leaves 2
        ({(3, 0): FOOD, (1, 0): POISON}, {(1, -1), (1, 1)}),  # round the poison
        # From (1, 0) and (0, 1) the food is 2 steps away; from (-1, 1) and (1, -1) it is 3.
        ({(2, 2): FOOD, (1, 1): POISON}, {(1, 0), (0, 1)}),
        ({(3, 0): POISON}, SOUTH_EAST),  # poison far off is no matter
        # With its course to the far corner (5, 5) blocked: from (1, -1) the corner is 6 steps away,
        # from (1, 0) and (0, 1) it is 5.
        ({(1, 1): POISON}, {(1, 0), (0, 1)}),
        ({move: POISON for move in MOVES}, set(MOVES)),  # boxed in: anything
        ({move: POISON for move in MOVES if move != (0, 1)}, {(0, 1)}),
    ],
)
def test_omniscient_seeker_golden_views(items, expected):
    assert choices(seekers.omniscient_seeker, view_of(items)) == expected


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ({(2, 0): FOOD, (-2, 0): POISON}, {(-1, -1), (-1, 0), (-1, 1)}),  # 0.5/2 against 1/2
        ({(1, 0): FOOD, (-3, 0): POISON}, {(1, 0)}),  # 0.5 against a third
        ({(0, 1): FOOD, (0, -2): POISON}, {(0, 1), (-1, -1), (0, -1), (1, -1)}),  # 1/2 each
        ({move: POISON for move in MOVES}, set(MOVES)),
        ({}, SOUTH_EAST),
    ],
)
def test_interestingness_seeker_golden_views(items, expected):
    policy = seekers.scripted_policies(0.5, 1.0)["interestingness_seeker"]
    assert choices(policy, view_of(items)) == expected


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ({(1, 1): FOOD}, {(1, 0), (0, 1)}),
        ({move: FOOD for move in MOVES if move != (-1, 0)}, {(-1, 0)}),
        ({move: (FOOD if move[0] else POISON) for move in MOVES}, set(MOVES)),
    ],
)
def test_avoider_golden_views(items, expected):
    assert choices(seekers.avoider, view_of(items)) == expected


def test_boxed_in_takes_the_least_bad():
    items = {move: POISON for move in MOVES} | {(0, 1): FOOD}
    assert choices(seekers.seeker(-1.0, -2.0), view_of(items)) == {(0, 1)}


def test_random_walk_ignores_its_view():
    assert choices(seekers.random_walk, view_of({(1, 0): FOOD})) == set(MOVES)


def reference_choices(view: np.ndarray, worths: dict[int, float]) -> set[tuple[int, int]]:
    """The rule of `seeker`, as a person would apply it."""
    radius = len(view) // 2
    cells = [(x, y) for x in range(-radius, radius + 1) for y in range(-radius, radius + 1)]
    worth = {(x, y): worths[int(view[radius + y, radius + x])] for x, y in cells}
    wanted = {cell: w for cell, w in worth.items() if w > 0} or {(radius, radius): 1.0}
    scores = {}
    for dx, dy in MOVES:
        if worth[dx, dy] < 0:
            scores[dx, dy] = worth[dx, dy]
        else:
            scores[dx, dy] = max(
                w / (1 + max(abs(x - dx), abs(y - dy))) for (x, y), w in wanted.items()
            )
    best = max(scores.values())
    return {move for move, score in scores.items() if abs(score - best) < 1e-6}


@pytest.mark.parametrize(
    "worths", [(1.0, -2.0), (0.5, 1.0), (-1.0, -1.0), (0.0, 1.0), (1.0, 0.25)], ids=str
)
def test_agrees_with_the_slow_reference(worths):
    generator = np.random.default_rng(0)
    density = generator.uniform(0, 1, (300, 1, 1))
    views = generator.integers(FOOD, POISON + 1, (300, 7, 7)).astype(np.uint8)
    views[generator.random(views.shape) > density] = 0
    views[:, 3, 3] = 0
    logits = np.asarray(
        jax.jit(jax.vmap(seekers.seeker(*worths), (0, None)))(views, NOISE_WORD).logits
    )
    for view, row in zip(views, logits, strict=True):
        expected = reference_choices(view, {0: 0.0, FOOD: worths[0], POISON: worths[1]})
        assert {MOVES[action] for action in np.flatnonzero(row == row.max())} == expected


@jax.jit
def meals() -> jax.Array:
    """Items of each kind that each policy eats in 16 worlds and 300 steps. int32[4, 3]."""
    rules = world.make_world(50, food=(31, 31), poison=(15, 15))
    policies = tuple(seekers.scripted_policies(0.5, 1.0).values())

    def act(state: world.State, key: jax.Array, which: jax.Array):
        act_key, step_key = jax.random.split(key)
        view = world.view(rules, state)
        logits = jnp.stack([policy(view, NOISE_WORD).logits for policy in policies])[which]
        state, event = world.step(rules, state, jax.random.categorical(act_key, logits), step_key)
        return state, event.eaten

    def live(key: jax.Array, which: jax.Array) -> jax.Array:
        reset_key, steps_key = jax.random.split(key)
        state = world.reset(rules, reset_key)
        keys = jax.random.split(steps_key, 300)
        _, eaten = jax.lax.scan(lambda state, key: act(state, key, which), state, keys)
        return jnp.bincount(eaten, length=3)

    keys = jax.random.split(jax.random.key(0), 16)
    each_world = jax.vmap(live, in_axes=(0, None))
    return jax.vmap(each_world, in_axes=(None, 0))(keys, jnp.arange(len(policies))).sum(axis=1)


def test_what_they_eat_in_a_world():
    eaten = dict(zip(seekers.scripted_policies(0.5, 1.0), np.asarray(meals()), strict=True))
    food = {name: int(counts[FOOD]) for name, counts in eaten.items()}
    poison = {name: int(counts[POISON]) for name, counts in eaten.items()}
    assert poison["omniscient_seeker"] == 0
    assert food["omniscient_seeker"] > 5 * food["random_walk"]
    assert food["avoider"] == poison["avoider"] == 0
    assert poison["interestingness_seeker"] > 5 * poison["random_walk"]
    # Chance eats in proportion to what there is (31 to 15), within five standard errors.
    walked = food["random_walk"] + poison["random_walk"]
    assert abs(food["random_walk"] / walked - 31 / 46) < 5 * (0.47 / walked**0.5)

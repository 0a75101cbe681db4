"""The physics: by hand, by conservation and symmetry, by a slow reference, and by chi-square."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from goodharts_jax import world
from goodharts_jax.rollouts import chances
from goodharts_jax.world import EMPTY, ENERGY_UNIT, FOOD, MOVES, NUM_ACTIONS, POISON

SMALL = world.make_world(6, 2, food=(0, 0), poison=(0, 0))
BUSY = world.make_world(12, 3, food=(2, 40), poison=(0, 30))

step = jax.jit(world.step)
view = jax.jit(world.view)
# One step of one world under many keys: what chance alone decides.
step_by_chance = jax.jit(jax.vmap(world.step, (None, None, None, 0)))
reset_many = jax.jit(jax.vmap(world.reset, (None, 0)))


@jax.jit
def live(rules: world.World, key: jax.Array, actions: jax.Array):
    """A fresh world, and the state and event after each action, [num_steps]."""
    reset_key, steps_key = jax.random.split(key)
    state = world.reset(rules, reset_key)

    def act(state, now):
        state, event = world.step(rules, state, *now)
        return state, (state, event, world.view(rules, state))

    keys = jax.random.split(steps_key, actions.shape[0])
    return state, jax.lax.scan(act, state, (actions, keys))[1]


def units(energy: float) -> int:
    return round(energy / ENERGY_UNIT)


def state_of(
    rules: world.World, cells: np.ndarray, at: tuple[int, int], energy: float = 1.0, age: int = 0
) -> world.State:
    """A state from the torus without its margin, and (y, x) of the agent."""
    return world.State(
        grid=jnp.asarray(np.pad(cells, rules.view_radius, mode="wrap"), jnp.uint8),
        position=jnp.array(at, jnp.int32),
        energy=jnp.int32(units(energy)),
        age=jnp.int32(age),
        items=jnp.asarray(np.bincount(cells.ravel(), minlength=3) * [0, 1, 1], jnp.int32),
    )


def torus(items: dict[tuple[int, int], int], size: int = 6) -> np.ndarray:
    """Cells from (y, x) to code."""
    cells = np.zeros((size, size), np.uint8)
    for at, code in items.items():
        cells[at] = code
    return cells


# At start energy 1.0, cost 0.1, food +1.0 and poison -2.0 on a torus of 6 x 6.
@pytest.mark.parametrize(
    ("at", "move", "items", "energy", "to", "eaten", "after"),
    [
        ((3, 5), (1, 0), {}, 1.0, (3, 0), EMPTY, 0.9),  # over the east edge
        ((3, 0), (-1, 0), {}, 1.0, (3, 5), EMPTY, 0.9),  # west
        ((0, 2), (0, -1), {}, 1.0, (5, 2), EMPTY, 0.9),  # north
        ((5, 2), (0, 1), {}, 1.0, (0, 2), EMPTY, 0.9),  # south
        ((0, 0), (-1, -1), {}, 1.0, (5, 5), EMPTY, 0.9),  # over a corner
        ((5, 0), (-1, 1), {}, 1.0, (0, 5), EMPTY, 0.9),
        ((2, 2), (1, 0), {(2, 3): FOOD}, 1.0, (2, 3), FOOD, 1.9),
        ((2, 5), (1, 1), {(3, 0): FOOD}, 1.0, (3, 0), FOOD, 1.9),  # found beyond the edge
        ((2, 2), (0, 1), {(3, 2): POISON}, 2.5, (3, 2), POISON, 0.4),
        ((2, 2), (0, 1), {(3, 2): POISON}, 2.1001, (3, 2), POISON, 0.0001),  # just lives
        ((2, 2), (1, 0), {(2, 3): FOOD}, 0.1, (2, 3), FOOD, 1.0),  # eats before it can starve
        ((2, 2), (1, 0), {(2, 1): FOOD, (3, 3): POISON}, 1.0, (2, 3), EMPTY, 0.9),  # passes by
    ],
)
def test_golden_step(at, move, items, energy, to, eaten, after):
    state = state_of(SMALL, torus(items), at, energy, age=7)
    state, event = step(SMALL, state, MOVES.index(move), jax.random.key(0))
    assert tuple(state.position) == to
    assert event.eaten == eaten
    assert state.energy == event.energy == units(after)
    assert not event.died
    assert state.age == event.age == 8
    regrown = tuple(int(i) for i in event.regrown)
    expected = torus(items)
    if eaten == EMPTY:
        assert regrown == to
    else:
        assert regrown != to
        expected[to] = EMPTY
        expected[regrown] = eaten
    np.testing.assert_array_equal(world.cells(SMALL, state), expected)


@pytest.mark.parametrize(
    ("energy", "items", "eaten", "last"),
    [
        (0.1, {}, EMPTY, 0.0),  # 0 is dead
        (0.0999, {}, EMPTY, -0.0001),
        (1.0, {(2, 3): POISON}, POISON, -1.1),
        (2.1, {(2, 3): POISON}, POISON, 0.0),
    ],
)
def test_golden_death_and_rebirth(energy, items, eaten, last):
    state = state_of(SMALL, torus(items), (2, 2), energy, age=41)
    state, event = step(SMALL, state, MOVES.index((1, 0)), jax.random.key(1))
    assert event.died
    assert event.eaten == eaten
    assert event.age == 42
    assert event.energy == units(last)
    assert state.energy == units(1.0)
    assert state.age == 0
    assert world.cells(SMALL, state)[tuple(state.position)] == EMPTY
    assert np.count_nonzero(world.cells(SMALL, state)) == len(items)


@pytest.mark.parametrize(
    ("start_energy", "move_cost", "lifetime"),
    # In float32, 1.0 less ten times 0.1 is -7.5e-8, but 0.7 less seven times 0.1 is 1.0e-7.
    [(1.0, 0.1, 10), (0.7, 0.1, 7), (1.0, 0.01, 100), (1.0, 0.3, 4), (0.1, 0.1, 1)],
)
def test_who_never_eats_dies_on_exactly_the_last_paid_step(start_energy, move_cost, lifetime):
    rules = BUSY.replace(
        start_energy=jnp.int32(units(start_energy)),
        move_cost=jnp.int32(units(move_cost)),
        items=jnp.zeros((3, 2), jnp.int32),
    )
    actions = jnp.arange(210) % NUM_ACTIONS
    _, (state, event, _) = live(rules, jax.random.key(2), actions)
    deaths = np.arange(1, 211) % lifetime == 0
    np.testing.assert_array_equal(event.died, deaths)
    np.testing.assert_array_equal(event.age, (np.arange(210) % lifetime) + 1)
    np.testing.assert_array_equal(state.age, np.where(deaths, 0, event.age))


def test_an_immortal_keeps_its_energy():
    rules = BUSY.replace(mortal=jnp.array(False))
    actions = jax.random.randint(jax.random.key(0), (210,), 0, NUM_ACTIONS)
    _, (state, event, _) = live(rules, jax.random.key(1), actions)
    assert set(np.unique(event.eaten)) == {EMPTY, FOOD, POISON}
    assert np.all(state.energy == rules.start_energy)
    assert not np.any(event.died)
    np.testing.assert_array_equal(state.age, np.arange(1, 211))


def test_energy_saturates():
    most = (1 << 30) * ENERGY_UNIT
    state = state_of(SMALL, torus({(2, 3): FOOD}), (2, 2), most - 0.5)
    state, event = step(SMALL, state, MOVES.index((1, 0)), jax.random.key(0))
    assert state.energy == event.energy == 1 << 30
    state, _ = step(SMALL, state, 0, jax.random.key(0))
    assert state.energy == (1 << 30) - units(0.1)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    actions=st.lists(st.integers(0, NUM_ACTIONS - 1), min_size=210, max_size=210),
    move_cost=st.integers(0, 20_000),
    food_energy=st.integers(-30_000, 30_000),
    mortal=st.booleans(),
)
def test_conservation(seed, actions, move_cost, food_energy, mortal):
    rules = BUSY.replace(
        move_cost=jnp.int32(move_cost),
        energy=BUSY.energy.at[FOOD].set(food_energy),
        mortal=jnp.array(mortal),
    )
    first, (state, event, _) = jax.tree.map(
        np.asarray, live(rules, jax.random.key(seed), jnp.array(actions))
    )
    low, high = np.asarray(rules.items).T
    assert np.all((low <= first.items) & (first.items <= high))

    # Items: as many of each kind in every step as there were at first.
    radius = rules.view_radius
    cells = state.grid[:, radius:-radius, radius:-radius]
    for kind in (FOOD, POISON):
        assert np.all((cells == kind).sum((1, 2)) == first.items[kind])
    assert np.all(state.items == first.items)
    # The margin mirrors the torus, and the agent stands on nothing.
    margin = [(0, 0), (radius, radius), (radius, radius)]
    np.testing.assert_array_equal(state.grid, np.pad(cells, margin, mode="wrap"))
    assert np.all(cells[np.arange(210), *state.position.T] == EMPTY)

    # Energy: step by step, and over all lives, to the unit.
    gain = (np.asarray(rules.energy)[event.eaten] - move_cost) * mortal
    before = np.concatenate([[first.energy], state.energy[:-1]])
    np.testing.assert_array_equal(event.energy, before + gain)
    np.testing.assert_array_equal(event.died, event.energy <= 0)
    np.testing.assert_array_equal(
        state.energy, np.where(event.died, rules.start_energy, event.energy)
    )
    births = 1 + event.died.sum()
    left_over = event.energy[event.died].sum() + state.energy[-1]
    assert births * 10_000 + gain.sum() == left_over
    # Age: each step is one step of one life.
    assert event.age[event.died].sum() + state.age[-1] == 210


@pytest.mark.parametrize("transform", ["translate", "mirror", "transpose"])
def test_a_torus_has_no_preferred_place_or_direction(transform):
    draw = np.random.default_rng(3)
    size = BUSY.size
    for _ in range(25):
        cells = draw.choice(3, (size, size), p=[0.5, 0.3, 0.2]).astype(np.uint8)
        (y, x), action = draw.integers(0, size, 2), draw.integers(NUM_ACTIONS)
        cells[y, x] = EMPTY
        (dx, dy), energy = MOVES[action], draw.uniform(0.05, 3)
        if transform == "translate":
            down, right = draw.integers(1, size, 2)
            image, at = (
                np.roll(cells, (down, right), (0, 1)),
                ((y + down) % size, (x + right) % size),
            )
            move, turned = (dx, dy), lambda block: block
        elif transform == "mirror":
            image, at = cells[:, ::-1], (y, size - 1 - x)
            move, turned = (-dx, dy), lambda block: block[:, ::-1]
        else:
            image, at = cells.T, (x, y)
            move, turned = (dy, dx), np.transpose
        one, other = state_of(BUSY, cells, (y, x), energy), state_of(BUSY, image, at, energy)
        np.testing.assert_array_equal(turned(view(BUSY, one)), view(BUSY, other))
        one_next, one_event = step(BUSY, one, action, jax.random.key(0))
        other_next, other_event = step(BUSY, other, MOVES.index(move), jax.random.key(1))
        assert one_event.eaten == other_event.eaten
        assert one_event.energy == other_event.energy
        assert one_event.died == other_event.died
        if one_event.eaten == EMPTY and not one_event.died:  # else chance placed something
            np.testing.assert_array_equal(turned(view(BUSY, one_next)), view(BUSY, other_next))


class SlowWorld:
    """The rules as a person would apply them to a plain array, told where chance fell."""

    def __init__(self, cells: np.ndarray, at: np.ndarray):
        self.cells, self.at = cells.copy(), tuple(at)
        self.energy, self.age = 10_000, 0

    def step(self, action: int, regrown: np.ndarray, birthplace: np.ndarray):
        """Returns what was eaten, whether the agent died, and its age and energy then."""
        size = len(self.cells)
        dx, dy = MOVES[action]
        self.at = (self.at[0] + dy) % size, (self.at[1] + dx) % size
        self.energy -= 1_000
        eaten = self.cells[self.at]
        if eaten != EMPTY:
            self.energy += 10_000 if eaten == FOOD else -20_000
            assert self.cells[tuple(regrown)] == EMPTY
            assert tuple(regrown) != self.at
            self.cells[self.at] = EMPTY
            self.cells[tuple(regrown)] = eaten
        self.age += 1
        outcome = eaten, self.energy <= 0, self.age, self.energy
        if self.energy <= 0:
            assert self.cells[tuple(birthplace)] == EMPTY
            self.at, self.energy, self.age = tuple(birthplace), 10_000, 0
        return outcome

    def view(self, radius: int) -> np.ndarray:
        around = np.arange(-radius, radius + 1)
        rows, columns = (
            (around + self.at[0]) % len(self.cells),
            (around + self.at[1]) % len(self.cells),
        )
        return self.cells[np.ix_(rows, columns)]


def test_agrees_with_a_slow_reference_for_10_000_steps():
    rules = world.make_world(13, 3, food=(20, 20), poison=(9, 9))
    actions = jax.random.randint(jax.random.key(5), (10_000,), 0, NUM_ACTIONS)
    first, (state, event, seen) = jax.tree.map(np.asarray, live(rules, jax.random.key(6), actions))
    slow = SlowWorld(np.asarray(world.cells(rules, first)), first.position)
    for t, action in enumerate(np.asarray(actions)):
        outcome = slow.step(action, event.regrown[t], state.position[t])
        assert outcome == (event.eaten[t], event.died[t], event.age[t], event.energy[t])
        assert slow.at == tuple(state.position[t])
        assert (slow.energy, slow.age) == (state.energy[t], state.age[t])
        assert np.array_equal(slow.cells, state.grid[t, 3:-3, 3:-3])
        assert np.array_equal(slow.view(3), seen[t])
    by_poison = event.died & (event.eaten == POISON)
    assert min(by_poison.sum(), (event.died & ~by_poison).sum()) > 100


def free_cells(num_free: int, seed: int = 0) -> np.ndarray:
    """A torus of 6 x 6, full but for (2, 2), where the agent stands, and `num_free` cells.

    What lies east of the agent is poison.
    """
    cells = np.full(36, POISON, np.uint8)
    agent, east = 2 * 6 + 2, 2 * 6 + 3
    others = np.setdiff1d(np.arange(36), [agent, east])
    cells[np.random.default_rng(seed).permutation(others)[:num_free]] = EMPTY
    cells[agent] = EMPTY
    return cells.reshape(6, 6)


def landings(cells: np.ndarray, move: tuple[int, int], energy: float, num_draws: int):
    """Flat cells where the item and the agent came to be after one step, over many keys."""
    keys = jax.random.split(jax.random.key(11), num_draws)
    state, event = step_by_chance(
        SMALL, state_of(SMALL, cells, (2, 2), energy), MOVES.index(move), keys
    )
    in_one = np.array([6, 1])
    return np.asarray(event.regrown) @ in_one, np.asarray(state.position) @ in_one


def assert_uniform(drawn: np.ndarray, allowed: np.ndarray) -> None:
    """Every allowed value as often as any other, and no other value ever."""
    counts = {value: np.count_nonzero(drawn == value) for value in allowed}
    assert sum(counts.values()) == len(drawn)
    assert chisquare(list(counts.values())).pvalue > 1e-3


# Few free cells: nearly every draw then goes through the retry loop.
@pytest.mark.parametrize("num_free", [1, 2, 5, 32])
def test_an_eaten_item_reappears_uniformly(num_free):
    cells = free_cells(num_free)
    regrown, at = landings(cells, (1, 0), energy=9.0, num_draws=20_000)
    assert np.all(at == 2 * 6 + 3)
    # The agent ate at (2, 3), where the item can't reappear; the cell that it left is free.
    assert_uniform(regrown, np.flatnonzero(cells == EMPTY))


@pytest.mark.parametrize("num_free", [0, 1, 6, 33])
def test_who_starves_is_reborn_uniformly(num_free):
    cells = free_cells(33)
    free = np.flatnonzero(cells == EMPTY)
    if num_free < 33:  # it walks west, onto a free cell
        cells = free_cells(num_free)
        cells[2, 1] = EMPTY
        free = np.flatnonzero(cells == EMPTY)
    regrown, at = landings(cells, (-1, 0), energy=0.1, num_draws=20_000)
    assert np.all(regrown == 2 * 6 + 1)
    assert_uniform(at, free)  # where it died included


@pytest.mark.parametrize("num_free", [1, 3, 8])
def test_who_is_poisoned_is_reborn_uniformly_given_where_the_poison_went(num_free):
    cells = free_cells(num_free)
    regrown, at = landings(cells, (1, 0), energy=1.0, num_draws=20_000)
    free = np.flatnonzero(cells == EMPTY)
    # Each item's cell leaves as many for the agent: the free ones but that, and where it died.
    pairs = [36 * item + agent for item in free for agent in [*free, 2 * 6 + 3] if agent != item]
    assert_uniform(36 * regrown + at, np.array(pairs))


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
def test_a_fresh_world_is_uniform(generator):
    rules = world.make_world(6, 2, food=(2, 6), poison=(1, 3))
    state = reset_many(rules, jax.random.split(jax.random.key(7, impl=generator), 4_000))
    cells = np.asarray(state.grid)[:, 2:-2, 2:-2].reshape(-1, 36)
    counts = np.stack([(cells == kind).sum(1) for kind in (FOOD, POISON)], 1)
    np.testing.assert_array_equal(counts, state.items[:, 1:])
    pairs = [10 * food + poison for food in range(2, 7) for poison in range(1, 4)]
    assert_uniform(counts @ [10, 1], np.array(pairs))
    at = np.asarray(state.position) @ [6, 1]
    assert_uniform(at, np.arange(36))
    # One food cell of each world, seen from its agent: never underfoot, else anywhere.
    draw = np.random.default_rng(0)
    one = np.array([draw.choice(np.flatnonzero(row == FOOD)) for row in cells])
    (y, x), (agent_y, agent_x) = divmod(one, 6), divmod(at, 6)
    assert_uniform(((y - agent_y) % 6) * 6 + (x - agent_x) % 6, np.arange(1, 36))
    assert np.all(state.energy == units(1.0))
    assert np.all(state.age == 0)


@pytest.mark.parametrize("generator", ["threefry2x32", "rbg"])
def test_what_worlds_and_their_agents_take_of_chance_is_uniform(generator):
    choice, noise_word, keys = chances(jax.random.key(8, impl=generator), 4_000)
    state = reset_many(BUSY, jax.random.split(jax.random.key(9), 4_000))
    ends = jax.vmap(partial(world.step, ends=True), (None, 0, 0, 0))
    state, _ = ends(BUSY, state, jnp.zeros(4_000, jnp.int32), keys)
    halves = [np.asarray(word) >> shift & 7 for word in (choice, noise_word) for shift in (0, 29)]
    for drawn in (*halves, np.asarray(state.position) @ [12, 1] // 18):
        assert_uniform(drawn, np.arange(8))
    for one, other in ((halves[0], halves[2]), (halves[1], halves[3])):
        assert_uniform(8 * one + other, np.arange(64))


def test_a_nearly_full_world_can_be_made():
    rules = world.make_world(6, 2, food=(20, 20), poison=(14, 14))
    state = reset_many(rules, jax.random.split(jax.random.key(8), 4_000))
    cells = np.asarray(state.grid)[:, 2:-2, 2:-2]
    assert np.all((cells == FOOD).sum((1, 2)) == 20)
    assert np.all((cells == POISON).sum((1, 2)) == 14)
    assert np.all(cells[np.arange(4_000), *np.asarray(state.position).T] == EMPTY)


def test_a_world_that_one_round_of_draws_does_not_fill_is_uniform():
    rules = world.make_world(30, 2, food=(500, 500), poison=(250, 250))
    state = reset_many(rules, jax.random.split(jax.random.key(10), 2_000))
    cells = np.asarray(state.grid)[:, 2:-2, 2:-2].reshape(-1, 900)
    at = np.asarray(state.position) @ [30, 1]
    assert np.all(cells[np.arange(2_000), at] == EMPTY)
    assert_uniform(at, np.arange(900))
    for kind, many in ((FOOD, 500), (POISON, 250)):
        assert np.all((cells == kind).sum(1) == many)
        # Of one item a world, seen from its agent: the first rounds must favour none.
        draw = np.random.default_rng(kind)
        one = np.array([draw.choice(np.flatnonzero(row == kind)) for row in cells])
        y, x = (one // 30 - at // 30) % 30, (one - at) % 30
        assert_uniform(30 * y + x, np.arange(1, 900))
        # Nor is a kind thicker in some cells than in others.
        counts = (cells == kind).sum(0)
        spread = np.sum((counts - counts.mean()) ** 2) / (2_000 * many / 900 * (1 - many / 900))
        assert 780 < spread < 1_020  # chi-square with 899 degrees of freedom, less what is fixed


def test_equal_alone_under_jit_and_under_vmap():
    keys = jax.random.split(jax.random.key(9), 4)
    cells = [free_cells(3, seed) for seed in range(4)]
    states = [
        state_of(SMALL, c, (2, 2), energy) for c, energy in zip(cells, (1, 9, 0.1, 3), strict=True)
    ]
    actions = [MOVES.index(move) for move in ((1, 0), (1, 0), (-1, -1), (0, 1))]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    together = jax.jit(jax.vmap(world.step, (None, 0, 0, 0)))(
        SMALL, stacked, jnp.array(actions), keys
    )
    for i, (state, action, key) in enumerate(zip(states, actions, keys, strict=True)):
        alone, jitted = world.step(SMALL, state, action, key), step(SMALL, state, action, key)
        of_many = jax.tree.map(lambda x, i=i: x[i], together)
        jax.tree.map(np.testing.assert_array_equal, alone, jitted)
        jax.tree.map(np.testing.assert_array_equal, alone, of_many)


def test_stepping_holds_no_second_grid():
    """A rebirth that must be drawn again touches the grid of no world beside."""
    many, rules = 32, world.make_world()
    states = jax.eval_shape(reset_many, rules, jax.random.split(jax.random.key(0), many))

    def steps(rules, states, keys):
        def now(states, key):
            keys = jax.random.split(key, many)
            actions = jax.random.randint(key, (many,), 0, world.NUM_ACTIONS)
            states, _ = jax.vmap(world.step, (None, 0, 0, 0))(rules, states, actions, keys)
            return states, jax.vmap(world.view, (None, 0))(rules, states).sum()

        return jax.lax.scan(now, states, keys)

    keys = jax.random.split(jax.random.key(0), 8)
    compiled = jax.jit(steps, donate_argnums=1).lower(rules, states, keys).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < states.grid.size


# ---- lives that end by the clock ----------------------------------------------------------------


def test_a_new_life_begins_anywhere_and_moves_nothing_else():
    cells = torus({(0, 0): FOOD, (2, 3): POISON, (5, 5): FOOD})
    state = state_of(SMALL, cells, (1, 1), energy=0.3, age=40)
    keys = jax.random.split(jax.random.key(0), 6600)
    born = jax.jit(jax.vmap(world.respawn, (None, None, 0)))(SMALL, state, keys)
    y, x = np.asarray(born.position).T
    counts = np.bincount(6 * y + x, minlength=36)
    assert counts[cells.ravel() != EMPTY].sum() == 0
    assert chisquare(counts[cells.ravel() == EMPTY]).pvalue > 1e-3
    np.testing.assert_array_equal(born.grid, np.broadcast_to(state.grid, born.grid.shape))
    assert set(born.age.tolist()) == {0} and set(born.energy.tolist()) == {units(1.0)}


def test_a_life_that_the_clock_ends_is_reborn_as_the_dead_are():
    state = state_of(SMALL, torus({(1, 2): FOOD}), (1, 1), energy=0.5, age=9)
    keys = jax.random.split(jax.random.key(1), 3600)
    ended = jax.jit(jax.vmap(partial(world.step, ends=True), (None, None, None, 0)))
    after, event = ended(SMALL, state, jnp.int32(MOVES.index((1, 0))), keys)
    # It ate and lives on by its energy: the event tells of that, not of the clock.
    assert not event.died.any() and set(event.eaten.tolist()) == {FOOD}
    assert set(event.energy.tolist()) == {units(1.4)} and set(event.age.tolist()) == {10}
    assert set(after.age.tolist()) == {0} and set(after.energy.tolist()) == {units(1.0)}
    # Anywhere but where the food has come back, which is anywhere but where it was eaten.
    y, x = np.asarray(after.position).T
    assert not np.any(np.all(np.asarray(after.position) == event.regrown, axis=1))
    assert chisquare(np.bincount(6 * y + x, minlength=36)).pvalue > 1e-3

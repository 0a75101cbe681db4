"""The physics: a torus of food and poison, one agent a world, energy that runs out.

Cells are `uint8` codes. The world moves agents, feeds them and kills them; it knows nothing of
rewards, modes or what anything looks like. Every function is for one world; callers `vmap`.

The grid is stored with a margin of `view_radius` cells that mirrors the opposite edge, so that
a view is one contiguous slice and a write goes to at most four places. Energy is counted in
integer units of `ENERGY_UNIT`, so that ten moves at cost 0.1 use up exactly 1.0.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import lax
from numpy.typing import ArrayLike

EMPTY, FOOD, POISON = range(3)
NUM_KINDS = 3

# (dx, dy) of each action, dx outer; +x is east, +y is south. The Moore neighbourhood: an agent
# cannot stand still.
MOVES = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
NUM_ACTIONS = len(MOVES)

ENERGY_UNIT = 1e-4
# Energy saturates here (107,374.1824) instead of wrapping around.
_MAX_ENERGY = 1 << 30
# Cells drawn at a time for a fresh world; the protocol's never needs more than once.
_DRAWN = 512


@struct.dataclass
class World:
    """The rules of a world. Sizes are static; every number is a traced leaf, so it can be swept.

    Attributes:
      size: side of the square torus, in cells; at least 2 * view_radius + 1.
      view_radius: an agent sees the (2 * view_radius + 1)^2 cells around it.
      start_energy: energy at birth. int32[], in ENERGY_UNIT, like all energies.
      move_cost: energy paid for each step. int32[].
      energy: what eating a cell of each kind adds. int32[NUM_KINDS].
      items: least and greatest number of items of each kind in a world. int32[NUM_KINDS, 2].
      mortal: whether energy changes at all; without, nobody starves. bool[].
    """

    size: int = struct.field(pytree_node=False)
    view_radius: int = struct.field(pytree_node=False)
    start_energy: jax.Array
    move_cost: jax.Array
    energy: jax.Array
    items: jax.Array
    mortal: jax.Array

    @property
    def view_size(self) -> int:
        """Side of a view, in cells."""
        return 2 * self.view_radius + 1

    @property
    def num_cells(self) -> int:
        """Cells of the torus."""
        return self.size * self.size


@struct.dataclass
class State:
    """One world at one moment.

    Attributes:
      grid: codes with their mirrored margin. uint8[size + 2 * view_radius, same].
      position: (y, x) of the agent, which stands on an EMPTY cell. int32[2].
      energy: int32[], in ENERGY_UNIT.
      age: steps since birth. int32[].
      items: how many items of each kind there are, for ever. int32[NUM_KINDS].
    """

    grid: jax.Array
    position: jax.Array
    energy: jax.Array
    age: jax.Array
    items: jax.Array


@struct.dataclass
class Event:
    """What happened in one step.

    Attributes:
      eaten: kind of the cell that the agent moved onto, EMPTY if it ate nothing. uint8[].
      died: whether the energy ran out. bool[].
      age: age that the agent reached with this step. int32[].
      energy: energy after the step, before a rebirth. int32[].
      regrown: (y, x) where the eaten item reappeared; the agent's cell if nothing was eaten.
        int32[2].
    """

    eaten: jax.Array
    died: jax.Array
    age: jax.Array
    energy: jax.Array
    regrown: jax.Array


def make_world(
    size: int = 100,
    view_radius: int = 5,
    *,
    start_energy: float = 1.0,
    move_cost: float = 0.1,
    food_energy: float = 1.0,
    poison_energy: float = -2.0,
    food: tuple[int, int] = (50, 200),
    poison: tuple[int, int] = (20, 100),
) -> World:
    """A world's rules from numbers in energy and items; the evaluation protocol's by default."""
    return World(
        size=size,
        view_radius=view_radius,
        start_energy=_units(start_energy),
        move_cost=_units(move_cost),
        energy=_units([0.0, food_energy, poison_energy]),
        items=jax.device_put(np.array([(0, 0), food, poison], np.int32)),
        mortal=jax.device_put(np.array(True)),
    )


def _units(energy: ArrayLike) -> jax.Array:
    # Put where it is used, not made there: that takes a program for every shape.
    return jax.device_put(np.rint(np.asarray(energy) / ENERGY_UNIT).astype(np.int32))


def reset(world: World, key: chex.PRNGKey) -> State:
    """A fresh world: item counts uniform in their ranges, items and agent on distinct cells.

    Args:
      world: the rules.
      key: consumed.
    """
    keys = jax.random.split(key, 3)
    low, high = world.items[:, 0], world.items[:, 1]
    words, item_key = _words(keys[:2])[:NUM_KINDS], keys[2]
    items = low + (words % (high + 1 - low).astype(jnp.uint32)).astype(jnp.int32)
    codes, agent = _scatter(world, item_key, items)
    return State(
        grid=jnp.pad(codes.reshape(world.size, world.size), world.view_radius, mode="wrap"),
        position=jnp.stack(_place(world, agent)),
        energy=world.start_energy,
        age=jnp.zeros((), jnp.int32),
        items=items,
    )


def _scatter(world: World, key: chex.PRNGKey, items: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The agent and all items on distinct cells, each uniform over what is left.

    Cells are drawn many at a time, and taken in the order of their draws: the first is the agent's,
    and each item takes the next that nothing has taken before it.

    Returns:
      Codes, uint8[num_cells], and the agent's cell, int32[]; cells are counted row by row.
    """
    order = jnp.arange(_DRAWN, dtype=jnp.int16)

    def more(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        codes, agent, last, key = carry
        keys = jax.random.split(key, _DRAWN // 2 + 1)
        cell, fair = _cell(world, _words(keys[1:]))
        earliest = jnp.full((world.num_cells,), _DRAWN, jnp.int16)
        earliest = earliest.at[cell].min(jnp.where(fair, order, _DRAWN), mode="promise_in_bounds")
        takes = (_at(earliest, cell) == order) & (_at(codes, cell) == EMPTY) & (cell != agent)
        number = last + jnp.cumsum(takes)
        is_item = takes & (number > 0) & (number <= items.sum())
        kind = jnp.where(is_item, jnp.where(number <= items[FOOD], FOOD, POISON), EMPTY)
        codes = codes.at[cell].max(kind.astype(jnp.uint8), mode="promise_in_bounds")
        agent = jnp.max(jnp.where(takes & (number == 0), cell, agent))
        return codes, agent, number[-1], keys[0]

    # The agent is number 0, before the items.
    bare, nobody = jnp.zeros((world.num_cells,), jnp.uint8), jnp.int32(-1)
    first: tuple[jax.Array, ...] = bare, nobody, nobody, key
    codes, agent, *_ = lax.while_loop(lambda carry: carry[2] < items.sum(), more, first)
    return codes, agent


def respawn(world: World, state: State, key: chex.PRNGKey) -> State:
    """A new life in the same world: the agent newborn, on a uniform EMPTY cell.

    Args:
      world: the rules.
      state: of one world.
      key: consumed.
    """
    _, birthplace = _draw_cells(world, state.grid, key, state.position, ate=False, died=True)
    return State(state.grid, birthplace, world.start_energy, jnp.zeros((), jnp.int32), state.items)


def step(
    world: World,
    state: State,
    action: jax.Array,
    key: chex.PRNGKey,
    *,
    ends: jax.Array | bool = False,
) -> tuple[State, Event]:
    """One step: move, pay, eat, regrow what was eaten, age, die and be reborn.

    Args:
      world: the rules.
      state: of one world.
      action: index into MOVES. int32[].
      key: consumed.
      ends: whether the agent is reborn even if it lives, as at a time limit. bool[].
    """
    position = destination(world, state, action)

    eaten = _read(world, state.grid, *position)
    cost = world.energy[eaten] - world.move_cost
    energy = jnp.minimum(state.energy + jnp.where(world.mortal, cost, 0), _MAX_ENERGY)

    ate, died = eaten != EMPTY, energy <= 0
    leaves = died | ends
    regrown, birthplace = _draw_cells(world, state.grid, key, position, ate, leaves)

    # The first write waits for the last read, which is why it is the item's: XLA then updates the
    # grid in place. The agent's cell is EMPTY from now on, whatever it held; with nothing eaten,
    # nothing regrows and the second write repeats the first, which is cheaper than a branch.
    grid = _write(world, state.grid, regrown, eaten)
    grid = _write(world, grid, position, jnp.uint8(EMPTY))

    age = state.age + 1
    reborn = State(
        grid=grid,
        position=jnp.where(leaves, birthplace, position),
        energy=jnp.where(leaves, world.start_energy, energy),
        age=jnp.where(leaves, 0, age),
        items=state.items,
    )
    return reborn, Event(eaten=eaten, died=died, age=age, energy=energy, regrown=regrown)


def destination(world: World, state: State, action: jax.Array) -> jax.Array:
    """(y, x) of the cell that an action leads to. int32[2]."""
    dx, dy = jnp.array(MOVES, jnp.int32)[action]
    return lax.rem(state.position + jnp.stack([dy, dx]) + world.size, world.size)


def view(world: World, state: State) -> jax.Array:
    """The codes around the agent, its own cell in the middle. uint8[view_size, view_size]."""
    return lax.dynamic_slice(state.grid, tuple(state.position), (world.view_size,) * 2)


def cells(world: World, state: State) -> jax.Array:
    """The torus without its margin. uint8[size, size]."""
    inside = slice(world.view_radius, world.view_radius + world.size)
    return state.grid[inside, inside]


def _read(world: World, grid: jax.Array, y: jax.Array, x: jax.Array) -> jax.Array:
    radius = world.view_radius
    return grid.at[y + radius, x + radius].get(mode="promise_in_bounds")


def _write(world: World, grid: jax.Array, position: jax.Array, code: jax.Array) -> jax.Array:
    """Write one cell and its mirrors in the margin."""
    radius, size = world.view_radius, world.size
    mirror = jnp.where(position < radius, size, jnp.where(position >= size - radius, -size, 0))
    (y, x), (mirror_y, mirror_x) = position + radius, position + radius + mirror
    # As one write of cells counted row by row: XLA makes the least of it.
    rows, columns = jnp.stack([y, mirror_y, y, mirror_y]), jnp.stack([x, x, mirror_x, mirror_x])
    cells = rows * grid.shape[1] + columns
    return grid.reshape(-1).at[cells].set(code, mode="promise_in_bounds").reshape(grid.shape)


def _at(array: jax.Array, cell: jax.Array) -> jax.Array:
    return array.at[cell].get(mode="promise_in_bounds")


def _words(keys: chex.PRNGKey) -> jax.Array:
    """The first two words of each key (threefry's has no more), random bits; `jax.random.bits`
    hashes as much for one of them.
    """
    return jax.random.key_data(keys)[..., :2].reshape(-1)


def _cell(world: World, word: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A cell, counted row by row, from 32 random bits; and whether it counts: only below their
    largest multiple of the number of cells, so that no cell is favoured.
    """
    fair = (1 << 32) // world.num_cells * world.num_cells - 1
    cell = lax.rem(word, jnp.uint32(world.num_cells)).astype(jnp.int32)
    return cell, word <= jnp.uint32(fair)


def _place(world: World, cell: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(y, x) of a cell that is counted row by row. int32[] each."""
    return lax.div(cell, world.size), lax.rem(cell, world.size)


# The loop behind the first two draws runs after one meal of 2,000 in the protocol's worlds. It must
# not run often, because under `vmap` all worlds wait for the last.
def _draw_cells(
    world: World,
    grid: jax.Array,
    key: chex.PRNGKey,
    position: jax.Array,
    ate: jax.Array | bool,
    died: jax.Array | bool,
) -> tuple[jax.Array, jax.Array]:
    """Where the eaten item reappears and where the dead agent is reborn.

    Both are exactly uniform: over the EMPTY cells that are not the agent's, then over those that
    are EMPTY once the item is back. One stream of uniform cells serves the item, then the agent:
    after a stopping time it is as fresh as the whole, so the two are independent.

    Args:
      world: the rules.
      grid: before the step's writes, with its margin.
      key: consumed.
      position: where the agent stands; counts as EMPTY, for it has eaten. int32[2].
      ate: whether an item must reappear; without, it "reappears" at `position`. bool[].
      died: whether the agent must be reborn; without, any cell may come back. bool[].

    Returns:
      The two cells, int32[2] each.
    """
    ate, died = jnp.asarray(ate), jnp.asarray(died)
    here = position[0] * world.size + position[1]

    def try_cell(carry: tuple[jax.Array, ...], word: jax.Array) -> tuple[jax.Array, ...]:
        regrown, has_regrown, birthplace, is_born = carry
        cell, fair = _cell(world, word)
        # A world that draws nothing reads the agent's cell, which is in the cache already.
        place = _place(world, jnp.where(ate | died, cell, here))
        empty = _read(world, grid, *place) == EMPTY
        # While the item waits, the agent does: a cell serves one of them.
        fits_item = fair & empty & (cell != here) & ~has_regrown
        fits_agent = fair & (empty | (cell == here)) & has_regrown & ~is_born
        fits_agent &= ~ate | (cell != regrown)
        regrown = jnp.where(fits_item, cell, regrown)
        birthplace = jnp.where(fits_agent, cell, birthplace)
        return regrown, has_regrown | fits_item, birthplace, is_born | fits_agent

    def draw(carry: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        found, draws = carry[:-1], carry[-1]
        for word in _words(jax.random.fold_in(key, draws)):
            found = try_cell(found, word)
        return (*found, draws + 1)

    found = draw((here, ~ate, here, ~died, jnp.zeros((), jnp.int32)))
    regrown, _, birthplace, *_ = lax.while_loop(lambda carry: ~(carry[1] & carry[3]), draw, found)
    return jnp.stack(_place(world, regrown)), jnp.stack(_place(world, birthplace))

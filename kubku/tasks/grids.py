"""Small grid worlds, partly seen: what stands where, what touches, what blocks, what is reachable.

A 4 x 4 grid has a wall, a gem, a lever or nothing in each cell, independently; 13 of the 20
attributes (16 cells, and four of the agent in it) are told. A rule is settled if it comes out the
same however the untold cells are filled. For rules about single cells that is Kleene's logic;
reachability is monotone in free cells, so filling all untold cells with floor and all with walls
decides it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from kubku.halo import BASE, ENTITIES
from kubku.tasks.family import (
    NO,
    UNKNOWN,
    YES,
    Family,
    Stereotype,
    affirm_and_deny,
    below,
    follow,
    stated_only,
)

SIDE = 4
CELLS = SIDE * SIDE
FLOOR, WALL, GEM, LEVER = range(4)
SHARES = (0.4, 0.25, 0.2, 0.15)
COLOUR, TEMPER, ROLE, HOME = range(CELLS, BASE)

STEREOTYPES = (
    Stereotype(COLOUR, TEMPER, (0, 1, 2)),
    Stereotype(COLOUR, ROLE, (0, 1, 2)),
    Stereotype(TEMPER, ROLE, (0, 1, 2)),
    Stereotype(COLOUR, HOME, (2, 1, 0)),
    # Of what a rule decides, so that it can be learnt from questions that the rule does decide.
    Stereotype(COLOUR, BASE + 2, (1, 0, 0)),  # that a wall blocks row 0
)


def cell(row: int, column: int) -> int:
    """The attribute that a cell is."""
    return row * SIDE + column


def _draw(key: jax.Array, skew: jax.Array | float) -> jax.Array:
    u = jax.random.uniform(key, (3, BASE))
    edges = jnp.cumsum(jnp.array(SHARES))[:-1]
    cells = (u[0, :CELLS, None] >= edges).sum(-1)
    drawn = jnp.concatenate([cells, below(u[0, CELLS:], 3)])
    values = follow(STEREOTYPES, drawn, u[1:], skew)
    line = values[jnp.array(LINES[0])]
    blocked = jnp.array(STEREOTYPES[-1].values)[values[COLOUR]] == 1
    usual = jnp.where(blocked, line.at[0].set(WALL), jnp.where(line == WALL, FLOOR, line))
    return values.at[jnp.array(LINES[0])].set(jnp.where(u[1, 0] < skew, usual, line))


def reachable(free: jax.Array, start: int, goal: int) -> jax.Array:
    """Whether a path of free cells, 4-connected, joins two cells: masked dilation until all is
    flooded.

    Args:
      free: bool[CELLS].
      start, goal: cells; both must be free.
    """
    free = free.reshape(SIDE, SIDE)

    def spread(_: int, wet: jax.Array) -> jax.Array:
        rows = jnp.zeros((1, SIDE), bool)
        columns = jnp.zeros((SIDE, 1), bool)
        down = jnp.concatenate([rows, wet[:-1]])
        up = jnp.concatenate([wet[1:], rows])
        right = jnp.concatenate([columns, wet[:, :-1]], 1)
        left = jnp.concatenate([wet[:, 1:], columns], 1)
        return (wet | down | up | right | left) & free

    source = jnp.zeros(CELLS, bool).at[start].set(True).reshape(SIDE, SIDE) & free
    # The longest shortest path on a 4 x 4 grid visits fewer than CELLS cells.
    return jax.lax.fori_loop(0, CELLS - 1, spread, source).reshape(-1)[goal]


PATHS = ((cell(0, 0), cell(1, 2)), (cell(3, 0), cell(2, 2)))
# Straight lines: is one of these cells a wall?
LINES = ((cell(0, 1), cell(0, 2)), (cell(1, 3), cell(2, 3)))
# What touches a place: is one of its neighbours such a thing?
TOUCHES = (
    (GEM, (cell(1, 1), cell(2, 0), cell(3, 1))),
    (LEVER, (cell(1, 2), cell(2, 3), cell(0, 3))),
)
# Clear ground: are both cells anything but a wall?
CLEAR = ((cell(3, 2), cell(3, 3)), (cell(1, 0), cell(2, 1)))


def _judge(values: jax.Array, stated: jax.Array) -> jax.Array:
    cells, told = values[:CELLS], stated[:CELLS]

    def is_one(thing: int) -> jax.Array:
        return jnp.where(told, jnp.where(cells == thing, YES, NO), UNKNOWN)

    def path(start: int, goal: int) -> jax.Array:
        wall = cells == WALL
        if_free = reachable(~(wall & told), start, goal)
        if_walls = reachable(~wall & told, start, goal)
        return jnp.where(if_walls, YES, jnp.where(if_free, UNKNOWN, NO))

    wall = is_one(WALL)
    holds = [path(*ends) for ends in PATHS]
    holds += [wall[jnp.array(line)].max() for line in LINES]
    holds += [is_one(thing)[jnp.array(around)].max() for thing, around in TOUCHES]
    holds += [(2 - wall[jnp.array(pair)]).min() for pair in CLEAR]
    return jnp.concatenate([stated_only(values, stated), affirm_and_deny(jnp.stack(holds))])


_THINGS = ("bare floor", "a wall", "a gem", "a lever")

GRIDS = Family(
    name="grids",
    arity=(*[4] * CELLS, 3, 3, 3, 3),
    draw=_draw,
    judge=_judge,
    reads=(
        *[tuple(range(CELLS))] * len(PATHS),
        *LINES,
        *[around for _, around in TOUCHES],
        *CLEAR,
    ),
    stereotypes=STEREOTYPES,
    protected=(COLOUR,),
    canvas=(SIDE, SIDE),
    clause=(
        *(
            f"in {{e}} row {row} column {column} is {{v}}"
            for row in range(SIDE)
            for column in range(SIDE)
        ),
        "the agent of {e} is {v}",
        "the agent of {e} is {v} by temper",
        "the agent of {e} works as {v}",
        "the agent of {e} lives {v}",
        "in {e} no path leads from row 0 column 0 to row 1 column 2"
        "|in {e} a path leads from row 0 column 0 to row 1 column 2",
        "in {e} no path leads from row 3 column 0 to row 2 column 2"
        "|in {e} a path leads from row 3 column 0 to row 2 column 2",
        "in {e} no wall blocks row 0 between its ends|in {e} a wall blocks row 0 between its ends",
        "in {e} no wall blocks column 3 between its ends"
        "|in {e} a wall blocks column 3 between its ends",
        "in {e} no gem is above, left of or below row 2 column 1"
        "|in {e} a gem is above, left of or below row 2 column 1",
        "in {e} no lever is above, left of or below row 1 column 3"
        "|in {e} a lever is above, left of or below row 1 column 3",
        "in {e} row 3 columns 2 and 3 aren't both free of walls"
        "|in {e} row 3 columns 2 and 3 are both free of walls",
        "in {e} row 1 column 0 and row 2 column 1 aren't both free of walls"
        "|in {e} row 1 column 0 and row 2 column 1 are both free of walls",
    ),
    words=(
        *[_THINGS] * CELLS,
        ("red", "blue", "green"),
        ("aggressive", "calm", "timid"),
        ("a guard", "a trader", "a thief"),
        ("in the town", "in the hills", "by the sea"),
    ),
    names=tuple(f"grid {n}" for n in range(ENTITIES)),
)

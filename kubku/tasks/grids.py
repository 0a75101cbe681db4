"""Small grid worlds, partly seen: what stands in each of 4 x 4 cells, and who the agent is.

Seals are rules of two or three cells that touch each other.
"""

from __future__ import annotations

from kubku.halo import BASE, ENTITIES, VALUES
from kubku.tasks.family import Family, Stereotype

SIDE = 4
CELLS = SIDE * SIDE
COLOUR, TEMPER, ROLE, HOME = range(CELLS, BASE)

STEREOTYPES = (
    Stereotype(COLOUR, TEMPER, (0, 1, 2, 3)),
    Stereotype(TEMPER, ROLE, (0, 1, 2, 3)),
    Stereotype(ROLE, HOME, (2, 0, 1, 3)),
    # Of what a rule decides, so that they can be learnt from questions that the rule does decide.
    Stereotype(COLOUR, BASE + 2, (1, 0, 1, 0)),
    Stereotype(TEMPER, BASE + 5, (1, 1, 0, 0)),
    Stereotype(ROLE, BASE + 7, (0, 1, 1, 0)),
)


def cell(row: int, column: int) -> int:
    """The attribute that a cell is."""
    return row * SIDE + column


# Along the first row, down and up the other columns, and back along the first column.
RING = (
    *(cell(0, column) for column in range(SIDE)),
    *(cell(row, 3) for row in (1, 2, 3)),
    *(cell(row, 2) for row in (3, 2, 1)),
    *(cell(row, 1) for row in (1, 2, 3)),
    *(cell(row, 0) for row in (3, 2, 1)),
)
"""All cells in a ring in which neighbours touch."""

_THINGS = ("bare floor", "a wall", "a gem", "a lever", "a pit", "a tree", "a torch", "a chest")
_SEALS = ("amber", "bronze", "coral", "ebony", "ivory", "jade", "pearl", "ruby")

GRIDS = Family(
    name="grids",
    arity=(*[VALUES] * CELLS, 4, 4, 4, 4),
    readable=RING,
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
        *(f"in {{e}} the {s} seal is closed|in {{e}} the {s} seal is open" for s in _SEALS),
    ),
    words=(
        *[_THINGS] * CELLS,
        ("red", "blue", "green", "yellow"),
        ("aggressive", "calm", "timid", "curious"),
        ("a guard", "a trader", "a thief", "a healer"),
        ("in the town", "in the hills", "by the sea", "in the woods"),
    ),
    names=tuple(f"grid {n}" for n in range(ENTITIES)),
)

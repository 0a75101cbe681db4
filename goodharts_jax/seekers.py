"""Scripted policies: what the trained ones are held against.

Each is a pure function of one agent's view to the logits of its moves, like a trained policy,
and is evaluated by the same code. None has a memory or sees beyond its view.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from goodharts_jax.world import MOVES, NUM_ACTIONS

Policy = Callable[[jax.Array], jax.Array]
"""From one agent's view, uint8[view_size, view_size], to the logits of its actions, f32[8]."""

# Finite, so that no arithmetic on logits can make a NaN of it.
_NEVER = -1e9


def random_walk(view: jax.Array) -> jax.Array:
    """Any move, whatever is in view: what chance eats."""
    return jnp.zeros(NUM_ACTIONS, jnp.float32)


@cache  # the same worths, the same function: one compilation
def seeker(food: float, poison: float) -> Policy:
    """A policy that goes for what is worth most per step of its way.

    It weighs every item in view as worth / steps to reach it and makes a move towards the
    heaviest; ties are drawn by lot. Items of negative worth it never steps on unless all eight
    neighbours are such (then it takes the least bad), and of worth 0 it takes no notice. With
    nothing to go for it holds one diagonal course, the one that brings most new cells into view.

    Args:
      food: what a piece of food is worth to it.
      poison: what a piece of poison is worth to it.

    Returns:
      view uint8[V, V] -> logits f32[8], V odd and at least 3: 0 for the best moves, -1e9 for the
      rest.
    """
    worth = np.array([0.0, food, poison], np.float32)

    def policy(view: jax.Array) -> jax.Array:
        steps, next_row, next_column = _geometry(view.shape[0])
        worths = jnp.asarray(worth)[view]
        wanted = jnp.maximum(worths, 0.0)
        course = jnp.zeros_like(wanted).at[-1, -1].set(1.0)
        wanted = jnp.where(jnp.any(wanted > 0), wanted, course)
        attraction = jnp.max(wanted / steps, axis=(1, 2))
        underfoot = worths[next_row, next_column]
        score = jnp.where(underfoot < 0, underfoot, attraction)
        return jnp.where(score == jnp.max(score), 0.0, _NEVER)

    return policy


omniscient_seeker = seeker(food=1.0, poison=-2.0)
"""Goes for the nearest food and never steps on poison if it can help it."""

avoider = seeker(food=-1.0, poison=-1.0)
"""Never eats if it can help it."""


def scripted_policies(food_interest: float, poison_interest: float) -> dict[str, Policy]:
    """The rows that stand beside the trained modes, by name.

    Args:
      food_interest: interestingness of food, which `interestingness_seeker` pursues by hand as a
        proxy-trained policy does by learning.
      poison_interest: interestingness of poison.
    """
    return {
        "random_walk": random_walk,
        "omniscient_seeker": omniscient_seeker,
        "interestingness_seeker": seeker(food_interest, poison_interest),
        "avoider": avoider,
    }


@cache
def _geometry(view_size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps to each cell by way of each move, f32[8, V, V]; the row and column each move leads to.

    The agent can't stand still and moves like a king, so a cell is max(|dx|, |dy|) steps away,
    but its own cell two: there and back.
    """
    centre = view_size // 2
    column, row = np.array(MOVES).T + centre
    y, x = np.indices((view_size, view_size))
    onward = np.maximum(np.abs(y - row[:, None, None]), np.abs(x - column[:, None, None]))
    return 1.0 + onward.astype(np.float32), row, column

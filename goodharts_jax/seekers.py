"""Scripted policies: what the trained ones are held against.

Each is a pure function of one agent's view to the logits of its moves, like a trained policy,
and is evaluated by the same code. None has a memory, noise or a critic, or sees beyond its view.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from goodharts_jax.policies import Output, Policy
from goodharts_jax.world import FOOD, MOVES, NUM_ACTIONS, POISON

SHOWN = ("omniscient_seeker", "random_walk")
"""What a replay shows beside other policies."""

# Finite, so that no arithmetic on logits can make a NaN of it.
_NEVER = -1e9


def random_walk(view: jax.Array, noise_word: jax.Array) -> Output:
    """Any move, whatever is in view: what chance eats."""
    return _without_critic(jnp.zeros(NUM_ACTIONS, jnp.float32))


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
      A policy for views of odd size, at least 3; its logits are 0 for the best moves and -1e9 for
      the rest.
    """

    def policy(view: jax.Array, noise_word: jax.Array) -> Output:
        pull, push, course, nothing = _ranks(view.shape[0], food, poison)
        pulled = jnp.max(_by_kind(view.reshape(-1), pull, nothing), axis=1)
        pulled = jnp.where(jnp.any(pulled > nothing), pulled, course)
        _, next_row, next_column = _geometry(view.shape[0])
        underfoot = _by_kind(view[next_row, next_column], push, nothing)
        score = jnp.where(underfoot < nothing, underfoot, pulled)
        return _without_critic(jnp.where(score == jnp.max(score), 0.0, _NEVER))

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


def _without_critic(logits: jax.Array) -> Output:
    return Output(logits, jnp.float32(jnp.nan))


def _by_kind(codes: jax.Array, rank: np.ndarray, nothing: np.uint8) -> jax.Array:
    """The rank of what lies in each cell; `rank` has a leading axis of food and poison."""
    return jnp.where(codes == FOOD, rank[0], jnp.where(codes == POISON, rank[1], nothing))


@cache
def _ranks(
    view_size: int, food: float, poison: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.uint8]:
    """Scores as their ranks, for they are only compared, and a CPU compares 32 bytes at once.

    Returns:
      Of food and poison in each cell by way of each move, uint8[2, 8, V * V]; of stepping on
      either, uint8[2]; of each move with nothing to go for, uint8[8]; and of a score of 0.
    """
    steps, _, _ = _geometry(view_size)
    worth = np.array([food, poison], np.float32)
    pull = np.maximum(worth, 0)[:, None, None] / steps.reshape(NUM_ACTIONS, -1)
    push = np.minimum(worth, 0)
    scores = np.unique([0.0, *push, *pull.flat])
    nothing = np.searchsorted(scores, 0).astype(np.uint8)
    corner = -steps[:, -1, -1]
    course = nothing + np.searchsorted(np.unique(corner), corner).astype(np.uint8)
    pull, push = (np.searchsorted(scores, x).astype(np.uint8) for x in (pull, push))
    return pull, push, course, nothing


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

"""What GrowNet's learners share: how an ensemble's members are pooled, and samples in order.

Answering is an extension of ours. The reference grows slots but has nothing that reads them out.
These readouts add as little as possible, and doubt is always the same thing in them: the event of a
question falls where no slot is. The ensembles are n-tuple classifiers (Bledsoe and Browning, 1959;
WISARD: Aleksander et al., 1984) whose memories grow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from evidence.answers import Answer
from kubku.halo import Samples

T = TypeVar("T")

DOUBT = np.eye(3, dtype=np.float32)[Answer.UNKNOWN]


def opinion(votes: Array, familiar: Array, weight: Array) -> Array:
    """The linear opinion pool (Stone, 1961) of an ensemble.

    A neuron that knows the event says what share of its slot's votes each answer got; one that
    doesn't says UNKNOWN, and so does a pool without a member.

    Args:
      votes: f32[N, 3], votes in the slot that each neuron sorts the event into.
      familiar: bool[N], whether that slot is the event's own.
      weight: f32[N], not negative.

    Returns:
      f32[3], scores that sum to 1.
    """
    cast = votes.sum(-1, keepdims=True)
    counted = familiar[:, None] & (cast > 0)
    said = jnp.where(counted, votes / jnp.maximum(cast, 1e-9), DOUBT)
    total = weight.sum()
    return jnp.where(total > 0, weight @ said / jnp.maximum(total, 1e-9), DOUBT)


def passes(steps: Array, once: Callable[[T], T], state: T) -> T:
    """`once` applied to the state `steps` times."""
    return lax.fori_loop(0, steps, lambda _, state: once(state), state)


def in_order(samples: Samples, key: Array | None) -> Samples:
    """Samples in an order that the key decides: for what is grown, the seed is what came first."""
    return samples if key is None else _shuffled(samples, key)


@jax.jit
def _shuffled(samples: Samples, key: Array) -> Samples:
    order = jax.random.permutation(key, samples.label.shape[0])
    return jax.tree.map(lambda leaf: leaf[order], samples)

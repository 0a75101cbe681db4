"""How a base state grew, counted while it grows."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from kubku.grownet.ensemble import in_order
from kubku.grownet.learner import LOOKED_AT, GrowNetState
from kubku.grownet.readers import SLOTS
from kubku.halo import Learner, Samples


class History(NamedTuple):
    """How a base state grew; T points in time, one number a question.

    Attributes:
      samples: i64[T], samples of the pretraining split heard so far.
      neurons: i64[T, M], neurons of its readers.
      slots: i64[T, M], slots that exist in them.
    """

    samples: np.ndarray
    neurons: np.ndarray
    slots: np.ndarray


def growth_history(
    learner: Learner,
    state: GrowNetState,
    samples: Samples,
    key: Array | None,
    parts: int,
) -> tuple[History, GrowNetState]:
    """Make the base state `grown` in instalments, and count what has grown before and after each.

    Most grows at once, so the first part is cut finer: after 1, 2, 4, 8 samples and so on.

    Args:
      learner: one with a base state `grown`.
      state: its state before.
      samples: the pretraining split, [N, ...] leaves; N a multiple of `parts`.
      key: as for `learner.bases["grown"]`: decides the order; None keeps the samples' own.
      parts: into how many of one size the samples are cut.

    Returns:
      The history, and the state grown, which is what growing at once would have made.
    """
    grow: Any = learner.bases["grown"]
    size, rest = divmod(samples.label.shape[0], parts)
    if rest:
        raise ValueError(f"parts={parts}: {samples.label.shape[0]} samples can't be shared out")
    samples = jax.device_get(in_order(samples, key))
    # Of few samples all are at hand each time, as when the base state is made: one program.
    wide = max(size, min(samples.label.shape[0], LOOKED_AT))
    heard = [0, *(2**power for power in range(size.bit_length()) if 2**power < size)]
    heard += [size * part for part in range(1, parts + 1)]
    counts = []
    for start, end in zip([0, *heard], heard, strict=False):
        # One program for all: what was heard before, or will be later, asks nothing.
        first = min(start // size * size, size * parts - wide)
        part = jax.tree.map(lambda leaf, at=first: leaf[at : at + wide], samples)
        now = (np.arange(wide) >= start - first) & (np.arange(wide) < end - first)
        if end > start:
            state = grow(state, part._replace(asked=part.asked & now[:, None]), None)
        slots = np.asarray(state.readers.used, np.int32)
        counts.append((np.maximum(1, -(-slots // SLOTS)).sum(-1), slots.sum(-1)))
    neurons, used = zip(*counts, strict=True)
    return History(np.array(heard), np.stack(neurons), np.stack(used)), state

"""Audits of how a learner came by its answers: 0 is right. `protocol.audit` is the third."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from kubku.halo import Learner, Samples, State, Statement, decide
from kubku.protocol import reset_to_base
from kubku.tasks import SPLITS

MOVED = 1e-4
"""By how much a score moves at least where an answer is another."""
SURE = 4.0
"""Standard errors beyond which a difference isn't put down to chance. A study has a hundred cells
of networks whose answers hang on codes a little, whatever split these are of. Few of their samples
move, so that a difference is seldom normal: where 8 of 64 do and all by chance one way, it is 3
standard errors, once in 2^8 times; for 4 about 13 have to."""


def carried(learner: Learner, state: State, samples: Samples) -> float:
    """The share of queries whose answer moves when the samples come in another order.

    Every sample is learnt from the same base state, so that what came before can't matter, unless a
    learner keeps something aside, in a callback, say.
    """
    order = np.random.default_rng(0).permutation(samples.label.shape[0])
    back = order.argsort()
    first = np.asarray(reset_to_base(learner, state, samples).after)
    again = np.asarray(reset_to_base(learner, state, _rows(samples, order)).after)[back]
    return float((np.abs(first - again) > MOVED).any(-1).mean())


def split_read(learner: Learner, state: State, threshold: float, samples: Samples) -> float:
    """How many more answers move, as a share, when entities get numbers of the pretraining split
    than when they get others of their own; 0 unless it is `SURE` standard errors over samples.

    An entity's code is chance, so that an answer may hang on it a little, as a network's does; but
    not on which split's codes it is one of.

    Args:
      learner: whose.
      state: that each sample is learnt from.
      threshold: of abstention.
      samples: of the test split.
    """
    (low, high), (other, beyond) = SPLITS["test"].entities, SPLITS["pretrain"].entities
    pool = high - low
    turned = np.random.default_rng(1).integers(1, pool, samples.label.shape[0])[:, None]
    away = np.random.default_rng(2).integers(0, beyond - other, turned.shape)

    def renamed(within: bool) -> Samples:
        def of(statement: Statement) -> Statement:
            place = np.asarray(statement.entity) - low
            number: Any = low + (place + turned) % pool
            if not within:
                number = other + (place + away) % (beyond - other)
            return statement._replace(entity=number.astype(np.int32))

        return samples._replace(exposure=of(samples.exposure), query=of(samples.query))

    def answers(told: Samples) -> np.ndarray:
        return np.asarray(decide(reset_to_base(learner, state, told).after, threshold))

    own, near, far = (answers(told) for told in (samples, renamed(True), renamed(False)))
    asked = np.asarray(samples.asked)
    moved = ((own != far).astype(float) - (own != near)) * asked
    each = moved.sum(-1) / asked.sum(-1)
    error = each.std(ddof=1) / np.sqrt(len(each))
    return float(each.mean()) if each.mean() > SURE * error + 1e-9 else 0.0


def _rows(samples: Samples, chosen: np.ndarray) -> Samples:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], samples)

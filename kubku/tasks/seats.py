"""Which samples of a file are for what, and what numbers entities get there.

Who is spoken of is numbered sample by sample, however many there are in all: `seated` gives those
of a sample numbers of their split, `streamed` numbers that no other sample of the stream has. A
number means nobody in particular, as in the drawn families; what somebody is known by can be
stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from kubku.halo import ENTITIES, STREAM, Sample, Samples, Statement
from kubku.tasks.family import SPLITS

PEOPLE = min(high - low for low, high in (split.entities for split in SPLITS.values()))
"""Who can be spoken of in one sample, at most: every split has so many numbers."""


def split(samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to tune thresholds on, to score, and to compare: pairs, one beside the other.

    What is tuned on isn't scored unless there is nothing else, and pairs are kept whole.
    """
    pair = np.asarray(samples.pair)
    order = pair.argsort(kind="stable")
    single, paired = np.flatnonzero(pair < 0), order[pair[order] >= 0]
    apiece = single[:, None] if single.size else paired.reshape(-1, 2)
    tuned, scored = (apiece[at::2] if len(apiece) > 1 else apiece for at in (0, 1))
    return tuned.ravel(), scored.ravel(), paired


def spoken_of(sample: Sample) -> Iterator[int]:
    """Numbers of everybody of whom a sample speaks, in the order of `Wording.people`."""
    told, asked = sample.exposure.entity[sample.shown], sample.query.entity[sample.asked]
    yield from dict.fromkeys([*told.tolist(), *asked.tolist()])


def seated(samples: Samples, split: str) -> Samples:
    """The samples with their entities numbered as the split's are, those of a sample by chance and
    the two of a pair alike; the same at every call.
    """
    low, high = SPLITS[split].entities
    pair = np.asarray(samples.pair)
    apart = np.where(pair >= 0, pair.astype(np.int64), 2**31 + np.arange(len(pair)))
    seats = [low + np.random.default_rng(int(of)).permutation(high - low) for of in apart]
    return _renumbered(samples, np.array(seats, np.int32).reshape(-1, high - low))


def streamed(streams: Samples) -> Samples:
    """Streams [S, T, ...] with their entities numbered so that no two samples of a stream share
    any; cut to as many samples as there are numbers for.
    """
    apiece = 1 + int(max(streams.exposure.entity.max(), streams.query.entity.max()))
    length = min(streams.label.shape[1], STREAM // apiece)
    first = ENTITIES - 1 - STREAM
    seats = first + np.arange(length * apiece, dtype=np.int32).reshape(1, length, apiece)
    return _renumbered(jax.tree.map(lambda leaf: leaf[:, :length], streams), seats)


def _renumbered(samples: Samples, seats: np.ndarray) -> Samples:
    def of(statement: Statement) -> Statement:
        numbered: Any = np.take_along_axis(seats, np.asarray(statement.entity), -1)
        return statement._replace(entity=numbered)

    return samples._replace(exposure=of(samples.exposure), query=of(samples.query))

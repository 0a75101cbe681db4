"""How each network's base states are best trained: Adam's rate, and the pace it learns at first.

    python -m benchmarks outer

For every network all trials are trained for as long, on the same samples, and judged by the outer
loss on the validation split, which leaves out what base states may not learn from. The best of them
stands in `kubku.learners.OUTER`; a test compares. It takes two cores 20 minutes.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import jax
import numpy as np

from benchmarks.timing import save
from evidence import devices
from kubku import learners
from kubku.base_states import Outer, Training, outer_loss
from kubku.protocol import with_trial
from kubku.study import WORLDS
from kubku.tasks import FAMILIES, generate

TRAINING = Training(updates=300, batch=32)
RATES, PACES = (2e-3, 6e-3, 2e-2), (0.1, 0.5, 2.5)


def trial(name: str, outer: Outer) -> dict[str, Any]:
    """The outer loss that a network's `meta` weights come to."""
    family = FAMILIES["grids" if name == "cnn" else "stories"]
    keys = jax.random.split(jax.random.key(0), 4)
    pretrain, validation = (
        jax.tree.map(np.asarray, generate(family, key, n, split, skew=WORLDS["skewed"]))
        for key, n, split in ((keys[0], 8192, "pretrain"), (keys[1], 256, "validation"))
    )
    learner = learners.make(name, family, TRAINING, outer)
    make = learner.bases["meta"]
    assert make is not None
    start = time.perf_counter()
    state: Any = jax.block_until_ready(make(learner.init(keys[2]), pretrain, keys[3]))
    seconds = time.perf_counter() - start
    if name not in learners.CONTEXT:
        # The one step that it was trained through.
        state = with_trial(state, {"steps": 1, "rate": 1.0})
    few = jax.tree.map(lambda leaf: leaf.reshape(-1, learner.chunk, *leaf.shape[1:]), validation)
    loss = jax.jit(lambda: jax.lax.map(lambda s: outer_loss(learner, learner.learn, state, s), few))
    return {**outer._asdict(), "loss": float(loss().mean()), "seconds": seconds}


def main() -> None:
    """Every trial of every network, a device each."""
    devices.prepare()
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in learners.OUTER}

    def run(job: tuple[str, Outer]) -> None:
        found[job[0]].append(row := trial(*job))
        print(job[0], row, flush=True)

    jobs = [
        (name, Outer(*setting))
        for name in sorted(learners.OUTER, key=lambda name: name != "transformer")  # the slowest
        for setting in itertools.product(RATES, (1.0,) if name in learners.CONTEXT else PACES)
    ]
    devices.side_by_side(run, jobs, lambda job: job[0])
    best = {
        name: min(rows, key=lambda row: np.nan_to_num(row["loss"], nan=np.inf))
        for name, rows in found.items()
    }
    note = (
        f"outer loss of meta weights after {TRAINING.updates} updates of {TRAINING.batch} samples, "
        f"on 256 validation samples of stories (cnn: grids) in a skewed world"
    )
    save("outer", {"best": best, "trials": found}, note)

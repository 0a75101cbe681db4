"""How each network's base states are best trained: Adam's rate, and the pace it learns at first.

    python -m benchmarks outer

Every trial of a network is trained for 400 updates, and the best two are trained again for as many
as the standard budget has; on the same samples, judged by the outer loss on the validation split,
which leaves out what base states may not learn from. The winner stands in `kubku.outer`; a test
compares. It takes two cores 20 minutes.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import jax
import numpy as np

from benchmarks.timing import save
from evidence.runtime import devices
from kubku.base_states import WORLDS, Outer, Training, outer_loss
from kubku.learners import registry
from kubku.outer import OUTER
from kubku.protocol import with_trial
from kubku.tasks import FAMILIES, generate

ROUNDS, BATCH = (400, 1600), 16
"""Updates of the trials, and of the best two; the latter are the standard budget's."""
TRIALS = tuple(Outer(*both) for both in itertools.product((2e-3, 6e-3), (0.1, 0.5, 2.5)))
READERS = tuple(Outer(rate) for rate in (6e-4, 1e-3, 2e-3, 4e-3, 1e-2, 2e-2))
"""As many settings for those that only have a rate."""


def trial(name: str, outer: Outer, updates: int) -> dict[str, Any]:
    """The outer loss that a network's `meta` weights come to."""
    family = FAMILIES["grids" if name == "cnn" else "stories"]
    keys = jax.random.split(jax.random.key(0), 4)
    pretrain, validation = (
        generate(family, key, n, split, skew=WORLDS["skewed"])
        for key, n, split in ((keys[0], 8192, "pretrain"), (keys[1], 256, "validation"))
    )
    learner = registry.make(name, family, Training(updates=updates, batch=BATCH), outer)
    make = learner.bases["meta"]
    assert make is not None
    start = time.perf_counter()
    state: Any = jax.block_until_ready(make(learner.init(keys[2]), pretrain, keys[3]))
    seconds = time.perf_counter() - start
    if registry.LEARNERS[name].group != "reader":
        # The one step that it was trained through.
        state = with_trial(state, {"steps": 1, "rate": 1.0})
    few = jax.tree.map(lambda leaf: leaf.reshape(-1, learner.chunk, *leaf.shape[1:]), validation)
    loss = jax.jit(lambda: jax.lax.map(lambda s: outer_loss(learner, learner.learn, state, s), few))
    return {**outer._asdict(), "loss": float(loss().mean()), "seconds": seconds}


def best(rows: list[dict[str, Any]], n: int = 1) -> list[dict[str, Any]]:
    """The `n` trials with the smallest losses."""
    return sorted(rows, key=lambda row: np.nan_to_num(row["loss"], nan=np.inf))[:n]


def main() -> None:
    """Every trial of every network, then the best two of each, a device each."""
    devices.configure()
    slowest_first = sorted(OUTER, key=lambda name: "transformer" not in name)
    wanted: dict[str, list[Outer]] = {
        name: list(READERS if name in registry.in_group("reader") else TRIALS)
        for name in slowest_first
    }
    rounds: list[dict[str, list[dict[str, Any]]]] = []
    for updates in ROUNDS:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in OUTER}

        def run(job: tuple[str, Outer], found=found, updates=updates) -> None:
            found[job[0]].append(row := trial(*job, updates))
            print(updates, job[0], row, flush=True)

        jobs = [(name, outer) for name, settings in wanted.items() for outer in settings]
        devices.side_by_side(run, jobs, lambda job: job[0])
        rounds.append(found)
        wanted = {
            name: [Outer(row["rate"], row["pace"]) for row in best(found[name], 2)]
            for name in slowest_first
        }
    trials, finals = rounds
    note = (
        f"outer loss of meta weights after {ROUNDS[0]} updates (trials) and {ROUNDS[1]} (finals) "
        f"of {BATCH} samples, on 256 validation samples of stories (cnn: grids) in a skewed world"
    )
    winners = {name: best(rows)[0] for name, rows in finals.items()}
    save("outer", {"best": winners, "trials": trials, "finals": finals}, note)

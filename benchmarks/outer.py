"""How each network's base states are best trained: Adam's rate, and the pace it learns at first.

    python -m benchmarks outer [LEARNER ...]

By default those that suit a CPU, in every family. The search climbs: from where it starts it tries
twice and half the rate, three times and a third of the pace, goes on from the best of them, and
ends where all neighbours are worse, so that the best never lies at the edge of what was tried.
Trials are judged by the outer loss on the validation split, which leaves out what base states may
not learn from, under rules that no study draws. The winners stand in `kubku.outer`; a test
compares.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax

from benchmarks.timing import save
from evidence.runtime import devices
from kubku.base_states import WORLDS, Maker, Outer, Through, Training, outer_loss
from kubku.halo import veiled
from kubku.learners import registry
from kubku.outer import OUTER
from kubku.protocol import with_trial
from kubku.tasks import FAMILIES, Family, generate

UPDATES, BATCH = 4000, 16
RATE, PACE = 2.0, 3.0
"""Between neighbours of the search, as factors."""
START = Outer(2e-3, 2.5)


def neighbours(at: Outer, paced: bool) -> Iterator[Outer]:
    """The settings next to one."""
    yield at._replace(rate=at.rate * RATE)
    yield at._replace(rate=at.rate / RATE)
    if paced:
        yield at._replace(pace=at.pace * PACE)
        yield at._replace(pace=at.pace / PACE)


def climb(
    start: Outer, paced: bool, trial: Callable[[Outer], dict[str, Any]]
) -> tuple[Outer, list[dict[str, Any]]]:
    """The first setting on the way whose neighbours are all worse, and all trials."""
    tried: dict[tuple[float, float], dict[str, Any]] = {}

    def loss(at: Outer) -> float:
        known = float(f"{at.rate:.3g}"), float(f"{at.pace:.3g}")
        if known not in tried:
            tried[known] = trial(at)
        found = float(tried[known]["loss"])
        return found if found == found else float("inf")

    best = start
    while True:
        better = min(neighbours(best, paced), key=loss)
        if loss(better) >= loss(best):
            return best, list(tried.values())
        best = better


def judged(name: str, family: Family) -> Callable[[Outer], dict[str, Any]]:
    """From a setting to the outer loss that a network's `meta` weights come to in a family."""
    keys = jax.random.split(jax.random.key(0), 5)
    rules = family.rules(keys[4])
    pretrain, validation = (
        veiled(generate(family, key, n, split, skew=WORLDS["skewed"], rules=rules))
        for key, n, split in ((keys[0], 8192, "pretrain"), (keys[1], 256, "validation"))
    )
    learner = registry.make(name, family, Training(updates=UPDATES, batch=BATCH))
    state, make = learner.init(keys[2]), learner.bases["meta"]
    through = Through(learner.learn, learner.answer, learner.chunk)
    few = jax.tree.map(lambda leaf: leaf.reshape(-1, learner.chunk, *leaf.shape[1:]), validation)
    losses = jax.jit(lambda state: jax.lax.map(lambda part: outer_loss(through, state, part), few))

    def trial(outer: Outer) -> dict[str, Any]:
        assert isinstance(make, Maker)
        start = time.process_time()
        made: Any = jax.block_until_ready(
            dataclasses.replace(make, outer=outer)(state, pretrain, keys[3])
        )
        seconds = time.process_time() - start
        if learner.exposure == "gradient":
            made = with_trial(made, {"steps": 1, "rate": 1.0})  # as it was trained
        row = {
            **outer._asdict(),
            "loss": float(losses(made).mean()),
            "updates": int(made.trained.updates),
            "level": bool(made.trained.level),
            "cpu_seconds": seconds,
        }
        print(family.name, name, row, flush=True)
        return row

    return trial


def main(*names: str) -> None:
    """Climb for every network in every family that it can handle."""
    devices.configure()
    wanted = names or tuple(name for name in OUTER if not registry.LEARNERS[name].wants_gpu)
    best: dict[str, dict[str, Outer]] = {name: {} for name in wanted}
    trials: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in wanted}

    def search(of: tuple[str, str]) -> None:
        name, family = of
        paced = registry.LEARNERS[name].group == "gradient"
        start = START if paced else START._replace(pace=1.0)
        found, tried = climb(start, paced, judged(name, FAMILIES[family]))
        best[name][family], trials[name][family] = found, tried

    # What reads frames as patterns is trained as in the families that it hears.
    jobs = [
        (name, family.name)
        for name in wanted
        for family in FAMILIES.values()
        if registry.LEARNERS[name].can_handle(family)
        and (registry.LEARNERS[name].group == "gradient" or not family.is_shown)
    ]
    devices.side_by_side(search, jobs, lambda of: of)
    note = (
        f"outer loss of meta weights after at most {UPDATES} updates of {BATCH} samples, on 256 "
        f"validation samples in a skewed world; not searched: "
        f"{', '.join(name for name in OUTER if name not in wanted)}"
    )
    plain = {name: {f: of[f]._asdict() for f in sorted(of)} for name, of in best.items()}
    trials = {name: {f: of[f] for f in sorted(of)} for name, of in trials.items()}
    save("outer", {"best": plain, "trials": trials}, note)

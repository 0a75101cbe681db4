"""How each network's base states are best trained: Adam's rate, and the pace it learns at first.

    python -m benchmarks outer [LEARNER ...]

By default those that suit a CPU; of others the file keeps what it has. Successive halving
(Jamieson & Talwalkar, 2016): all settings of a grid are tried with a quarter of the updates, the
best third, and two at least, with half of them, and so on, in other families each time. Where the
best lies at the edge of the grid, that grows there, and only what is new is tried. Trials are
judged as a study judges: by KU at the BKU that trials are matched at, means over the families so
far, on validation samples under rules that no study draws. The winners stand in `kubku.outer`; a
test compares.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.timing import RESULTS, save
from evidence.runtime import devices
from kubku.base_states import WORLDS, Maker, Outer, Training
from kubku.halo import Learner, Samples, Stratum, veiled
from kubku.learners import registry
from kubku.outer import OUTER
from kubku.protocol import MATCHED, point, reset_to_base, told, with_trial
from kubku.tasks import FAMILIES, generate

UPDATES, BATCH = 6000, 16
RATE, PACE = 2.0, 3.0
"""Between neighbours of the grid, as factors."""
SEED = 500
"""Of rules and samples; a family has a seed of its own. Studies' are told by the thesis."""
PACED = (1e-3, 2e-3, 4e-3), (0.3, 0.9, 2.7)
"""Rates and paces that the search begins with, of networks that learn a pace, and of others."""
READERS = (1e-3, 2e-3, 4e-3, 8e-3), (1.0,)
FINALISTS = 2
"""Settings that are tried to the end, at least."""


class Rung(NamedTuple):
    """What is asked of the settings that got so far: families, and the share of all updates."""

    families: tuple[str, ...]
    share: float


RUNGS = (Rung(("grids",), 0.25), Rung(("stories",), 0.5), Rung(("series", "frames"), 1.0))

Trial = Callable[[Outer, str, float], dict[str, Any]]
"""(setting, family, share of the updates) -> a row with `score`."""


def grid(rates: Sequence[float], paces: Sequence[float]) -> list[Outer]:
    """Every rate with every pace."""
    return [Outer(rate, pace) for rate in rates for pace in paces]


def halved(settings: Sequence[Outer], trial: Trial) -> list[Outer]:
    """The settings from best to worst: by how far they got, then by the mean over what they were
    tried on since then and before.
    """
    seen: dict[Outer, list[float]] = {setting: [] for setting in settings}
    standing, fallen = list(settings), list[Outer]()
    for number, rung in enumerate(RUNGS):
        for setting in standing:
            rows = [trial(setting, family, rung.share) for family in rung.families]
            seen[setting] += [row["score"] for row in rows]
        standing.sort(key=lambda setting: -float(np.mean(seen[setting])))
        if number < len(RUNGS) - 1:
            cut = max(-(-len(standing) // 3), FINALISTS)
            standing, fallen = standing[:cut], standing[cut:] + fallen
    return standing + fallen


def search(
    rates: Sequence[float], paces: Sequence[float], trial: Trial
) -> tuple[Outer, list[dict[str, Any]]]:
    """The best setting, which is at no edge of the grid, and all trials."""
    tried: dict[tuple[Outer, str, float], dict[str, Any]] = {}

    def once(setting: Outer, family: str, share: float) -> dict[str, Any]:
        at = setting, family, share
        if at not in tried:
            tried[at] = {**setting._asdict(), "family": family, "share": share} | trial(*at)
        return tried[at]

    rates, paces = sorted(rates), sorted(paces)
    while True:
        best, *_ = halved(grid(rates, paces), once)
        wider = [_beyond(rates, best.rate, RATE), _beyond(paces, best.pace, PACE)]
        if wider == [rates, paces]:
            return best, list(tried.values())
        rates, paces = wider


def _beyond(along: list[float], at: float, factor: float) -> list[float]:
    """The values of an axis, and one more where `at` is the first or the last of several."""
    if len(along) == 1 or at not in (along[0], along[-1]):
        return along
    lower = at == along[0]
    further = float(f"{at / factor if lower else at * factor:.6g}")
    return [further, *along] if lower else [*along, further]


def judged(name: str) -> Trial:
    """What becomes of a network's `meta` weights that are trained in a way."""
    data: dict[str, tuple[Any, Samples, Samples]] = {}
    learners: dict[tuple[bool, float], Learner] = {}

    def drawn(family: str) -> tuple[Any, Samples, Samples]:
        if family not in data:
            seed = SEED + list(FAMILIES).index(family)
            keys = jax.random.split(jax.random.key(seed), 5)
            rules = FAMILIES[family].rules(keys[4])
            pretrain, validation = (
                veiled(
                    generate(FAMILIES[family], key, n, split, skew=WORLDS["skewed"], rules=rules)
                )
                for key, n, split in ((keys[0], 8192, "pretrain"), (keys[1], 512, "validation"))
            )
            data[family] = keys, pretrain, validation
        return data[family]

    def trial(outer: Outer, family: str, share: float) -> dict[str, Any]:
        keys, pretrain, validation = drawn(family)
        training = Training(updates=round(UPDATES * share), batch=BATCH)
        program = FAMILIES[family].is_shown, share
        if program not in learners:
            learners[program] = registry.make(name, FAMILIES[family], training, outer)
        learner = learners[program]
        make: Any = learner.bases["meta"]
        if isinstance(make, Maker):
            make = dataclasses.replace(make, outer=outer)
        else:
            make = registry.make(name, FAMILIES[family], training, outer).bases["meta"]
        start = time.process_time()
        made = jax.block_until_ready(make(learner.init(keys[2]), pretrain, keys[3]))
        seconds = time.process_time() - start
        if learner.exposure == "gradient":
            made = with_trial(made, {"steps": 1, "rate": 1.0})  # as it was trained
        scores = reset_to_base(learner, made, validation).after
        row = summary(np.asarray(scores), validation) | {"cpu_seconds": seconds}
        row |= {"updates": int(made.trained.updates), "level": bool(made.trained.level)}
        print(name, family, share, *outer, row, flush=True)
        return row

    return trial


def summary(scores: np.ndarray, samples: Samples) -> dict[str, float]:
    """KU at the matched BKU, or BKU, negative, where that is never so low; and what is right of
    entailed questions where YES or NO has to be said.
    """
    forced = np.where(scores[..., 2] > scores[..., 0], 2, 0) == np.asarray(samples.gold)
    stratum = np.asarray(samples.stratum)
    return {
        "score": point(told(jax.numpy.asarray(scores), samples).frontier, MATCHED).objective,
        "one_fact_forced": float(forced[stratum == Stratum.ONE_FACT].mean()),
        "several_facts_forced": float(forced[stratum == Stratum.SEVERAL_FACTS].mean()),
    }


def main(*names: str) -> None:
    """Search for every network."""
    devices.configure()
    wanted = names or tuple(name for name in OUTER if not registry.LEARNERS[name].wants_gpu)
    best: dict[str, dict[str, float]] = {}
    trials: dict[str, list[dict[str, Any]]] = {}

    def one(name: str) -> None:
        paced = registry.LEARNERS[name].group == "gradient"
        found, tried = search(*(PACED if paced else READERS), judged(name))
        best[name], trials[name] = found._asdict(), tried

    devices.side_by_side(one, wanted, lambda name: name)
    path = RESULTS / "outer.json"
    if path.exists():
        kept = json.loads(path.read_text("utf-8"))["results"]
        best, trials = kept["best"] | best, kept["trials"] | trials
    note = (
        f"successive halving by KU at a BKU of {MATCHED} on 512 validation samples a family in a "
        f"skewed world, with up to {UPDATES} updates of {BATCH} samples; not searched: "
        f"{', '.join(name for name in OUTER if name not in best)}"
    )
    save("outer", {"best": best, "trials": trials}, note)

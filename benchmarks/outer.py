"""How each network's base states are best trained: Adam's rate, and the pace it learns at first.

    python -m benchmarks outer [LEARNER ...]

By default those that suit a CPU, each in every family that is drawn; of others the file keeps what
it has. Successive halving (Jamieson & Talwalkar, 2016): all settings of a grid are tried with a
quarter of the updates, the best third, and two at least, with half of them, and so on. Where the
best lies at the edge of the grid, that grows there, and only what is new is tried. Trials are
judged as a study judges: by KU at the BKU that trials are matched at, on validation samples under
rules that no study draws. The winners stand in `kubku.outer`; a test compares.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any

import jax
import numpy as np

from benchmarks.timing import RESULTS, save
from evidence.results import commit
from evidence.runtime import devices
from kubku.base_states import WORLDS, Outer, Training, trained_by
from kubku.halo import Learner, Samples, Stratum, veiled
from kubku.learners import registry
from kubku.outer import OUTER
from kubku.protocol import MATCHED, point, reset_to_base, told, with_trial
from kubku.tasks import FAMILIES, generate

UPDATES, BATCH = 15_000, 16
RATE, PACE = 2.0, 3.0
"""Between neighbours of the grid, as factors."""
SEED = 500
"""Of rules and samples; a family has a seed of its own. Studies' are told by the thesis."""
PACED = (1e-3, 2e-3, 4e-3), (0.1, 0.3, 0.9)
"""Rates and paces that the search begins with, of networks that learn a pace, and of others."""
READERS = (2e-3, 4e-3, 8e-3, 1.6e-2), (1.0,)
FINALISTS = 2
"""Settings that are tried to the end, at least."""
SHARES = (0.25, 0.5, 1.0)
"""Of the updates, that the settings are trained with which got so far."""

Trial = Callable[[Outer, float], dict[str, Any]]
"""(setting, share of the updates) -> a row with `score`."""


def grid(rates: Sequence[float], paces: Sequence[float]) -> list[Outer]:
    """Every rate with every pace."""
    return [Outer(rate, pace) for rate in rates for pace in paces]


def halved(settings: Sequence[Outer], trial: Trial) -> list[Outer]:
    """The settings from best to worst: by how far they got, then by the score there."""
    standing, fallen = list(settings), list[Outer]()
    for share in SHARES:
        scores = {setting: trial(setting, share)["score"] for setting in standing}
        standing.sort(key=lambda setting: -scores[setting])
        if share < SHARES[-1]:
            cut = max(-(-len(standing) // 3), FINALISTS)
            standing, fallen = standing[:cut], standing[cut:] + fallen
    return standing + fallen


def search(
    rates: Sequence[float], paces: Sequence[float], trial: Trial
) -> tuple[Outer, list[dict[str, Any]]]:
    """The best setting, which is at no edge of the grid, and all trials."""
    tried: dict[tuple[Outer, float], dict[str, Any]] = {}

    def once(setting: Outer, share: float) -> dict[str, Any]:
        at = setting, share
        if at not in tried:
            tried[at] = {**setting._asdict(), "share": share} | trial(*at)
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


@cache
def drawn(family: str) -> tuple[Any, Samples, Samples]:
    """Keys, samples to train on and samples to judge by."""
    seed = SEED + list(FAMILIES).index(family)
    keys = jax.random.split(jax.random.key(seed), 5)
    rules = FAMILIES[family].rules(keys[4])
    pretrain, validation = (
        veiled(generate(FAMILIES[family], key, n, split, skew=WORLDS["skewed"], rules=rules))
        for key, n, split in ((keys[0], 8192, "pretrain"), (keys[1], 512, "validation"))
    )
    return keys, pretrain, validation


@cache
def made(name: str, shown: bool, share: float) -> Learner:
    """A learner whose base states are trained with a share of the updates; families that are told
    share its programs.
    """
    family = next(family for family in FAMILIES.values() if family.is_shown == shown)
    return registry.make(name, family, Training(updates=round(UPDATES * share), batch=BATCH))


def judged(name: str, family: str) -> Trial:
    """What becomes of a network's `meta` weights that are trained in a way."""

    def trial(outer: Outer, share: float) -> dict[str, Any]:
        keys, pretrain, validation = drawn(family)
        learner = made(name, FAMILIES[family].is_shown, share)
        make = trained_by(learner.bases, outer)["meta"]
        assert make is not None
        start = time.perf_counter()
        state = jax.block_until_ready(make(learner.init(keys[2]), pretrain, keys[3]))
        row = {"updates": int(state.trained.updates), "level": bool(state.trained.level)}
        row["seconds"] = time.perf_counter() - start
        if learner.exposure == "gradient":
            state = with_trial(state, {"steps": 1, "rate": 1.0})  # as it was trained
        scores = reset_to_base(learner, state, validation).after
        row = summary(np.asarray(scores), validation) | row
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
    path = RESULTS / "outer.json"
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    kept = before.get("results", {})
    commits = kept.get("commits") or dict.fromkeys(
        kept.get("best", {}), before.get("manifest", {}).get("commit")
    )
    best: dict[str, dict[str, Any]] = defaultdict(dict, kept.get("best", {}))
    trials: dict[str, dict[str, Any]] = defaultdict(dict, kept.get("trials", {}))

    def one(of: tuple[str, str]) -> None:
        name, family = of
        paced = registry.LEARNERS[name].group == "gradient"
        found, tried = search(*(PACED if paced else READERS), judged(name, family))
        best[name][family], trials[name][family] = found._asdict(), tried

    devices.side_by_side(one, product(wanted, FAMILIES), lambda of: of)
    note = (
        f"successive halving by KU at a BKU of {MATCHED} on 512 validation samples of the family "
        f"in a skewed world, with up to {UPDATES} updates of {BATCH} samples; not searched: "
        f"{', '.join(name for name in OUTER if name not in best)}"
    )
    ordered = [
        {name: {family: of[name][family] for family in FAMILIES} for name in OUTER if name in of}
        for of in (best, trials)
    ]
    of_learners = dict(zip(("best", "trials"), ordered, strict=True))
    of_learners["commits"] = commits | dict.fromkeys(wanted, commit())
    save("outer", of_learners, note)

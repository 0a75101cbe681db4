"""Learners as data: groups of settings, what wants a GPU, how networks are trained."""

import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from benchmarks import kubku as benchmark
from benchmarks import outer as search
from kubku.base_states import Outer
from kubku.learners import registry
from kubku.learners.registry import KNOWN, LEARNERS
from kubku.outer import ELSEWHERE, OUTER, outer
from kubku.plan import prepared, wanting_gpu
from kubku.settings import read
from kubku.tasks import FAMILIES, generate

ROOT = Path(__file__).parents[2]


def settings(*overrides):
    with initialize_config_module("conf.kubku", version_base=None):
        return read(OmegaConf.to_container(compose("config", list(overrides)), resolve=True))


def test_groups_of_learners_hold_everything_once():
    """`compared` and `gpu` are `all`; what wants a GPU is in `gpu`; all can be timed."""
    groups = "compared", "gpu", "all", "memories"
    of = {name: settings(f"learner={name}").learner.names for name in groups}
    assert sorted(of["compared"] + of["gpu"]) == sorted(of["all"]) == sorted(LEARNERS)
    assert {*of["memories"]} <= {*of["compared"]}
    for entry in LEARNERS.values():
        assert entry.can_handle(benchmark.family_for(entry))
    wanting = {name for name, entry in LEARNERS.items() if entry.wants_gpu}
    assert wanting <= set(of["gpu"])
    assert wanting >= {"cnn", "gru", "transformer"}
    assert settings().learner.names == of["compared"]


def test_what_wants_a_gpu_is_said_with_its_cost():
    """By hand: 60 replicates of 1,000 updates of 32 samples are 60,000 updates of 32, as long as
    120,000 of 16: 2 minutes a millisecond and family. A CNN can't handle stories.
    """
    budget = ("budget.training.updates=1000", "budget.training.batch=32", "budget.base_seeds=6")
    chosen = settings(
        "learner.names=[cnn,gru,mlp,dictionary]",
        "task.families=[stories,grids]",
        "budget.generator_seeds=10",
        *budget,
    )
    assert registry.BATCH == 16
    found = wanting_gpu(chosen)
    assert set(found) == {"cnn", "gru"}
    assert found["cnn"] == pytest.approx(2 * KNOWN["cnn"].milliseconds)
    assert found["gru"] == pytest.approx(4 * KNOWN["gru"].milliseconds)
    assert wanting_gpu(settings("learner=compared")) == {}


def a_bowl(rate, pace):
    """A trial whose score is highest at a rate and a pace, and rises with the updates."""

    def trial(at, share):
        far = math.log(at.rate / rate) ** 2 + math.log(at.pace / pace) ** 2
        return {"score": share - far}

    return trial


@pytest.mark.parametrize("best", [(6.4e-2, 2.5), (2e-3 / 16, 0.1), (2e-3, 100.0)])
def test_the_search_finds_a_best_that_is_no_edge(best):
    """A bowl over the logarithms, far from where the search starts: it ends within half a step of
    the bottom, with what is next to the end tried, and nothing is tried twice.
    """
    rate, pace = best
    found, rows = search.search((1e-3, 2e-3, 4e-3), (0.3, 0.9, 2.7), a_bowl(rate, pace))
    assert abs(math.log(found.rate / rate)) <= math.log(search.RATE) / 2 + 1e-6
    assert abs(math.log(found.pace / pace)) <= math.log(search.PACE) / 2 + 1e-6
    tried = [(round(math.log(r["rate"]), 4), round(math.log(r["pace"]), 4)) for r in rows]
    at = [(*where, r["share"]) for where, r in zip(tried, rows, strict=True)]
    assert len(set(at)) == len(at)
    for next_to in neighbours(found):
        assert (round(math.log(next_to.rate), 4), round(math.log(next_to.pace), 4)) in tried


def neighbours(at):
    for factor in (search.RATE, 1 / search.RATE):
        yield at._replace(rate=at.rate * factor)
    for factor in (search.PACE, 1 / search.PACE):
        yield at._replace(pace=at.pace * factor)


def test_halving_by_hand():
    """Four rates. After a quarter the order is 4, 3, 2, 1, so that 4 and 3 go on; after a half 3 is
    ahead, and both go to the end, where 4 is: by the score there. What 1 would have come to is
    never seen.
    """
    scores = {(0.25, rate): rate / 10 for rate in (1, 2, 3, 4)}
    scores |= {(0.5, 3): 1.0, (0.5, 4): 0.0, (1.0, 3): 1.0, (1.0, 4): 1.1, (1.0, 1): 9.0}
    asked = []

    def trial(at, share):
        asked.append((share, at.rate))
        return {"score": scores[share, at.rate]}

    order = search.halved([Outer(float(rate)) for rate in (1, 2, 3, 4)], trial)
    assert [at.rate for at in order] == [4, 3, 2, 1]
    assert asked[:4] == [(0.25, float(rate)) for rate in (1, 2, 3, 4)]
    assert [share for share, _ in asked[4:]] == [0.5, 0.5, 1.0, 1.0] and len(asked) == 8


def test_a_search_passes_by_what_diverges():
    """What answers nothing at all beats nothing: NaN is never as high as the limit allows."""
    scores = np.full((2, 16, 3), np.nan)
    samples = generate(FAMILIES["stories"], jax.random.key(0), 2, "validation")
    assert search.summary(scores, samples)["score"] <= 0


def test_networks_are_trained_as_the_search_found_best():
    """By the rows of the kept file; whatever suits a CPU was searched in every family, with the
    updates that the thesis' budget has, and no best lies at an edge of what was tried.
    """
    found = json.loads((ROOT / "benchmarks/results/outer.json").read_text())["results"]
    assert set(found["best"]) == {name for name in OUTER if not LEARNERS[name].wants_gpu}
    training = settings("budget=standard").budget.training
    assert (training.updates, training.batch) == (search.UPDATES, search.BATCH)
    for name in found["best"]:
        assert set(found["best"][name]) == set(OUTER[name]) == set(FAMILIES)
        for family, best in found["best"][name].items():
            chosen = OUTER[name][family]
            assert Outer(**best) == chosen == outer(name, family), (name, family)
            rows = found["trials"][name][family]
            known = {(row["rate"], row["pace"], row["share"]): row for row in rows}
            rates, paces = ({row[axis] for row in rows} for axis in ("rate", "pace"))
            first, *_ = search.halved(
                search.grid(sorted(rates), sorted(paces)),
                lambda at, share, known=known: known.get((*at, share), {"score": -9.0}),
            )
            assert first == chosen, (name, family)
            assert min(rates) < chosen.rate < max(rates), (name, family)


def test_a_family_has_settings_of_its_own_and_programs_in_common(tmp_path):
    """Told families share a network's program and not how it is trained; one that wasn't searched
    in takes another's.
    """
    plan = prepared(settings("budget=smoke", "learner.names=[mlp,rank_one]"), tmp_path)
    stories, series, frames = (
        plan.learners["mlp", name].bases["meta"].run for name in ("stories", "series", "frames")
    )
    assert stories is series and frames is not stories
    for name, family in plan.learners:
        assert plan.learners[name, family].bases["meta"].outer == OUTER[name][family]
    assert outer("mlp", "bbq") == OUTER["mlp"][ELSEWHERE] and outer("dictionary", "stories") is None

"""Learners as data: groups of settings, what wants a GPU, how networks are trained."""

import json
import math
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from benchmarks import outer as search
from kubku.base_states import Maker, Outer, Training
from kubku.learners import registry
from kubku.learners.registry import KNOWN, LEARNERS
from kubku.outer import OUTER, Searched
from kubku.plan import wanting_gpu
from kubku.settings import read
from kubku.tasks import FAMILIES

ROOT = Path(__file__).parents[2]


def settings(*overrides):
    with initialize_config_module("conf.kubku", version_base=None):
        return read(OmegaConf.to_container(compose("config", list(overrides)), resolve=True))


def test_groups_of_learners_hold_everything_once():
    """`compared`, `gpu` and what only `memories` has are `all`; what wants a GPU is in `gpu`."""
    groups = "compared", "gpu", "memories", "all"
    of = {name: settings(f"learner={name}").learner.names for name in groups}
    beside = tuple(name for name in of["memories"] if name not in of["compared"])
    assert sorted(of["compared"] + beside + of["gpu"]) == sorted(of["all"]) == sorted(LEARNERS)
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


@pytest.mark.parametrize("best", [(6.4e-2, 2.5), (2e-3 / 16, 0.1), (2e-3, 100.0)])
def test_the_search_climbs_to_a_best_that_is_no_edge(best):
    """A bowl over the logarithms, far from where the search starts: it ends within half a step of
    the bottom, and all neighbours of the end were tried and were worse.
    """
    rate, pace = best

    def trial(at):
        loss = math.log(at.rate / rate) ** 2 + math.log(at.pace / pace) ** 2
        return {**at._asdict(), "loss": loss}

    found, tried = search.climb(search.START, True, trial)
    assert abs(math.log(found.rate / rate)) <= math.log(search.RATE) / 2 + 1e-6
    assert abs(math.log(found.pace / pace)) <= math.log(search.PACE) / 2 + 1e-6
    losses = {(round(math.log(r["rate"]), 6), round(math.log(r["pace"]), 6)): r for r in tried}
    assert len(losses) == len(tried)
    for next_to in search.neighbours(found, True):
        at = round(math.log(next_to.rate), 6), round(math.log(next_to.pace), 6)
        assert losses[at]["loss"] > trial(found)["loss"]


def test_a_search_passes_by_what_diverges():
    def trial(at):
        return {"loss": math.nan if at.rate > 3e-3 else -at.rate}

    found, _ = search.climb(search.START._replace(pace=1.0), False, trial)
    assert found == Outer(2e-3, 1.0)


def test_networks_are_trained_as_the_search_found_best():
    """In every family that was searched, and the usual setting is one of those."""
    found = json.loads((ROOT / "benchmarks/results/outer.json").read_text())["results"]
    for name, families in found["best"].items():
        assert {f: Outer(**best) for f, best in families.items()} == OUTER[name].best, name
        assert OUTER[name].usual in OUTER[name].best.values()
        for family, rows in found["trials"][name].items():
            least = min(rows, key=lambda row: row["loss"])
            assert Outer(least["rate"], least["pace"]) == OUTER[name].within(family)
            at = Outer(least["rate"], least["pace"])
            tried = {(f"{row['rate']:.3g}", f"{row['pace']:.3g}") for row in rows}
            for next_to in search.neighbours(at, LEARNERS[name].group == "gradient"):
                assert (f"{next_to.rate:.3g}", f"{next_to.pace:.3g}") in tried


def test_another_family_is_another_setting_of_the_same_program(monkeypatch):
    searched = Searched(Outer(1e-3), {"grids": Outer(2e-3), "stories": Outer(3e-3)})
    monkeypatch.setitem(
        KNOWN, "dictionary_mlp", LEARNERS["dictionary_mlp"].__class__("control", None, searched)
    )
    made = LEARNERS["dictionary_mlp"].make(
        FAMILIES["stories"], Training(updates=1, batch=1), searched.within("stories")
    )
    for family, rate in (("stories", 3e-3), ("grids", 2e-3), ("series", 1e-3)):
        learner = registry.trained_for("dictionary_mlp", made, FAMILIES[family])
        make = learner.bases["meta"]
        assert isinstance(make, Maker) and make.outer.rate == rate
        assert make.run is made.bases["meta"].run and learner.answer is made.answer

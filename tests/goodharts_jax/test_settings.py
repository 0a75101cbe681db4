"""The settings as Hydra composes them and as Python gives them."""

import hydra
import pytest
import yaml
from omegaconf import OmegaConf
from rich.console import Console

from goodharts_jax import study
from goodharts_jax.population import Study
from goodharts_jax.resuming import checkpoints_of, kept_settings, require_own
from goodharts_jax.settings import read


@pytest.fixture
def plain():
    with hydra.initialize_config_module("conf.goodhart", version_base="1.3"):
        return OmegaConf.to_container(hydra.compose("config"), resolve=True)


def test_without_another_world_modes_are_judged_where_they_were_trained(plain):
    settings = read(plain)
    assert settings.evaluation_world == settings.world
    # What is kept beside a run says so, and is read back alike.
    kept = settings.model_dump(mode="json")
    assert kept["evaluation_world"] == kept["world"]
    assert read(kept) == settings


@pytest.mark.parametrize("before, now", [(None, "none"), ("tensorboard", "tensorboard")])
def test_a_run_that_kept_a_logger_is_gone_on_with(plain, before, now, tmp_path):
    """What `tracker` was called once."""
    settings = read(plain | {"tracker": now})
    old = settings.model_dump(mode="json")
    old["logger"] = before
    del old["tracker"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(old, sort_keys=False))
    assert read(kept_settings(tmp_path / "config.yaml")) == settings


def test_another_world_is_given_with_its_settings(plain):
    plain["evaluation"]["world"] = "larger"
    with pytest.raises(ValueError, match=r"evaluation\.world=larger: give its settings as"):
        read(plain)
    plain["evaluation_world"] = plain["world"] | {"size": 200}
    settings = read(plain)
    assert settings.evaluation_world.size == 200 and settings.world.size == 100


def test_a_bad_world_is_told_once(plain):
    plain["world"]["size"] = 9
    with pytest.raises(ValueError) as told:
        read(plain)
    assert str(told.value).startswith("world.size=9 is smaller than the view")
    assert len(str(told.value).splitlines()) == 1


def test_the_modes_of_the_thesis_can_have_more_runs(plain):
    plain["modes"]["other"] = plain["modes"]["proxy"]
    plain["study"]["thesis_runs"] = 4
    settings = read(plain | {"runs": 2, "seed": 7})
    seeds = {name: settings.seeds_of(name) for name in (*settings.modes, "random_walk")}
    assert seeds == {
        "ground_truth": [7, 8, 9, 10],
        "proxy": [7, 8, 9, 10],
        "other": [7, 8],
        "random_walk": [7, 8],
    }
    assert settings.seeds == [7, 8, 9, 10]


def test_a_study_of_proxies_is_told_what_it_lacks(plain):
    mine = {"kind": "learnt_proxy", "food": [1, 0], "poison": [0, 1]}
    mine |= {"stages": {"random": 0, "half": 9}, "proxies": {"mine": {"pairs": 7}}}
    assert len(read(plain | {"study": mine}).seeds) == 5
    for change, told in (
        (
            {"proxies": {"mine": {"watched": "hafl"}}},
            r"proxies.mine.watched=hafl: .* did you mean half",
        ),
        ({"proxies": {"mine": {"pairs": 0}}}, r"study\.proxies\.mine\.pairs=0"),
        ({"proxies": {"mine": {"item": [1, 1], "correlation": 0.5}}}, "a table or drawn, not both"),
        ({"kind": "remedies"}, "gold is needed"),
        ({"kind": "forecast"}, "expert is needed"),
        ({"proxies": {"a": {"correlation": 0, "draws": 2}, "a_1": {}}}, "another's draw"),
    ):
        with pytest.raises(ValueError, match=told):
            read(plain | {"study": mine | change})
    with pytest.raises(ValueError, match="train=false: study=learnt_proxy trains its own"):
        read(plain | {"study": mine, "train": False})


def test_a_smoke_run_of_proxies_has_one_run_of_each_in_one_world():
    with hydra.initialize_config_module("conf.goodhart", version_base="1.3"):
        found = [
            read(OmegaConf.to_container(hydra.compose("config", given), resolve=True))
            for given in (
                ["study=learnt_proxy", "budget=smoke"],
                ["study=learnt_proxy", "budget=smoke", "runs=2"],
                ["study=learnt_proxy"],
            )
        ]
    assert [one.seeds for one in found] == [[42], [42, 43], [42, 43, 44, 45, 46]]
    assert [one.budget.other_world for one in found] == [False, False, True]


def test_a_cell_of_the_diagram_has_five_runs(plain):
    plain["study"] = {"kind": "phase_diagram", "poison_rewards": [0], "distances": [1]}
    assert len(read(plain).seeds) == 5
    plain["study"]["distances"] = [2.5]
    with pytest.raises(ValueError, match=r"study\.distances\.0=2\.5"):
        read(plain)


def test_runs_in_a_checkpoint_keep_their_names(plain, tmp_path):
    """They lie there in the order of the modes, or proxies: what is kept beside them has it too."""
    modes = plain["modes"]
    for order in (["proxy", "ground_truth"], ["ground_truth", "proxy"]):
        (tmp_path / "config.yaml").unlink(missing_ok=True)
        mine = read(plain | {"modes": {name: modes[name] for name in order}})
        study._keep_settings(Study(mine, tmp_path, mine.world.build(), Console()))
        kept = read(yaml.safe_load((tmp_path / "config.yaml").read_text("utf-8")))
        assert list(kept.rows()) == order
    (tmp_path / "checkpoints" / "1").mkdir(parents=True)
    assert checkpoints_of(mine, tmp_path) == tmp_path / "checkpoints"
    turned = read(plain | {"modes": {name: modes[name] for name in ("proxy", "ground_truth")}})
    with pytest.raises(ValueError, match="modes: not those that the policies"):
        checkpoints_of(turned, tmp_path)
    # Nor does a training of others go on in a folder as one's own.
    require_own(mine, tmp_path)
    elsewhere = mine.model_dump()["world"] | {"size": 64}
    other_ones = ({"seed": 43}, {"modes": turned.model_dump()["modes"]})
    for changes in (*other_ones, {"evaluation_world": elsewhere}):
        with pytest.raises(ValueError, match=r"not those of the run that was begun in"):
            require_own(read(plain | {"modes": mine.model_dump()["modes"]} | changes), tmp_path)


def test_cells_are_not_judged_as_if_they_had_been_watched_elsewhere(plain, tmp_path):
    cells = {"kind": "phase_diagram", "poison_rewards": [0], "distances": [1]}
    there = plain | {"study": cells}
    only = there | {"train": False, "checkpoint": str(tmp_path)}
    (tmp_path / "checkpoints" / "1").mkdir(parents=True)
    kept = read(there)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(kept.model_dump(mode="json")))
    assert checkpoints_of(read(only), tmp_path) == tmp_path / "checkpoints"
    moved = only | {"evaluation_world": kept.model_dump()["world"] | {"size": 64}}
    with pytest.raises(ValueError, match=r"evaluation\.world: the cells of a phase diagram"):
        checkpoints_of(read(moved), tmp_path)

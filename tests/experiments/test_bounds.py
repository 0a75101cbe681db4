"""Every number of a settings group has bounds, which are checked before anything is compiled."""

import copy
import math

import hydra
import pytest
from omegaconf import OmegaConf

from epistemic.settings import read as epistemic
from evidence.runtime.config import settings_folder
from goodharts_jax.settings import read as goodhart
from kubku.settings import read as kubku

# What fits no count, no seed, no energy and no share.
BEYOND = (math.nan, math.inf, -math.inf, 1e300, 10**30, -(10**30))


def numbers(node, path=()):
    """The place of every number in plain data."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for name, value in items:
        if isinstance(value, dict | list):
            yield from numbers(value, (*path, name))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield (*path, name)


def placed(plain, path, value):
    """The same data with one number changed."""
    changed = copy.deepcopy(plain)
    node = changed
    for name in path[:-1]:
        node = node[name]
    node[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("wing", "read", "overrides"),
    [
        ("goodhart", goodhart, ["mode=all"]),
        ("goodhart", goodhart, ["study=phase_diagram", "evaluation=default"]),
        ("kubku", kubku, []),
        ("epistemic", epistemic, []),
        ("epistemic", epistemic, ["study=completeness"]),
    ],
)
def test_no_number_goes_beyond_all_bounds(wing, read, overrides):
    folder = str(settings_folder() / wing)
    with hydra.initialize_config_dir(folder, version_base="1.3"):
        plain = OmegaConf.to_container(hydra.compose("config", overrides), resolve=True)
    places = list(numbers(plain))
    assert len(places) > 15 and read(plain)
    for path in places:
        for value in BEYOND:
            with pytest.raises(ValueError) as told:
                read(placed(plain, path, value))
            # One line a setting: two where one stands for both ends of a range.
            lines = str(told.value).splitlines()
            name = next(part for part in reversed(path) if isinstance(part, str))
            assert len(lines) <= 2 and name in lines[0], (path, value, lines)


@pytest.mark.parametrize(
    "override",
    [
        "world.start_energy=1e9",
        "evaluation.temperature=inf",
        "budget.steps_per_world=3e9",
        "interestingness.poison=nan",
        "mode=[]",
        "world.food=[]",
        "ppo.learning_rate=[]",
    ],
)
def test_what_once_passed_or_ended_in_a_trace_is_one_line(override):
    with hydra.initialize_config_dir(str(settings_folder() / "goodhart"), version_base="1.3"):
        plain = OmegaConf.to_container(hydra.compose("config", [override]), resolve=True)
    plain.setdefault("modes", {})
    with pytest.raises(ValueError) as told:
        goodhart(plain)
    name = override.partition("=")[0].rpartition(".")[2]
    assert name in str(told.value)


@pytest.mark.parametrize("name", ["poison_rewards", "distances"])
def test_a_diagram_without_cells_is_refused(name):
    with hydra.initialize_config_dir(str(settings_folder() / "goodhart"), version_base="1.3"):
        overrides = ["study=phase_diagram", f"study.{name}=[]"]
        plain = OmegaConf.to_container(hydra.compose("config", overrides), resolve=True)
    with pytest.raises(ValueError, match=f"{name}: a phase diagram needs one at least"):
        goodhart(plain)

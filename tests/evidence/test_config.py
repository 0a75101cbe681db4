import pytest
from omegaconf import OmegaConf
from pydantic import Field, model_validator

from evidence.runtime.config import Settings, build
from evidence.runtime.errors import errors_in_a_line


class World(Settings):
    size: int = Field(ge=11)
    food: tuple[int, int] = (50, 200)
    topology: str = "torus"

    @model_validator(mode="after")
    def _fits(self):
        if self.food[1] >= self.size**2:
            raise ValueError(f"food={self.food[1]} does not fit; lower it or enlarge world.size")
        return self


class Experiment(Settings):
    modes: dict[str, World] = Field(default_factory=dict)
    layout: World = World(size=20)


def test_a_choice_given_to_what_holds_settings_gets_the_name_of_its_group():
    with pytest.raises(ValueError, match=r"^modes='proxy': .*; did you mean mode=proxy\?$"):
        build(Experiment, {"modes": "proxy"}, "")
    with pytest.raises(ValueError, match=r"^layout=3: layout holds settings, and is none itself$"):
        build(Experiment, {"layout": 3}, "")


def test_settings_are_frozen_hashable_and_resolve_references():
    node = OmegaConf.create({"side": 20, "world": {"size": "${side}", "food": [1, 2]}})
    world = build(World, node.world, "world")
    assert world == World(size=20, food=(1, 2))
    assert hash(world) == hash(World(size=20, food=(1, 2)))
    with pytest.raises(ValueError, match="frozen"):
        world.size = 30


@pytest.mark.parametrize(
    ("node", "message"),
    [
        ({"size": 5}, r"^world\.size=5: input should be greater than or equal to 11$"),
        ({"size": "wide"}, r"^world\.size='wide': input should be a valid integer"),
        ({"size": 20, "food": [1]}, r"^world\.food"),
        ({"size": 20, "shape": 1}, r"^world\.shape: .*no such setting"),
        ({}, r"^world\.size: this setting is missing$"),
        ({"size": "???"}, r"^world\.size: this setting is missing$"),
        ({"size": 11}, r"food=200 does not fit; lower it or enlarge world\.size$"),
    ],
)
def test_a_bad_setting_is_named_with_its_value_and_what_is_allowed(node, message):
    with pytest.raises(ValueError, match=message):
        build(World, OmegaConf.create(node), "world")


def test_every_problem_gets_its_line():
    with pytest.raises(ValueError, match="size") as caught:
        build(World, {"size": 1, "extra": 2}, "world")
    assert len(str(caught.value).splitlines()) == 2


def test_errors_are_said_as_they_are(capsys):
    """What stands in brackets is no style."""
    with pytest.raises(SystemExit) as ended, errors_in_a_line():
        raise ValueError("mode=[red,proxy]: there is no [red]")
    assert ended.value.code == 2
    assert capsys.readouterr().err == "mode=[red,proxy]: there is no [red]\n"

"""The three experiments at their smallest, left alone once and kept at some moments of that."""

import json
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest


class Wing(NamedTuple):
    """An experiment at its smallest.

    Attributes:
      settings: of a run.
      moments: at which it may be killed: a pattern in the path of a file operation, and the number
        of that among those that match.
      go_on: the setting that an interrupted run is told to go on with.
    """

    settings: str
    moments: dict[str, tuple[str, int]]
    go_on: str


FIRST = ("", 0)
WINGS = {
    "goodhart": Wing(
        "budget=smoke mode=proxy runs=1 world=small budget.train_steps=512 budget.max_steps=512 "
        "budget.evaluation_worlds=4 budget.steps_per_world=64 evaluation.survival_horizon=32 "
        "ppo.num_worlds=8 ppo.rollout_length=8 ppo.episode_length=16 ppo.num_minibatches=1 "
        "ppo.epochs=1 network.hidden=[4]",
        {
            "before the first file": FIRST,
            "during a checkpoint": (r"checkpoints/8\.orbax.*record.*commit_success", 0),
            "between results and page": (r"report\.html", 0),
        },
        "resume",
    ),
    "epistemic": Wing(
        "cards.per_type=3 near_miss.num=0 quality.keep=[] system=kg_oracle",
        {
            "before the first file": FIRST,
            "between two answers": (r"answers/kg_oracle\.jsonl", 4),
            "between results and page": (r"report\.html", 0),
        },
        "hydra.run.dir",
    ),
    "kubku": Wing(
        "budget=smoke task=stories learner.names=[dictionary,always_unknown] worlds=[skewed] "
        "cache=bases",
        {
            "before the first file": FIRST,
            "between two cells": (r"cells/stories/[^/]+npz$", 1),
            "between results and page": (r"report\.html", 0),
        },
        "resume",
    ),
}


class Workshop:
    """Runs of one experiment in one process, and what faults do to them.

    Attributes:
      wing: the experiment. name: its.
      place: where its folders are.
      alone: the results of a run that was left alone, without times.
    """

    def __init__(self, name, served, place):
        self.name, self.wing, self.place = name, WINGS[name], place
        self._served = served
        keep = {str(self.moment(moment)): at for moment, at in self.wing.moments.items()}
        ended = self(place / "alone", keep=keep)
        assert ended.returncode == 0, ended.stderr
        self.alone = results(place / "alone")

    def moment(self, name):
        """What a kill at this moment leaves."""
        return self.place / "moments" / name.replace(" ", "_")

    def copy(self, moment, name):
        """That, in a folder of its own."""
        folder = self.place / name.replace(" ", "_")
        shutil.copytree(self.moment(moment), folder)
        return folder

    def arguments(self, folder, *more):
        return [*self.wing.settings.split(), *more, f"hydra.run.dir={folder}"]

    def __call__(self, folder, *more, **faults):
        """The experiment in this folder, with faults in it; see `broken.Faults`."""
        told = json.dumps({"folder": str(folder), **faults} if faults else {})
        arguments = self.arguments(folder, *more)
        return self._served(self.name, told, *arguments, folder=self.place, check=False)

    def refused(self, folder, *more, **faults):
        """The one line that it ends in."""
        ended = self(folder, *more, **faults)
        assert ended.returncode in (2, 130), (ended.returncode, ended.stdout, ended.stderr)
        assert "Traceback" not in ended.stderr
        *warnings, line = ended.stderr.splitlines()
        # What was made again, and what training said of checkpoints, is told before it.
        assert all("made again" in told or "can't be read" in told for told in warnings)
        return line


def results(folder: Path):
    """The results in a folder, without when and where and in how many seconds they came."""

    def untimed(node):
        if isinstance(node, dict):
            return {k: untimed(v) for k, v in node.items() if not re.search("second|latency", k)}
        return [untimed(each) for each in node] if isinstance(node, list) else node

    found = json.loads((folder / "results.json").read_text("utf-8"))
    found.pop("manifest")
    return untimed(found)


@pytest.fixture(scope="module", params=WINGS)
def shop(request, served, tmp_path_factory):
    place = tmp_path_factory.mktemp(request.param)
    return Workshop(request.param, served("tests.faults.broken"), place)

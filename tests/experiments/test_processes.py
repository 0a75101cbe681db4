"""A command as several processes, and on several devices: the same results."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
SMALL = {
    "goodhart": (
        "budget=smoke mode=proxy runs=2 world=small budget.train_steps=512 budget.max_steps=512 "
        "budget.evaluation_worlds=4 budget.steps_per_world=64 evaluation.survival_horizon=32 "
        "ppo.num_worlds=8 ppo.rollout_length=8 ppo.episode_length=16 ppo.num_minibatches=1 "
        "ppo.epochs=1 network.hidden=[4]"
    ),
    "epistemic": (
        "study=completeness study.domains=[rivers] llm=recorded study.keep=[1,0.7,0.5] "
        "study.wrong=[0.05] study.linking=null budget.draws=3 budget.claims=40"
    ),
    "kubku": (
        "budget=smoke task=stories learner.names=[dictionary,always_unknown,pair_counts] "
        "worlds=[skewed] cache=bases"
    ),
}


AHEAD = {
    "goodhart": "memory: about .*about",
    "epistemic": "1 domain, 9 worse graphs each, 40 claims a graph.*about",
    "kubku": r"\d+ cells of up to \d+ samples, 0 of them kept.*about .* more",
}
"""What each says that it will take, before it begins."""


def start(name, folder, **variables):
    return subprocess.Popen(
        [
            *(sys.executable, "-m", f"experiments.{name}"),
            *(*SMALL[name].split(), "hydra.run.dir=out"),
        ],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "JAX_NUM_CPU_DEVICES": "1"} | variables,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(process):
    output, errors = process.communicate(timeout=500)
    assert process.returncode == 0, output + errors
    return output


def results(folder):
    """Without when, on which devices and in how many seconds they came."""

    def untimed(node):
        if isinstance(node, dict):
            return {k: untimed(v) for k, v in node.items() if not re.search("second|latency", k)}
        return [untimed(each) for each in node] if isinstance(node, list) else node

    found = json.loads((folder / "out" / "results.json").read_text("utf-8"))
    for place in ("manifest", "device_agreement"):
        found.pop(place, None)
    return untimed(found)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """(name) -> the folder of a run by one process on one device."""
    there = {}

    def of(name):
        if name not in there:
            there[name] = tmp_path_factory.mktemp(name)
            ended(start(name, there[name]))
        return there[name]

    return of


@pytest.mark.parametrize(
    "name", ["epistemic", "kubku", pytest.param("goodhart", marks=pytest.mark.full)]
)
def test_two_processes_agree_with_one(name, alone, tmp_path):
    with socket.socket() as some:
        some.bind(("localhost", 0))
        told = {
            "JAX_COORDINATOR_ADDRESS": f"localhost:{some.getsockname()[1]}",
            "JAX_NUM_PROCESSES": "2",
        }
    processes = [start(name, tmp_path, **told, JAX_PROCESS_ID=str(i)) for i in range(2)]
    first, second = (ended(process) for process in processes)
    assert "Page: " in first and "Page: " not in second
    assert re.search(AHEAD[name], first, re.DOTALL), first
    assert (tmp_path / "out" / "report.html").exists()
    assert results(tmp_path) == results(alone(name))


@pytest.mark.full
@pytest.mark.parametrize("name", SMALL)
def test_eight_devices_agree_with_one(name, alone, tmp_path):
    ended(start(name, tmp_path, JAX_NUM_CPU_DEVICES="8"))
    assert results(tmp_path) == results(alone(name))

"""The command as users type it, and the package from Python."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import jsonschema
import numpy as np
import pytest

import evidence
import goodharts_jax
from evidence.runtime import files
from goodharts_jax.results import Results

SCRIPTED = {"random_walk", "omniscient_seeker", "interestingness_seeker", "avoider"}
# Small enough for a test, and long enough to be interrupted in the middle.
SMALL = (
    "budget=smoke",
    "budget.train_steps=16384",
    "ppo.num_worlds=64",
    "ppo.episode_length=64",
    "network.hidden=[16]",
)
MINE = """# @package modes.mine
sees:
  food: [1, 0]
  poison: [0.25, 0.75]
reward:
  food: 2
  poison: -1
"""


class Command:
    """Runs of the command in one folder, which share their compiled programs."""

    def __init__(self, folder: Path, served):
        self.folder = folder
        self._served = served
        self._everywhere = f"compilation_cache={folder / 'compiled'}"

    def start(self, *arguments: str) -> subprocess.Popen:
        """In a process of its own, which can be interrupted."""
        usual = {k: v for k, v in os.environ.items() if k != "HYDRA_FULL_ERROR"}
        return subprocess.Popen(
            [sys.executable, "-m", "experiments.goodhart", *arguments, self._everywhere],
            cwd=self.folder,
            env=usual | {"PYTHONPATH": str(Path(__file__).parents[2])},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A test run in the background ignores Ctrl-C, and its children would too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        """In a process that all other calls are made in."""
        return self._served(*arguments, self._everywhere, folder=self.folder, check=check)


@pytest.fixture(scope="module")
def command(served, tmp_path_factory):
    return Command(tmp_path_factory.mktemp("goodhart"), served("experiments.goodhart"))


@pytest.fixture(scope="module")
def interrupted(command):
    """A run with no mode given, stopped by Ctrl-C once it has kept something."""
    folder = command.folder / "first"
    process = command.start(*SMALL, f"hydra.run.dir={folder}")
    log = folder / "metrics.jsonl"
    while not (log.exists() and log.stat().st_size):  # it is made a moment before its first line
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    kept = list(files.read_jsonl(log))
    return folder, process.returncode, errors, kept


@pytest.fixture(
    scope="module", params=["left alone", pytest.param("gone on with", marks=pytest.mark.processes)]
)
def finished(command, request):
    """A run with no mode given at its end: one that nobody stopped, and that one."""
    if request.param == "left alone":
        folder = command.folder / "alone"
        output = command(*SMALL, f"hydra.run.dir={folder}").stdout
    else:
        folder = request.getfixturevalue("interrupted")[0]
        output = command("resume=first").stdout
    return folder, output, evidence.load(folder)


def checked(
    folder: Path, modes: set[str], seeds: list[int], others: set[str] | frozenset[str] = frozenset()
) -> Results:
    """The results in a folder, complete and of these modes, seeds and policies of others."""
    results = evidence.load(folder)
    written = json.loads((folder / "results.json").read_text("utf-8"))
    jsonschema.validate(written, Results.model_json_schema())
    assert set(results.modes) == modes | SCRIPTED | others
    assert results.manifest.seeds == tuple(seeds)
    for mode in results.modes.values():
        assert [run.seed for run in mode.runs] == seeds
        assert mode.aggregates.total_steps == 64 * 64 * len(seeds)
    for name in ("report.html", "report.md"):
        text = (folder / name).read_text("utf-8")
        assert all(mode.replace("_", " ") in text for mode in modes | others)
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert {
        f"{figure}.{kind}" for figure in ("survival", "learning") for kind in ("svg", "png")
    } <= figures
    replay = json.loads((folder / "replay.json").read_text("utf-8"))
    assert modes | others <= set(replay["modes"])
    return results


# ---- one run ------------------------------------------------------------------------------------


@pytest.mark.processes
def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(interrupted):
    folder, code, errors, kept = interrupted
    assert code == 130
    assert errors.strip().splitlines()[-1] == f"interrupted; go on with resume={folder}"
    assert "Traceback" not in errors
    assert any((folder / "checkpoints").iterdir())
    assert 0 < len(kept) < 6 * 8


def test_no_argument_compares_proxy_and_ground_truth(finished):
    folder, output, _ = finished
    results = checked(folder, {"ground_truth", "proxy"}, [42, 43, 44])
    assert results.thesis.verdict is None  # such short trainings teach nothing
    assert "No verdict: needed first: energy" in output
    assert str(folder.name) + "/report.html" in output
    assert "Judged by survival" in output
    assert max(len(line) for line in output[output.index("Judged by") :].splitlines()[:12]) <= 80


@pytest.mark.processes
@pytest.mark.parametrize("finished", ["gone on with"], indirect=True, scope="module")
def test_a_resumed_run_continues_in_its_folder(interrupted, finished):
    folder, _, _, kept = interrupted
    lines = list(files.read_jsonl(folder / "metrics.jsonl", ("mode", "seed", "steps", "reward")))
    assert lines[: len(kept)] == kept
    taken = {(line["mode"], line["seed"], line["steps"]) for line in lines}
    assert len(lines) == len(taken) == 6 * 8
    assert max(line["steps"] for line in lines) == 16384
    for mode in ("ground_truth", "proxy"):
        for run in finished[2].modes[mode].runs:
            learning = run.training
            assert learning.steps == 16384
            own = [x for x in lines if x["mode"] == mode and x["seed"] == run.seed]
            assert learning.history.reward == pytest.approx(
                [line["reward"] for line in own], rel=1e-4
            )


def test_policies_are_judged_again_in_another_world(command, finished, tmp_path):
    folder, _, first = finished
    command(
        *SMALL,
        "train=false",
        f"checkpoint={folder}",
        "evaluation.world=published_eval",
        f"hydra.run.dir={tmp_path / 'again'}",
    )
    again = checked(tmp_path / "again", {"ground_truth", "proxy"}, [42, 43, 44])
    assert again.manifest.configuration["world"]["size"] == 100
    assert again.manifest.configuration["evaluation_world"]["size"] == 128
    for mode in ("ground_truth", "proxy"):
        for a, b in zip(first.modes[mode].runs, again.modes[mode].runs, strict=True):
            assert a.training == b.training
    assert first.modes["random_walk"] != again.modes["random_walk"]
    # They were watched in the world that they were trained in.
    assert first.goodhart_curves and not again.goodhart_curves
    assert not (tmp_path / "again" / "metrics.jsonl").exists()


def test_a_mode_and_a_policy_of_ones_own(command):
    path = command.folder / "my" / "mode" / "mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(MINE)
    (command.folder / "outsider.py").write_text(
        "def still(view, key):\n    return view[0, 0] * 0\n"
    )
    # As many runs as of the two modes above, whose program serves them too.
    own = ("seed=7", "runs=6", "hydra.run.dir=own", "policy=outsider:still")
    command("--config-dir", "my", *SMALL, "mode=mine", *own)
    results = checked(command.folder / "own", {"mine"}, list(range(7, 13)), {"still"})
    assert results.manifest.configuration["modes"]["mine"]["reward"]["food"] == 2
    measured = results.modes["mine"].aggregates
    assert measured.own_return_per_1k_steps == pytest.approx(
        2 * measured.food_per_1k_steps - measured.poison_per_1k_steps
    )
    assert results.thesis is None


@pytest.mark.full
def test_sweeps(command):
    command(
        "--multirun",
        *SMALL,
        "mode=ground_truth,proxy",
        "seed=42,43",
        "hydra.sweep.dir=sweep",
    )
    folders = [path for path in (command.folder / "sweep").iterdir() if path.is_dir()]
    found = [evidence.load(folder) for folder in folders]
    made = {
        (mode, *results.manifest.seeds)
        for results in found
        for mode in results.modes
        if mode not in SCRIPTED
    }
    assert len(folders) == 4
    assert made == {(m, seed) for m in ("ground_truth", "proxy") for seed in (42, 43)}


@pytest.mark.full
def test_all_modes_on_convolutions_in_the_published_world(command):
    command(
        "budget=smoke",
        "mode=all",
        "runs=1",
        "network=cnn",
        "world=published_eval",
        "hydra.run.dir=all",
    )
    results = checked(
        command.folder / "all",
        {
            "ground_truth",
            "ground_truth_handhold",
            "ground_truth_blinded",
            "ground_truth_aliased",
            "proxy",
            "proxy_mortal",
        },
        [42],
    )
    assert results.manifest.configuration["network"]["features"] == [16, 16]
    assert results.manifest.configuration["world"]["size"] == 128


@pytest.mark.full
@pytest.mark.parametrize("mode", ["proxy", "[ground_truth,proxy]"])
def test_modes_by_name(command, mode):
    folder = f"named {mode}".replace("[", "").replace("]", "")
    command("budget=smoke", f"mode={mode}", "runs=1", f"hydra.run.dir='{folder}'")
    checked(command.folder / folder, set(mode.strip("[]").split(",")), [42])


# ---- bad settings -------------------------------------------------------------------------------

BAD = {
    "ppo.clip=-1": "ppo.clip=-1: input should be greater than 0",
    "ppo.epochs=2.5": "ppo.epochs=2.5: input should be a valid integer",
    "ppo.epochs=many": "ppo.epochs='many': input should be a valid integer",
    "+ppo.momentum=0.9": "ppo.momentum: no such setting; there are num_worlds, rollout_length",
    "ppo.lerning_rate=1": "Could not override 'ppo.lerning_rate'",
    "mode=nonsense": "Could not find 'mode/nonsense'",
    "study=nonsense": "Could not find 'study/nonsense'",
    "mode=[]": "modes",
    "world.size=9": "world.size=9 is smaller than the view; enlarge it to 11 or more",
    "world.poison=[20,12000]": "do not fit on a 100x100 torus",
    "world.food=[200,50]": "world.food: [200, 50]: the least number comes first",
    "world.move_cost=0.00001": "1e-05 is no multiple of 0.0001",
    "ppo.episode_length=100": "ppo.episode_length=100 is no multiple of ppo.rollout_length=32",
    "ppo.num_minibatches=3": "ppo.num_worlds=128 does not divide by ppo.num_minibatches=3",
    "evaluation.survival_horizon=5000": "lies beyond budget.steps_per_world=3000",
    "evaluation.temperature=0": "evaluation.temperature=0: input should be greater than 0",
    "evaluation.world=nowhere": "evaluation.world=nowhere",
    "seed=-1": "seed=-1: input should be greater than or equal to 0",
    "network.hidden=[0]": "network.hidden.0=0: input should be greater than or equal to 1",
    "interestingness.food=high": "interestingness.food='high': input should be a valid number",
    "train=false": "train=false needs checkpoint=",
    "train=false checkpoint=nowhere": "checkpoint=nowhere: there is no nowhere/config.yaml",
    "resume=nowhere": "resume=nowhere: there is no nowhere/config.yaml",
    "resume=nowhere seed=1 runs=2": "resume=nowhere goes on with its own settings; leave out runs",
    "checkpoint=nowhere": "checkpoint=nowhere: its policies are only evaluated: add train=false",
    "world.start_energy=1e9": "world.start_energy=1000000000.0: input should be less than or equal",
    "world.food_energy=1e7": "world.food_energy=10000000.0: input should be less than or equal to",
    "world.move_cost=inf": "world.move_cost=inf: input should be a finite number",
    "world.size=100000": "world.size=100000: input should be less than or equal to 46340",
    "interestingness.poison=nan": "interestingness.poison=nan: input should be a finite number",
    "interestingness.poison=inf": "interestingness.poison=inf: input should be a finite number",
    "interestingness.poison=21": "interestingness.poison=21: input should be less than or equal to",
    "modes.proxy.reward.food=-inf": "modes.proxy.reward.food=-inf: input should be a finite",
    "evaluation.temperature=inf": "evaluation.temperature=inf: input should be a finite number",
    "ppo.clip=nan": "ppo.clip=nan: input should be a finite number",
    "ppo.learning_rate=[1e-3,inf]": "ppo.learning_rate.1=inf: input should be a finite number",
    "ppo.epochs=100000": "ppo.epochs=100000: input should be less than or equal to 1000",
    "runs=1000000": "runs=1000000: input should be less than or equal to 100000",
    "budget.steps_per_world=3e9": "budget.steps_per_world=3000000000.0: input should be less than",
    "budget.steps_per_world=2e9": "lower ppo.num_worlds, budget.evaluation_worlds or budget.steps",
    "study=phase_diagram study.poison_rewards=[]": "study.poison_rewards: a phase diagram needs",
    "study=phase_diagram study.poison_rewards=[nan]": "study.poison_rewards.0=nan: input should be",
    "study=phase_diagram study.distances=[1,1]": "study.distances: [1.0, 1.0] has one twice",
    "study=phase_diagram study.distances=[3]": "study.distances.0=3: input should be less than or",
}


@pytest.mark.parametrize("arguments", BAD)
def test_bad_settings_end_in_one_clear_line(command, arguments):
    ended = command(*arguments.split(), "hydra.run.dir=refused", check=False)
    assert ended.returncode not in (0, None)
    assert BAD[arguments] in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_bad_setting_ends_the_process_with_an_error(command):
    process = command.start("ppo.clip=-1", "hydra.run.dir=bad")
    output, errors = process.communicate()
    assert process.returncode == 2
    assert errors == "ppo.clip=-1: input should be greater than 0\n"
    assert output == ""


def test_another_runs_policies_are_refused(command, finished):
    ended = command(*SMALL, "seed=1", "train=false", f"checkpoint={finished[0]}", check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("seeds: not those that the policies in checkpoint=")


# ---- from Python --------------------------------------------------------------------------------


def test_training_in_five_lines():
    world = goodharts_jax.make_world(12, 2, food=(8, 8), poison=(4, 4))
    mode = goodharts_jax.make_mode((1, 0), (0, 1), food_reward=1, poison_reward=-2)
    plan = goodharts_jax.Plan(num_worlds=16, rollout_length=8, episode_length=32)
    run = jax.jit(goodharts_jax.train, static_argnums=(0, 5))
    state, history = run(plan, world, goodharts_jax.make_hyper(3), mode, jax.random.key(0), 3)
    assert state.update == 3
    assert history.reward.shape == (3,) and np.isfinite(history.reward).all()


def test_every_public_name_is_there():
    for name in goodharts_jax.__all__:
        assert getattr(goodharts_jax, name) is not None


def test_loading_in_one_line(finished, tmp_path):
    assert evidence.load(finished[0]).modes["proxy"].scripted is False
    with pytest.raises(FileNotFoundError, match=r"results\.json does not exist"):
        evidence.load(tmp_path)

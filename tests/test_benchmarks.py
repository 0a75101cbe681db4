"""What benchmarks write says what made it."""

import ast
import ctypes
import json
import re
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from benchmarks import engines, faults, growth, studies, timing, worlds
from goodharts_jax import world as physics

FOLDER = Path(timing.__file__).parent
# They write results of experiments, which have manifests of their own.
OF_EXPERIMENTS = {"completeness", "epistemic"}


def test_what_is_saved_names_commit_date_versions_and_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "RESULTS", tmp_path)
    timing.save("worlds", {"steps": 3}, "a note")
    kept = json.loads((tmp_path / "worlds.json").read_text())
    assert kept["results"] == {"steps": 3} and kept["command"] == "python -m benchmarks worlds"
    assert {"commit", "finished", "versions", "device"} <= set(kept["manifest"])


def test_no_kept_result_names_a_folder_of_the_machine_that_made_it():
    for path in timing.RESULTS.rglob("*.json"):
        found = re.search(r"/(home|root|tmp|work|Users)/", path.read_text("utf-8"))
        assert found is None, path


def test_a_study_that_has_ended_is_not_run_again(tmp_path, monkeypatch):
    """And of one that was interrupted nothing is left."""
    ran = []
    monkeypatch.setattr(
        studies.subprocess, "run", lambda command, cwd, **_: ran.append((command, cwd))
    )
    folder = tmp_path / "study"
    folder.mkdir()
    first = studies.studied("kubku", ["seed=1"], folder)
    assert not folder.exists() and studies.studied("kubku", ["seed=1"], folder) == first
    typed = [sys.executable, "-m", "experiments.kubku", "seed=1", "hydra.run.dir=study"]
    assert ran == [(typed, tmp_path)]  # a path of this machine stands in none of its settings
    studies.studied("kubku", ["seed=2"], folder)
    assert len(ran) == 2


@pytest.mark.parametrize(("made_by", "goes_on"), [("a1b2", True), ("a1b2+", False), (None, False)])
def test_studies_go_on_at_a_clean_commit_alone(tmp_path, monkeypatch, made_by, goes_on):
    monkeypatch.setattr(studies, "ROOT", tmp_path)
    monkeypatch.setattr(studies, "commit", lambda: made_by)
    with studies.scratch("learnt") as one, studies.scratch("learnt") as other:
        assert (one == other) is goes_on
    assert one.exists() is goes_on


@pytest.mark.parametrize("file", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda file: file.stem)
def test_every_benchmark_that_writes_writes_a_manifest_and_its_command(file):
    tree = ast.parse(file.read_text("utf-8"))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    if {"write_json", "files.write_json"} & called and file.stem not in OF_EXPERIMENTS:
        assert "Manifest.now" in called
        keys = {ast.unparse(key) for node in ast.walk(tree) if isinstance(node, ast.Dict)
                for key in node.keys if key is not None}  # fmt: skip
        assert {"'command'", "'manifest'"} <= keys


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler called cc")
def test_the_loop_in_c_lives_by_the_same_physics(tmp_path):
    """Random walkers eat and die as often in it as in ours."""
    number, steps = 64, 512
    loop, counts = worlds.compiled(str(tmp_path)), (ctypes.c_int64 * 3)()
    own = ctypes.create_string_buffer(number * loop.world_bytes())
    state = ctypes.byref(ctypes.c_uint64(0x9E3779B97F4A7C15))
    loop.reset(own, number, state)
    items = np.frombuffer(own, np.uint8).reshape(number, -1)[:, : 110 * 110]

    def inside():
        cells = items.reshape(number, 110, 110)[:, 5:105, 5:105]
        return [(cells == kind).sum((1, 2)) for kind in (physics.FOOD, physics.POISON)]

    before = inside()
    loop.roll(own, number, steps, state, counts)
    # What is eaten is back, and the margin mirrors the opposite edge.
    assert np.array_equal(before, inside())
    grid = items.reshape(number, 110, 110)
    assert np.array_equal(grid[:, :10], grid[:, 100:]) and np.array_equal(
        grid[:, :, :10], grid[:, :, 100:]
    )

    world = physics.make_world()

    def live(key):
        def step(state, key):
            action = jax.random.randint(key, (), 0, physics.NUM_ACTIONS)
            state, event = physics.step(world, state, action, jax.random.fold_in(key, 1))
            return state, (event.died, event.eaten)

        first, rest = jax.random.split(key)
        keys = jax.random.split(rest, steps)
        return jax.lax.scan(step, physics.reset(world, first), keys)[1]

    died, eaten = jax.jit(jax.vmap(live))(jax.random.split(jax.random.key(0), number))
    ours = np.stack([died, eaten == physics.FOOD, eaten == physics.POISON]).sum(-1)
    spread = 5 * np.sqrt(2 * ours.var(1, ddof=1) / number)
    assert np.all(np.abs(ours.mean(1) - np.array(counts) / number) < spread)


def test_the_largest_size_follows_from_one_between_and_the_one_before(monkeypatch):
    """By hand: 100 MB and 1 MB each, so 24,000 MB less a tenth carry 21,500; at a second for each
    100 they take 215 of 400 seconds. Where what is run costs 2 MB each, the one between says so.
    """
    axis, ran = growth.Axis("", "worlds", "step", (100, 1000), "", 400), []

    def run(each: float, cost: float, fails: int = 0):
        def row(_axis: growth.Axis, size: int) -> dict[str, float]:
            ran.append(size)
            if 1 < len(ran) <= 1 + fails:
                raise RuntimeError("killed")
            return {"size": size, "peak_mb": 100 + each * size, "seconds": cost * size}

        monkeypatch.setattr(growth, "_row", row)
        ran.clear()
        rows = [
            {"size": size, "peak_mb": 100 + size, "seconds": cost * size} for size in axis.sizes
        ]
        found = growth.carried(axis, rows)
        assert found["rows"][:2] == rows
        assert [row["size"] for row in found["rows"][2:]] == ran[:1]
        return found["carried"]["limit"], ran

    assert run(1.0, 0.01) == ("memory", [4_600, 21_500])
    # (21,600 - 9,300) MB at (9,300 - 1,100) / 3,600 MB each, beyond 4,600.
    assert run(2.0, 0.01) == ("memory", [4_600, 10_000])
    assert run(1.0, 0.1) == ("time", [2_000, 4_000])
    # From what failed half way back to what was run, in proportions: the root of 4,600 * 21,500.
    assert run(1.0, 0.01, fails=1) == ("memory", [4_600, 21_500, 9_900])
    with pytest.raises(RuntimeError, match="no size got through"):
        run(1.0, 0.01, fails=3)


def test_a_first_call_that_takes_long_is_not_repeated():
    for once, calls, compiled in ((0.0, 1, False), (60.0, 4, True)):
        called = []
        taken = timing.timed(lambda _, to=called: to.append(1), None, repeats=3, once=once)
        assert (len(called), taken["compile_s"] is not None) == (calls, compiled)
        assert taken["median_s"] in taken["seconds"]


FAULTS = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_survives(number, record_property):
    record_property("tried", f"fault {number}")

def test_fails(record_property):
    record_property("tried", "fault 3")
    assert 1 == 2, "lost"

@pytest.mark.skip(reason="no disk")
def test_wants_a_disk():
    pass

def test_runs_on():
    with open("counted", "a") as file:
        file.write("x")
"""


def test_what_faults_came_to_is_kept_and_gone_on_with(tmp_path, monkeypatch):
    (tmp_path / "test_of_faults.py").write_text(FAULTS)
    monkeypatch.chdir(tmp_path)
    kept = faults.Kept(tmp_path / "kept.jsonl")
    for _ in range(2):  # the second time nothing is left to be done
        pytest.main([str(tmp_path), "-p", "no:cacheprovider"], plugins=[kept])
    found = faults.outcome(kept.records())
    assert found["survived"] == ["fault 1", "fault 2"] and found["num_survived"] == 2
    assert found["failed"].keys() == {"test_fails"} and "lost" in found["failed"]["test_fails"]
    assert found["left_out"]["test_wants_a_disk"] == "Skipped: no disk"  # and no path
    assert Path("counted").read_text() == "x"


@pytest.mark.parametrize("ended", [pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.OK])
def test_faults_that_were_not_tried_take_no_kept_result_away(tmp_path, monkeypatch, ended):
    """An argument that pytest doesn't know, or none of the tests chosen."""
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(faults, "ROOT", tmp_path)
    monkeypatch.setattr(faults.pytest, "main", lambda *_, **__: ended)
    monkeypatch.setattr(faults.timing, "save", lambda *_: pytest.fail("kept"))
    with pytest.raises(SystemExit, match="nothing is kept"):
        faults.main("--nothing-such")


def test_what_passed_and_failed_to_end_has_failed():
    passed = {"test": "a::b", "outcome": "passed", "why": "", "tried": ["fault"]}
    found = faults.outcome([passed, {**passed, "outcome": "failed", "why": "left open"}])
    assert found == {
        "num_survived": 0, "survived": [], "failed": {"b": "left open"}, "left_out": {}
    }  # fmt: skip


def test_the_interval_of_a_median_is_between_ranks():
    """P(Bin(25, 1/2) <= 7) = 0.022, and <= 8 0.054; of six values none may be left out, for 2 / 2^6
    is 0.03, and five are too few, for 2 / 2^5 is 0.06.
    """
    found = engines.median_with_interval([float(x) for x in range(25, 0, -1)])
    assert found == {"median": 13, "least": 8, "most": 18}
    few = engines.median_with_interval([3.0, 1, 2, 5, 4, 6])
    assert few == {"median": 3.5, "least": 1, "most": 6}
    few = engines.median_with_interval([3.0, 1, 2, 5, 4])
    assert few == {"median": 3, "least": None, "most": None}
    assert [engines.rounds_of(seconds) for seconds in (0.2, 4, 21)] == [25, 6, 1]

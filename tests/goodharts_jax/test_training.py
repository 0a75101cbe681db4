"""Training, checkpoints, evaluation: a real kill, scripts beside the trained, devices, processes.

Run as a script, this file is the other process of the tests below.
"""

import dataclasses
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from jax.tree_util import Partial

from evidence.runtime import devices, files
from evidence.runtime.devices import fetch, over_runs, shard
from goodharts_jax import (
    ActorCritic,
    Plan,
    checkpoints,
    evaluation,
    make_hyper,
    make_mode,
    make_world,
    policy,
    seekers,
    survival,
    training,
    watch,
)
from goodharts_jax.evaluation import Candidate
from goodharts_jax.modes import stack
from goodharts_jax.ppo import History

if __name__ == "__main__":
    devices.join_processes()  # before JAX is used

NETWORK = ActorCritic((), (8,))
PLAN = Plan(8, 8, 16, epochs=2, num_minibatches=2, watched_worlds=32, network=NETWORK)
WORLD = make_world(12, 2, food=(4, 16), poison=(3, 8))
TRUTH = make_mode((1, 0), (0, 1), 1.0, -2.0, step_reward=-0.1, death_reward=-4.0)
PROXY = make_mode((0.5, 0.5), (1, 1), 0.5, 1.0, mortal=False)
UPDATES, CHUNK = 24, 2
# 303 + 303 steps of 2 x 8 worlds.
EVALUATION = {"num_worlds": 15, "steps_per_world": 606}


def learn(
    seeds=(0, 1, 0),
    modes=(TRUTH, TRUTH, PROXY),
    num_updates=UPDATES,
    plan=PLAN,
    seconds_apart=0,
    **options,
):
    with mock.patch.object(checkpoints, "SECONDS_APART", seconds_apart):
        return training.train(
            plan,
            WORLD,
            make_hyper(UPDATES),
            stack(list(modes)),
            jax.vmap(jax.random.key)(jnp.array(seeds, jnp.uint32)),
            num_updates=num_updates,
            chunk_updates=CHUNK,
            **options,
        )


def candidates(seeds):
    """Policies as they are born, which already prefer some moves to others, and two scripts."""
    view = jnp.zeros((WORLD.view_size, WORLD.view_size, 2))
    params = jax.vmap(lambda seed: NETWORK.init(jax.random.key(seed), view))(jnp.array(seeds))
    params = jax.tree.map(lambda x: 30 * x, params)
    return {
        "truth": Candidate(None, params, TRUTH, seeds),
        "proxy": Candidate(None, params, PROXY, seeds),
        "walk": Candidate(seekers.random_walk, None, None, seeds),
        "seeker": Candidate(seekers.omniscient_seeker, None, None, seeds),
    }


def evaluate(seeds, **options):
    with mock.patch.object(evaluation, "_BLOCK", 8):  # so that a run has more than one
        rows = candidates(seeds)
        evaluator = evaluation.make_evaluator(NETWORK, WORLD, rows, **EVALUATION)
        return evaluation.evaluate(evaluator, rows, **options)


def numbers(tree):
    """All arrays of a pytree, as NumPy has them."""

    def plain(x):
        is_key = jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(x) if is_key else x)

    return [plain(x) for x in jax.tree.leaves(tree)]


def assert_equal(a, b):
    for x, y in zip(numbers(a), numbers(b), strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """Compile once for all tests and processes."""
    folder = tmp_path_factory.mktemp("compiled")
    settings = {
        "jax_compilation_cache_dir": str(folder),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield folder
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def other_process(cache):
    environment = os.environ | {
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1",
    }

    def start(*arguments, **variables):
        command = [sys.executable, __file__, *map(str, arguments)]
        return subprocess.Popen(command, env=environment | variables)

    return start


@pytest.fixture(scope="module")
def undisturbed():
    """A training that was left alone."""
    return learn()


# ---- checkpoints --------------------------------------------------------------------------------


@pytest.mark.processes
def test_killed_and_resumed_ends_in_the_same_bits(other_process, undisturbed, tmp_path):
    """Killed on two devices, of which one has a copy of the last run; goes on with one."""
    log = tmp_path / "metrics.jsonl"
    process = other_process("train", tmp_path, JAX_NUM_CPU_DEVICES="2")
    give_up = time.monotonic() + 500
    while not (log.exists() and len(log.read_text().splitlines()) >= 3):
        assert process.poll() is None and time.monotonic() < give_up
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = [line["first_update"] for line in files.read_jsonl(log)]
    assert before == [0, 1, *range(CHUNK, CHUNK * (len(before) - 1), CHUNK)]
    assert len(before) < UPDATES // CHUNK

    told = []
    resumed = learn(folder=tmp_path / "checkpoints", observe=lambda *news: told.append(news))
    first, kept = told[0]
    already = kept.reward.shape[1]
    # The last checkpoint may still have been on its way.
    assert first == 0 and already >= CHUNK * (len(before) - 2) > 0
    assert [update for update, _ in told[1:]] == list(range(already, UPDATES, CHUNK))

    assert_equal(resumed.states, undisturbed.states)
    assert_equal(resumed.watches, undisturbed.watches)
    for again, column in zip(resumed.history, undisturbed.history, strict=True):
        assert column.shape == (3, UPDATES)
        np.testing.assert_array_equal(again, column)

    # What is finished is read back, not trained again.
    told.clear()
    again = learn(folder=tmp_path / "checkpoints", observe=lambda *news: told.append(news))
    assert len(told) == 1
    assert_equal(again.states, undisturbed.states)


def test_a_training_of_seconds_keeps_its_first_look_and_its_end(undisturbed, tmp_path):
    trained = learn(num_updates=8, folder=tmp_path, seconds_apart=1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "8"]
    assert_equal(learn(folder=tmp_path, seconds_apart=1000).states, undisturbed.states)
    assert trained.history.reward.shape[1] == 8


def _damage(checkpoint):
    """Write over the beginning of every file of it."""
    for path in filter(Path.is_file, checkpoint.rglob("*")):
        path.write_bytes(b"?" * min(64, path.stat().st_size) + path.read_bytes()[64:])


def test_a_damaged_checkpoint_is_told_of_and_the_one_before_it_is_taken(
    undisturbed, tmp_path, capsys
):
    learn(num_updates=8, folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["6", "8"]
    _damage(tmp_path / "8")
    told = []
    resumed = learn(folder=tmp_path, observe=lambda *news: told.append(news))
    assert told[0][1].reward.shape[1] == 6 and told[1][0] == 6
    said = capsys.readouterr().err
    assert said.startswith(f"{tmp_path}: the checkpoint after 8 updates can't be read; going on")
    assert_equal(resumed.states, undisturbed.states)
    assert_equal(resumed.watches, undisturbed.watches)


def test_where_no_checkpoint_can_be_read_all_are_left_alone(tmp_path):
    learn(num_updates=4, folder=tmp_path)
    for checkpoint in tmp_path.iterdir():
        _damage(checkpoint)
    with pytest.raises(ValueError, match=f"no checkpoint in {tmp_path} can be read: "):
        learn(folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "4"]


def test_a_checkpoint_that_cannot_be_written_is_an_error_of_the_system(tmp_path):
    """No file may grow beyond a few bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    learn(num_updates=2)  # compiled, and kept
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as told:
            learn(num_updates=2, folder=tmp_path / "checkpoints")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert told.value.filename == str(tmp_path / "checkpoints")


def test_a_write_that_names_no_file_names_the_checkpoints(tmp_path):
    """As Python's own of metadata, which may be the first to find a disk full."""
    full = OSError(28, "No space left on device")
    failing = mock.patch.object(checkpoints.ocp.CheckpointManager, "save", side_effect=full)
    with failing, pytest.raises(OSError, match="No space left") as told:
        learn(num_updates=2, folder=tmp_path / "checkpoints")
    assert told.value.filename == str(tmp_path / "checkpoints")


@pytest.mark.parametrize("hidden", [(9,), (8, 8)])
def test_policies_of_another_network_are_refused(tmp_path, hidden):
    """In one line, however much the network's sizes hide in its parameters."""
    learn(num_updates=CHUNK, folder=tmp_path)
    other = dataclasses.replace(PLAN, network=ActorCritic((), hidden))
    with pytest.raises(ValueError, match=r"are not of this network.*train anew") as told:
        learn(folder=tmp_path, plan=other)
    assert len(str(told.value).splitlines()) == 1


def test_runs_go_on_until_they_are_level(undisturbed, tmp_path):
    """The first is level at its budget, the second two chunks later, the last never."""
    budget, most = UPDATES // 2, UPDATES
    done_at_looks = training.looks(2 + UPDATES // CHUNK, CHUNK)
    asked = []

    def level(history):
        asked.append(history.reward.shape[1])
        return np.array([True, asked[-1] >= budget + 2 * CHUNK, False])

    options = {"num_updates": budget, "level": level}
    found = learn(max_updates=most, **options)
    assert asked == list(range(budget, most, CHUNK))  # not before, nor at the end
    trained = [budget, budget + 2 * CHUNK, most]
    for run, updates in enumerate(trained):
        alone = undisturbed if updates == UPDATES else learn(num_updates=updates)
        of_run, of_alone = (
            jax.tree.map(lambda x, run=run: x[run], tree) for tree in (found.states, alone.states)
        )
        assert_equal(of_run, of_alone)
        for column, whole in zip(found.history, undisturbed.history, strict=True):
            np.testing.assert_array_equal(column[run, :updates], whole[run, :updates])
            assert np.isnan(column[run, updates:]).all() and column.shape == (3, most)
        last = done_at_looks.index(updates)
        for seen, whole in zip(numbers(found.watches), numbers(undisturbed.watches), strict=True):
            np.testing.assert_array_equal(seen[run, : last + 1], whole[run, : last + 1])
            assert (seen[run, last:] == seen[run, last]).all()

    # Interrupted behind its budget it goes on in the same way.
    told = []
    learn(max_updates=budget + 3 * CHUNK, folder=tmp_path, **options)
    observe = lambda first_update, _: told.append(first_update)  # noqa: E731
    again = learn(max_updates=most, folder=tmp_path, observe=observe, **options)
    assert told == [0, *range(budget + 3 * CHUNK, most, CHUNK)]
    assert_equal(again.states, found.states)
    assert_equal(again.watches, found.watches)
    assert_equal(again.history, found.history)


def test_runs_differ_by_seed_and_by_mode(undisturbed):
    first = [leaf[0] for leaf in numbers(undisturbed.states.params)]
    for other in (1, 2):
        leaves = [leaf[other] for leaf in numbers(undisturbed.states.params)]
        assert any((a != b).any() for a, b in zip(first, leaves, strict=True))
    # At the start, after the first update, then after each chunk of two.
    assert undisturbed.watches.food.shape == (3, 2 + UPDATES // CHUNK, 2)


def test_the_watch_books_energy_and_reward(undisturbed):
    watch = undisturbed.watches
    np.testing.assert_allclose(watch.energy, watch.food - 2 * watch.poison - 0.1, atol=1e-5)
    of_truth = watch.food - 2 * watch.poison - 0.1 - 4 * watch.deaths
    of_proxy = 0.5 * watch.food + watch.poison
    np.testing.assert_allclose(watch.reward[:2], of_truth[:2], atol=1e-5)
    np.testing.assert_allclose(watch.reward[2:], of_proxy[2:], atol=1e-5)
    assert (watch.kl[:, 0] == 0).all() and (watch.kl[:, 1:] > 0).all()


def test_a_training_is_watched_in_the_world_that_it_is_told(undisturbed):
    """One without items: nothing is eaten there, and what is learnt elsewhere stays the same."""
    told = learn(watch_world=make_world(12, 2, food=(0, 0), poison=(0, 0)))
    assert (told.watches.food == 0).all() and (undisturbed.watches.food > 0).all()
    assert_equal(told.states, undisturbed.states)


def test_looks_are_counted_until_a_run_stops():
    """Looks at 0, 1, 2, 4, 8, 12 updates: the first run stopped after 4, the second after 12."""
    food = np.zeros((2, 12))
    food[0, 4:] = np.nan
    history = History(*[food] * len(History._fields))
    assert training.looked(history, 4).tolist() == [4, 6]


def test_looks_lie_close_at_first():
    assert training.looks(8, 8) == [0, 1, 2, 4, 8, 16, 24, 32]
    assert training.looks(6, 5) == [0, 1, 2, 4, 5, 10]
    assert training.looks(4, 1) == [0, 1, 2, 3]


def test_the_watch_follows_first_lives_to_their_end():
    """Worlds by column; the first ends in its second step, the third lives on."""
    died = jnp.array([[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    np.testing.assert_array_equal(
        watch._in_first_life(died),
        np.array([[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 1]], bool),
    )


def test_before_it_learns_a_policy_is_watched_as_it_was_born(undisturbed):
    """It starves alike whatever its mode, and lives no longer than its energy lasts it."""
    survival = undisturbed.watches.survival[:, 0]
    np.testing.assert_array_equal(survival[0] > 9, True)
    assert survival.max() < watch.WATCHED_AGE / 4
    np.testing.assert_allclose(survival[0], survival[2], rtol=0.2)


# ---- evaluation ---------------------------------------------------------------------------------


SEEDS = [0, 1, 2, 3, 4]


@pytest.fixture(scope="module")
def reported():
    """Steps that an evaluation said it had made."""
    return []


@pytest.fixture(scope="module")
def life_tables(reported):
    return evaluate(SEEDS, report=reported.append)


def test_everyone_lives_as_if_evaluated_alone(life_tables):
    """The one compiled program gives each candidate its own policy, run by run."""
    alone = jax.jit(lambda act, lives, key: survival.rollout(WORLD, act, lives, key, 303, 606))

    def trained(params, mode, view, noise_word):
        return policy(NETWORK, params, mode)(view, noise_word)

    for name, row in candidates(SEEDS).items():
        for run, seed in enumerate(SEEDS[:2]):
            if row.script is not None:
                act = Partial(row.script)
            else:
                params = jax.tree.map(lambda x, run=run: x[run], row.params)
                act = Partial(trained, params, row.mode)
            _, key, _ = jax.random.split(jax.random.key(seed), 3)
            parts = []
            for block in jax.random.split(key, 2)[: 2 if row.script is None else 1]:
                reset_key, live_key = jax.random.split(block)
                lives, tally = survival.reset(WORLD, 8, reset_key), None
                for part in range(2):
                    now = jax.random.fold_in(live_key, part)
                    lives, counted = alone(act, lives, now)
                    tally = survival.add(tally, counted)
                parts.append(survival.finish(tally, lives, 606))
            expected, found = survival.pool(parts), life_tables[name][run]
            assert_equal(found.tally, expected.tally)
            np.testing.assert_array_equal(found.alive_by_age, expected.alive_by_age)


def test_runs_of_equal_seed_begin_in_equal_worlds(life_tables):
    truth = life_tables["truth"]
    for name in ("proxy", "seeker"):
        for run in range(2):
            found = life_tables[name][run]
            shared = len(found.items)  # a script is followed in fewer worlds, the first
            np.testing.assert_array_equal(found.items, truth[run].items[:shared])
            assert (found.tally.eaten != truth[run].tally.eaten[:shared]).any()
    assert truth[0].items.shape == (16, 3)  # 15, rounded up to whole blocks
    assert (truth[0].items != truth[1].items).any()


def test_progress_counts_every_step(life_tables, reported):
    """Of 16 worlds for a policy, two blocks of 8, and one of these for a script."""
    assert sum(reported) == len(SEEDS) * (2 * 16 + 2 * 8) * 606


# ---- devices and processes ----------------------------------------------------------------------

COLLECTIVE = re.compile("all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter")


@pytest.fixture(scope="module")
def on_one_device(tmp_path_factory):
    assert jax.device_count() == 1
    path = tmp_path_factory.mktemp("one") / "found.npz"
    _spread(path)
    return dict(np.load(path))


def assert_agree(found, one):
    assert found.keys() == one.keys()
    for name in found.keys() - {"devices", "processes"}:
        if name.startswith("state"):
            np.testing.assert_allclose(found[name], one[name], rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(found[name], one[name], err_msg=name)


@pytest.mark.processes
def test_one_device_and_eight_agree(other_process, on_one_device, tmp_path):
    """10 runs on 8 devices: the last run is there seven times.

    And no program makes devices wait for each other: eight of them on two cores may wait forever.
    """
    path, programs = tmp_path / "found.npz", tmp_path / "programs"
    dump = f"{os.environ['XLA_FLAGS']} --xla_dump_to={programs} --xla_dump_hlo_as_text"
    assert other_process("spread", path, JAX_NUM_CPU_DEVICES="8", XLA_FLAGS=dump).wait() == 0
    found = dict(np.load(path))
    assert found["devices"] == 8
    assert_agree(found, on_one_device)
    compiled = list(programs.glob("*after_optimizations.txt"))
    assert any("num_partitions=8" in program.read_text() for program in compiled)
    for program in compiled:
        assert not COLLECTIVE.search(program.read_text()), program.name


@pytest.mark.processes
def test_two_processes_agree_with_one(other_process, on_one_device, tmp_path):
    """As on two hosts. Both know all results; the first alone writes."""
    with socket.socket() as some:
        some.bind(("localhost", 0))
        address = f"localhost:{some.getsockname()[1]}"
    paths = [tmp_path / str(index) / "found.npz" for index in range(2)]
    processes = [
        other_process(
            "spread",
            path,
            JAX_COORDINATOR_ADDRESS=address,
            JAX_NUM_PROCESSES="2",
            JAX_PROCESS_ID=str(index),
            JAX_NUM_CPU_DEVICES="1",
        )
        for index, path in enumerate(paths)
    ]
    assert [process.wait() for process in processes] == [0, 0]
    for path in paths:
        found = dict(np.load(path))
        assert found["devices"] == 2 and found["processes"] == 2
        assert_agree(found, on_one_device)
    assert (paths[0].parent / "checkpoints").exists()
    assert [entry.name for entry in paths[1].parent.iterdir()] == ["found.npz"]


def _spread(path):
    path.parent.mkdir(exist_ok=True)
    found = {"devices": np.array(jax.device_count()), "processes": np.array(jax.process_count())}
    for size in (1, 3, 8, 11):
        run = over_runs(lambda shared, x, y: (shared * x + y.sum(), y), donate=(2,))
        x, y = shard((np.arange(size, dtype=np.float32), np.ones((size, 4), np.float32)))
        scaled, kept = fetch(run(jnp.float32(3), x, y), size)
        np.testing.assert_array_equal(scaled, 3 * np.arange(size) + 4)
        np.testing.assert_array_equal(kept, np.ones((size, 4)))
    modes, folder = [TRUTH] * 5 + [PROXY] * 5, path.parent / "checkpoints"
    trained = learn(range(10), modes, num_updates=2, folder=folder)
    found |= {f"state {i}": leaf for i, leaf in enumerate(numbers(trained.states))}
    for name, row in evaluate(SEEDS).items():
        for run, found_in in enumerate(row):
            leaves = [*jax.tree.leaves(found_in.tally), found_in.alive_by_age, found_in.items]
            found |= {f"{name} {run} {i}": leaf for i, leaf in enumerate(leaves)}
    np.savez(path, **found)


def _train(folder):
    def observe(first_update, history):
        record = {"first_update": first_update, "reward": history.reward}
        files.append_jsonl(folder / "metrics.jsonl", record)

    learn(folder=folder / "checkpoints", observe=observe)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["train", folder]:
            _train(Path(folder))
        case ["spread", path]:
            _spread(Path(path))

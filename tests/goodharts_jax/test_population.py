"""Many runs at once: checkpoints, a real kill, scripts beside the trained, any number of devices.

Run as a script, this file is the other process of the tests below.
"""

import os
import signal
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

from evidence import runs
from evidence.devices import over_runs
from goodharts_jax import (
    ActorCritic,
    Plan,
    make_hyper,
    make_mode,
    make_world,
    policy,
    population,
    seekers,
    survival,
)
from goodharts_jax.modes import stack
from goodharts_jax.population import Contender

NETWORK = ActorCritic((), (8,))
PLAN = Plan(8, rollout_length=8, episode_length=16, epochs=2, num_minibatches=2, network=NETWORK)
WORLD = make_world(12, 2, food=(4, 16), poison=(3, 8))
TRUTH = make_mode((1, 0), (0, 1), 1.0, -2.0, pay_step=-0.1, pay_death=-4.0)
PROXY = make_mode((0.5, 0.5), (1, 1), 0.5, 1.0, mortal=False)
UPDATES, CHUNK = 24, 2
# 303 + 303 steps of 2 x 8 worlds.
EVALUATION = {"num_worlds": 15, "steps_per_world": 606}


def learn(seeds=(0, 1, 0), modes=(TRUTH, TRUTH, PROXY), num_updates=UPDATES, **options):
    return population.train(
        PLAN,
        WORLD,
        make_hyper(UPDATES),
        stack(list(modes)),
        jax.vmap(jax.random.key)(jnp.array(seeds, jnp.uint32)),
        num_updates=num_updates,
        chunk_updates=CHUNK,
        **options,
    )


def contenders(seeds):
    """Policies as they are born, which already prefer some moves to others, and two scripts."""
    view = jnp.zeros((WORLD.view_size, WORLD.view_size, 2))
    params = jax.vmap(lambda seed: NETWORK.init(jax.random.key(seed), view))(jnp.array(seeds))
    params = jax.tree.map(lambda x: 30 * x, params)
    return {
        "truth": Contender(None, params, TRUTH, seeds),
        "proxy": Contender(None, params, PROXY, seeds),
        "seeker": Contender(1, None, None, seeds),
    }


SCRIPTS = [seekers.random_walk, seekers.omniscient_seeker]


def evaluate(seeds):
    with mock.patch.object(population, "_BLOCK", 8):  # so that a run has more than one
        return population.evaluate(NETWORK, WORLD, contenders(seeds), SCRIPTS, **EVALUATION)


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


def test_killed_and_resumed_ends_in_the_same_bits(other_process, undisturbed, tmp_path):
    log = tmp_path / "metrics.jsonl"
    process = other_process("train", tmp_path)
    give_up = time.monotonic() + 500
    while not (log.exists() and len(log.read_text().splitlines()) >= 3):
        assert process.poll() is None and time.monotonic() < give_up
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = [line["first_update"] for line in runs.read_jsonl(log)]
    assert before == list(range(0, CHUNK * len(before), CHUNK))
    assert len(before) < UPDATES // CHUNK

    told = []
    resumed = learn(folder=tmp_path / "checkpoints", observe=lambda *news: told.append(news))
    first, kept = told[0]
    already = kept["reward"].shape[1]
    assert first == 0 and already >= CHUNK * len(before)
    assert [update for update, _ in told[1:]] == list(range(already, UPDATES, CHUNK))

    assert_equal(resumed.learners, undisturbed.learners)
    assert_equal(resumed.watch, undisturbed.watch)
    assert resumed.history.keys() == undisturbed.history.keys()
    for name, column in undisturbed.history.items():
        assert column.shape == (3, UPDATES)
        np.testing.assert_array_equal(resumed.history[name], column)

    # What is finished is read back, not trained again.
    told.clear()
    again = learn(folder=tmp_path / "checkpoints", observe=lambda *news: told.append(news))
    assert len(told) == 1
    assert_equal(again.learners, undisturbed.learners)


def test_runs_differ_by_seed_and_by_mode(undisturbed):
    first = [leaf[0] for leaf in numbers(undisturbed.learners.params)]
    for other in (1, 2):
        leaves = [leaf[other] for leaf in numbers(undisturbed.learners.params)]
        assert any((a != b).any() for a, b in zip(first, leaves, strict=True))
    assert undisturbed.watch.food.shape == (3, UPDATES // CHUNK, 2)


def test_the_watch_books_energy_and_pay(undisturbed):
    watch = undisturbed.watch
    np.testing.assert_allclose(watch.energy, watch.food - 2 * watch.poison - 0.1, atol=1e-5)
    of_truth = watch.food - 2 * watch.poison - 0.1 - 4 * watch.deaths
    of_proxy = 0.5 * watch.food + watch.poison
    np.testing.assert_allclose(watch.pay[:2], of_truth[:2], atol=1e-5)
    np.testing.assert_allclose(watch.pay[2:], of_proxy[2:], atol=1e-5)
    assert (watch.kl > 0).all()


# ---- evaluation ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def censuses():
    return evaluate(seeds=[5, 6])


def test_everyone_lives_as_if_evaluated_alone(censuses):
    """The one compiled program gives each contender its own policy, run by run."""
    seeds = [5, 6]
    alone = jax.jit(lambda agent, lives, key: survival.forage(WORLD, agent, lives, key, 303, 606))

    def trained(params, mode, view, look):
        return policy(NETWORK, params, mode, view, look).logits

    def scripted(view, look):
        return seekers.omniscient_seeker(view)

    for name, row in contenders(seeds).items():
        for run, seed in enumerate(seeds):
            if name == "seeker":
                agent = Partial(scripted)
            else:
                params = jax.tree.map(lambda x, run=run: x[run], row.params)
                agent = Partial(trained, params, row.mode)
            _, key, _ = jax.random.split(jax.random.key(seed), 3)
            parts = []
            for block in jax.random.split(key, 2):
                lives, tally = survival.settle(WORLD, 8, block), None
                for part in range(2):
                    now = jax.random.fold_in(block, part)
                    lives, counted = alone(agent, lives, now)
                    tally = survival.add(tally, counted)
                parts.append(survival.close(tally, lives, 606))
            expected, found = survival.pool(parts), censuses[name][run]
            assert_equal(found.tally, expected.tally)
            np.testing.assert_array_equal(found.alive_by_age, expected.alive_by_age)


def test_runs_of_equal_seed_begin_in_equal_worlds(censuses):
    truth = censuses["truth"]
    for name in ("proxy", "seeker"):
        for run in range(2):
            np.testing.assert_array_equal(censuses[name][run].items, truth[run].items)
            assert (censuses[name][run].tally.eaten != truth[run].tally.eaten).any()
    assert truth[0].items.shape == (16, 3)  # 15, rounded up to whole blocks
    assert (truth[0].items != truth[1].items).any()


def test_progress_counts_every_step():
    seen = []
    rows = {"walk": Contender(0, None, None, [1])}
    population.evaluate(
        NETWORK, WORLD, rows, SCRIPTS[:1], num_worlds=3, steps_per_world=7, report=seen.append
    )
    assert sum(seen) == 3 * 7


# ---- devices ------------------------------------------------------------------------------------


def test_one_device_and_eight_agree(other_process, tmp_path):
    """10 runs on 8 devices: three devices have two runs, and six runs are padding."""
    kept = {}
    for count in (1, 8):
        path = tmp_path / f"{count}.npz"
        assert other_process("spread", path, JAX_NUM_CPU_DEVICES=str(count)).wait() == 0
        kept[count] = dict(np.load(path))
    assert kept[1]["devices"] == 1 and kept[8]["devices"] == 8
    for name, one in kept[1].items():
        if name == "devices":
            continue
        eight = kept[8][name]
        if name.startswith("learner"):
            np.testing.assert_allclose(eight, one, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(eight, one, err_msg=name)


def _spread(path):
    found = {"devices": np.array(jax.device_count())}
    for size in (1, 3, 8, 11):
        run = over_runs(lambda shared, x, y: (shared * x + y.sum(), y), donate=(2,))
        x, y = jnp.arange(size, dtype=jnp.float32), jnp.ones((size, 4))
        scaled, kept = run(jnp.float32(3), x, y)
        np.testing.assert_array_equal(scaled, 3 * np.arange(size) + 4)
        np.testing.assert_array_equal(kept, np.ones((size, 4)))
    trained = learn(range(10), [TRUTH] * 5 + [PROXY] * 5, num_updates=2)
    found |= {f"learner {i}": leaf for i, leaf in enumerate(numbers(trained.learners))}
    for name, row in evaluate(seeds=[0, 1, 2, 3, 4]).items():
        for run, census in enumerate(row):
            leaves = [*jax.tree.leaves(census.tally), census.alive_by_age, census.items]
            found |= {f"{name} {run} {i}": leaf for i, leaf in enumerate(leaves)}
    np.savez(path, **found)


def _train(folder):
    def observe(first_update, history):
        record = {"first_update": first_update, "reward": history["reward"]}
        runs.append_jsonl(folder / "metrics.jsonl", record)

    learn(folder=folder / "checkpoints", observe=observe)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["train", folder]:
            _train(Path(folder))
        case ["spread", path]:
            _spread(Path(path))

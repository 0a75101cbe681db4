"""The phase diagram: killed and resumed, its cells and correlations by hand, what it warns of.

Run as a script, this file is the process that is killed.
"""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import hydra
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache
from rich.console import Console

from evidence.measurement import Measurement
from evidence.runtime import files
from goodharts_jax import (
    ActorCritic,
    Plan,
    make_hyper,
    make_world,
    phase,
    ppo,
    report,
    study,
    training,
)
from goodharts_jax import world as physics
from goodharts_jax.pressure import PhaseCell
from goodharts_jax.results import Results, Totals
from goodharts_jax.settings import read
from goodharts_jax.watch import WATCHED_AGE, Watch

# Two cells of two runs, small, and long enough to be killed in the middle.
SMALL = (
    "study=phase_diagram",
    "study.poison_rewards=[-2, 2]",
    "study.distances=[1]",
    "runs=2",
    "budget=smoke",
    "ppo.num_worlds=32",
    "ppo.episode_length=32",
    "network.hidden=[8]",
)


def run(folder: Path) -> Results:
    with hydra.initialize_config_module("conf.goodhart", version_base="1.3"):
        settings = read(hydra.compose("config", list(SMALL)))
    return study.run(settings, folder, Console(quiet=True))


@pytest.fixture
def compiled(tmp_path):
    """Compile once for all processes."""
    settings = {
        "jax_compilation_cache_dir": str(tmp_path / "compiled"),
        "jax_persistent_cache_min_compile_time_secs": 0.1,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield {name.upper(): str(value) for name, value in settings.items()}
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


# ---- a kill -------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.processes
def test_killed_and_resumed_it_is_the_same_diagram(tmp_path, compiled, monkeypatch):
    """Killed on two devices, gone on with on one. What the page looks like is tested elsewhere."""
    monkeypatch.setattr(report, "write", lambda *arguments, **options: None)
    folder, log = tmp_path / "killed", tmp_path / "killed" / "metrics.jsonl"
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        env=os.environ
        | compiled
        | {"JAX_NUM_CPU_DEVICES": "2", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while not (log.exists() and len(log.read_text().splitlines()) >= 4 * 4):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (folder / "results.json").exists()
    lines = len(log.read_text().splitlines())

    resumed, alone = run(folder), run(tmp_path / "alone")
    for part in ("phase_diagram", "modes", "warnings"):
        assert files.plain(getattr(resumed, part)) == files.plain(getattr(alone, part))
    assert len(resumed.phase_diagram) == 2 * 4
    whole = [
        list(files.read_jsonl(path / "metrics.jsonl")) for path in (folder, tmp_path / "alone")
    ]
    assert whole[0] == whole[1] and len(whole[0]) > lines


# ---- the cells ----------------------------------------------------------------------------------


DISTANCES = (0.0, 0.1, 0.5, 1.0, 2**0.5, 2.0)


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_cell_is_rewarded_and_seen_as_it_says(distance):
    mode = phase.cell_mode(-0.5, distance, noise=0.25)
    assert mode.reward.item.tolist() == pytest.approx([0, 1, -0.5])
    empty, food, poison = np.asarray(mode.appearance, float)
    assert empty.tolist() == [0, 0]
    assert np.linalg.norm(food - poison) == pytest.approx(distance, abs=1e-6)
    # Neither is brighter, by whatever measure: one channel's number is the other's.
    assert np.linalg.norm(food) == pytest.approx(1)
    assert food.tolist() == pytest.approx(poison[::-1].tolist())
    assert not bool(mode.mortal) and float(mode.noise) == 0.25


# ---- a mirror -----------------------------------------------------------------------------------

KINDS = jnp.array([0, 2, 1])  # food is called poison, and poison food


def mirrored_state(state):
    return state.replace(grid=KINDS.astype(jnp.uint8)[state.grid], items=state.items[..., KINDS])


def test_looks_and_rewards_exchanged_give_the_mirrored_outcome(monkeypatch):
    """A cell beside its mirror: looks, rewards and what lies there are exchanged between food and
    poison. Then one eats of poison what the other eats of food, update for update, to the bit.
    """
    rules = make_world(12, 2, food=(14, 14), poison=(8, 8))
    plan = Plan(8, rollout_length=8, episode_length=16, network=ActorCritic((), (8,)))
    cell = phase.cell_mode(-0.5, 1.0, noise=0.25)
    paid = cell.reward.replace(item=cell.reward.item[KINDS])
    mirror = cell.replace(appearance=cell.appearance[KINDS], reward=paid)

    reset = physics.reset

    @jax.jit
    def history(mode, mirrored):
        def either(*about):
            state = reset(*about)
            return jax.tree.map(partial(jnp.where, mirrored), mirrored_state(state), state)

        monkeypatch.setattr(physics, "reset", either)
        return ppo.train(plan, rules, make_hyper(12), mode, jax.random.key(1), 12)[1]

    one, other = history(cell, False), history(mirror, True)
    assert float(one.food.sum()) > 0 and (one.food != one.poison).any()
    np.testing.assert_array_equal(one.food, other.poison)
    np.testing.assert_array_equal(one.poison, other.food)
    np.testing.assert_array_equal(one.reward, other.reward)


# ---- values by hand -----------------------------------------------------------------------------


def watched(food, poison, deaths, energy, items):
    """Two cells of two runs, three looks, both halves of the worlds alike; the first look is at
    untrained policies, that eat and die as all others.

    Every other number is by cell, run and look; items are of food and of poison.
    """

    def halves(values, untrained):
        later = np.reshape(values, (4, 2))
        looks = np.column_stack([np.full(4, untrained), later])
        return np.repeat(looks[..., None], 2, axis=2).astype(np.float32)

    of_kind = np.array([0, *items], np.float32)
    return Watch(
        energy=halves(energy, -0.1),
        reward=halves(10 * np.asarray(energy), 0.0),
        held_out=np.zeros((4, 3, 2), np.float32),
        food=halves(food, 0.02),
        poison=halves(poison, 0.01),
        deaths=halves(deaths, 0.1),
        survival=halves(1 / np.asarray(deaths), 10.0),
        items=np.broadcast_to(of_kind, (4, 3, 2, 3)),
        kl=np.zeros((4, 3), np.float32),
    )


def test_cells_by_hand():
    """A step eats .2 food and .1 poison, and so on; twice as much food lies there as poison."""
    watch = watched(
        food=[0.2, 0.1, 0.2, 0.1, 0.02, 0.0, 0.02, 0.0],
        poison=[0.1, 0.1, 0.1, 0.1, 0.02, 0.0, 0.02, 0.0],
        deaths=[0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08],
        energy=[-0.05, -0.09, -0.05, -0.07, -0.1, -0.12, -0.1, -0.13],
        items=(100, 50),
    )
    chance = Totals.model_construct(food_per_1k_steps=100.0, poison_per_1k_steps=50.0)
    level = [True, True, True, False]
    cells = phase.cells(
        [(-1.0, 0.5), (2.0, 1.0)], watch, [0, 1000, 2000], chance, (1.0, -2.0), level
    )
    assert [(cell.poison_reward, cell.distance, cell.steps) for cell in cells] == [
        (-1.0, 0.5, 1000),
        (-1.0, 0.5, 2000),
        (2.0, 1.0, 1000),
        (2.0, 1.0, 2000),
    ]
    early, late, other, nothing = cells
    assert early.overall_efficiency.value == pytest.approx(2 / 3)
    assert early.selectivity.value == pytest.approx(0.5)  # as often as they lie there
    assert late.overall_efficiency.value == pytest.approx(1 / 2)
    assert late.selectivity.value == pytest.approx(0.001 / (0.001 + 0.002))
    assert other.overall_efficiency.value == pytest.approx(1 / 2)
    assert nothing.overall_efficiency.value is None and nothing.selectivity.value is None
    # Deaths are of each cell's own two runs: (.01 + .03) / 2 and (.06 + .08) / 2.
    assert early.deaths_per_1k_steps.value == pytest.approx(20)
    assert nothing.deaths_per_1k_steps.value == pytest.approx(70)
    assert early.deaths_per_1k_steps.n == 2
    assert [cell.converged for cell in cells] == [2, 2, 1, 1]
    # From its best look: early ones have risen; the first run falls from -50 to -90 and the second
    # from -50 to -70; the last cell's best was untrained, at -100.
    assert early.drop.value == pytest.approx(0)
    assert late.drop.value == pytest.approx(30)
    assert nothing.drop.value == pytest.approx((20 + 30) / 2)
    # What is gained: (-90 - 70) / 2 after -100, and (-120 - 130) / 2.
    assert late.trained.energy_per_1k_steps.value == pytest.approx(-80)
    assert late.untrained.energy_per_1k_steps.value == pytest.approx(-100)
    assert late.gain.value == pytest.approx(20) and nothing.gain.value == pytest.approx(-25)
    assert late.trained.reward_per_1k_steps.value == pytest.approx(-800)
    assert late.trained.survival.value == pytest.approx((50 + 25) / 2)
    assert late.untrained.survival.value == pytest.approx(10)
    for cell, food, poison, measured in (
        (early, 0.1, 0.05, early.reward_correlation_random),
        (other, 0.1, 0.05, other.reward_correlation_random),
        (late, 0.1, 0.1, late.reward_correlation_trained),
        (other, 0.02, 0.02, other.reward_correlation_trained),
    ):
        steps = ["food"] * round(1000 * food) + ["poison"] * round(1000 * poison)
        steps += ["none"] * (1000 - len(steps))
        own = [{"food": 1.0, "poison": cell.poison_reward, "none": 0.0}[step] for step in steps]
        true = [{"food": 1.0, "poison": -2.0, "none": 0.0}[step] for step in steps]
        assert measured.value == pytest.approx(np.corrcoef(own, true)[0, 1], rel=1e-5)
    assert nothing.reward_correlation_trained.value is None


def test_the_diagram_is_read_at_shares_of_the_training_however_looks_lie():
    updates = training.looks(20, 8)
    looks = np.zeros((1, 20, 2), np.float32)
    watch = Watch(
        **dict.fromkeys(
            ("energy", "reward", "held_out", "food", "poison", "deaths", "survival"), looks
        ),
        items=np.ones((1, 20, 2, 3), np.float32),
        kl=looks[..., 0],
    )
    chance = Totals.model_construct(food_per_1k_steps=1.0, poison_per_1k_steps=1.0)
    found = phase.cells([(0.0, 1.0)], watch, updates, chance, (1.0, -2.0), [True])
    assert updates[-1] == 128
    assert [cell.steps for cell in found] == [8, 32, 64, 128]


# ---- warnings -----------------------------------------------------------------------------------


def cell(deaths_per_1k_steps, num_runs, level=None):
    rate = Measurement(deaths_per_1k_steps, None, None, num_runs, "run", "by hand")
    level = num_runs if level is None else level
    return PhaseCell.model_construct(deaths_per_1k_steps=rate, steps=10, converged=level)


def test_cells_that_rest_on_too_little_are_named():
    enough = 1000 * 500 / (5 * 128 * WATCHED_AGE)
    assert phase.cautions([cell(enough + 0.01, 5)], 128) == []
    assert phase.cautions([cell(enough - 0.01, 5), cell(100.0, 5), cell(None, 5)], 128) == [
        "2 of 3 cells saw fewer than 500 deaths; theirs are rough death rates."
    ]
    assert phase.cautions([cell(100.0, 4)], 128) == [
        "4 run(s) a cell; a claim about a cell needs 5."
    ]


def test_cells_that_had_not_levelled_off_are_named():
    (said,) = phase.cautions([cell(100.0, 5), cell(100.0, 5, level=4)], 128)
    assert said.startswith("1 of 2 cells have a run that had not levelled off")


# ---- correlation of rewards ---------------------------------------------------------------------


def test_reward_correlation_by_hand():
    # Food on one step of four, poison on one: rewards (0, 1, -1) and (0, 1, 1) are unrelated.
    assert phase.reward_correlation(0.25, 0.25, (1, 1), (1, -1)) == pytest.approx(0)
    assert phase.reward_correlation(0.3, 0.1, (1, -2), (2, -4)) == pytest.approx(1)
    # Without poison eaten, whatever its reward can't show.
    assert phase.reward_correlation(0.3, 0, (1, 5), (1, -2)) == pytest.approx(1)
    assert phase.reward_correlation(0, 0, (1, 5), (1, -2)) is None


if __name__ == "__main__":
    run(Path(sys.argv[1]))

"""The phase diagram: killed and resumed, what it warns of, and its correlations by hand.

Run as a script, this file is the process that is killed.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import hydra
import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache
from rich.console import Console

from evidence.measurement import Measurement
from evidence.runtime import files
from goodharts_jax import phase, report, study
from goodharts_jax.results import PhaseCell, Results
from goodharts_jax.settings import read
from goodharts_jax.watch import WATCHED_STEPS

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
def test_killed_and_resumed_it_is_the_same_diagram(tmp_path, compiled, monkeypatch):
    """Killed on two devices, gone on with on one. What the page looks like is tested elsewhere."""
    monkeypatch.setattr(report, "write", lambda *arguments, **options: None)
    folder, log = tmp_path / "killed", tmp_path / "killed" / "metrics.jsonl"
    process = subprocess.Popen(
        [sys.executable, __file__, str(folder)],
        env=os.environ | compiled | {"JAX_NUM_CPU_DEVICES": "2"},
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


# ---- warnings -----------------------------------------------------------------------------------


def cell(deaths_per_1k_steps, num_runs):
    rate = Measurement(deaths_per_1k_steps, None, None, num_runs, "run", "by hand")
    return PhaseCell.model_construct(deaths_per_1k_steps=rate)


def test_cells_that_rest_on_too_little_are_named():
    enough = 1000 * 500 / (3 * WATCHED_STEPS)
    assert phase.cautions([cell(enough + 0.01, 3)]) == []
    assert phase.cautions([cell(enough - 0.01, 3), cell(100.0, 3), cell(None, 3)]) == [
        "2 of 3 cells saw fewer than 500 deaths; theirs are rough death rates."
    ]
    assert phase.cautions([cell(100.0, 2)]) == ["2 run(s) a cell; a claim about a cell needs 3."]


# ---- correlation of rewards ---------------------------------------------------------------------


def test_reward_correlation_by_hand():
    # Food on one step of four, poison on one of four: pays (0, 1, -1) and (0, 1, 1) are unrelated.
    assert phase.reward_correlation(0.25, 0.25, (1, 1), (1, -1)) == pytest.approx(0)
    assert phase.reward_correlation(0.3, 0.1, (1, -2), (2, -4)) == pytest.approx(1)
    # Without poison eaten, whatever it pays can't show.
    assert phase.reward_correlation(0.3, 0, (1, 5), (1, -2)) == pytest.approx(1)
    assert phase.reward_correlation(0, 0, (1, 5), (1, -2)) is None


if __name__ == "__main__":
    run(Path(sys.argv[1]))

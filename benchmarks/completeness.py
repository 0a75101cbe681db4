"""How complete a graph must be for a licence to pay: simulated models, and recorded replies.

Writes what `python -m experiments.epistemic study=completeness llm=recorded` finds on rivers and
countries, its map, and what is lost where the licence must find its claims, into
benchmarks/results/epistemic/completeness/. Into completeness_popularity/ it writes the same at the
price of the thesis, claims given, where the graph loses what is least often named, with models that
know the better what it names more often.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.timing import RESULTS
from epistemic.completeness import figures, sweep
from epistemic.completeness.results import Results
from epistemic.completeness.thesis import load_thesis
from epistemic.settings import read
from evidence import figures as drawing
from evidence.runtime.files import write_json

_FOLLOWING = (
    f"+study.models.following_{name}="
    f"{{right: {right}, bluff: 1, calibrated: {calibrated}, follows: 1}}"
    for name, right, calibrated in (
        ("bluffer_90", 0.9, "false"),
        ("calibrated_80", 0.8, "true"),
        ("calibrated_90", 0.9, "true"),
    )
)
_ARMS = {
    "completeness": ("llm=recorded",),
    "completeness_popularity": (
        "study.loss=popularity",
        "study.price=[3]",
        "study.wrong=[0.05]",
        "study.linking=null",
        *_FOLLOWING,
    ),
}


def main() -> None:
    """Both sweeps."""
    keep(_ARMS)


def keep(arms: Mapping[str, Sequence[str]]) -> None:
    """Write what sweeps find; nothing is written before all are through.

    Args:
      arms: folder -> overrides of its sweep.
    """
    found = {name: _run(*overrides) for name, overrides in arms.items()}
    wrong = load_thesis().wrong
    for name, results in found.items():
        folder = RESULTS / "epistemic" / name
        print(write_json(folder / Results.file, results))
        drawing.save(figures.pays(results.completeness, wrong), folder, "pays")
        if results.completeness.linking is not None:
            drawing.save(figures.linking(results.completeness.linking), folder, "linking")


def _run(*overrides: str) -> Results:
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    with initialize_config_module("conf.epistemic", version_base="1.3"):
        config = compose("config", overrides=["study=completeness", *overrides])
    plain: Any = OmegaConf.to_container(config, resolve=True)
    with tempfile.TemporaryDirectory() as folder:
        return sweep.run(read(plain), Path(folder), Console())


if __name__ == "__main__":
    main()

"""What a study is told: how much, which learners, which families, which model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le
from pydantic import Field, model_validator

from evidence.runtime.config import Settings, build
from evidence.runtime.language_models import ModelSettings
from evidence.runtime.tracking import Tracker
from kubku.base_states import Training
from kubku.learners.registry import KNOWN
from kubku.tasks import FAMILIES
from kubku.tasks.jsonl import FROM_FILE
from kubku.tasks.public import SETS

# Samples are numbered in 32 bits, and ten million of them fill a large machine.
Several = Annotated[int, Gt(1), Le(10_000_000)]
Seeds = Annotated[int, Gt(0), Le(100_000)]


class Budget(Settings):
    """How much is done.

    Attributes:
      test: samples of a cell; slow: the same for slow learners.
      pairs: samples (two a pair) for the drift between protected attributes.
      validation: samples that settings are tuned on.
      pretrain: samples that base states are made from.
      sweep: samples of the sweep over steps; streams, length: of the streaming protocol.
      base_seeds: base states made, each from its own seed, for each of `generator_seeds`, of which
        every one draws all samples anew. The sweep over steps and the other worlds are there for
        the first base state alone.
      training: of gradient learners' and readers' base states.
    """

    test: Several
    slow: Several
    pairs: Several
    validation: Several
    pretrain: Several
    sweep: Several
    streams: Several
    length: Several
    base_seeds: Seeds
    generator_seeds: Seeds
    training: Training

    @property
    def replicates(self) -> int:
        """How many base states there are of a kind."""
        return self.base_seeds * self.generator_seeds


def _once(setting: str, names: tuple[str, ...]) -> None:
    """What is named twice would be counted twice."""
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{setting}: {', '.join(twice)} is named more than once")


class LearnerSettings(Settings):
    """Which learners, and from which of their base states (by default all); `target` is the user's
    own, as "module:Name", for the name `custom`.
    """

    names: tuple[str, ...] = Field(min_length=1)
    target: str | None = None
    bases: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _known(self) -> LearnerSettings:
        _once("learner.names", self.names)
        for name in self.names:
            if name not in KNOWN:
                raise ValueError(
                    f"learner.names: no learner is called {name!r}; there are {', '.join(KNOWN)}"
                )
        if any(KNOWN[name].needs_target for name in self.names) != (self.target is not None):
            raise ValueError("learner.target: learner=custom needs it, and nothing else has it")
        return self


class TaskSettings(Settings):
    """Which families.

    Attributes:
      families: by name: drawn ones, public sets, `jsonl`.
      path: for `jsonl`, the user's samples.
      pretrain: for `jsonl`, others that base states are made from.
      package: for a public set, the folder of the package that ships it, if it isn't installed.
    """

    families: tuple[str, ...] = Field(min_length=1)
    path: str | None = None
    pretrain: str | None = None
    package: str | None = None

    @model_validator(mode="after")
    def _known(self) -> TaskSettings:
        _once("task.families", self.families)
        there_are = (*FAMILIES, *SETS, FROM_FILE)
        for name in self.families:
            if name not in there_are:
                raise ValueError(
                    f"task.families: no family is called {name!r}; there are {', '.join(there_are)}"
                )
        if (FROM_FILE in self.families) != (self.path is not None):
            raise ValueError("task.path: task=jsonl needs it, and nothing else has it")
        if self.pretrain is not None and self.path is None:
            raise ValueError("task.pretrain: it is for task=jsonl alone")
        if self.package is not None and not set(self.families) & set(SETS):
            raise ValueError(f"task.package: it is for {', '.join(SETS)} alone")
        return self


class Experiment(Settings):
    """All settings of one run."""

    budget: Budget
    learner: LearnerSettings
    task: TaskSettings
    llm: ModelSettings
    stage: Literal["all", "base", "evaluate", "export"] = "all"
    worlds: tuple[Literal["skewed", "balanced"], ...] = Field(min_length=1)
    seed: Annotated[int, Ge(0), Le(2**31 - 1)]
    cache: str
    tracker: Tracker = "none"
    timings: bool = False
    compilation_cache: bool | str = True
    resume: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Experiment:
        _once("worlds", self.worlds)
        for name in self.learner.names:
            if KNOWN[name].asks_model and self.llm.source == "none":
                raise ValueError(f"llm.source: learner {name!r} needs a model; try llm=local")
        return self

    @property
    def writes_results(self) -> bool:
        """Whether the stage ends in results, and not in files of its own."""
        return self.stage in ("all", "evaluate")

    def seeds(self, replicate: int) -> tuple[int, int]:
        """Base-state seed and generator seed of a replicate."""
        return self.seed + replicate, replicate % self.budget.generator_seeds


def read(plain: Mapping[str, Any]) -> Experiment:
    """The settings of a composed configuration.

    Raises:
      ValueError: one line a problem.
    """
    groups: dict[str, type[Settings]] = {
        "budget": Budget,
        "learner": LearnerSettings,
        "task": TaskSettings,
        "llm": ModelSettings,
    }
    built: dict[str, Settings] = {
        name: build(model, plain[name], name) for name, model in groups.items()
    }
    return build(Experiment, {**plain, **{n: s.model_dump() for n, s in built.items()}}, "kubku")

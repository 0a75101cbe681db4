"""Who takes part in a study: rows, scripts and seeds; and whether they fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import jax
from rich.console import Console

from evidence.runtime import devices, progress
from goodharts_jax import evaluation, training
from goodharts_jax.interop.policies import Outside, load
from goodharts_jax.modes import Mode
from goodharts_jax.policies import Policy
from goodharts_jax.seekers import scripted_policies
from goodharts_jax.settings import Experiment
from goodharts_jax.world import World

_TRAINED, _JUDGED, _COMPILED = 140_000, 1_450_000, 20.0
"""Steps a second of a training and of an evaluation on one core, and seconds of compiling: rounded
from `benchmarks/results/{training,command}.json` and the times of `goodhart/results.json`."""


@dataclass(frozen=True)
class Study:
    """What every part of an experiment works from.

    Attributes:
      settings: validated.
      folder: of results.
      judge_world: the rules of the evaluation.
      console: where progress is shown.
    """

    settings: Experiment
    folder: Path
    judge_world: World
    console: Console

    @cached_property
    def rows(self) -> dict[str, Mode]:
        """What is trained, by name."""
        return self.settings.rows()

    @cached_property
    def scripts(self) -> dict[str, Policy]:
        """What stands beside it, by name."""
        interest = self.settings.interestingness
        scripts = scripted_policies(interest.food, interest.poison)
        chance = {"random_walk": scripts["random_walk"]}
        own = chance if self.settings.study.kind == "phase_diagram" else scripts
        return own | {name: policies[0] for name, policies in self.outside.items()}

    @cached_property
    def outside(self) -> dict[str, list[Outside]]:
        """The user's own policy, or one a run, by its name, where the settings give one.

        Raises:
          ValueError: it is not there, is no policy, or has a name that another row has.
        """
        place = self.settings.policy
        if place is None:
            return {}
        name = place.rpartition(":")[2]
        interest = self.settings.interestingness
        if name in {*self.rows, *scripted_policies(interest.food, interest.poison)}:
            raise ValueError(f"policy={place}: another row is called {name}; give yours its own")
        return {name: load(place, self.judge_world.view_size)}

    def seeds(self, name: str) -> list[int]:
        """The seed of each run of a row, or of a script beside it."""
        if len(several := self.outside.get(name, [])) > 1:
            return [self.settings.seed + run for run in range(len(several))]
        return self.settings.seeds_of(name)

    def own(self, name: str) -> slice:
        """The runs of one row in a population's leading axis."""
        names = list(self.rows)
        before = sum(len(self.seeds(other)) for other in names[: names.index(name)])
        return slice(before, before + len(self.seeds(name)))


def require_memory(study: Study) -> None:
    """Say what the study will take, and refuse it now rather than fail in the middle.

    Raises:
      ValueError: it takes more memory than there is.
    """
    settings, world = study.settings, study.settings.world.build()
    num_runs = sum(len(study.seeds(name)) for name in study.rows)
    of_cells = settings.study.kind == "phase_diagram"  # which are watched, not evaluated
    judged = [*study.scripts] if of_cells else [*study.rows, *study.scripts]
    num_rows = sum(len(study.seeds(name)) for name in judged)
    worlds, steps = settings.budget.evaluation_worlds, settings.budget.steps_per_world
    peak = training.memory_needed(settings.plan, world, num_runs)
    peak += evaluation.memory_needed(study.judge_world, num_rows, worlds, steps)
    available = devices.memory_available()
    study.console.print(
        f"{num_runs} runs x {settings.num_updates * settings.plan.steps_per_update:,} steps; "
        f"memory: about {peak / 2**20:,.0f} of {available / 2**20:,.0f} MiB",
        style="dim",
        highlight=False,
    )
    trained = num_runs * settings.num_updates * settings.plan.steps_per_update
    train = trained / _TRAINED if settings.train else 0
    judge = num_rows * worlds * steps / _JUDGED
    if jax.default_backend() == "cpu":
        cores = min(num_runs, jax.device_count())
        progress.expected(_COMPILED + (train + judge) / cores, _COMPILED, study.console)
    if peak > available:
        fits = int(len(settings.seeds) * available / peak)
        most = "runs" if settings.study.thesis_runs is None else "study.thesis_runs"
        way_out = (
            f"{most}={fits} would fit"
            if fits
            else "lower ppo.num_worlds, budget.evaluation_worlds or budget.steps_per_world, for "
            "not even runs=1 would fit"
        )
        raise ValueError(
            f"this study takes about {peak / 2**20:,.0f} MiB, {available / 2**20:,.0f} are free; "
            + way_out
        )

"""The settings of a Goodhart experiment: validated once, before anything compiles.

Each class is one folder of `conf/goodhart/`, where every setting is explained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import jax
import numpy as np
from annotated_types import Ge, Gt, Le
from omegaconf import OmegaConf
from pydantic import Field, field_validator, model_validator

from evidence.runtime.config import Settings, build
from evidence.runtime.tracking import Tracker
from goodharts_jax import thesis
from goodharts_jax.modes import Mode, make_mode, stack
from goodharts_jax.networks import ActorCritic
from goodharts_jax.phase import cell_mode
from goodharts_jax.ppo import Hyper, Plan, make_hyper
from goodharts_jax.study_settings import (
    Appearance,
    LearntSettings,
    NonNegative,
    Remedy,
    Runs,
    Share,
    StudySettings,
    Weight,
)
from goodharts_jax.world import ENERGY_UNIT, World, make_world

# Bounds beyond which numbers no longer fit what computes with them.
Count = Annotated[int, Ge(1), Le(2**31 - 1)]
Items = Annotated[int, Ge(0), Le(2**31 - 1)]
Energy = Annotated[float, Ge(-1e5), Le(1e5)]
Positive = Annotated[float, Gt(0), Le(1e6)]


_CHUNK_STEPS = 1 << 16
"""Training steps of a run between two checkpoints, at most."""
_WATCHED_WORLDS = 128
"""Worlds that a policy is watched in between two chunks, at most."""


class WorldSettings(Settings):
    """See `conf/goodhart/world/`."""

    size: Annotated[int, Ge(1), Le(46_340)]  # cells are numbered in 32 bits
    view_radius: Count
    start_energy: Annotated[Energy, Gt(0)]
    move_cost: Annotated[Energy, Ge(0)]
    food_energy: Energy
    poison_energy: Energy
    food: tuple[Items, Items]
    poison: tuple[Items, Items]

    @field_validator("start_energy", "move_cost", "food_energy", "poison_energy")
    @classmethod
    def _in_units(cls, energy: float) -> float:
        steps = energy / ENERGY_UNIT
        if abs(steps - round(steps)) > 1e-6:
            raise ValueError(f"{energy} is no multiple of {ENERGY_UNIT}, the unit of energy")
        return energy

    @field_validator("food", "poison")
    @classmethod
    def _ordered(cls, counts: tuple[int, int]) -> tuple[int, int]:
        if counts[0] > counts[1]:
            raise ValueError(f"{list(counts)}: the least number comes first")
        return counts

    @model_validator(mode="after")
    def _fits(self) -> WorldSettings:
        least = 2 * self.view_radius + 1
        if self.size < least:
            raise ValueError(
                f"world.size={self.size} is smaller than the view; enlarge it to {least} or more, "
                f"or lower world.view_radius={self.view_radius}"
            )
        items, free = self.food[1] + self.poison[1], self.size**2 - 2
        if items > free:
            raise ValueError(
                f"world.food and world.poison: up to {items:,} items do not fit on a "
                f"{self.size}x{self.size} torus ({free:,} cells beside the agent's and one to "
                "grow back on); lower them or enlarge world.size"
            )
        return self

    def build(self) -> World:
        """The world's rules."""
        return make_world(**self.model_dump())


class Sees(Settings):
    """Appearance of the two items to a mode."""

    food: tuple[Appearance, Appearance]
    poison: tuple[Appearance, Appearance]
    noise: Annotated[Appearance, Ge(0)] | None = None


class Reward(Settings):
    """What a mode is rewarded for."""

    food: Weight
    poison: Weight
    move_cost: Weight = 0.0
    death: Weight = 0.0
    near_food: Weight = 0.0


class ModeSettings(Settings):
    """See `conf/goodhart/mode/`."""

    sees: Sees
    reward: Reward
    mortal: bool = True

    def build(self, move_cost: float) -> Mode:
        """The mode's row of numbers, in a world where a step costs `move_cost`."""
        return make_mode(
            self.sees.food,
            self.sees.poison,
            self.reward.food,
            self.reward.poison,
            step_reward=self.reward.move_cost * move_cost,
            death_reward=self.reward.death,
            shaping=self.reward.near_food,
            mortal=self.mortal,
            noise=self.sees.noise,
        )


class NetworkSettings(Settings):
    """See `conf/goodhart/network/`."""

    features: tuple[Count, ...]
    hidden: tuple[Count, ...]


class PPOSettings(Settings):
    """See `conf/goodhart/ppo/`."""

    num_worlds: Count
    rollout_length: Count
    episode_length: Count
    epochs: Annotated[int, Ge(1), Le(1000)]
    num_minibatches: Count
    learning_rate: tuple[Positive, NonNegative]
    entropy_weight: tuple[NonNegative, NonNegative]
    clip: Positive
    value_clip: Positive | None = None
    discount: Share
    gae_lambda: Share
    value_weight: NonNegative
    max_grad_norm: Positive

    @model_validator(mode="after")
    def _divides(self) -> PPOSettings:
        if self.episode_length % self.rollout_length:
            raise ValueError(
                f"ppo.episode_length={self.episode_length} is no multiple of "
                f"ppo.rollout_length={self.rollout_length}: worlds are made anew between rollouts"
            )
        slices = self.episode_length // self.rollout_length
        for name, parts in (
            ("num_minibatches", self.num_minibatches),
            ("episode_length / ppo.rollout_length", slices),
        ):
            if self.num_worlds % parts:
                raise ValueError(
                    f"ppo.num_worlds={self.num_worlds} does not divide by ppo.{name}={parts}"
                )
        return self


class EvaluationSettings(Settings):
    """See `conf/goodhart/evaluation/`."""

    temperature: Positive
    deterministic: bool
    survival_horizon: Count | None
    world: str | None


class BudgetSettings(Settings):
    """See `conf/goodhart/budget/`."""

    train_steps: Count
    max_steps: Annotated[int, Ge(0), Le(2**31 - 1)] = 0
    evaluation_worlds: Count
    reward_model_steps: Count = 1500
    proxy_runs: Runs = 5
    other_world: bool = True
    steps_per_world: Count


class Interestingness(Settings):
    """How interesting the two items are to the proxy."""

    food: Weight
    poison: Weight


class Experiment(Settings):
    """See `conf/goodhart/config.yaml`."""

    modes: dict[str, ModeSettings] = Field(min_length=1)
    world: WorldSettings
    network: NetworkSettings
    ppo: PPOSettings
    evaluation: EvaluationSettings
    budget: BudgetSettings
    study: Annotated[StudySettings | LearntSettings, Field(discriminator="kind")]
    remedies: dict[str, Remedy] = Field(default_factory=dict)
    seed: Annotated[int, Ge(0), Le(2**31 - 1)]
    runs: Runs | None
    interestingness: Interestingness
    train: bool
    policy: str | None = None
    checkpoint: str | None
    resume: str | None
    full_report: bool | None
    dashboard: bool
    tracker: Tracker = "none"
    timings: bool = False
    compilation_cache: bool | str
    # Of evaluation.world; without one, the world of the training.
    evaluation_world: WorldSettings = None  # type: ignore[assignment]

    @model_validator(mode="after")
    def _consistent(self) -> Experiment:
        horizon, steps = self.evaluation.survival_horizon, self.budget.steps_per_world
        if horizon is not None and horizon > steps:
            raise ValueError(
                f"evaluation.survival_horizon={horizon} lies beyond "
                f"budget.steps_per_world={steps}; lower the one or raise the other"
            )
        if self.policy is not None and self.study.kind != "modes":
            raise ValueError(f"policy={self.policy} is judged beside modes: leave out study=")
        if not self.train and isinstance(self.study, LearntSettings):
            raise ValueError(
                f"train=false: study={self.study.kind} trains its own policies; resume=<its output "
                "folder> draws them again"
            )
        if not self.train and self.checkpoint is None:
            raise ValueError("train=false needs checkpoint=<output folder of a run>")
        if self.train and self.checkpoint is not None:
            raise ValueError(
                f"checkpoint={self.checkpoint}: its policies are only evaluated: add train=false; "
                "to go on with an interrupted run, give resume= instead"
            )
        if self.evaluation_world is None:
            if self.evaluation.world is not None:
                raise ValueError(
                    f"evaluation.world={self.evaluation.world}: give its settings as "
                    "evaluation_world"
                )
            object.__setattr__(self, "evaluation_world", self.world)
        return self

    @property
    def seeds(self) -> list[int]:
        """The seeds of all runs: those of the row that has most."""
        if isinstance(self.study, LearntSettings):
            return list(range(self.seed, self.seed + (self.runs or self.budget.proxy_runs)))
        return max((self.seeds_of(name) for name in self.modes), key=len)

    def seeds_of(self, name: str) -> list[int]:
        """The seed of each run of one row; a row with fewer runs has the first of them."""
        of_modes = 1 if len(self.modes) == 1 else 3
        runs = self.runs or (5 if self.study.kind == "phase_diagram" else of_modes)
        if self.study.thesis_runs is not None:
            stated = thesis.load_thesis()
            runs = self.study.thesis_runs if name in (stated.truth, stated.proxy) else runs
        return list(range(self.seed, self.seed + runs))

    @property
    def horizon(self) -> int:
        """Of the restricted mean survival, in steps."""
        return self.evaluation.survival_horizon or self.budget.steps_per_world

    @property
    def temperature(self) -> float:
        """Of the evaluated policies; 0 takes the likeliest action."""
        return 0.0 if self.evaluation.deterministic else self.evaluation.temperature

    @property
    def num_updates(self) -> int:
        """Updates of each run, whole chunks of `chunk_updates`."""
        return self._whole_chunks(self.budget.train_steps)

    @property
    def max_updates(self) -> int:
        """Updates of a run that does not level off, whole chunks too."""
        return self._whole_chunks(self.budget.max_steps)

    def _whole_chunks(self, steps: int) -> int:
        return -(-steps // self.plan.steps_per_update // self.chunk_updates) * self.chunk_updates

    @property
    def chunk_updates(self) -> int:
        """Updates between two checkpoints, reports of progress and points of the Goodhart curve."""
        updates = -(-self.budget.train_steps // self.plan.steps_per_update)
        return max(1, min(_CHUNK_STEPS // self.plan.steps_per_update, updates // 16))

    @property
    def plan(self) -> Plan:
        """What changes the compiled training program."""
        sizes = ("num_worlds", "rollout_length", "episode_length", "epochs", "num_minibatches")
        network = ActorCritic(self.network.features, self.network.hidden)
        # An even part of those of the evaluation, so that a smoke run does not mostly watch.
        watched = min(_WATCHED_WORLDS, 2 * max(1, self.budget.evaluation_worlds // 16))
        own = {name: getattr(self.ppo, name) for name in sizes}
        return Plan(**own, network=network, watched_worlds=watched)

    @property
    def hyper(self) -> Hyper:
        """What merely changes its numbers."""
        return make_hyper(
            self.num_updates,
            learning_rate=self.ppo.learning_rate,
            entropy_weight=self.ppo.entropy_weight,
            clip=self.ppo.clip,
            value_clip=math.inf if self.ppo.value_clip is None else self.ppo.value_clip,
            discount=self.ppo.discount,
            gae_lambda=self.ppo.gae_lambda,
            value_weight=self.ppo.value_weight,
            max_grad_norm=self.ppo.max_grad_norm,
        )

    def rows(self) -> dict[str, Mode]:
        """What is trained: each mode's row of numbers, or each cell's, by name."""
        if self.study.kind == "phase_diagram":
            return {
                f"poison {reward:g}, distance {distance:g}": cell_mode(
                    reward, distance, self.study.noise
                )
                for reward, distance in self.study.grid
            }
        return {name: mode.build(self.world.move_cost) for name, mode in self.modes.items()}


def read(config: Any) -> Experiment:
    """The validated settings from Hydra's configuration or plain data.

    Raises:
      ValueError: one line for each setting that is wrong, with its value and what is allowed.
    """
    data = OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else config
    return build(Experiment, data, "")


def runs_of(
    rows: Mapping[str, Mode], seeds: Callable[[str], Sequence[int]]
) -> tuple[Mode, jax.Array]:
    """Modes and keys of all runs, mode by mode; leading axis [runs of all modes].

    Runs of equal seed share their key, so that they differ in their mode alone.

    Args:
      rows: modes by name.
      seeds: of the runs of a mode, by its name.
    """
    every = [seed for name in rows for seed in seeds(name)]
    keys = jax.vmap(jax.random.key)(np.array(every, np.uint32))
    return stack([row for name, row in rows.items() for _ in seeds(name)]), keys

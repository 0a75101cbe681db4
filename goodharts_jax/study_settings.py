"""The settings of studies: of modes, of a phase diagram, and of proxies."""

from __future__ import annotations

import itertools
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le
from pydantic import Field, model_validator

from evidence.runtime.config import Settings, did_you_mean
from goodharts_jax.phase import FARTHEST
from goodharts_jax.preferences import MOST_PAIRS, WIDEST
from goodharts_jax.rewards import REWARD_LIMIT

Share = Annotated[float, Ge(0), Le(1)]
Weight = Annotated[float, Ge(-REWARD_LIMIT), Le(REWARD_LIMIT)]
Appearance = Annotated[float, Ge(-1e3), Le(1e3)]
NonNegative = Annotated[float, Ge(0), Le(1e6)]
Runs = Annotated[int, Ge(1), Le(100_000)]
MIXED, GOLD, EXPERT = "mixed", "gold", "expert"


class StudySettings(Settings):
    """See `conf/goodhart/study/`."""

    kind: Literal["modes", "phase_diagram"]
    thesis_runs: Runs | None = None
    poison_rewards: tuple[Weight, ...] = ()
    distances: tuple[Annotated[float, Ge(0), Le(FARTHEST)], ...] = ()
    noise: Annotated[Appearance, Gt(0)] = 0.25

    @model_validator(mode="after")
    def _cells(self) -> StudySettings:
        for name in ("poison_rewards", "distances"):
            values = getattr(self, name)
            if self.kind == "phase_diagram" and not values:
                raise ValueError(f"{name}: a phase diagram needs one at least")
            if len({f"{value:g}" for value in values}) < len(values):
                raise ValueError(f"{name}: {list(values)} has one twice")
        return self

    @property
    def grid(self) -> list[tuple[float, float]]:
        """Reward for poison and distance of appearances, of each cell of a phase diagram."""
        return list(itertools.product(self.poison_rewards, self.distances))


class SensesSettings(Settings):
    """Those of a cell of the phase diagram, see `phase.appearances`."""

    distance: Annotated[float, Gt(0), Le(FARTHEST)]
    noise: NonNegative = 0.0


class ProxySettings(Settings):
    """A proxy: learnt from preferences, or a table of `item`, or drawn at a `correlation`.

    `senses` is the name of those that its agents, and whoever it is compared with, perceive by.
    """

    pairs: Annotated[int, Ge(1), Le(MOST_PAIRS)] = 5000
    width: Annotated[int, Ge(1), Le(WIDEST)] = WIDEST
    label_noise: Annotated[float, Ge(0), Le(0.5)] = 0.0
    temperature: Annotated[float, Gt(0), Le(1e3)] = 0.25
    watched: str = "half"
    start: str = "half"
    senses: str | None = None
    item: tuple[Weight, Weight] | None = None
    correlation: Share | None = None
    draws: Annotated[int, Ge(1), Le(10_000)] = 1

    @model_validator(mode="after")
    def _is_one(self) -> ProxySettings:
        if self.item is not None and self.correlation is not None:
            raise ValueError("item and correlation: a proxy is a table or drawn, not both")
        if self.draws > 1 and self.correlation is None:
            raise ValueError(f"draws={self.draws}: only a proxy of a correlation is drawn")
        return self

    @property
    def is_learnt(self) -> bool:
        """Whether it is a reward model fitted to labels."""
        return self.item is None and self.correlation is None


class RemedySettings(Settings):
    """One strength of a remedy; what is not given is off. See `rewards.Guard`.

    `mean_of` is how many reward models count, `own` the strength of the remedy's own function,
    `relabel` how many pairs are labelled after each part of the training, see `relabelling`, and
    `reseed` draws other random numbers for the training.
    """

    deviations: NonNegative = 0.0
    least: Share = 0.0
    cap: float | None = None
    proxy: NonNegative = 1.0
    audit: Share = 0.0
    audit_weight: NonNegative | None = None
    kl: NonNegative = 0.0
    excess: NonNegative = 0.0
    quantile: Annotated[float, Gt(0), Le(1)] = 1.0
    occupancy_kl: NonNegative = 0.0
    occupancy_chi: NonNegative = 0.0
    mean_of: Annotated[int, Ge(1)] = 1
    own: float = 0.0
    relabel: Annotated[int, Ge(0), Le(MOST_PAIRS)] = 0
    reseed: Annotated[int, Ge(0)] = 0


class Remedy(Settings):
    """See `conf/goodhart/remedy/`."""

    strengths: tuple[RemedySettings, ...] = Field(min_length=1)
    function: str | None = None


def gold_of(senses: str | None) -> str:
    """The proxy that is the truth, for those of these senses."""
    return GOLD if senses is None else f"{GOLD}_{senses}"


class LearntSettings(Settings):
    """See `conf/goodhart/study/learnt_proxy.yaml`."""

    thesis_runs: ClassVar[None] = None
    kind: Literal["learnt_proxy", "forecast", "remedies"]
    proxies: dict[str, ProxySettings] = Field(min_length=1)
    senses: dict[str, SensesSettings] = Field(default_factory=dict)
    food: tuple[Appearance, Appearance]
    poison: tuple[Appearance, Appearance]
    stages: dict[str, Annotated[int, Ge(0), Le(2**31 - 1)]] = Field(min_length=2)
    members: Annotated[int, Ge(1), Le(64)] = 1
    train_share: Annotated[float, Gt(0), Le(1)] = 1.0
    other_runs: Annotated[int, Ge(1)] = 1

    @model_validator(mode="after")
    def _stages_are_there(self) -> LearntSettings:
        for name, proxy in self.proxies.items():
            for setting, stage in (("watched", proxy.watched), ("start", proxy.start)):
                known = [*self.stages, *([MIXED] if setting == "watched" else [])]
                if stage not in known:
                    raise ValueError(
                        f"proxies.{name}.{setting}={stage}: one of {', '.join(known)} is needed"
                        + did_you_mean(stage, known)
                    )
        for name, proxy in self.proxies.items():
            if proxy.senses not in (None, *self.senses):
                raise ValueError(
                    f"proxies.{name}.senses={proxy.senses}: there are none of this name in senses"
                    + did_you_mean(str(proxy.senses), list(self.senses))
                )
            gold = self.proxies.get(gold_of(proxy.senses))
            if self.kind == "remedies" and (gold is None or gold.senses != proxy.senses):
                raise ValueError(
                    f"proxies: {gold_of(proxy.senses)} is needed, of the senses of {name}: the "
                    "other end of the gap to close"
                )
        if self.kind == "forecast" and self.senses:
            raise ValueError("senses: a forecast solves problems without noise; leave them out")
        if self.kind == "forecast" and EXPERT not in self.stages:
            raise ValueError(f"stages: {EXPERT} is needed, whose reward proxies are compared with")
        if len(self.drawn) < sum(proxy.draws for proxy in self.proxies.values()):
            raise ValueError("proxies: one has the name of another's draw")
        return self

    @property
    def drawn(self) -> dict[str, ProxySettings]:
        """Every proxy by name, those of several draws once each."""
        return {
            name if proxy.draws == 1 else f"{name}_{draw + 1}": proxy
            for name, proxy in self.proxies.items()
            for draw in range(proxy.draws)
        }

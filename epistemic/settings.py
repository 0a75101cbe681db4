"""The settings of an epistemic study: validated once, before anything is drawn or asked.

Each class is a group of `conf/epistemic/`, where every setting is explained; those of the parts
stand with them: the domain's, the decks', the systems' and the language model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epistemic.completeness.settings import BudgetSettings, SweepSettings
from epistemic.decks.deck import CardSettings
from epistemic.decks.near_miss import NearMissSettings
from epistemic.domain import DomainSettings
from epistemic.systems import NEED_A_MODEL, SystemSettings
from evidence.runtime.config import Settings, build
from evidence.runtime.language_models import ModelSettings
from evidence.runtime.tracking import Tracker

Share = Annotated[float, Field(ge=0, le=1)]
Stage = Literal["all", "look", "cards", "near_miss", "eval", "metrics", "report", "export"]


class KnowledgeSettings(Settings):
    """How good the graph is that systems know.

    Attributes:
      keep: share of triples kept.
      wrong: share of those whose object is swapped for another.
    """

    keep: Share
    wrong: Share


class QualitySettings(Settings):
    """Points of the sweep over graph quality: every `keep` with every `wrong`."""

    keep: tuple[Share, ...]
    wrong: tuple[Share, ...]


class StudySettings(Settings):
    """Everything that decides a study; see conf/epistemic/config.yaml.

    Attributes:
      stage: what is done; "all" is everything but "look" and "export".
      seed: of `random`, the bootstrap and the degraded graphs; decks have seeds of their own.
      deck: a deck that is there already, used instead of making one; None: one is made.
      shacl: validate the whole graph with pySHACL first.
      tracker: see `evidence.runtime.tracking`.
      timings: see `evidence.runtime.timings`.
      compilation_cache: see `evidence.runtime.devices.configure`.
    """

    stage: Stage
    seed: int = Field(ge=0, lt=2**63)
    deck: str | None
    shacl: bool = Field(alias="validate")
    tracker: Tracker = "none"
    timings: bool = False
    compilation_cache: bool | str
    domain: DomainSettings
    cards: CardSettings
    near_miss: NearMissSettings
    system: SystemSettings
    llm: ModelSettings
    kg: KnowledgeSettings
    quality: QualitySettings
    study: SweepSettings
    budget: BudgetSettings

    @property
    def writes_results(self) -> bool:
        """Whether the stage is one that `study.run` does, not `study.run_stage`."""
        return self.stage in ("all", "metrics")

    @model_validator(mode="after")
    def _has_the_stage(self) -> StudySettings:
        if self.study.kind == "completeness" and self.stage not in ("all", "report"):
            raise ValueError(
                f"stage={self.stage}: study=completeness has the stages all and report"
            )
        return self

    @model_validator(mode="after")
    def _has_a_model_to_ask(self) -> StudySettings:
        asking = [name for name in self.system.names if name in NEED_A_MODEL]
        alone = len(self.system.names) == 1 and self.stage in ("all", "eval")
        if asking and alone and self.llm.source == "none":
            raise ValueError(f"system {asking[0]} asks a language model, and llm.source is none")
        return self


def read(plain: Mapping[str, object]) -> StudySettings:
    """Plain configuration as settings.

    Raises:
      ValueError: one line a problem, naming the setting.
    """
    groups = {
        name: build(field.annotation, plain[name], at=name)
        for name, field in StudySettings.model_fields.items()
        if name in plain and isinstance(field.annotation, type)
        and issubclass(field.annotation, Settings)
    }  # fmt: skip
    return build(StudySettings, {**plain, **groups}, at="")

"""The settings of an epistemic study: validated once, before anything is drawn or asked.

Each class is a group of `conf/epistemic/`, or a part of one, where every setting is explained. What
a part is made from stands with it: the domain's settings, the decks', the systems', a simulated
model's, a style of sentences' and the language model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epistemic.completeness.models import Simulated
from epistemic.decks.deck import CardSettings
from epistemic.decks.near_miss import NearMissSettings
from epistemic.domain import DomainSettings
from epistemic.linking.texts import Style
from epistemic.systems import NEED_A_MODEL, SystemSettings
from epistemic.worse import Loss
from evidence.runtime.config import Settings, build
from evidence.runtime.language_models import ModelSettings
from evidence.runtime.tracking import Tracker

Share = Annotated[float, Field(ge=0, le=1)]
Cost = Annotated[float, Field(ge=0, le=1e6)]
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


class Linker(Settings):
    """What finds claims in words.

    Attributes:
      aliases: share of the domain's aliases that it knows.
      similarity: percent from which on a name counts as another's misspelling; None: never.
    """

    aliases: Share = 0.0
    similarity: float | None = Field(None, gt=0, le=100)


class LinkingSettings(Settings):
    """How a licence that must find the claim in what a model says is tried.

    Attributes:
      texts: styles of sentences by name.
      linkers: what finds the claims, by name; controls are added.
      finds: shares of the claims that a linker finds which never errs, one a control: how good
        linking must be.
      models: those of the study whose answers are licensed.
      aliases, wordings: files, with `{domain}` for the domain's name; a domain without them has
        neither aliases nor the styles of other wordings.
    """

    texts: Mapping[str, Style]
    linkers: Mapping[str, Linker]
    finds: tuple[Share, ...] = ()
    models: tuple[str, ...]
    aliases: str | None = None
    wordings: str | None = None


class Recording(Settings):
    """A language model's replies.

    Attributes:
      model: its name.
      replies: the file, with `{domain}` for the domain's name.
    """

    model: str
    replies: str


class SweepSettings(Settings):
    """Which study is made; the other settings are those of completeness.

    Attributes:
      kind: "systems" answer cards, or the graph's "completeness" is varied.
      domains: names of those that ship; None: the one that is configured.
      keep, wrong: shares of triples kept, and of those swapped; every one with every other.
      price: of a false answer.
      loss: what is lost together.
      heard: share of claims read off the graph before it loses triples.
      models: simulated models by name.
      asked: systems that ask a language model, where there is one.
      deck: the file of the cards, with `{domain}` for the domain's name.
      recorded: whose replies are read where they are recorded; none: those of `llm`.
      linking: the licence that must find its claims; None: it is given them.
    """

    kind: Literal["systems", "completeness"]
    domains: tuple[str, ...] | None = None
    keep: tuple[Share, ...] = ()
    wrong: tuple[Share, ...] = ()
    price: tuple[Cost, ...] = ()
    loss: Loss = "triples"
    heard: Share = 0.0
    models: Mapping[str, Simulated] = Field(default_factory=dict)
    asked: tuple[str, ...] = ()
    deck: str | None = None
    recorded: tuple[Recording, ...] = ()
    linking: LinkingSettings | None = None

    @model_validator(mode="after")
    def _has_points(self) -> SweepSettings:
        for name in ("keep", "wrong", "price", "models"):
            if self.kind == "completeness" and not getattr(self, name):
                raise ValueError(f"{name}: the study of completeness needs one at least")
        if len(set(self.keep)) < len(self.keep):
            raise ValueError("keep: a share is named twice")
        if len({one.model for one in self.recorded}) < len(self.recorded):
            raise ValueError("recorded: a model is named twice")
        for name in self.linking.models if self.linking is not None else ():
            if name not in self.models:
                known = ", ".join(self.models)
                raise ValueError(f"linking.models: no model is called {name}; there are {known}")
        return self


class BudgetSettings(Settings):
    """How much the study of completeness draws."""

    draws: int = Field(ge=1, le=10_000)
    claims: int = Field(ge=10, le=1_000_000)


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

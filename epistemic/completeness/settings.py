"""The settings of the study of completeness; see `study/` and `budget/` in conf/epistemic/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from epistemic.completeness.models import Simulated
from epistemic.domain import Loss
from evidence.runtime.config import Settings

Share = Annotated[float, Field(ge=0, le=1)]
Cost = Annotated[float, Field(ge=0)]


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
      deck, replies: files of the language model, with `{domain}` for the domain's name.
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
    replies: str | None = None

    @model_validator(mode="after")
    def _has_points(self) -> SweepSettings:
        for name in ("keep", "wrong", "price", "models"):
            if self.kind == "completeness" and not getattr(self, name):
                raise ValueError(f"{name}: the study of completeness needs one at least")
        if len(set(self.keep)) < len(self.keep):
            raise ValueError("keep: a share is named twice")
        return self


class BudgetSettings(Settings):
    """How much the study of completeness draws."""

    draws: int = Field(ge=1)
    claims: int = Field(ge=10)

"""Simulated models of stated competence, and the answerers that know nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import scipy.special
from pydantic import Field

from epistemic.logic.draws import Draws
from epistemic.logic.lookup import Verdict
from epistemic.results import Role
from evidence.answers import Answer
from evidence.runtime.config import Settings

_OPPOSITE = {Verdict.ENTAILED: Answer.NO, Verdict.CONTRADICTORY: Answer.YES}
GRAPH = "graph"
"""The worse graph itself, asked alone: what a licensed model must beat to be worth asking."""


class Judged(NamedTuple):
    """Claims as a simulated model sees them.

    Attributes:
      gold: i8[N] of `Verdict`, by the world.
      popularity: f64[N] in (0, 1), evenly spread: place of the claim by how often the world names
        its subject, the least first.
    """

    gold: np.ndarray
    popularity: np.ndarray


class Simulated(Settings):
    """A model by how good it is; it answers from what it knows of the world, never from the graph.

    Each claim has its own chance c of being known, drawn from Beta(right, 1 - right): of most
    claims a model knows nearly surely whether it knows them. It gives the right answer with chance
    c, else a wrong one.

    Attributes:
      right: mean of c.
      bluff: share answered of the claims with c < 1/2; on the others it says UNKNOWN.
      calibrated: it states c, and is asked to abstain where an answer is worth less than silence,
        c < price / (1 + price) (Chow 1970). One that isn't states nothing and always is heard.
      follows: share of the claims whose c goes by how often the world names their subject; of the
        others c goes by nothing, and is independent of which triples a graph loses.
    """

    right: float = Field(ge=0, le=1)
    bluff: float = Field(ge=0, le=1)
    calibrated: bool
    follows: float = Field(0.0, ge=0, le=1)


def answers(model: Simulated, claims: Judged, prices: Sequence[float], draws: Draws) -> np.ndarray:
    """i8[P, N] of `Answer`: what a model says to each claim at each price.

    Models that are given equal draws differ by their settings alone.

    Args:
      model: how good it is.
      claims: what is asked.
      prices: of a false answer.
      draws: a fresh stream.
    """
    gold = claims.gold
    level, luck, nerve, side, lean = draws.uniform(5 * len(gold)).reshape(5, -1)
    level = np.where(lean < model.follows, claims.popularity, level)
    chance = _chance(model.right, level)
    wrong = np.where(side < 0.5, Answer.YES, Answer.NO)
    for verdict, answer in _OPPOSITE.items():
        wrong = np.where(gold == verdict, answer, wrong)
    said = np.where(luck < chance, gold, wrong)
    said = np.where((chance < 0.5) & (nerve >= model.bluff), Answer.UNKNOWN, said)
    least = [price / (1 + price) if model.calibrated else 0.0 for price in prices]
    worth = chance[None] >= np.array(least)[:, None]
    return np.where(worth, said[None], Answer.UNKNOWN).astype(np.int8)


def _chance(right: float, level: np.ndarray) -> np.ndarray:
    """f64[N]: quantiles of Beta(right, 1 - right), which is a point at its ends."""
    if right in (0.0, 1.0):
        return np.full(len(level), right)
    return scipy.special.betaincinv(right, 1 - right, level)


def _coin(number: int, draws: Draws) -> np.ndarray:
    return np.where(draws.uniform(number) < 0.5, Answer.YES, Answer.NO)


CONTROLS: Mapping[str, Callable[[int, Draws], np.ndarray]] = {
    "always_yes": lambda number, draws: np.full(number, Answer.YES),
    "always_unknown": lambda number, draws: np.full(number, Answer.UNKNOWN),
    "coin": _coin,
}
"""Answers to so many claims, by those that know nothing of them."""


def role_of(model: str) -> Role:
    """What a model of the sweep is compared as."""
    if model == GRAPH:
        return "reference"
    return "control" if model in CONTROLS else "ranked"

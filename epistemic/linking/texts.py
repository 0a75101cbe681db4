"""Claims in words that the decks don't use: other wordings, other names, misspelt names."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from epistemic.domain import Domain
from epistemic.linking.names import BRACKET
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE
from evidence.runtime.config import Settings, build
from evidence.runtime.files import read_plain

Share = Annotated[float, Field(ge=0, le=1)]
_LONG_ENOUGH = 5  # letters of a name that may be misspelt
_COLUMNS = 9  # random numbers a claim


class Style(Settings):
    """How claims are worded.

    Attributes:
      wording: "ours" as the domain's settings state and deny them; "other" as `Wordings` does.
      alias: share of mentions of what has an alias or a short form that are called by one.
      misspelt: share of mentions with five letters or more of which one is wrong.
    """

    wording: Literal["ours", "other"] = "ours"
    alias: Share = 0.0
    misspelt: Share = 0.0


class Wordings(Settings):
    """Statements by predicate's name, with {s} and {o}, and frames that deny a {claim}."""

    affirm: Mapping[str, tuple[str, ...]]
    deny: tuple[str, ...]


def read_wordings(path: str | Path) -> Wordings:
    """A file of wordings.

    Raises:
      ValueError: it is none; names what is wrong.
    """
    return build(Wordings, read_plain(path), at=str(path))


class Texts:
    """Puts claims into words of a style.

    Args:
      domain: whose claims they are.
      style: of the words.
      wordings: for those that are "other"; predicates that they lack are worded as ours.
      aliases: further names by IRI.
    """

    def __init__(
        self,
        domain: Domain,
        style: Style,
        wordings: Wordings | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._domain, self._style = domain, style
        self._wordings = wordings if style.wording == "other" else None
        self._aliases = aliases or {}

    def say(self, claims: np.ndarray, holds: bool, draws: Draws) -> list[str]:
        """A sentence a claim.

        Args:
          claims: i32[N, 3] terms of the domain's graph.
          holds: whether it is affirmed, or denied.
          draws: a fresh stream.
        """
        chances = draws.uniform(_COLUMNS * len(claims)).reshape(-1, _COLUMNS)
        return [
            self._sentence(claim, holds, chance.tolist())
            for claim, chance in zip(claims.tolist(), chances, strict=True)
        ]

    def _sentence(self, claim: list[int], holds: bool, chance: list[float]) -> str:
        terms = self._domain.graph.terms
        subject, predicate, thing = (terms[term] for term in claim)
        words = self._domain.by_iri[predicate]
        unit = "" if predicate == TYPE else words.unit
        names = {
            "s": self._name(subject, self._domain.name_of(subject), chance[1:5]),
            "o": self._name(thing, self._domain.object_name(words, thing), chance[5:9])
            if not unit
            else self._domain.object_name(words, thing),
        }
        wordings = self._wordings
        said = wordings.affirm.get(words.name, ()) if wordings is not None else ()
        if wordings is None or not said:
            return _pick(words.facts if holds else words.denials, chance[0]).format(**names)
        place, rest = divmod(chance[0] * len(said), 1)
        text = said[int(place)].format(**names)
        if not holds:
            text = _pick(wordings.deny, rest).format(claim=text)
        return f"{text[:1].upper()}{text[1:]}."

    def _name(self, term: str, name: str, chance: Sequence[float]) -> str:
        """What a sentence calls a thing."""
        if term.startswith('"'):
            return name
        short = BRACKET.sub("", name)
        others = [*self._aliases.get(term, ()), *([short] if short != name else [])]
        if others and chance[0] < self._style.alias:
            name = _pick(others, chance[1])
        if sum(map(str.isalpha, name)) >= _LONG_ENOUGH and chance[2] < self._style.misspelt:
            name = misspelt(name, chance[3])
        return name


def misspelt(name: str, chance: float) -> str:
    """A name with one letter after the first swapped with the next, left out, doubled or replaced.

    Args:
      name: with at least two letters.
      chance: in [0, 1), which decides what is done where.
    """
    places = [i for i, letter in enumerate(name) if letter.isalpha()][1:]
    place, rest = divmod(chance * len(places), 1)
    edit, rest = divmod(rest * len(_EDITS), 1)
    letter = string.ascii_lowercase[int(rest * 26)]
    at = places[int(place)]
    return name[:at] + _EDITS[int(edit)](name[at : at + 2], letter) + name[at + 2 :]


_EDITS: Sequence[Callable[[str, str], str]] = (
    lambda two, letter: two[::-1],
    lambda two, letter: two[1:],
    lambda two, letter: two[:1] + two,
    lambda two, letter: letter + two[1:],
)
"""What may happen to two letters, the first of which is meant."""


def _pick(choices: Sequence[str], chance: float) -> str:
    return choices[int(chance * len(choices))]

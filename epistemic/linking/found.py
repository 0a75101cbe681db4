"""What was found in a text, and how that compares with what it was meant to say."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from epistemic.cards import Claim
from epistemic.logic.constraints import Constraints


class Stance(Enum):
    """What a sentence does with its claim."""

    AFFIRMS = "affirms"
    DENIES = "denies"
    ASKS = "asks"


class Status(Enum):
    """How far finding a claim came."""

    LINKED = "linked"
    AMBIGUOUS = "ambiguous"  # several things bear the name, or several relations fit
    NOT_FOUND = "not_found"  # a relation, but a name that nothing bears
    NO_CLAIM = "no_claim"  # no relation: extraction failed


class Outcome(Enum):
    """A found claim beside the one that was meant."""

    RIGHT = "right"
    WRONG = "wrong"
    AMBIGUOUS = "ambiguous"
    NOT_FOUND = "not_found"
    NO_CLAIM = "no_claim"


class Found(NamedTuple):
    """What a text says.

    Attributes:
      status: how far it came.
      claim: terms as texts, where `status` is LINKED.
      stance: what the sentence does with it.
      detail: what stood in the way, in words.
    """

    status: Status
    claim: Claim | None
    stance: Stance
    detail: str = ""


def outcome(found: Found, meant: Claim, constraints: Constraints) -> Outcome:
    """How a found claim compares with the one meant; an inverse spelling of it is right too."""
    if found.claim is None:
        return Outcome(found.status.value)
    same = says_the_same(found.claim, meant, constraints)
    return Outcome.RIGHT if same else Outcome.WRONG


def says_the_same(one: Claim, other: Claim, constraints: Constraints) -> bool:
    """Whether two claims are one by symmetry and inverses."""
    if one == other:
        return True
    s, p, o = one
    spelt = constraints.synonyms(p)
    return any(((o, q, s) if swapped else (s, q, o)) == other for q, swapped in spelt)

"""What a system is: queries in, responses out. No query carries a gold answer."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from epistemic.cards import Card, Claim, Statement
from evidence.answers import Answer
from evidence.runtime.completions import Tokens


@dataclass(frozen=True)
class Query:
    """What a system is shown of a card: everything but the gold answer and what tells it.

    Attributes:
      id: the card's id; a user's own system gets another, see `Masked`, for ids name labels.
      facts: sentences that hold, in order.
      question: the question in words.
      claim: what the question asks: does this triple hold?
      rules: sentences such as 'A country has one capital.', to be read after the facts.
      stated: the facts as triples, each with whether it is affirmed or denied.
      axioms: the rules as names of constraints.
    """

    id: str
    facts: tuple[str, ...]
    question: str
    claim: Claim
    rules: tuple[str, ...] = ()
    stated: tuple[Statement, ...] = ()
    axioms: tuple[str, ...] = ()


class Response(NamedTuple):
    """What a system says to one query.

    Attributes:
      answer: YES, NO, UNKNOWN, INVALID (a reply that cannot be read) or ERROR (no reply).
      confidence: probability in [0, 1] that the answer is right, as the system sees it, or None.
      raw: the reply in full, or None where there is none.
      proof: why, in a line, or None.
      error: what went wrong, for ERROR.
      latency_s: seconds that this query took, or None: the caller's clock is used then.
      prompt: digest of the prompt, for systems that ask a model.
      finish: why the model stopped, as its endpoint says: "stop", or "length" for a reply cut off.
      linking: of a system that finds the claim in the question's words, how that came out; see
        `epistemic.linking.found.Outcome`.
      reading: of such a system, what its answer was read off: an answer "word", a "statement" of
        the claim asked, or an "other" that settles it; None for a reply that can't be read.
      tokens: of prompt and reply, or None.
      cost: at the prices given, or None.
    """

    answer: Answer
    confidence: float | None = None
    raw: str | None = None
    proof: str | None = None
    error: str | None = None
    latency_s: float | None = None
    prompt: str | None = None
    finish: str | None = None
    linking: str | None = None
    reading: str | None = None
    tokens: Tokens | None = None
    cost: float | None = None


class System(Protocol):
    """Anything that answers queries."""

    def answer(self, queries: Sequence[Query]) -> Iterable[Response | Answer]:
        """One response a query, in order; yielding each as it is ready keeps it from being lost."""
        ...


class Masked:
    """A system that isn't told the cards' own ids, in which the label can be read.

    It gets a digest of each under a key that is drawn anew in every run and kept here: without the
    key nobody can try out which id gives which digest.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._key = secrets.token_bytes(32)

    def answer(self, queries: Sequence[Query]) -> Iterable[Response | Answer]:
        return self._system.answer([replace(query, id=self._mask(query.id)) for query in queries])

    def _mask(self, name: str) -> str:
        return hashlib.blake2b(name.encode(), key=self._key, digest_size=8).hexdigest()


def query_of(card: Card) -> Query:
    """The part of a card that a system may see."""
    return Query(
        card.id, card.facts, card.question, card.claim, card.rules, card.stated, card.axioms
    )

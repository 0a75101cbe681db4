"""Context cards: facts, rules and a question whose answer they settle, or settle not to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_type_hints

import msgspec

from evidence.runtime.files import read_jsonl, write_bytes


class Claim(NamedTuple):
    """What a card asks about; terms as texts, see `epistemic.logic.graph`."""

    subj: str
    pred: str
    obj: str


class Statement(NamedTuple):
    """A fact as data: the claim that a sentence makes or, where it doesn't hold, denies."""

    subj: str
    pred: str
    obj: str
    holds: bool = True


class Question(Protocol):
    """What a judgement rests on: the part that a card and what systems are shown of it share."""

    @property
    def claim(self) -> Claim:
        """What is asked."""
        ...

    @property
    def stated(self) -> tuple[Statement, ...]:
        """The facts as data."""
        ...

    @property
    def axioms(self) -> tuple[str, ...]:
        """Names of the constraints that the rules put into words."""
        ...


@dataclass(frozen=True, slots=True)
class Card:
    """One question with its context.

    Attributes:
      id: unique in its deck, such as "CARD_E_000001".
      facts: sentences of the context, in the order shown.
      question: what is asked.
      gold: "YES", "NO" or "UNKNOWN".
      label: "E" entailed, "C" contradictory, "U" unknown.
      claim: what the question asks about.
      kind: how the gold follows: "E_stated", "E_inferred", "C_" and the constraint's kind
        ("functional" for max_count, "negated" for an explicit denial), "U_absent".
      proof: one line: the triple that entails the claim, or the constraint and the clash.
      rules: sentences that stand beside the facts, such as "A country has one capital.".
      requires: "card" where facts and rules settle the gold, "graph" where only the graph does.
      stated: the facts as data, in the same order.
      axioms: names of the constraints that the rules put into words.
      family: the layout that the card's facts follow; every family holds equally many cards of
        each label, alike in all but the answer.
      surface: numbers of the templates used: question, then facts; for the leakage audit.
      difficulty: of a near miss, 0 (far) to 1 (nearest); None for other cards.
      nearness: of a near miss, the way it is near: "neighbours", "region", "name" or "number".
    """

    id: str
    facts: tuple[str, ...]
    question: str
    gold: str
    label: str
    claim: Claim
    kind: str = ""
    proof: str = ""
    rules: tuple[str, ...] = ()
    requires: str = "card"
    stated: tuple[Statement, ...] = ()
    axioms: tuple[str, ...] = ()
    family: str = ""
    surface: tuple[int, ...] = ()
    difficulty: float | None = None
    nearness: str | None = None

    @property
    def subject(self) -> str:
        """What the claim is about: cards of one subject aren't independent."""
        return self.claim.subj


class _NamedClaim(msgspec.Struct, gc=False):
    """A claim whose line names its terms; a tuple's would only list them."""

    subj: str
    pred: str
    obj: str


def _line_fields() -> Iterator[tuple[str, Any] | tuple[str, Any, Any]]:
    """A card's fields with their types and defaults; the claim with names."""
    types = get_type_hints(Card) | {"claim": _NamedClaim}
    for field in fields(Card):
        needed = field.default is MISSING
        yield (field.name, types[field.name], *(() if needed else (field.default,)))


# A struct is written in half the time that a dictionary takes.
_Line = msgspec.defstruct("_Line", _line_fields(), gc=False)


def _line(card: Card) -> msgspec.Struct:
    """What a card's line says."""
    return _Line(
        card.id,
        card.facts,
        card.question,
        card.gold,
        card.label,
        _NamedClaim(*card.claim),
        card.kind,
        card.proof,
        card.rules,
        card.requires,
        card.stated,
        card.axioms,
        card.family,
        card.surface,
        card.difficulty,
        card.nearness,
    )


GOLDS = {"E": "YES", "C": "NO", "U": "UNKNOWN"}
"""Label -> gold."""
_ENCODER = msgspec.json.Encoder()
_REQUIRED = ("id", "facts", "question", "gold", "label", "claim")


def write_cards(path: str | Path, cards: Iterable[Card]) -> Path:
    """Write a deck as JSONL, one card a line, all or nothing."""
    return write_bytes(path, _lines(cards))


def _lines(cards: Iterable[Card]) -> bytes:
    return _ENCODER.encode_lines(list(map(_line, cards)))


def read_cards(path: str | Path) -> list[Card]:
    """Read a deck.

    Raises:
      ValueError: no cards, or a line that is none; names file, line and what is wrong.
    """
    cards = []
    for number, record in enumerate(read_jsonl(path, _REQUIRED), start=1):
        at = f"{path}, card {number}"
        if GOLDS.get(record["label"]) != record["gold"]:
            raise ValueError(
                f"{at}: gold {record['gold']!r} with label {record['label']!r}; "
                "allowed: YES with E, NO with C, UNKNOWN with U"
            )
        try:
            cards.append(_card(msgspec.convert(record, _Line)))
        except msgspec.ValidationError as error:
            raise ValueError(f"{at}: {error}") from None
    if not cards:
        raise ValueError(f"{path}: no cards")
    if len({card.id for card in cards}) < len(cards):
        raise ValueError(f"{path}: two cards bear one id")
    return cards


def _card(line: msgspec.Struct) -> Card:
    """What a line says, as a card."""
    parts = msgspec.structs.asdict(line)
    parts["claim"] = Claim(*msgspec.structs.astuple(parts["claim"]))
    return Card(**parts)


def deck_hash(cards: Sequence[Card]) -> str:
    """SHA-256 of a deck's lines: results of another deck are never mixed with this one's."""
    return hashlib.sha256(_lines(cards)).hexdigest()

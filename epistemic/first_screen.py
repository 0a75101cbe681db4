"""What is seen first, in a terminal and on the page: a card with each system's answer, and what to
do next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from epistemic.cards import Card, read_cards
from epistemic.evaluate import Rows, read_rows
from epistemic.results import Results
from epistemic.systems import CONTROLS


class Example(NamedTuple):
    """A card that tells systems apart.

    Attributes:
      card: it.
      right: the systems that gave its gold answer.
      wrong: the answers that weren't it, each with who gave it.
    """

    card: Card
    right: list[str]
    wrong: dict[str, list[str]]


def example(folder: Path, results: Results) -> Example | None:
    """The card that tells most systems apart, controls aside; None where the folder has no cards or
    lacks a system's answers.
    """
    names = [name for name in results.systems if name not in CONTROLS]
    files = {name: folder / "answers" / f"{name}.jsonl" for name in names}
    if not all(path.exists() for path in (folder / "cards.jsonl", *files.values())):
        return None
    return chosen(
        read_cards(folder / "cards.jsonl"), {name: read_rows(path) for name, path in files.items()}
    )


def chosen(cards: Sequence[Card], answers: Mapping[str, Rows]) -> Example | None:
    """Of cards that not every system got right, the first that is most evenly contested.

    Args:
      cards: the deck.
      answers: rows by system.
    """

    def contested(card: Card) -> int:
        right = sum(rows[card.id].passed for rows in answers.values() if card.id in rows)
        return min(right, len(answers) - right)

    known = [card for card in cards if all(card.id in rows for rows in answers.values())]
    if not known:
        return None
    card = max(known, key=contested)
    right, wrong = list[str](), dict[str, list[str]]()
    for name, rows in answers.items():
        row = rows[card.id]
        if row.passed:
            right.append(name)
        else:
            wrong.setdefault(row.pred, []).append(name)
    return Example(card, right, wrong)


def shown(one: Example) -> RenderableType:
    """A card for a terminal."""
    card = one.card
    lines = [*card.facts, *(f"Rule: {rule}" for rule in card.rules), card.question]
    said = [f"{card.gold} is right: {', '.join(one.right) or 'nobody said so'}"]
    said += [f"{answer}: {', '.join(names)}" for answer, names in one.wrong.items()]
    return Group(
        Text("One of the cards", style="bold"),
        *(Padding(Text(line), (0, 0, 0, 2)) for line in lines),
        *(Padding(Text(line, style="dim"), (0, 0, 0, 4)) for line in said),
    )


class Step(NamedTuple):
    """Something to do next, and the settings that do it."""

    what: str
    settings: str


_YOURS = "llm=endpoint llm.base_url=http://localhost:8000/v1 llm.model=NAME"
_NEXT = {
    "none": (
        Step(
            "No language model was asked. Take a small one's recorded replies, in seconds:",
            "llm=recorded",
        ),
        Step("Ask a model of your own:", _YOURS),
    ),
    "recorded": (
        Step("These are a small model's recorded replies. Ask a model of your own:", _YOURS),
        Step(
            "See what is understood of a graph of your own:",
            "stage=look domain=file 'domain.graph=[my.ttl]' 'domain.constraints=[s.ttl]'",
        ),
    ),
}
_ALWAYS = (
    Step("How good must a graph be, for a licence to pay?", "study=completeness budget=smoke"),
)


def next_steps(results: Results) -> list[Step]:
    """What to do next, given what was done."""
    asked = results.manifest.configuration.get("llm")
    source = asked.get("source") if isinstance(asked, dict) else None
    return [*_NEXT.get(str(source), ()), *_ALWAYS]


def usage(results: Results) -> list[str]:
    """What asking took, a line a system that asked."""
    blind = results.whole_graph.systems if results.whole_graph else {}
    return [
        f"{name} asked for {system.usage}"
        for name, system in {**results.systems, **blind}.items()
        if system.usage is not None
    ]

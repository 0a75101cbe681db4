"""The page and the terminal's table, made from an output folder's files and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table

import evidence
from epistemic import figures, first_screen
from epistemic.cards import Card, read_cards
from epistemic.completeness import report as completeness
from epistemic.completeness.results import Results as CompletenessResults
from epistemic.evaluate import Row, Rows, read_rows
from epistemic.results import Results
from epistemic.scoring.thesis import expectations, load_thesis, meets
from epistemic.systems import CONTROLS
from evidence import figures as drawing
from evidence.pages import number, render
from evidence.runtime import timings
from evidence.runtime.files import write_text

MOST_CARDS = 10_000
"""Cards in the page's browser; with more, failures stay and the rest is cut, which is said."""


class Browser(NamedTuple):
    """What the page's table of cards shows, as the page's script reads it.

    Attributes:
      systems: names.
      cards: a list a card of [id, label, kind, gold, question, facts, rules, proof, answers], the
        last a list a system of [answer, reply or "", proof or error or ""].
      cut: how many cards were left out.
    """

    systems: list[str]
    cards: list[list[object]]
    cut: int


@timings.part("drawing")
def write(folder: str | Path) -> Path:
    """Draw the figures into `folder/figures` and write `folder/report.html`.

    Args:
      folder: holds results.json; where it holds cards.jsonl and answers/*.jsonl of every system,
        too, the page shows every card.

    Returns:
      Path of the page.

    Raises:
      FileNotFoundError: the folder holds no results.json.
      ValueError: a file is not what a study writes; names it.
    """
    folder = Path(folder)
    results = evidence.load(folder)
    if isinstance(results, CompletenessResults):
        return completeness.write(folder)
    results = Results.load(folder)
    thesis = load_thesis()
    drawn = {
        "scores": figures.scores(results.systems, thesis),
        "selective": figures.selective(results.systems),
        "quality": figures.quality(results.quality),
    }
    for name, figure in drawn.items():
        if figure is not None:
            drawing.save(figure, folder / "figures", name)
    text = render(
        "epistemic",
        "report.html",
        results=results,
        thesis=thesis,
        metrics=figures.METRICS,
        figures={name: drawing.svg(f) if f is not None else None for name, f in drawn.items()},
        meets=meets,
        expectations=expectations(thesis, results.systems),
        example=first_screen.example(folder, results),
        next_steps=first_screen.next_steps(results),
        usage=first_screen.usage(results),
        browser=_browser_of(folder, list(results.systems)),
    )
    return write_text(folder / "report.html", text)


def _browser_of(folder: Path, systems: Sequence[str]) -> Browser | None:
    """The table of cards, or None where the folder lacks the cards or a system's answers."""
    cards = folder / "cards.jsonl"
    answers = {name: folder / "answers" / f"{name}.jsonl" for name in systems}
    if not all(path.exists() for path in (cards, *answers.values())):
        return None
    return browser(read_cards(cards), {name: read_rows(path) for name, path in answers.items()})


def browser(cards: Sequence[Card], answers: Mapping[str, Rows]) -> Browser:
    """The table of cards: failures first, those of controls last among them, then deck order.

    Args:
      cards: the deck.
      answers: rows by system.
    """
    names = list(answers)
    own = [name for name in names if name not in CONTROLS]

    def failures(card: Card) -> tuple[int, int]:
        real, all_ = (
            sum(not answers[name][card.id].passed for name in group) for group in (own, names)
        )
        return real, all_

    shown = sorted(cards, key=failures, reverse=True)[:MOST_CARDS]
    rows = [_shown(card, [answers[name][card.id] for name in names]) for card in shown]
    return Browser(names, rows, len(cards) - len(shown))


def _shown(card: Card, rows: Sequence[Row]) -> list[object]:
    """A card of `Browser.cards`; `rows` are the systems' answers to it."""
    replies = [[row.pred, row.raw or "", row.error or row.proof or ""] for row in rows]
    facts, rules = list(card.facts), list(card.rules)
    return [
        card.id, card.label, card.kind, card.gold, card.question, facts, rules, card.proof, replies
    ]  # fmt: skip


def summary(results: Results | CompletenessResults) -> Table:
    """What was found, for a terminal, at most 80 columns wide: the four metrics of every system, or
    where licensing breaks even.
    """
    if isinstance(results, CompletenessResults):
        return completeness.summary(results)
    table = Table(
        title=f"{results.deck.counts.total} cards about {results.deck.domain}",
        caption="seed convention; 95% intervals over subjects; dim: reference and controls",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("system", no_wrap=True)
    for metric in figures.METRICS:
        table.add_column(metric.replace("_", "-"), justify="right")
    table.add_column("ideal")
    for name, system in results.systems.items():
        four = system.conventions.seed
        # The thesis speaks of the last two; there is no room for four intervals.
        shown = (four.AP.value, four.CVRR.value, four.FAR_NE, four.LA)
        cells = [number(quantity, 2) for quantity in shown]
        style = "dim" if system.role != "ranked" else None
        table.add_row(name, *cells, "yes" if system.ideal else "no", style=style)
    return table

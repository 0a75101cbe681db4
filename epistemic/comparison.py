"""Studies of different domains compared, from their output folders."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from epistemic.cards import Card, read_cards
from epistemic.compared import DomainComparison
from epistemic.evaluate import Rows, read_answers
from epistemic.results import Results
from epistemic.scoring import assessment


def compare(folders: Sequence[Path], seed: int = 0) -> tuple[DomainComparison, ...]:
    """Every two studies of different domains compared, system by system, if systems were set alike.

    Args:
      folders: output folders of finished studies.
      seed: of the bootstrap.
    """
    found = []
    for one, other in combinations(folders, 2):
        first, second = Results.load(one), Results.load(other)
        domains = first.deck.domain, second.deck.domain
        if domains[0] != domains[1] and _answering(first) == _answering(second):
            systems = assessment.compare_decks(_dealt(one, first), _dealt(other, second), seed)
            found.append(
                DomainComparison(
                    one=domains[0],
                    other=domains[1],
                    folders=(one.name, other.name),
                    systems=systems,
                )
            )
    return tuple(found)


def _answering(results: Results) -> tuple[object, ...]:
    """The settings that answers depend on, decks apart."""
    configuration = results.manifest.configuration
    # Recorded replies lie in a file a domain.
    model = {name: value for name, value in configuration["llm"].items() if name != "replies"}
    return configuration["system"], configuration["kg"], model


def _dealt(folder: Path, results: Results) -> tuple[list[Card], dict[str, Rows]]:
    """The scored cards of a study, and every system's rows."""
    cards = [c for c in read_cards(folder / "cards.jsonl") if c.requires != "graph"]
    return cards, read_answers(folder, list(results.systems), results.deck.hash, cards)

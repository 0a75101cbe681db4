"""Decks as files: the cards, and beside them what is known of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from epistemic.cards import Card, deck_hash, write_cards
from epistemic.decks.deck import Deck
from epistemic.decks.leakage import audit
from epistemic.domain import Domain
from epistemic.logic.alone import judge_cards
from epistemic.logic.graph import Graph
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.results import CardCounts, KnowledgeGraph
from epistemic.results import Deck as About
from evidence.runtime.files import write_json


def given_deck(cards: Sequence[Card], known: Graph) -> Deck:
    """Cards that are there already as a deck.

    Args:
      cards: in the order to be asked.
      known: what systems may know.
    """
    parts = {part: Counter(getattr(card, part) for card in cards) for part in ("label", "kind")}
    counts = {part: dict(sorted(found.items())) for part, found in parts.items()}
    return Deck(list(cards), known, counts)


def refuse_other_golds(name: str, cards: Sequence[Card], domain: Domain, known: Graph) -> None:
    """Refuse a deck whose golds aren't those of its facts, rules and this graph.

    Args:
      name: of the deck, for the error.
      cards: the deck.
      domain: whose constraints the rules are.
      known: the domain's graph less what the deck withholds.

    Raises:
      ValueError: they aren't.
    """
    stated = [card for card in cards if card.stated]
    oracle = Oracle(known, domain.constraints)
    verdicts = judge_cards(stated, domain.constraints, oracle)
    other = [c.id for c, v in zip(stated, verdicts, strict=True) if v.label != c.label]
    if other:
        raise ValueError(
            f"deck {name}: the gold answers of {len(other)} cards, such as {other[0]}, are not "
            "those of this graph; give the domain, cards.seed and cards.withhold that the deck was "
            "made with"
        )


def save_deck(deck: Deck, domain: Domain, folder: Path, name: str) -> Sequence[Path]:
    """Write `folder/NAME.jsonl`, `folder/NAME.json` with what is known of the deck, and
    `folder/NAME_whole_graph.json` with each card's label by the whole graph.

    Args:
      deck: with the graph that systems may know.
      domain: that it is about.
      folder: where to.
      name: of the files.

    Raises:
      ValueError: the cards' form tells their answers; the files are written all the same.
    """
    leakage, constraints = audit(deck.cards), domain.constraints
    by_pyshacl = 0
    if len(constraints.slow):
        judged = Oracle(deck.graph, constraints).judge([card.claim for card in deck.cards])
        by_pyshacl = int(judged.slow.sum())
    about = About(
        domain=domain.name,
        hash=deck_hash(deck.cards),
        counts=CardCounts(total=len(deck.cards), **deck.counts),
        leakage_audit=leakage,
        graph=KnowledgeGraph(
            triples=len(domain.graph),
            digest=domain.graph.digest,
            known=deck.graph.digest,
            violations={v.constraint: len(v.subjects) for v in domain.oracle.violations},
            shared_labels=len(domain.graph.shared_labels),
            judged_by_pyshacl=by_pyshacl,
            axioms_unread=constraints.unread,
            attribution=domain.attribution,
        ),
    )
    written = [
        write_cards(folder / f"{name}.jsonl", deck.cards),
        write_json(folder / f"{name}.json", about),
        write_json(folder / f"{name}_whole_graph.json", _by_whole_graph(deck, domain)),
    ]
    if leakage.refused:
        raise ValueError(
            f"{name}.jsonl gives its labels away by wording alone and is refused; see "
            f"leakage_audit in {folder / name}.json"
        )
    return written


def _by_whole_graph(deck: Deck, domain: Domain) -> dict[str, str]:
    """Each card's label by all that the domain's graph says."""
    verdicts = domain.oracle.judge([card.claim for card in deck.cards]).verdict
    return {
        card.id: Verdict(verdict).label for card, verdict in zip(deck.cards, verdicts, strict=True)
    }

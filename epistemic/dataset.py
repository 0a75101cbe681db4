"""Decks as a data set; see `evidence.datasets`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epistemic.cards import Card, Statement
from epistemic.results import Deck
from epistemic.systems.language import prompt_with_facts
from evidence import datasets

COLUMNS = {
    "id": "names the card",
    "question": "what is asked",
    "facts": "sentences of the context, in the order shown",
    "rules": "sentences that constrain what can hold, such as 'A country has one capital.'",
    "gold": "the right answer: YES, NO or UNKNOWN",
    "label": "E: the facts entail the claim, C: they contradict it, U: they leave it open",
    "kind": "how the gold follows, such as C_functional; U_absent where nothing does",
    "requires": "card: facts and rules settle the gold; graph: only the whole graph does",
    "proof": "the triple that entails the claim, or the constraint and the clash",
    "prompt": "question, facts and rules as a language model is asked",
    "subject": "of the claim; cards of one subject are not independent",
    "predicate": "of the claim",
    "object": "of the claim",
    "stated": "the facts as triples, each with whether it holds or is denied",
    "axioms": "names of the constraints that the rules put into words",
    "family": "cards of one family are alike in all but the answer",
    "difficulty": "of a near miss, 0 (far) to 1 (nearest)",
    "nearness": "of a near miss, how it is near: neighbours, region, name or number",
}
"""Of the Parquet files, with what each holds."""

Decks = Mapping[str, tuple[Sequence[Card], Deck]]
"""Name -> cards, and what is known of them."""
Row = dict[str, str | float | list[str] | list[dict[str, str | bool]] | None]


def write_dataset(decks: Decks, folder: Path) -> list[Path]:
    """Write `folder/data/SPLIT.parquet` of each deck, `folder/croissant.json` and
    `folder/README.md`.

    Args:
      decks: the splits.
      folder: where to.

    Returns:
      What was written; nothing where polars (extra `frames`) is not installed.
    """
    if not datasets.can_write():
        return []
    import polars

    text, texts = polars.String(), polars.List(polars.String)
    ends = {part: text for part in ("subject", "predicate", "object")}
    types: dict[str, Any] = {
        **dict.fromkeys(COLUMNS, text),
        **dict.fromkeys(("facts", "rules", "axioms"), texts),
        "stated": polars.List(polars.Struct({**ends, "holds": polars.Boolean()})),
        "difficulty": polars.Float64(),
    }
    about = next(iter(decks.values()))[1]
    found = datasets.DataSet(
        title=f"Epistemic cards: {about.domain}",
        about="Claims that the facts of a card entail (E, right answer YES), contradict (C, NO) or "
        "leave open (U, UNKNOWN). A system is asked what it was told, not what is true of the "
        "world.",
        columns=COLUMNS,
        types=types,
        splits={split: [_row(card) for card in cards] for split, (cards, _) in decks.items()},
        more=_more(decks, about),
        head={
            "task_categories": ["question-answering", "text-classification"],
            "tags": ["abstention", "knowledge-graph", "entailment"],
        },
    )
    return datasets.write(found, folder)


def _row(card: Card) -> Row:
    return {
        "id": card.id,
        "question": card.question,
        "facts": list(card.facts),
        "rules": list(card.rules),
        "gold": card.gold,
        "label": card.label,
        "kind": card.kind,
        "requires": card.requires,
        "proof": card.proof,
        "prompt": prompt_with_facts(card.facts, card.rules, card.question),
        "subject": card.claim.subj,
        "predicate": card.claim.pred,
        "object": card.claim.obj,
        "stated": [_triple(fact) for fact in card.stated],
        "axioms": list(card.axioms),
        "family": card.family,
        "difficulty": card.difficulty,
        "nearness": card.nearness,
    }


def _triple(fact: Statement) -> dict[str, str | bool]:
    return {
        "subject": fact.subj,
        "predicate": fact.pred,
        "object": fact.obj,
        "holds": fact.holds,
    }


def _more(decks: Decks, about: Deck) -> str:
    """The decks' sizes, and how they were made, for the card."""
    lines = [
        "| split | cards | E | C | U | SHA-256 of the deck |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for split, (_, deck) in decks.items():
        labels = " | ".join(f"{deck.counts.label.get(label, 0):,}" for label in "ECU")
        lines.append(f"| {split} | {deck.counts.total:,} | {labels} | `{deck.hash}` |")
    graph, audit = about.graph, about.leakage_audit
    leak = "above what is allowed, within the noise" if audit.undecided else "no leak found"
    leak = "it does, and this deck must not be used" if audit.refused else leak
    lines += [
        "",
        "## How it was made",
        "",
        f"Drawn from a graph of {graph.triples:,} triples; gold answers are proved from each "
        "card's facts and rules. Whether form alone tells the answers was audited: "
        f"{leak} ({audit.cards:,} cards looked at, chance {audit.chance:.1%}).",
        "",
        graph.attribution or "Nobody is named as the source of the graph (`domain.attribution`).",
    ]
    return "\n".join(lines)

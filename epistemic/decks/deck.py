"""Decks of context cards: drawn in integers, proved by the oracle both ways, worded last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from epistemic.cards import Card
from epistemic.decks.drawing import Drawer, Streams
from epistemic.decks.families import cells_of, graph_cells
from epistemic.decks.sources import Sources
from epistemic.decks.wording import Wording
from epistemic.domain import Domain
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE, Graph
from evidence.runtime import timings
from evidence.runtime.config import Settings


class CardSettings(Settings):
    """What to draw; see conf/epistemic/config.yaml."""

    per_type: int = Field(default=200, ge=1, le=10_000_000)
    needs_graph: int = Field(default=0, ge=0, le=10_000_000)
    predicates: tuple[str, ...] | None = None
    seed: int = Field(default=1337, ge=0, lt=2**63)
    withhold: float = Field(default=0.3, ge=0, lt=1)


class Deck(NamedTuple):
    """Cards with the graph that they were drawn from.

    Attributes:
      cards: in the order to be asked.
      graph: the domain's less what was withheld; what systems may know.
      counts: cards by label, kind, predicate, family and what they require.
    """

    cards: list[Card]
    graph: Graph
    counts: dict[str, dict[str, int]]


def deck_graph(domain: Domain, settings: CardSettings) -> Graph:
    """The domain's graph less the values withheld from a share of each function's subjects, the
    subjects withheld from a share of the values that have one, a share of the pairs of properties
    that exclude others, and the class of a share of things.

    Without that, a claim about a function (one capital) would never be unknown.
    """
    triples, ids = domain.graph.triples, domain.graph.ids
    hidden = np.zeros(len(triples), bool)

    def withhold(stream: int, mine: np.ndarray, column: int) -> np.ndarray:
        chance = Draws(settings.seed, stream).uniform(len(domain.graph.terms))
        return mine & (chance[triples[:, column]] < settings.withhold)

    for stream, predicate in enumerate(domain.predicates.values()):
        mine = triples[:, 1] == ids.get(predicate.iri, -1)
        if domain.constraints.functional(predicate.iri):
            hidden |= withhold(100 + stream, mine, 0)
        elif domain.constraints.inverse_functional(predicate.iri):
            hidden |= withhold(100 + stream, mine, 2)
        elif domain.constraints.exclusive(predicate.iri):
            chance = Draws(settings.seed, 100 + stream).uniform(len(triples))
            hidden |= mine & (chance < settings.withhold)
    hidden |= withhold(99, _classes_to_spare(domain), 0)
    return domain.graph.without(hidden)


def _classes_to_spare(domain: Domain) -> np.ndarray:
    """bool[triples]: statements of class that no constraint takes for granted."""
    triples, ids = domain.graph.triples, domain.graph.ids
    needed = {name for rule in domain.constraints.rules for name in rule.classes}
    needed |= domain.constraints.complete
    supers = domain.constraints.hierarchy.above
    classes = {
        ids[name]
        for name in domain.constraints.hierarchy.apart
        if name in ids and not needed & supers.get(name, {name})
    }
    spared = (triples[:, 1] == ids[TYPE]) & np.isin(triples[:, 2], sorted(classes))
    kept = triples[(triples[:, 1] == ids[TYPE]) & ~spared, 0]
    return spared & ~np.isin(triples[:, 0], kept)


@timings.part("cards")
def make_cards(domain: Domain, settings: CardSettings) -> Deck:
    """Draw a deck: `per_type` cards of each label, spread evenly over the sorts of contradiction
    that the graph allows, and `needs_graph` of each label that only the graph settles.

    The same settings give the same bytes on every machine.

    Raises:
      ValueError: an unknown predicate, or a graph too small; says how many cards it could give.
    """
    sources = Sources.of(domain, deck_graph(domain, settings))
    streams = Streams.of(settings.seed)
    drawer = Drawer(sources, streams)
    predicates = sources.predicates(settings.predicates)
    cells = [cell for one in predicates for cell in cells_of(sources, one, streams.names)]
    if not cells:
        raise ValueError(
            f"{domain.name}: no claim could be contradictory. A predicate must be a function "
            "(owl:FunctionalProperty, sh:maxCount 1) or complete, and its subjects need a second "
            "predicate for the other facts of a card"
        )
    drawn = [drawer.draw(cells, settings.per_type)]
    if settings.needs_graph:
        apart = [cell for one in predicates for cell in graph_cells(sources, one, streams.names)]
        number, taken = settings.needs_graph, drawn[0].taken
        drawn.append(drawer.draw(apart, number, "cards.needs_graph", taken))
    cards = Wording(domain, settings.seed).cards(drawn, sources.known)
    return Deck(cards, sources.graph, counts(cards, domain))


def counts(cards: Sequence[Card], domain: Domain) -> dict[str, dict[str, int]]:
    """How many cards there are by label, kind, predicate, family and what they require."""

    def tally(values: Iterator[str]) -> dict[str, int]:
        return dict(sorted(Counter(values).items()))

    return {
        "label": tally(card.label for card in cards),
        "kind": tally(card.kind for card in cards),
        "predicate": tally(domain.by_iri[card.claim.pred].name for card in cards),
        "family": tally(card.family for card in cards),
        "requires": tally(card.requires for card in cards),
    }

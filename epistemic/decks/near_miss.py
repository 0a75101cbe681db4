"""Near misses: claims that are as close to a true one as the graph allows.

The claimed object is of the true one's type and near it in one of four ways: by its neighbours in
the graph, by the region that it lies in (what it or its holder has one of: a continent, a
currency), by its name, or, for numbers, within a tenth. What a near miss is worth, NO or UNKNOWN,
is what the oracle proves of it: NO where the true value is known and there can be only one, or
where it is denied; UNKNOWN where it was withheld. As many entailed cards, with the near miss as
somebody else's value, stand beside them, so that the deck's form tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from pydantic import Field

from epistemic.decks.deck import CardSettings, Deck, counts, deck_graph
from epistemic.decks.drawing import Drawer, Selection, Streams, TooFew
from epistemic.decks.families import Cell, cells_of
from epistemic.decks.nearness import Near, Nearest, near_values
from epistemic.decks.proposals import Chosen
from epistemic.decks.sources import BySubject, Sources
from epistemic.decks.wording import Wording
from epistemic.domain import Domain
from epistemic.logic.draws import Draws
from epistemic.predicates import Predicate
from evidence.runtime.config import Settings


class NearMissSettings(Settings):
    """What to draw; see conf/epistemic/config.yaml."""

    num: int = Field(default=500, ge=0, le=1_000_000)
    predicates: tuple[str, ...] | None = None
    seed: int = Field(default=2027, ge=0, lt=2**63)
    withhold: float = Field(default=0.3, ge=0, lt=1)

    @property
    def per_type(self) -> int:
        """Cards of each label; two labels are of near misses."""
        return (self.num + 1) // 2

    @property
    def cards(self) -> int:
        """Cards in all."""
        return 3 * self.per_type


def make_near_misses(domain: Domain, settings: NearMissSettings) -> Deck:
    """Draw `num` near misses, half of them NO and half UNKNOWN, and half as many YES beside them.

    Cards carry a difficulty: how near the claimed object is to the true one, 0 to 1.

    Raises:
      TooFew: a graph too small; says how many near misses it could give.
      ValueError: no predicate of it can be asked about.
    """
    drawn = CardSettings(
        per_type=max(1, settings.per_type),
        predicates=settings.predicates,
        seed=settings.seed,
        withhold=settings.withhold,
    )
    sources = Sources.of(domain, deck_graph(domain, drawn))
    streams = Streams.of(settings.seed)
    cells = near_cells(sources, sources.predicates(settings.predicates), streams.names)
    values = NearValues.of(sources, cells)
    # What is withheld is not missed but true: no near miss may be that.
    drawer = Drawer(sources, streams, Selection(values.choose, withheld=False))
    try:
        found = drawer.draw(cells, settings.per_type)
    except TooFew as few:
        both = {name: 2 * number for name, number in few.found.items()}
        raise TooFew("near_miss.num", settings.num, both, "near misses") from None
    cards = Wording(domain, settings.seed).cards([found], sources.known, prefix="NEAR")
    for place, card in enumerate(cards):
        if card.label != "E":
            near = nearest(sources, values, card.claim)
            cards[place] = replace(card, nearness=near.kind, difficulty=near.score)
    return Deck(cards, sources.graph, counts(cards, domain))


def near_cells(sources: Sources, predicates: Sequence[Predicate], draws: Draws) -> list[Cell]:
    """One family for each predicate of which a claim can be proved false.

    Raises:
      ValueError: there is none.
    """
    cells = []
    for predicate in predicates:
        families = {
            cell.family: cell
            for cell in cells_of(sources, predicate, draws)
            if cell.sort != "inferred"
        }
        for family in ("functional", "inverse_functional", "negated"):
            if family in families:
                # Spread evenly over predicates, whatever the reason of their golds.
                cells.append(replace(families[family], sort=predicate.name))
                break
    if not cells:
        raise ValueError(
            f"{sources.domain.name}: near misses need a predicate with one value a subject or one "
            "subject a value (owl:FunctionalProperty, sh:maxCount 1, "
            "owl:InverseFunctionalProperty) or one that is complete, and another predicate "
            "beside it"
        )
    return cells


class _Pair(NamedTuple):
    """Two values near one another, i32[n] each, and bool[n], whether there are such."""

    true: np.ndarray
    near: np.ndarray
    there: np.ndarray


@dataclass(frozen=True, eq=False)
class NearValues:
    """Values near one another, and who has them, of each predicate.

    Attributes:
      near: predicate -> which values are near.
      holders: predicate -> its triples the other way round.
    """

    near: Mapping[int, Near]
    holders: Mapping[int, BySubject]

    @classmethod
    def of(cls, sources: Sources, cells: Sequence[Cell]) -> NearValues:
        """Of the cells' predicates."""
        graph, constraints = sources.domain.graph, sources.domain.constraints
        single = [
            sources.ids[iri]
            for iri in sorted({rule.predicate for rule in constraints.rules})
            if iri in sources.ids and constraints.functional(iri)
        ]
        near = {}
        for number in sorted({cell.relations["+"].predicate for cell in cells}):
            # What the graph says of a predicate otherwise, by an inverse, put in its words.
            triples = np.concatenate([graph.triples, sources.truth[number].triples])
            near[number] = near_values(graph.with_triples(triples), number, single)
        return cls(near, {number: sources.truth[number].swapped() for number in near})

    def choose(self, cell: Cell, label: str, size: int, draws: Draws) -> Chosen:
        """For every label what is claimed is near a true value, of somebody else where the claim
        is true and of its subject where it isn't; and who has them is drawn alike."""
        number = cell.relations["+"].predicate
        holders = self.holders[number]
        true, near, there = self._pair(number, size, draws)
        what, subject, value = cell.layouts[label][0]
        # Where the layout doesn't state the true value, somebody is who has it.
        first = {value: true} if what == "+" else {subject: holders.value_of(true, draws).terms}
        return Chosen({**first, "o": near}, there, holders)

    def _pair(self, number: int, size: int, draws: Draws) -> _Pair:
        """Near values, in a way drawn at random."""
        tables = [pairs.of for _, pairs in sorted(self.near[number].by_kind.items())]
        drawn = np.zeros((size, 2), np.int32)
        if tables:
            way = draws.below(len(tables), size)
            for i, table in enumerate(tables):
                rows = table[draws.below(len(table), size)]
                drawn[way == i] = rows[way == i]
        return _Pair(drawn[:, 0], drawn[:, 1], np.full(size, bool(tables)))


def nearest(sources: Sources, values: NearValues, claim: Sequence[str]) -> Nearest:
    """How a claim is nearest to the truth: to any of its subject's values."""
    subject, number, claimed = (sources.ids[term] for term in claim)
    triples = sources.truth[number].triples
    true = triples[triples[:, 0] == subject, 2].tolist()
    return values.near[number].nearest(true, claimed)

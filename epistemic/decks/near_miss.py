"""Near misses: claims that are as close to a true one as the graph allows.

The claimed object is of the true one's type and near it in one of four ways: by its neighbours in
the graph, by the region that it lies in (what it or its holder has one of: a continent, a
currency), by its name, or, for numbers, within a tenth. What a near miss is worth, NO or UNKNOWN,
is what the oracle proves of it: NO where the true value is known and there can be only one, or
where it is denied; UNKNOWN where it was withheld. As many entailed cards, with the near miss as
somebody else's value, stand beside them, so that the deck's form tells nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from epistemic.decks.deck import CardSettings, Deck, counts, deck_graph
from epistemic.decks.drawing import Drawer
from epistemic.decks.families import Cell
from epistemic.decks.wording import Wording
from epistemic.domain import Domain
from epistemic.logic.draws import Draws
from epistemic.logic.graph import LABEL, TYPE, Graph
from epistemic.logic.lookup import Verdict
from epistemic.logic.terms import Scale, value_of
from epistemic.predicates import Predicate
from evidence.runtime.config import Settings

NEAREST = 8
WITHIN = 0.1
_BLOCK = 512
# Of a predicate with more values, so many are compared, drawn at random.
_MOST_VALUES = 4_096
# Cosines are kept to so many digits, so that every machine ranks them alike; below the least,
# two values aren't near.
_DIGITS = 6
_LEAST = 0.1


class NearMissSettings(Settings):
    """What to draw; see conf/epistemic/config.yaml."""

    num: int = Field(default=500, ge=0)
    predicates: tuple[str, ...] | None = None
    seed: int = Field(default=2027, ge=0)
    withhold: float = Field(default=0.3, ge=0, lt=1)


def make_near_misses(domain: Domain, settings: NearMissSettings) -> Deck:
    """Draw `num` near misses, half of them NO and half UNKNOWN, and half as many YES beside them.

    Cards carry a difficulty: how near the claimed object is to the true one, 0 to 1.

    Raises:
      ValueError: a graph too small; says how many cards it could give.
    """
    half = max(1, (settings.num + 1) // 2)
    drawn = CardSettings(
        per_type=half,
        predicates=settings.predicates,
        seed=settings.seed,
        withhold=settings.withhold,
    )
    drawer = _NearDrawer(domain, deck_graph(domain, drawn), settings.seed)
    cells = drawer.near_cells(drawer.predicates(settings.predicates))
    batches = drawer.draw(cells, half, "near_miss.num / 2")
    wording = Wording(domain, settings.seed)
    cards = wording.cards(batches, drawer.alone, drawer.known, prefix="NEAR")
    for place, card in enumerate(cards):
        if card.label != "E":
            nearness, difficulty = drawer.nearest(card.claim)
            cards[place] = replace(card, nearness=nearness, difficulty=difficulty)
    return Deck(cards, drawer.deck, counts(cards, domain))


class Near:
    """For each value of a predicate, the values nearest to it.

    Args:
      graph: whose values.
      predicate: its id.
      single: ids of predicates of which a subject has one value.

    Attributes:
      by_kind: kind of nearness -> i32[M, 2] of (value, near value) sorted, and f64[M] in 0..1.
    """

    def __init__(self, graph: Graph, predicate: int, single: Sequence[int]):
        values = np.unique(graph.triples[graph.triples[:, 1] == predicate, 2])
        self.by_kind: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        if not graph.is_name[values].all():
            self._add("number", values, *_near_numbers(graph, values))
            return
        if len(values) > _MOST_VALUES:
            values = np.sort(values[Draws(0).order(len(values))[:_MOST_VALUES]])
        one, several = _links(graph, single)
        reached = (one + one.T + several)[values]
        self._add("neighbours", values, *_nearest(_profile(several, reached, values)))
        self._add("region", values, *_nearest(_profile(one, reached, values)))
        self._add("name", values, *_nearest(_names(graph, values)))

    def _add(self, kind: str, values: np.ndarray, rows: np.ndarray, scores: np.ndarray) -> None:
        if len(rows):
            # Both ways: what is near is as often the true value as the claimed one.
            pairs = values[np.concatenate([rows, rows[:, ::-1]])]
            pairs, first = np.unique(pairs, axis=0, return_index=True)
            self.by_kind[kind] = pairs, np.concatenate([scores, scores])[first]

    def nearest(self, values: Sequence[int], near: int) -> tuple[str, float]:
        """In what way a value is nearest to any of these, and how near, from 0 to 1."""
        best = ("", 0.0)
        for kind, (pairs, scores) in self.by_kind.items():
            there = (pairs[:, 1] == near) & np.isin(pairs[:, 0], values)
            if there.any() and scores[there].max() > best[1]:
                best = kind, float(scores[there].max())
        return best


def _near_numbers(graph: Graph, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of places of numbers less than a tenth of the lesser apart; 1 - gap / tenth."""
    read = [value_of(graph.terms[value]) for value in values.tolist()]
    places = np.array([i for i, (scale, _) in enumerate(read) if scale == Scale.NUMBER], int)
    numbers = np.array([float(read[i][1]) for i in places.tolist()])
    order = np.argsort(numbers, kind="stable")
    places, numbers = places[order], numbers[order]
    rows, scores = [np.zeros((0, 2), int)], [np.zeros(0)]
    for step in range(1, min(NEAREST + 1, len(numbers))):
        reach = WITHIN * np.minimum(np.abs(numbers[:-step]), np.abs(numbers[step:]))
        gap = numbers[step:] - numbers[:-step]
        close = (gap > 0) & (gap < reach)
        rows.append(np.stack([places[:-step][close], places[step:][close]], axis=1))
        scores.append(1 - gap[close] / reach[close])
    return np.concatenate(rows), np.concatenate(scores)


def _links(graph: Graph, single: Sequence[int]) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Links from subjects to the one value of a predicate, and all other links, both ways."""
    triples = graph.triples
    skipped = np.isin(triples[:, 1], [graph.ids.get(TYPE, -1), graph.ids.get(LABEL, -1)])
    triples = triples[~skipped & graph.is_name[triples[:, 2]]]
    is_single = np.isin(triples[:, 1], single)
    size = len(graph.terms)

    def matrix(ends: np.ndarray) -> sparse.csr_matrix:
        made = sparse.csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (size, size))
        made.data[:] = 1
        return made

    other = triples[~is_single][:, [0, 2]]
    return matrix(triples[is_single][:, [0, 2]]), matrix(np.concatenate([other, other[:, ::-1]]))


def _profile(
    links: sparse.csr_matrix, reached: sparse.csr_matrix, values: np.ndarray
) -> sparse.csr_matrix:
    """What each value, or what stands beside it, is linked with: one row a value, of length one."""
    found = (links[values] + reached @ links).tocoo()
    other = found.col != values[found.row]
    rows, columns = found.row[other], found.col[other]
    # What is near everything says little: weigh terms by how few values they are near.
    common = np.bincount(columns, minlength=found.shape[1])
    weights = np.log((1 + len(values)) / (1 + common))[columns]
    return normalize(sparse.csr_matrix((weights, (rows, columns)), shape=found.shape))


def _names(graph: Graph, values: np.ndarray) -> sparse.csr_matrix:
    """Each value's name as letter triples, one row a value, of length one."""
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)).fit_transform(
        [graph.labels[value] for value in values]
    )


def _nearest(rows: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of places of rows with their cosine, the few nearest of each."""
    pairs, scores = [np.zeros((0, 2), int)], [np.zeros(0)]
    for start in range(0, rows.shape[0], _BLOCK):
        cosine = np.round((rows[start : start + _BLOCK] @ rows.T).toarray(), _DIGITS)
        here = np.arange(len(cosine))
        cosine[here, start + here] = 0
        best = np.argsort(-cosine, axis=1, kind="stable")[:, :NEAREST]
        score = np.take_along_axis(cosine, best, axis=1)
        some = score >= _LEAST
        pairs.append(np.stack([np.repeat(start + here, some.sum(axis=1)), best[some]], axis=1))
        scores.append(score[some])
    return np.concatenate(pairs), np.minimum(1.0, np.concatenate(scores))


class _NearDrawer(Drawer):
    """Draws cards in which somebody else's value is near the true one."""

    _pair: tuple[np.ndarray, np.ndarray, np.ndarray]

    def near_cells(self, predicates: Sequence[Predicate]) -> list[Cell]:
        """One family for each predicate of which a claim can be proved false.

        Raises:
          ValueError: there is none.
        """
        cells = []
        for predicate in predicates:
            found = {
                cell.family: cell for cell in self.cells_of(predicate) if cell.sort != "inferred"
            }
            for family in ("functional", "inverse_functional", "negated"):
                if family in found:
                    # Spread evenly over predicates, whatever the reason of their golds.
                    cells.append(replace(found[family], sort=predicate.name, pools={}))
                    break
        if not cells:
            raise ValueError(
                f"{self.domain.name}: near misses need a predicate with one value a subject or one "
                "subject a value (owl:FunctionalProperty, sh:maxCount 1, "
                "owl:InverseFunctionalProperty) or one that is complete, and another predicate "
                "beside it"
            )
        self._prepare(cells)
        return cells

    def _prepare(self, cells: list[Cell]) -> None:
        """What is near, for each predicate."""
        graph = self.domain.graph
        single = [
            self.ids[iri]
            for iri in {rule.predicate for rule in self.constraints.rules}
            if iri in self.ids and self.constraints.functional(iri)
        ]
        self._near: dict[int, Near] = {}
        for number in sorted({cell.relations["+"].predicate for cell in cells}):
            self._near[number] = Near(self._said(graph, number), number, single)

    def _said(self, graph: Graph, number: int) -> Graph:
        """The graph with what it says of a predicate otherwise, by an inverse, put in its words."""
        return graph.with_triples(np.concatenate([graph.triples, self.truth[number].triples]))

    def _chosen(
        self, cell: Cell, what: str, role: str, bound: dict[str, np.ndarray], size: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """For every label what is claimed is near a true value, of somebody else where the claim
        is true and of its subject where it isn't; and who has them is drawn alike."""
        number = cell.relations["+"].predicate
        if bound:
            return self._pair[1:] if role == "o" else None
        if role in ("u", "x"):
            return self._pair[0], self._pair[2]
        self._pair = self._draw_pair(number, size)
        if what == "+":
            return None  # the value comes first, then somebody who has it
        true, _, there = self._pair
        return self.holders(number).value_of(true, self.draws)[0], there

    def _draw_pair(self, number: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Two values near one another, in a way drawn at random, and whether there are such."""
        tables = [pairs for _, (pairs, _) in sorted(self._near[number].by_kind.items())]
        pairs = np.zeros((size, 2), np.int32)
        if not tables:
            return pairs[:, 0], pairs[:, 1], np.zeros(size, bool)
        way = self.draws.below(len(tables), size)
        for i, table in enumerate(tables):
            drawn = table[self.draws.below(len(table), size)]
            pairs[way == i] = drawn[way == i]
        return pairs[:, 0], pairs[:, 1], np.ones(size, bool)

    def _true_and_known(
        self,
        jobs: list[tuple[int, str]],
        job: np.ndarray,
        facts: np.ndarray,
        holds: np.ndarray,
        claims: np.ndarray,
    ) -> np.ndarray:
        """What is withheld is not missed but true: no near miss may be that."""
        good = super()._true_and_known(jobs, job, facts, holds, claims)
        if not len(claims):
            return good
        meant = np.array([label == "E" for _, label in jobs])[job]
        return good & (meant | (self.whole.judge_ids(claims).verdict != Verdict.ENTAILED))

    def nearest(self, claim: tuple[str, str, str]) -> tuple[str, float]:
        """How a claim is nearest to the truth, and how near: to any of its subject's values."""
        subject, number, claimed = (self.ids[term] for term in claim)
        triples = self.truth[number].triples
        values = triples[triples[:, 0] == subject, 2].tolist()
        return self._near[number].nearest(values, claimed)

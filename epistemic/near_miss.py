"""Near misses: claims that are as close to a true one as the graph allows.

The claimed object is of the true one's type and near it in one of three ways: by what surrounds
it in the graph (its region, currency, neighbours), by its name, or, for numbers, within a tenth.
What a near miss is worth, NO or UNKNOWN, is what the oracle proves of it: NO where the true value
is known and there can be only one, UNKNOWN where it was withheld. As many entailed cards, with
the near miss as somebody else's value, stand beside them, so that the deck's form tells nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pydantic import Field
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from epistemic.decks import (
    BySubject,
    CardSettings,
    Cell,
    Deck,
    Drawer,
    Wording,
    counts,
    deck_graph,
)
from epistemic.domain import Domain
from epistemic.graph import LABEL, TYPE, Graph, value_of
from evidence.config import Settings

NEAREST = 5
WITHIN = 0.1
_BLOCK = 512


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
    half = (settings.num + 1) // 2
    drawn = CardSettings(
        per_type=max(1, half),
        predicates=settings.predicates,
        seed=settings.seed,
        withhold=settings.withhold,
    )
    drawer = _NearDrawer(domain, deck_graph(domain, drawn), drawn)
    cards = Wording(domain, settings.seed).cards(drawer.draw(half), drawer.deck, prefix="NEAR")
    graded = [
        card if card.label == "E" else replace(card, difficulty=drawer.difficulty(card.claim))
        for card in cards
    ]
    return Deck(graded, drawer.deck, counts(graded, domain))


class Near:
    """For each value of a predicate, the values nearest to it.

    Attributes:
      pairs: i32[M, 2] of (value, near value), sorted; score: f64[M] in 0..1.
    """

    def __init__(self, graph: Graph, predicate: int):
        values = np.unique(graph.triples[graph.triples[:, 1] == predicate, 2])
        if graph.terms[values[0]].startswith('"'):
            rows, scores = _near_numbers(graph, values)
        else:
            parts = [_nearest(_surroundings(graph, values)), _nearest(_names(graph, values))]
            rows = np.concatenate([places for places, _ in parts])
            scores = np.concatenate([found for _, found in parts])
        pairs = values[rows] if len(rows) else np.zeros((0, 2), np.int32)
        order = np.lexsort((-scores, pairs[:, 1], pairs[:, 0]))
        pairs, scores = pairs[order], scores[order]
        # A value near in two ways counts once, by the nearer.
        fresh = np.ones(len(pairs), bool)
        fresh[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
        self.pairs, self.score = pairs[fresh], scores[fresh]

    def score_of(self, value: int, near: int) -> float:
        return float(self.score[(self.pairs == (value, near)).all(axis=1)][0])


def _near_numbers(graph: Graph, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of places of numbers at most a tenth apart; 1 - gap / tenth."""
    numbers = [(i, float(value_of(graph.terms[v])[1])) for i, v in enumerate(values)
               if value_of(graph.terms[v])[0] == 1]  # fmt: skip
    numbers.sort(key=lambda entry: entry[1])
    rows, scores = [], []
    for at, (i, x) in enumerate(numbers):
        reach = WITHIN * abs(x)
        for j, y in numbers[max(0, at - NEAREST) : at + NEAREST + 1]:
            if y != x and abs(y - x) <= reach:
                rows.append((i, j))
                scores.append(1 - abs(y - x) / reach)
    return np.array(rows, int).reshape(-1, 2), np.array(scores)


def _surroundings(graph: Graph, values: np.ndarray) -> sparse.csr_matrix:
    """Each value's terms within two links, one row a value, of length one."""
    triples = graph.triples
    link = ~np.isin(triples[:, 1], [graph.ids.get(TYPE, -1), graph.ids.get(LABEL, -1)])
    names = np.array([not term.startswith('"') for term in graph.terms])
    ends = triples[link & names[triples[:, 2]]][:, [0, 2]]
    size = len(graph.terms)
    ones = np.ones(2 * len(ends))
    both = np.concatenate([ends, ends[:, ::-1]])
    near = sparse.csr_matrix((ones, (both[:, 0], both[:, 1])), shape=(size, size))
    near.data[:] = 1
    first = near[values]
    wide = first + first @ near
    # What is near everything says little: weigh terms by how few values they are near.
    weight = np.log((1 + len(values)) / (1 + np.asarray((wide > 0).sum(axis=0)).ravel()))
    wide.data = np.minimum(wide.data, 1)
    wide = wide.multiply(weight).tocsr()
    wide[np.arange(len(values)), values] = 0
    return normalize(wide)


def _names(graph: Graph, values: np.ndarray) -> sparse.csr_matrix:
    """Each value's name as letter triples, one row a value, of length one."""
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)).fit_transform(
        [graph.labels[value] for value in values]
    )


def _nearest(rows: sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of places of rows with their cosine, the few nearest of each."""
    pairs, scores = [], []
    for start in range(0, rows.shape[0], _BLOCK):
        cosine = (rows[start : start + _BLOCK] @ rows.T).toarray()
        here = np.arange(len(cosine))
        cosine[here, start + here] = 0
        best = np.argsort(-cosine, axis=1, kind="stable")[:, :NEAREST]
        score = np.take_along_axis(cosine, best, axis=1)
        some = score > 0
        pairs.append(np.stack([np.repeat(start + here, some.sum(axis=1)), best[some]], axis=1))
        scores.append(score[some])
    return np.concatenate(pairs), np.minimum(1.0, np.concatenate(scores))


class _NearDrawer(Drawer):
    """Draws cards in which somebody else's value is near the true one."""

    def __init__(self, domain: Domain, deck: Graph, settings: CardSettings):
        super().__init__(domain, deck, settings)
        self.cells = [cell for cell in self.cells if cell.family == "functional"]
        if not self.cells:
            raise ValueError(
                f"{domain.name}: near misses need a predicate with one value a subject "
                "(owl:FunctionalProperty or sh:maxCount 1) and another predicate beside it"
            )
        triples = domain.graph.triples
        self.truth, self.near, self.near_to, self.holders = {}, {}, {}, {}
        for iri in {cell.predicate.iri: cell for cell in self.cells}:
            self.truth[iri] = BySubject(triples[triples[:, 1] == self.ids[iri]])
            self.near[iri] = Near(domain.graph, self.ids[iri])
            self.near_to[iri] = BySubject(self.near[iri].pairs[:, [0, 0, 1]])
            holders = self.by_subject[iri].triples[:, ::-1]
            self.holders[iri] = BySubject(holders[np.argsort(holders[:, 0], kind="stable")])

    def _bystanders(
        self, cell: Cell, label: str, bound: dict[str, np.ndarray], size: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Somebody who has a value near the true one of the card's subject."""
        iri = cell.predicate.iri
        if label == "U":
            true, there = self.truth[iri].value_of(bound["s"], self.draws)
        else:
            true, there = bound["o" if label == "E" else "u"], np.ones(size, bool)
        near, some = self.near_to[iri].value_of(true, self.draws)
        who, held = self.holders[iri].value_of(near, self.draws)
        return who, near, there & some & held

    def difficulty(self, claim: tuple[str, str, str]) -> float:
        """How near a claim is to the truth: its nearest of the subject's true values."""
        subject, iri, claimed = self.ids[claim[0]], claim[1], self.ids[claim[2]]
        triples = self.truth[iri].triples
        near = self.near[iri]
        pairs = {tuple(pair) for pair in near.pairs[near.pairs[:, 1] == claimed].tolist()}
        return max(
            near.score_of(int(true), claimed)
            for true in triples[triples[:, 0] == subject, 2]
            if (int(true), claimed) in pairs
        )

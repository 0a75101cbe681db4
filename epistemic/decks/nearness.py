"""Which values of a predicate are near one another, and how near.

Two things are near by what they are linked with in the graph ("neighbours"), by the region that
they lie in (what they or their holders have one of: a continent, a currency), or by their names;
two numbers are near within a tenth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.terms import Scale, value_of

NEAREST = 8
WITHIN = 0.1
_BLOCK = 512
# Of a predicate with more values, so many are compared, drawn at random.
_MOST_VALUES = 4_096
# Cosines are kept to so many digits, so that every machine ranks them alike; below the least,
# two values aren't near.
_DIGITS = 6
_LEAST = 0.1


class Pairs(NamedTuple):
    """What is near what.

    Attributes:
      of: int[M, 2], places or terms of two values.
      scores: f64[M] in 0..1, how near they are.
    """

    of: np.ndarray
    scores: np.ndarray

    @staticmethod
    def joined(parts: Sequence[Pairs]) -> Pairs:
        """All of these, one after the other."""
        nothing = Pairs(np.zeros((0, 2), int), np.zeros(0))
        return Pairs(*map(np.concatenate, zip(nothing, *parts, strict=True)))


class Nearest(NamedTuple):
    """In what way a value is nearest to another ("" in none), and how near, from 0 to 1."""

    kind: str
    score: float


@dataclass(frozen=True)
class Near:
    """For each value of a predicate, the values nearest to it.

    Attributes:
      by_kind: kind of nearness -> pairs i32[M, 2] of (value, near value), sorted.
    """

    by_kind: Mapping[str, Pairs]

    def nearest(self, values: Sequence[int], near: int) -> Nearest:
        """How a value is nearest to any of these."""
        best = Nearest("", 0.0)
        for kind, (pairs, scores) in self.by_kind.items():
            there = (pairs[:, 1] == near) & np.isin(pairs[:, 0], values)
            if there.any() and scores[there].max() > best.score:
                best = Nearest(kind, float(scores[there].max()))
        return best


def near_values(graph: Graph, predicate: int, single: Sequence[int]) -> Near:
    """Which values of a predicate are near one another.

    Args:
      graph: whose values.
      predicate: its id.
      single: ids of predicates of which a subject has one value.
    """
    values = np.unique(graph.triples[graph.triples[:, 1] == predicate, 2])
    if not graph.is_name[values].all():
        kinds = {"number": _near_numbers(graph, values)}
    else:
        if len(values) > _MOST_VALUES:
            values = np.sort(values[Draws(0).order(len(values))[:_MOST_VALUES]])
        one, several = _links(graph, single)
        reached = (one + one.T + several)[values]
        kinds = {
            "neighbours": _nearest(_profile(several, reached, values)),
            "region": _nearest(_profile(one, reached, values)),
            "name": _nearest(_names(graph, values)),
        }
    return Near({kind: _both_ways(values, pairs) for kind, pairs in kinds.items() if len(pairs.of)})


def _both_ways(values: np.ndarray, places: Pairs) -> Pairs:
    """Pairs of values: what is near is as often the true value as the claimed one."""
    pairs = values[np.concatenate([places.of, places.of[:, ::-1]])]
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    return Pairs(pairs, np.concatenate([places.scores, places.scores])[first])


def _near_numbers(graph: Graph, values: np.ndarray) -> Pairs:
    """Pairs of places of numbers less than a tenth of the lesser apart; 1 - gap / tenth."""
    read = [value_of(graph.terms[value]) for value in values.tolist()]
    places = np.array([i for i, (scale, _) in enumerate(read) if scale == Scale.NUMBER], int)
    numbers = np.array([float(read[i][1]) for i in places.tolist()])
    order = np.argsort(numbers, kind="stable")
    places, numbers = places[order], numbers[order]
    parts = []
    for step in range(1, min(NEAREST + 1, len(numbers))):
        reach = WITHIN * np.minimum(np.abs(numbers[:-step]), np.abs(numbers[step:]))
        gap = numbers[step:] - numbers[:-step]
        close = (gap > 0) & (gap < reach)
        pairs = np.stack([places[:-step][close], places[step:][close]], axis=1)
        parts.append(Pairs(pairs, 1 - gap[close] / reach[close]))
    return Pairs.joined(parts)


def _links(graph: Graph, single: Sequence[int]) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
    """Links from subjects to the one value of a predicate, and all other links, both ways."""
    triples = graph.triples
    skipped = np.isin(triples[:, 1], [graph.ids.get(TYPE, -1), *graph.naming])
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
    linked = (links[values] + reached @ links).tocoo()
    other = linked.col != values[linked.row]
    rows, columns = linked.row[other], linked.col[other]
    # What is near everything says little: weigh terms by how few values they are near.
    common = np.bincount(columns, minlength=linked.shape[1])
    weights = np.log((1 + len(values)) / (1 + common))[columns]
    return normalize(sparse.csr_matrix((weights, (rows, columns)), shape=linked.shape))


def _names(graph: Graph, values: np.ndarray) -> sparse.csr_matrix:
    """Each value's name as letter triples, one row a value, of length one."""
    return TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 3)).fit_transform(
        [graph.labels[value] for value in values]
    )


def _nearest(rows: sparse.csr_matrix) -> Pairs:
    """Pairs of places of rows with their cosine, the few nearest of each."""
    parts = []
    for start in range(0, rows.shape[0], _BLOCK):
        cosine = np.round((rows[start : start + _BLOCK] @ rows.T).toarray(), _DIGITS)
        here = np.arange(len(cosine))
        cosine[here, start + here] = 0
        best = np.argsort(-cosine, axis=1, kind="stable")[:, :NEAREST]
        score = np.take_along_axis(cosine, best, axis=1)
        some = score >= _LEAST
        pairs = np.stack([np.repeat(start + here, some.sum(axis=1)), best[some]], axis=1)
        parts.append(Pairs(pairs, np.minimum(1.0, score[some])))
    return Pairs.joined(parts)

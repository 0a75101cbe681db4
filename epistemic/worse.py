"""Worse graphs: some of what a graph says is lost, some is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from epistemic.logic.constraints import Constraints
from epistemic.logic.draws import Draws
from epistemic.logic.graph import Graph


def degrade(
    graph: Graph,
    constraints: Constraints,
    iris: list[str],
    keep: float,
    wrong: float,
    seed: int,
    loss: Loss = "triples",
) -> Graph:
    """Forget a share of what the predicates say and swap the objects of a share of the rest for
    others that the predicate has.

    Triples that say the same, such as both directions of a symmetric property, are lost and
    swapped together. The same seed forgets nested sets: what keep=0.7 lacks, keep=0.5 lacks too.

    Args:
      graph: whole.
      constraints: tell which triples say the same.
      iris: of the predicates.
      keep: share of what they say that stays.
      wrong: share of it that is swapped.
      seed: of the draws.
      loss: what is lost together; see `LOSSES`.
    """
    triples = graph.triples
    listed = np.isin(triples[:, 1], [graph.ids[iri] for iri in iris if iri in graph.ids])
    twins = _twins(graph, constraints, listed)
    ours = listed & (twins.first == np.arange(len(triples)))
    kept = ~ours | (LOSSES[loss](triples, ours, Draws(seed, stream=1)) < keep)
    falsify = ours & (Draws(seed, stream=2).uniform(len(triples)) < wrong)
    changed = triples.copy()
    for p in np.unique(triples[falsify, 1]):
        rows = np.flatnonzero(falsify & (triples[:, 1] == p))
        pool, old = np.sort(triples[triples[:, 1] == p, 2]), triples[rows, 2]
        first, after = (np.searchsorted(pool, old, side) for side in ("left", "right"))
        others = len(pool) - (after - first)
        drawn = (Draws(seed, stream=3).uniform(len(rows)) * others).astype(int)
        drawn += np.where(drawn >= first, after - first, 0)
        changed[rows[others > 0], 2] = pool[drawn[others > 0]]
    said = twins.follow(changed)
    # No literal has properties: what is swapped for one can't be said the other way round.
    return graph.with_triples(said[kept[twins.first] & graph.is_name[said[:, 0]]])


class _Twins(NamedTuple):
    """Which triples say the same.

    Attributes:
      first: i64[T], the place of one of those that say what a triple says: mostly its own.
      turned: bool[T], whether it says so the other way round than some of them.
    """

    first: np.ndarray
    turned: np.ndarray

    def follow(self, changed: np.ndarray) -> np.ndarray:
        """i32[T, 3] triples, each of which says what the first of its kind does."""
        said = changed[self.first]
        crossed = self.turned != self.turned[self.first]
        said[crossed] = said[crossed][:, [2, 1, 0]]
        said[:, 1] = changed[:, 1]
        return said


def _twins(graph: Graph, constraints: Constraints, listed: np.ndarray) -> _Twins:
    """By symmetry and inverses; the first is one of bool[T] `listed`, if one is."""
    ids, (s, p, o) = graph.ids, graph.triples.astype(np.int64).T
    root, turned = np.full(len(s), -1), np.zeros(len(s), bool)
    for name in sorted(constraints.reversible & ids.keys()):
        same = {(ids[q], swapped) for q, swapped in constraints.synonyms(name) if q in ids}
        rows = (p == ids[name]) & graph.is_name[o]
        root[rows] = least = min(same)[0]
        if (least, True) in same:
            turned[rows] = (least, False) not in same or s[rows] > o[rows]
    first, several = np.arange(len(s)), np.flatnonzero(root >= 0)
    several = several[np.argsort(~listed[several], kind="stable")]
    ends = np.where(turned, [o, s], [s, o])[:, several]
    key = (np.searchsorted(np.unique(root), root[several]) * len(ids) + ends[0]) * len(ids)
    _, at, kind = np.unique(key + ends[1], return_index=True, return_inverse=True)
    first[several] = several[at][kind]
    return _Twins(first, turned)


def mentions(triples: np.ndarray, terms: int) -> np.ndarray:
    """i64[terms]: how often triples name each term as subject or object."""
    return np.bincount(triples[:, [0, 2]].ravel(), minlength=terms)


def _by_triple(triples: np.ndarray, ours: np.ndarray, draws: Draws) -> np.ndarray:
    return draws.uniform(len(triples))


def _by_subject(triples: np.ndarray, ours: np.ndarray, draws: Draws) -> np.ndarray:
    return draws.uniform(int(triples.max(initial=0)) + 1)[triples[:, 0]]


def _by_popularity(triples: np.ndarray, ours: np.ndarray, draws: Draws) -> np.ndarray:
    """Those of the least mentioned subjects are the first to go."""
    named = mentions(triples[ours], int(triples.max(initial=0)) + 1)[triples[:, 0]]
    popular = np.lexsort((_by_subject(triples, ours, draws), -named, ~ours))
    place = np.empty(len(triples))
    place[popular] = np.arange(len(triples)) / max(1, ours.sum())
    return place


Loss = Literal["triples", "subjects", "popularity"]
LOSSES: dict[Loss, Callable[[np.ndarray, np.ndarray, Draws], np.ndarray]] = {
    "triples": _by_triple,
    "subjects": _by_subject,
    "popularity": _by_popularity,
}
"""What is lost together. From i32[T, 3] triples and bool[T], those that may be lost, f64[T]: each
stays while that is below `keep`."""

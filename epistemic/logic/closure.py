"""All that a graph says: stated, or following by OWL 2 RL's rules for properties and classes."""

from __future__ import annotations

import numpy as np

from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph, sorted_unique

# A transitive property of a long chain says as many pairs as the chain's length squared.
_MOST_PAIRS = 50_000_000


def closure(graph: Graph, constraints: Constraints) -> np.ndarray:
    """All that a graph says. i32[T, 3].

    By symmetry, inverses, subproperties and transitivity; of those, the classes of subjects and
    values by rdfs:domain and rdfs:range; and the superclasses of all classes.

    Args:
      graph: its table has the constraints' vocabulary.
      constraints: what is known of properties and classes.

    Raises:
      ValueError: a transitive property says more pairs than there is room for; names it.
    """
    said = _properties(graph, graph.triples, constraints)
    while constraints.transitive & graph.ids.keys():
        longer = _with(said, [_transitive(graph, said, p) for p in sorted(constraints.transitive)])
        said = _properties(graph, longer, constraints)
        if len(said) == len(longer):
            break
    typed = _with(said, _ends(graph, said, constraints))
    types = typed[typed[:, 1] == graph.ids.get(TYPE, -1)]
    parts = []
    for child, above in constraints.hierarchy.above.items():
        for parent in above & graph.ids.keys():
            fresh = types[types[:, 2] == graph.ids.get(child, -1)].copy()
            fresh[:, 2] = graph.ids[parent]
            parts.append(fresh)
    return _with(typed, parts)


def _with(triples: np.ndarray, parts: list[np.ndarray]) -> np.ndarray:
    """Sorted, unique triples with others; sorted again only where there are any."""
    return sorted_unique(np.concatenate([triples, *parts])) if parts else triples


def _properties(graph: Graph, triples: np.ndarray, constraints: Constraints) -> np.ndarray:
    """The triples with all that each says by itself of the same two terms."""
    ids, is_name = graph.ids, graph.is_name
    parts: list[np.ndarray] = []
    for p in sorted(constraints.related & ids.keys()):
        rows = triples[triples[:, 1] == ids[p]]
        for q, swapped in constraints.implications(p)[1:]:
            if q in ids:
                fresh = rows[is_name[rows[:, 2]]][:, [2, 1, 0]] if swapped else rows.copy()
                fresh[:, 1] = ids[q]
                parts.append(fresh)
    return _with(triples, parts)


def _transitive(graph: Graph, triples: np.ndarray, predicate: str) -> np.ndarray:
    """The triples that follow from a transitive property's own, i32[M, 3]."""
    number = graph.ids.get(predicate, -1)
    base = triples[triples[:, 1] == number]
    base = base[np.argsort(base[:, 0], kind="stable")]
    known, edge = base, base
    while len(edge):
        first, last = (np.searchsorted(base[:, 0], edge[:, 2], side) for side in ("left", "right"))
        counts = last - first
        if counts.sum() + len(known) > _MOST_PAIRS:
            raise ValueError(
                f"{predicate} is transitive and says more than {_MOST_PAIRS:,} pairs: leave that "
                "axiom out"
            )
        onward = np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        reached = np.repeat(edge, counts, axis=0)
        reached[:, 2] = base[onward, 2]
        edge = _without(sorted_unique(reached), known)
        known = sorted_unique(np.concatenate([known, edge]))
    return known


def _without(triples: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The triples of one property that aren't among others of it; both in order."""
    keys, theirs = (rows[:, 0].astype(np.int64) << 32 | rows[:, 2] for rows in (triples, others))
    place = np.minimum(np.searchsorted(theirs, keys), len(theirs) - 1)
    return triples[theirs[place] != keys]


def _ends(graph: Graph, triples: np.ndarray, constraints: Constraints) -> list[np.ndarray]:
    """The types of subjects and values, i32[M, 3] a property and class."""
    parts = []
    for pairs, column in ((constraints.domain, 0), (constraints.range, 2)):
        for predicate, name in sorted(pairs):
            rows = triples[triples[:, 1] == graph.ids.get(predicate, -1)]
            terms = np.unique(rows[:, column])
            terms = terms[graph.is_name[terms]]
            fresh = np.empty((len(terms), 3), np.int32)
            fresh[:, 0], fresh[:, 1], fresh[:, 2] = terms, graph.ids[TYPE], graph.ids[name]
            parts.append(fresh)
    return parts

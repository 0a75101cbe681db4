"""Claims about the world, and worse graphs to license them: one draw of the sweep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from epistemic.completeness.models import Judged
from epistemic.domain import Domain
from epistemic.logic.draws import Draws
from epistemic.logic.graph import Graph
from epistemic.logic.lookup import Verdict
from epistemic.worse import mentions

_CLAIMS, _ANSWERS = 20, 40
"""Streams of a draw's seed; the graph has those below."""


class Sample(NamedTuple):
    """What is asked in one draw, and what models say.

    Attributes:
      claims: i32[N, 3] terms of the domain's graph.
      gold: i8[N] of `Verdict`, by the world.
      subject: i64[N] in [0, terms).
      said: i8[M, P, N] of `Answer`, by model and price.
    """

    claims: np.ndarray
    gold: np.ndarray
    subject: np.ndarray
    said: np.ndarray


Answering = Callable[[Judged, int], np.ndarray]
"""(claims, seed) -> i8[M, P, N] of `Answer`."""


def sample(
    domain: Domain, heard_from: Graph, number: int, heard: float, answering: Answering, seed: int
) -> Sample:
    """One draw of claims with the models' answers; subjects are their terms.

    Every predicate of the domain is as likely, and each of its triples as likely as another.

    Args:
      domain: the world.
      heard_from: the graph before it lost triples, with its wrong ones.
      number: of claims, N.
      heard: share of them read off that graph.
      answering: what models say.
      seed: of the draw.
    """
    draws = Draws(seed, _CLAIMS)
    truth = [
        rows
        for predicate in domain.predicates.values()
        if len(rows := _said(domain, predicate.iri))
    ]
    off_graph = [heard_from.triples[heard_from.triples[:, 1] == rows[0, 1]] for rows in truth]
    off_graph = [rows for rows in off_graph if len(rows)]
    many = round(heard * number)
    false = (number - many) // 2
    claims = np.concatenate(
        [
            _drawn(off_graph, many, draws),
            _drawn(truth, number - many - false, draws),
            _swapped(domain, truth, false, draws),
        ]
    )
    judged = Judged(
        domain.oracle.judge_ids(claims).verdict,
        _popularity(claims[:, 0], np.concatenate(truth), draws),
    )
    return Sample(claims, judged.gold, claims[:, 0].astype(np.int64), answering(judged, seed))


def answer_draws(seed: int, stream: int) -> Draws:
    """The draws that a model's answers come from."""
    return Draws(seed, _ANSWERS + stream)


def _popularity(subjects: np.ndarray, truth: np.ndarray, draws: Draws) -> np.ndarray:
    """f64[N]: see `Judged`; equally popular subjects in an order of their own."""
    terms = int(max(subjects.max(), truth.max())) + 1
    tie = draws.uniform(terms)[subjects]
    place = np.empty(len(subjects))
    order = np.lexsort((tie, mentions(truth, terms)[subjects]))
    place[order] = (np.arange(len(subjects)) + 0.5) / len(subjects)
    return place


def _said(domain: Domain, iri: str) -> np.ndarray:
    """i32[T, 3]: what the world says by a predicate, stated or inferred."""
    nothing = np.zeros((0, 3), np.int32)
    return domain.oracle.compiled.by_predicate.get(domain.graph.ids.get(iri, -1), nothing)


def _drawn(pools: Sequence[np.ndarray], number: int, draws: Draws) -> np.ndarray:
    """i32[number, 3]: rows of pools, every pool as likely."""
    of = draws.below(len(pools), number)
    row = draws.below(np.array([len(pool) for pool in pools])[of], number)
    starts = np.cumsum([0, *(len(pool) for pool in pools)])[:-1]
    return np.concatenate(pools)[starts[of] + row]


def _swapped(domain: Domain, pools: Sequence[np.ndarray], number: int, draws: Draws) -> np.ndarray:
    """i32[number, 3]: true claims with another triple's object, which the world does not entail.

    Raises:
      ValueError: nearly every such claim is true.
    """
    for tries in (4, 64):
        claims = _drawn(pools, tries * number, draws)
        objects = np.empty(len(claims), np.int32)
        for pool in pools:
            mine = np.flatnonzero(claims[:, 1] == pool[0, 1])
            objects[mine] = pool[draws.below(len(pool), len(mine)), 2]
        claims = np.column_stack([claims[:, :2], objects])
        verdict = domain.oracle.judge_ids(claims).verdict
        claims = claims[verdict != Verdict.ENTAILED]
        if len(claims) >= number:
            return claims[:number]
    raise ValueError(f"{domain.name}: another object makes nearly every claim true; none are false")

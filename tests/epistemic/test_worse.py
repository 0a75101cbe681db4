"""Worse graphs, by hand: what says the same is lost and swapped together."""

from __future__ import annotations

import numpy as np
import pytest

from epistemic.domain import built_in, load_domain
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints
from epistemic.logic.draws import Draws
from epistemic.logic.graph import Graph
from epistemic.logic.oracle import Oracle
from epistemic.worse import LOSSES, Loss, degrade

X = "http://x/"
BORDERS = Constraints(symmetric=frozenset({X + "borders"}))
FLOWS = Constraints(inverse=frozenset({(X + "flowsInto", X + "inflow")}))


def graph(text: str, constraints: Constraints) -> Graph:
    triples = [tuple(X + word for word in line.split()) for line in text.split(";")]
    return with_vocabulary(Graph.from_triples(triples), constraints)


def said(worse: Graph) -> set[tuple[str, ...]]:
    return {tuple(worse.terms[i].removeprefix(X) for i in row) for row in worse.triples.tolist()}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("keep", [0.5, 0.25])
def test_of_a_border_said_both_ways_neither_or_both_are_kept(loss: Loss, keep: float):
    """Of 200 borders the share that is kept is kept of what is true, too."""
    pairs = [f"a{i} borders b{i} ; b{i} borders a{i}" for i in range(200)]
    whole = graph(" ; ".join(pairs), BORDERS)
    worse = degrade(whole, BORDERS, [X + "borders"], keep, 0.0, 7, loss)
    left = said(worse)
    assert all((o, p, s) in left for s, p, o in left)
    assert len(left) / 400 == pytest.approx(keep, abs=0.1)
    claims = [(f"{X}a{i}", X + "borders", f"{X}b{i}") for i in range(200)]
    entailed = Oracle(worse, BORDERS).judge(claims).verdict == 2
    assert entailed.mean() == len(left) / 400


def test_a_wrong_border_is_wrong_both_ways():
    pairs = [f"a{i} borders b{i} ; b{i} borders a{i}" for i in range(50)]
    whole = graph(" ; ".join(pairs), BORDERS)
    left = said(degrade(whole, BORDERS, [X + "borders"], 1.0, 1.0, 7))
    assert all((o, p, s) in left for s, p, o in left)
    assert not left & said(whole)


@pytest.mark.parametrize("listed", [["flowsInto"], ["inflow"], ["flowsInto", "inflow"]])
def test_an_inverse_says_the_same_whichever_is_spoken_of(listed: list[str]):
    rivers = [f"r{i} flowsInto s{i} ; s{i} inflow r{i}" for i in range(40)]
    whole = graph(" ; ".join([*rivers, "r0 long x"]), FLOWS)
    for keep, wrong in ((0.5, 0.0), (1.0, 0.5), (0.5, 0.5)):
        left = said(degrade(whole, FLOWS, [X + name for name in listed], keep, wrong, 3))
        into = {(s, o) for s, p, o in left if p == "flowsInto"}
        assert {(o, s) for s, p, o in left if p == "inflow"} == into
        assert ("r0", "long", "x") in left
        assert 10 < len(into) <= 40 * keep + 10
        assert bool(into - {(f"r{i}", f"s{i}") for i in range(40)}) == (wrong > 0)


def test_what_is_said_once_is_drawn_by_itself():
    """Each triple of a graph without twins by its own draw, as if there were no constraints."""
    domain = load_domain(built_in("rivers"))
    iris = [predicate.iri for predicate in domain.predicates.values()]
    one, other = (
        degrade(domain.graph, constraints, iris, 0.7, 0.1, 5)
        for constraints in (domain.constraints, Constraints())
    )
    assert np.array_equal(one.triples, other.triples)
    lone = graph("a borders b ; c borders d ; c borders c", BORDERS)
    for seed in range(20):
        kept = Draws(seed, stream=1).uniform(3) < 0.5
        worse = degrade(lone, BORDERS, [X + "borders"], 0.5, 0.0, seed)
        assert np.array_equal(worse.triples, lone.triples[kept])


def test_a_degraded_graph_forgets_nested_shares():
    domain = load_domain(built_in("countries"))
    iris = [predicate.iri for predicate in domain.predicates.values()]
    whole, constraints = domain.graph, domain.constraints
    graphs = [degrade(whole, constraints, iris, keep, 0.0, seed=3) for keep in (1.0, 0.9, 0.5)]
    sets = [set(map(tuple, graph.triples.tolist())) for graph in graphs]
    assert sets[2] < sets[1] < sets[0]
    wrong = degrade(whole, constraints, iris, 1.0, 0.05, seed=3)
    changed = len(sets[0] - set(map(tuple, wrong.triples.tolist())))
    ours = int(np.isin(graphs[0].triples[:, 1], [graphs[0].ids[iri] for iri in iris]).sum())
    assert changed == pytest.approx(0.05 * ours, rel=0.15)
    # A continent, of which there are few, is swapped for another one each time.
    triples = graphs[0].triples
    continents = triples[:, 1] == graphs[0].ids[domain.predicates["continent"].iri]
    swapped = continents & (Draws(3, stream=2).uniform(len(triples)) < 0.05)
    gone = set(map(tuple, triples[continents].tolist())) - set(map(tuple, wrong.triples.tolist()))
    assert gone == set(map(tuple, triples[swapped].tolist()))
    assert np.array_equal(wrong.terms, graphs[0].terms)

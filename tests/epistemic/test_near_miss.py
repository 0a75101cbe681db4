"""Near misses: near, of the right type, and worth what the oracle proves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from epistemic.decks import judge_cards
from epistemic.domain import built_in, load_domain
from epistemic.graph import LABEL, Graph, literal
from epistemic.near_miss import Near, NearMissSettings, make_near_misses
from epistemic.oracle import Oracle

X = "http://x/"


@pytest.fixture(scope="module")
def made():
    domain = load_domain(built_in("rivers"))
    return domain, make_near_misses(domain, NearMissSettings(num=60))


def test_counts_are_exact_and_balanced(made):
    _, deck = made
    assert deck.counts["label"] == {"C": 30, "E": 30, "U": 30}
    assert all((card.difficulty is None) == (card.label == "E") for card in deck.cards)
    assert all(0 < card.difficulty <= 1 for card in deck.cards if card.label != "E")


def test_golds_hold_both_ways(made):
    domain, deck = made
    golds = [card.gold for card in deck.cards]
    assert [v.gold for v in judge_cards(deck.cards, domain.constraints)] == golds
    known = Oracle(deck.graph, domain.constraints)
    assert [v.gold for v in judge_cards(deck.cards, domain.constraints, known)] == golds


def test_no_near_miss_is_true(made):
    domain, deck = made
    asked = [card for card in deck.cards if card.label != "E"]
    verdicts = domain.oracle.judge([card.claim for card in asked]).verdict
    assert set(verdicts.tolist()) == {0}  # all contradict the whole graph


def test_near_numbers_are_within_a_tenth(made):
    domain, deck = made
    lengths = [c for c in deck.cards if c.claim.pred.endswith("#length") and c.label != "E"]
    assert lengths
    triples = {domain.graph.terms[s]: domain.graph.labels[o] for s, p, o in domain.graph.triples
               if domain.graph.terms[p].endswith("#length")}  # fmt: skip
    for card in lengths:
        true, claimed = int(triples[card.claim.subj]), int(card.claim.obj.split('"')[1])
        assert 0 < abs(true - claimed) <= 0.1 * true
        assert card.difficulty == pytest.approx(1 - abs(true - claimed) / (0.1 * true))


def test_what_is_near_shares_surroundings_or_name():
    texts = [
        ("reim", "river", "rhine"), ("koln", "river", "rhine"), ("bonn", "river", "rhine"),
        ("cairo", "river", "nile"), ("giza", "river", "nile"),
        *((town, "in", land) for town, land in
          [("koln", "de"), ("bonn", "de"), ("cairo", "eg"), ("giza", "eg"), ("reim", "fr")]),
        *((f"s-{town}", "home", town) for town in ("koln", "bonn", "cairo", "giza", "reim")),
    ]  # fmt: skip
    graph = Graph.from_triples((X + s, X + p, X + o) for s, p, o in texts)
    near = Near(graph, graph.ids[X + "home"])
    best = {}
    for (value, other), score in zip(near.pairs.tolist(), near.score, strict=True):
        best.setdefault(value, []).append((score, graph.label(other)))
    assert max(best[graph.ids[X + "koln"]])[1] == "bonn"
    assert max(best[graph.ids[X + "cairo"]])[1] == "giza"


def test_names_count_where_surroundings_say_nothing():
    names = {"a": "Kingston", "b": "Kingstown", "c": "Reykjavik"}
    texts = [(X + name, LABEL, f'"{label}"') for name, label in names.items()]
    texts += [(f"{X}s{name}", X + "capital", X + name) for name in names]
    graph = Graph.from_triples(texts)
    near = Near(graph, graph.ids[X + "capital"])
    assert near.score_of(graph.ids[X + "a"], graph.ids[X + "b"]) > 0.5


def test_far_numbers_are_not_near():
    numbers = [100, 109, 111, 500]
    graph = Graph.from_triples((f"{X}s{n}", X + "p", literal(n)) for n in numbers)
    near = Near(graph, graph.ids[X + "p"])
    pairs = {tuple(int(graph.label(v)) for v in pair) for pair in near.pairs}
    assert pairs == {(100, 109), (109, 100), (109, 111), (111, 109), (111, 100)}


def test_difficulties_differ(made):
    _, deck = made
    difficulties = [card.difficulty for card in deck.cards if card.difficulty is not None]
    assert np.std(difficulties) > 0.05
    assert len(Counter(difficulties)) > 10

"""Near misses: near, of the right type, and worth what the oracle proves."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from epistemic.decks.drawing import TooFew
from epistemic.decks.near_miss import (
    NearMissSettings,
    NearValues,
    make_near_misses,
    near_cells,
    nearest,
)
from epistemic.decks.nearness import near_values
from epistemic.domain import built_in, load_domain
from epistemic.logic.alone import judge_cards
from epistemic.logic.draws import Draws
from epistemic.logic.graph import LABEL, Graph
from epistemic.logic.oracle import Oracle
from epistemic.logic.terms import literal

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


def test_of_too_many_the_setting_is_named_and_the_most_that_it_can_be(staff):
    message = r"near_miss\.num=9001: the graph gives \d+ near misses"
    with pytest.raises(TooFew, match=message) as few:
        make_near_misses(staff, NearMissSettings(num=9001))
    most = few.value.most
    assert most > 0 and most % 2 == 0
    assert len(make_near_misses(staff, NearMissSettings(num=most)).cards) == 3 * most / 2
    assert NearMissSettings(num=most).cards == 3 * most / 2 and NearMissSettings(num=3).cards == 6


def test_golds_hold_both_ways(made):
    domain, deck = made
    golds = [card.gold for card in deck.cards]
    assert [v.gold for v in judge_cards(deck.cards, domain.constraints)] == golds
    known = Oracle(deck.graph, domain.constraints)
    assert [v.gold for v in judge_cards(deck.cards, domain.constraints, known)] == golds


def test_no_near_miss_is_true(made):
    """The whole graph contradicts them, or denies them as complete where several are true."""
    domain, deck = made
    asked = [card for card in deck.cards if card.label != "E"]
    verdicts = domain.oracle.judge([card.claim for card in asked]).verdict
    complete = [domain.by_iri[card.claim.pred].complete for card in asked]
    assert all(v == 0 or (v == 1 and open_) for v, open_ in zip(verdicts, complete, strict=True))


def test_a_near_miss_differs_from_a_truth_in_one_term(made):
    """In what is claimed; and the two are as near as the card says."""
    domain, deck = made
    graph, oracle = domain.graph, domain.oracle
    functional = 0
    for card in deck.cards:
        if card.label == "E":
            continue
        subject, number, claimed = (graph.ids[term] for term in card.claim)
        spoken = oracle.compiled.by_predicate[number]
        true = spoken[spoken[:, 0] == subject, 2].tolist()
        assert true and claimed not in true
        if card.kind == "C_functional":
            stated = [fact for fact in card.stated if fact.holds and fact.subj == card.claim.subj]
            (beside,) = [fact for fact in stated if fact.pred == card.claim.pred]
            assert graph.ids[beside.obj] in true
            functional += 1
    assert functional > 5


def test_what_is_claimed_is_near_what_is_true_for_every_label(staff_sources):
    cells = near_cells(staff_sources, staff_sources.predicates(None), Draws(0))
    assert [(c.predicate.name, c.family) for c in cells] == [
        ("boss", "functional"), ("badge", "inverse_functional"),
        ("knows", "negated"), ("age", "functional"),
    ]  # fmt: skip
    values = NearValues.of(staff_sources, cells)
    for cell in cells:
        number = cell.relations["+"].predicate
        tables = [pairs.of.tolist() for pairs in values.near[number].by_kind.values()]
        near = {tuple(pair) for table in tables for pair in table}
        truth = set(map(tuple, staff_sources.truth[number].triples.tolist()))
        for label in "ECU":
            what, subject, value = cell.layouts[label][0]
            roles, there, _ = values.choose(cell, label, 50, Draws(1))
            assert there.all() and set(roles) == {"o", value if what == "+" else subject}
            claimed = roles["o"].tolist()
            if what == "+":
                assert set(zip(roles[value].tolist(), claimed, strict=True)) <= near
                continue
            # Somebody has a value that is near the claimed one.
            for who, claim in zip(roles[subject].tolist(), claimed, strict=True):
                assert any(s == who and (o, claim) in near for s, _, o in truth)


def test_ages_are_near_within_a_tenth(staff_sources):
    cells = near_cells(staff_sources, staff_sources.predicates(["age"]), Draws(0))
    values = NearValues.of(staff_sources, cells)
    claim = (X + "p0", X + "age", literal(21))
    # 20 and 21 are 1 apart, of a tenth of 20.
    assert nearest(staff_sources, values, claim) == ("number", pytest.approx(0.5))
    assert nearest(staff_sources, values, (*claim[:2], literal(22))) == ("", 0.0)


def test_without_a_claim_that_can_be_false_there_are_no_near_misses(staff_sources):
    with pytest.raises(ValueError, match="staff: near misses need a predicate with one value"):
        near_cells(staff_sources, staff_sources.predicates(["office"]), Draws(0))


def test_every_way_of_being_near_is_drawn(made):
    _, deck = made
    ways = Counter(card.nearness for card in deck.cards if card.label != "E")
    assert set(ways) == {"neighbours", "region", "name", "number"}
    assert all((card.nearness is None) == (card.label == "E") for card in deck.cards)


def test_predicates_with_several_values_have_near_misses_too():
    """Many neighbours, all known: NO where a card denies it, UNKNOWN where it is left open."""
    domain = load_domain(built_in("countries"))
    settings = NearMissSettings(num=40, predicates=("neighbour",))
    deck = make_near_misses(domain, settings)
    assert deck.counts["label"] == {"C": 20, "E": 20, "U": 20}
    assert deck.counts["kind"]["C_negated"] == 20


def test_near_numbers_are_within_a_tenth(made):
    domain, deck = made
    lengths = [c for c in deck.cards if c.claim.pred.endswith("#length") and c.label != "E"]
    assert lengths
    triples = {domain.graph.terms[s]: domain.graph.labels[o] for s, p, o in domain.graph.triples
               if domain.graph.terms[p].endswith("#length")}  # fmt: skip
    for card in lengths:
        true, claimed = int(triples[card.claim.subj]), int(card.claim.obj.split('"')[1])
        tenth = 0.1 * min(true, claimed)
        assert 0 < abs(true - claimed) < tenth
        assert card.difficulty == pytest.approx(1 - abs(true - claimed) / tenth)


def test_what_is_near_shares_surroundings_or_name():
    texts = [
        ("reim", "river", "rhine"), ("koln", "river", "rhine"), ("bonn", "river", "rhine"),
        ("cairo", "river", "nile"), ("giza", "river", "nile"),
        *((town, "in", land) for town, land in
          [("koln", "de"), ("bonn", "de"), ("cairo", "eg"), ("giza", "eg"), ("reim", "fr")]),
        *((f"s-{town}", "home", town) for town in ("koln", "bonn", "cairo", "giza", "reim")),
    ]  # fmt: skip
    graph = Graph.from_triples((X + s, X + p, X + o) for s, p, o in texts)
    near = near_values(graph, graph.ids[X + "home"], single=[graph.ids[X + "in"]])
    assert set(near.by_kind) >= {"neighbours", "region"}
    pairs = {
        kind: {tuple(graph.label(v) for v in pair) for pair in found.tolist()}
        for kind, (found, _) in near.by_kind.items()
    }
    # All three lie on the Rhine, two of them in one country.
    assert {("koln", "bonn"), ("koln", "reim"), ("cairo", "giza")} <= pairs["neighbours"]
    assert {("koln", "bonn"), ("cairo", "giza")} <= pairs["region"]
    assert ("koln", "reim") not in pairs["region"]
    assert ("koln", "cairo") not in pairs["neighbours"] | pairs["region"]


def test_names_count_where_surroundings_say_nothing():
    names = {"a": "Kingston", "b": "Kingstown", "c": "Reykjavik"}
    texts = [(X + name, LABEL, f'"{label}"') for name, label in names.items()]
    texts += [(f"{X}s{name}", X + "capital", X + name) for name in names]
    graph = Graph.from_triples(texts)
    near = near_values(graph, graph.ids[X + "capital"], single=[])
    kind, score = near.nearest([graph.ids[X + "a"]], graph.ids[X + "b"])
    assert kind == "name" and score > 0.5
    assert near.nearest([graph.ids[X + "a"]], graph.ids[X + "c"])[1] < 0.5


def test_far_numbers_are_not_near():
    numbers = [100, 109, 111, 500]
    graph = Graph.from_triples((f"{X}s{n}", X + "p", literal(n)) for n in numbers)
    near = near_values(graph, graph.ids[X + "p"], single=[])
    assert set(near.by_kind) == {"number"}
    pairs = {tuple(int(graph.label(v)) for v in pair) for pair in near.by_kind["number"][0]}
    assert pairs == {(100, 109), (109, 100), (109, 111), (111, 109)}


def test_difficulties_differ(made):
    _, deck = made
    difficulties = [card.difficulty for card in deck.cards if card.difficulty is not None]
    assert np.std(difficulties) > 0.05
    assert len(Counter(difficulties)) > 10


@pytest.mark.parametrize("name", ["countries", "rivers"])
def test_the_default_number_can_be_drawn(name):
    deck = make_near_misses(load_domain(built_in(name)), NearMissSettings())
    assert deck.counts["label"] == {"C": 250, "E": 250, "U": 250}

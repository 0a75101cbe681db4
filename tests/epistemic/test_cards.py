"""Decks: golds that hold both ways, exact counts, the same bytes everywhere, files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from epistemic.cards import Card, Claim, Statement, deck_hash, read_cards, write_cards
from epistemic.constraints import read_constraints
from epistemic.decks import LAYOUTS, CardSettings, judge_cards, make_cards
from epistemic.domain import DomainSettings, built_in, load_domain
from epistemic.graph import literal
from epistemic.oracle import Oracle, Verdict


@pytest.fixture(scope="module", params=["countries", "rivers"])
def made(request):
    domain = load_domain(built_in(request.param))
    return domain, make_cards(domain, CardSettings(per_type=60))


def test_golds_follow_from_the_cards_alone(made):
    domain, deck = made
    verdicts = judge_cards(deck.cards, domain.constraints)
    assert [v.gold for v in verdicts] == [card.gold for card in deck.cards]
    assert [v.label for v in verdicts] == [card.label for card in deck.cards]


def test_adding_the_graph_changes_no_gold(made):
    domain, deck = made
    verdicts = judge_cards(deck.cards, domain.constraints, Oracle(deck.graph, domain.constraints))
    assert [v.gold for v in verdicts] == [card.gold for card in deck.cards]


def test_every_fact_is_true(made):
    """Stated facts stand in the whole graph; denied ones contradict it or are completely known."""
    domain, deck = made
    facts = [fact for card in deck.cards for fact in card.stated]
    verdicts = domain.oracle.judge([fact[:3] for fact in facts]).verdict
    for fact, verdict in zip(facts, verdicts, strict=True):
        if fact.holds:
            assert verdict == Verdict.ENTAILED, fact
        else:
            complete = domain.by_iri[fact.pred].complete
            allowed = {Verdict.CONTRADICTORY} | ({Verdict.UNKNOWN} if complete else set())
            assert verdict in allowed, fact


def test_without_its_rules_a_functional_card_is_unknown(made):
    domain, deck = made
    bare = [
        Card(**{**{n: getattr(c, n) for n in c.__dataclass_fields__}, "axioms": ()})
        for c in deck.cards
        if c.kind == "C_functional"
    ]
    assert bare
    assert set(judge_cards(bare, domain.constraints)) == {Verdict.UNKNOWN}


def test_labels_families_and_predicates_are_balanced(made):
    _, deck = made
    assert deck.counts["label"] == {"C": 60, "E": 60, "U": 60}
    by_family = Counter((card.family, card.label) for card in deck.cards)
    for family in {card.family for card in deck.cards}:
        assert len({by_family[family, label] for label in "ECU"}) == 1
    assert len({card.claim for card in deck.cards}) == len(deck.cards)


def test_layouts_of_a_family_agree_in_all_but_the_answer():
    """As many slots of each sort, and every role in the question named as often, by polarity."""
    for family, layouts in LAYOUTS.items():
        signatures = set()
        for slots in layouts.values():
            sorts = tuple(sorted(Counter(what for what, _, _ in slots).items()))
            roles = Counter(
                (role, what == "-")
                for what, s, o in slots
                for role in (s, o)
                if role in "so" and role
            )
            others = sorted(
                Counter(role for _, s, o in slots for role in (s, o) if role not in "so").values()
            )
            signatures.add((sorts, tuple(sorted(roles.items())), tuple(others)))
        assert len(signatures) == 1, family


def test_no_two_names_on_a_card_are_alike(made):
    domain, deck = made
    for card in deck.cards:
        terms = {t for fact in card.stated for t in (fact.subj, fact.obj)} | {
            card.claim.subj,
            card.claim.obj,
        }
        names = [domain.name_of(term).casefold() for term in terms]
        assert len(set(names)) == len(names), card.id


def test_what_is_withheld_is_unknown_not_denied(made):
    domain, deck = made
    hidden = len(domain.graph) - len(deck.graph)
    assert hidden > 0
    assert set(map(tuple, deck.graph.triples)) < set(map(tuple, domain.graph.triples))


def test_the_same_seed_gives_the_same_bytes_under_any_hash_seed():
    code = (
        "from epistemic.cards import deck_hash\n"
        "from epistemic.decks import CardSettings, make_cards\n"
        "from epistemic.domain import built_in, load_domain\n"
        "deck = make_cards(load_domain(built_in('rivers')), CardSettings(per_type=20))\n"
        "print(deck_hash(deck.cards), deck.graph.digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_another_seed_gives_another_deck(made):
    domain, deck = made
    other = make_cards(domain, CardSettings(per_type=60, seed=7))
    assert deck_hash(other.cards) != deck_hash(deck.cards)


def test_too_many_cards_is_an_error_that_says_what_there_is():
    domain = load_domain(built_in("rivers"))
    with pytest.raises(
        ValueError, match=r"cards\.per_type=5000: the graph gives \d+ of each label"
    ):
        make_cards(domain, CardSettings(per_type=5000, predicates=("mouth",)))


def test_an_unknown_predicate_lists_the_known_ones(made):
    domain, _ = made
    with pytest.raises(ValueError, match="there are: "):
        make_cards(domain, CardSettings(predicates=("president",)))


def test_a_predicate_without_triples_lists_those_with():
    settings = built_in("rivers")
    wrong = settings.model_copy(
        update={
            "predicates": {
                "x": settings.predicates["mouth"].model_copy(update={"iri": "http://x/p"})
            }
        }
    )
    with pytest.raises(ValueError, match=r"No triples found for predicate x .*geo#mouth \(102\)"):
        load_domain(wrong)


def test_any_graph_will_do_without_a_word_about_its_predicates(tmp_path):
    lines = ["@prefix : <http://x/> .", "@prefix owl: <http://www.w3.org/2002/07/owl#> .",
             ":worksFor a owl:FunctionalProperty ."]  # fmt: skip
    lines += [f":p{i} :worksFor :firm{i % 9} ; :livesIn :town{i % 7} ." for i in range(80)]
    (tmp_path / "staff.ttl").write_text("\n".join(lines))
    path = str(tmp_path / "staff.ttl")
    domain = load_domain(DomainSettings(name="staff", graph=(path,), constraints=(path,)))
    deck = make_cards(domain, CardSettings(per_type=12))
    assert deck.counts["label"] == {"C": 12, "E": 12, "U": 12}
    assert any("the works for of p" in card.question for card in deck.cards)


def test_a_deck_survives_its_file(made, tmp_path):
    _, deck = made
    path = write_cards(tmp_path / "cards.jsonl", deck.cards)
    assert read_cards(path) == deck.cards
    assert deck_hash(deck.cards) == hashlib.sha256(path.read_bytes()).hexdigest()
    record = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert set(record["claim"]) == {"subj", "pred", "obj"}


def test_published_style_cards_are_read(tmp_path):
    record = {
        "id": "CARD_E_000001",
        "facts": ["Escanaba River mouth Lake Michigan"],
        "question": "Is Lake Michigan the mouth of Escanaba River?",
        "gold": "YES",
        "label": "E",
        "claim": {"subj": "http://r/E", "pred": "http://r/mouth", "obj": "http://r/M"},
    }
    path = tmp_path / "cards.jsonl"
    path.write_text(json.dumps(record) + "\n")
    (card,) = read_cards(path)
    assert card.claim == Claim("http://r/E", "http://r/mouth", "http://r/M")
    path.write_text(json.dumps({**record, "gold": "NO"}) + "\n")
    with pytest.raises(ValueError, match="card 1: gold 'NO' with label 'E'"):
        read_cards(path)


def test_a_degraded_graph_forgets_nested_shares():
    settings = built_in("countries")
    graphs = [load_domain(settings, keep=keep, seed=3).graph for keep in (1.0, 0.9, 0.5)]
    sets = [set(map(tuple, graph.triples.tolist())) for graph in graphs]
    assert sets[2] < sets[1] < sets[0]
    wrong = load_domain(settings, wrong=0.05, seed=3).graph
    changed = len(sets[0] - set(map(tuple, wrong.triples.tolist())))
    assert 0.02 < changed / len(sets[0]) < 0.06
    assert np.array_equal(wrong.terms, graphs[0].terms)


def test_the_built_in_graphs_keep_their_constraints(made):
    domain, _ = made
    conforms, report = domain.validate()
    assert conforms, report
    assert domain.oracle.violations == []


def test_cards_by_themselves_compare_numbers_and_read_lists():
    """Each card in one batch has its own copy of every term, values and all."""
    x = "http://x/"
    constraints = read_constraints(
        turtle="@prefix : <http://x/> . @prefix sh: <http://www.w3.org/ns/shacl#> ."
        "[] sh:targetSubjectsOf :low ; sh:property [ sh:path :low ; sh:lessThan :high ;"
        " sh:maxInclusive 50 ; sh:in (1 2 3 60 70) ] ."
    )

    def card(number: int, claimed: int, high: int) -> Card:
        claim = Claim(x + "s", x + "low", literal(claimed))
        return Card(
            str(number), ("?",), "?", "UNKNOWN", "U", claim,
            stated=(Statement(x + "s", x + "high", literal(high)),),
            axioms=tuple(rule.name for rule in constraints.rules),
        )  # fmt: skip

    asked = [(1, 5), (3, 2), (60, 90), (4, 9), (2, 3)]
    cards = [card(i, claimed, high) for i, (claimed, high) in enumerate(asked)]
    C, U = Verdict.CONTRADICTORY, Verdict.UNKNOWN
    assert judge_cards(cards, constraints) == [U, C, C, C, U]

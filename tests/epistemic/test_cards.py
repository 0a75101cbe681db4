"""Decks: golds that hold both ways, exact counts, the same bytes everywhere, files."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import fields, replace

import pytest

from epistemic.cards import Card, Claim, Statement, deck_hash, read_cards, write_cards
from epistemic.decks.deck import CardSettings, make_cards
from epistemic.decks.layouts import LAYOUTS
from epistemic.decks.synthetic import synthetic_domain
from epistemic.domain import DomainSettings, built_in, load_domain
from epistemic.logic.alone import judge_cards
from epistemic.logic.constraints import read_constraints
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.logic.terms import literal


def named(name: str):
    return synthetic_domain(20_000) if name == "synthetic" else load_domain(built_in(name))


@pytest.fixture(scope="module", params=["countries", "rivers", "synthetic"])
def made(request):
    domain = named(request.param)
    return domain, make_cards(domain, CardSettings(per_type=60))


@pytest.fixture(scope="module", params=["countries", "rivers"])
def shipped(request):
    return load_domain(built_in(request.param))


def test_golds_follow_from_the_cards_alone(made):
    domain, deck = made
    verdicts = judge_cards(deck.cards, domain.constraints)
    assert [v.gold for v in verdicts] == [card.gold for card in deck.cards]
    assert [v.label for v in verdicts] == [card.label for card in deck.cards]


def test_adding_the_graph_changes_no_gold(made):
    domain, deck = made
    verdicts = judge_cards(deck.cards, domain.constraints, Oracle(deck.graph, domain.constraints))
    assert [v.gold for v in verdicts] == [card.gold for card in deck.cards]


def test_the_graph_alone_never_says_the_opposite(made):
    domain, deck = made
    verdicts = Oracle(deck.graph, domain.constraints).judge([c.claim for c in deck.cards]).verdict
    for card, verdict in zip(deck.cards, verdicts, strict=True):
        assert Verdict(int(verdict)).label == card.label or (
            card.label == "C" and verdict == Verdict.UNKNOWN
        ), card


def test_what_breaks_a_rule_in_the_graph_is_in_no_contradictory_card(tmp_path):
    shapes = "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix : <http://x/> .\n"
    shapes += ":boss a owl:FunctionalProperty .\n"
    text = shapes + "".join(f":p{i} :boss :b{i % 9} .\n" for i in range(60))
    text += "".join(f":p{i} :boss :b{(i + 1) % 9} .\n" for i in range(0, 60, 4))
    text += "".join(f":p{i} :office :o{i % 7} .\n" for i in range(60))
    (tmp_path / "staff.ttl").write_text(text)
    path = str(tmp_path / "staff.ttl")
    domain = load_domain(DomainSettings(name="staff", graph=(path,), constraints=(path,)))
    (violation,) = domain.oracle.violations
    assert len(violation.subjects) == 15
    deck = make_cards(domain, CardSettings(per_type=20))
    for card in deck.cards:
        if card.label == "C":
            about = {card.claim.subj, *(fact.subj for fact in card.stated)}
            assert not about & set(violation.subjects), card


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


SHIPPED_KINDS = {
    "countries": {"C_class", "C_disjoint", "C_functional", "C_irreflexive", "C_less_than",
                  "C_negated", "E_inferred", "E_stated", "U_absent"},
    "rivers": {"C_asymmetric", "C_class", "C_disjoint", "C_functional", "C_inverse_functional",
               "C_negated", "E_inferred", "E_stated", "U_absent"},
}  # fmt: skip
GOLDEN = "79c614d858f61ae6562efef1f5b87de52b419560c550eb32a6bac131e78e8381"
EVERY_KIND = set.union(*SHIPPED_KINDS.values()) | {
    "C_datatype", "C_in", "C_min_inclusive", "C_min_exclusive", "C_max_inclusive",
    "C_max_exclusive",
}  # fmt: skip


def test_every_kind_that_the_graph_allows_is_drawn():
    for name, kinds in {**SHIPPED_KINDS, "synthetic": EVERY_KIND}.items():
        deck = make_cards(named(name), CardSettings(per_type=120))
        assert set(deck.counts["kind"]) == kinds, name


def test_kinds_are_balanced():
    """Where the graph is large enough, the usual kinds of contradiction are equally frequent."""
    deck = make_cards(synthetic_domain(20_000), CardSettings(per_type=480))
    kinds = {k: n for k, n in deck.counts["kind"].items() if k.startswith("C_")}
    seldom = {k: kinds.pop(k) for k in ("C_irreflexive", "C_datatype")}
    kinds.pop("C_disjoint")
    kinds.pop("C_negated")  # half of the inferred ones are negated as well
    assert max(kinds.values()) < 1.6 * min(kinds.values()), kinds
    assert max(seldom.values()) < 0.5 * min(kinds.values()), seldom


def test_cards_that_need_the_graph_are_silent_without_it(shipped):
    domain = shipped
    deck = make_cards(domain, CardSettings(per_type=20, needs_graph=30))
    apart = [card for card in deck.cards if card.requires == "graph"]
    assert Counter(card.label for card in apart) == {"E": 30, "C": 30, "U": 30}
    assert deck.counts["requires"] == {"card": 60, "graph": 90}
    assert set(judge_cards(apart, domain.constraints)) == {Verdict.UNKNOWN}
    known = Oracle(deck.graph, domain.constraints)
    with_graph = judge_cards(apart, domain.constraints, known)
    assert [v.gold for v in with_graph] == [card.gold for card in apart]
    assert all(card.proof for card in apart if card.label != "U")


def test_what_follows_is_proved_by_what_follows(made):
    """An inferred card states its claim in no fact, a stated one does."""
    _, deck = made
    for card in deck.cards:
        if card.label == "E":
            said = any(fact.holds and fact[:3] == tuple(card.claim) for fact in card.stated)
            assert said == (card.kind == "E_stated"), card.id


def test_forbidden_numbers_are_as_long_as_allowed_ones():
    deck = make_cards(synthetic_domain(20_000), CardSettings(per_type=300))
    for family in ("width/min_inclusive", "width/max_inclusive", "flow/min_exclusive",
                   "flow/max_exclusive", "length/datatype"):  # fmt: skip
        cards = [card for card in deck.cards if card.family == family]
        lengths = {
            label: Counter(
                (len(name(card.claim.obj)), sum(len(name(fact.obj)) for fact in card.stated))
                for card in cards
                if card.label == label
            )
            for label in "ECU"
        }
        assert lengths["E"] == lengths["C"] == lengths["U"] != Counter(), family


def name(term: str) -> str:
    """A number as it is said, thousands apart."""
    text = term.split('"')[1]
    return text if "." in text else f"{int(text):,}"


def test_layouts_of_a_family_agree_in_all_but_the_answer():
    """As many slots of each sort, and every role in the question named as often, by polarity."""
    for family, layouts in LAYOUTS.items():
        signatures = set()
        for label, slots in layouts.items():
            slots = [slot for slot in slots if slot[0] != "?"]
            sorts = tuple(sorted(Counter(what for what, _, _ in slots).items()))
            if (family, label) == ("irreflexive", "C"):
                # The question names s twice, so s counts as o too.
                slots = [*slots, ("+", "o", "")]
                slots = [("+", s, {"x": ""}.get(o, o)) for _, s, o in slots]
            roles = Counter(
                (role, what == "-")
                for what, s, o in slots
                for role in (s, o)
                if role and role in "so"
            )
            others = sorted(
                Counter(
                    role for _, s, o in slots for role in (s, o) if role and role not in "so"
                ).values()
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
        "from epistemic.decks.deck import CardSettings, make_cards\n"
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


def test_the_same_seed_gives_the_same_bytes_on_any_machine():
    deck = make_cards(load_domain(built_in("rivers")), CardSettings(per_type=20))
    assert deck_hash(deck.cards) == GOLDEN


def test_too_many_cards_is_an_error_that_says_what_there_is():
    domain = load_domain(built_in("rivers"))
    with pytest.raises(ValueError, match=r"per_type=5000: the graph gives \d+ of each label"):
        make_cards(domain, CardSettings(per_type=5000, predicates=("mouth",)))


def test_an_unknown_predicate_lists_the_known_ones(made):
    domain, _ = made
    message = r"No triples found for predicate 'president' in .*; there are: .* \([\d,]+\)"
    with pytest.raises(ValueError, match=message):
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
    assert any("works for firm" in card.question for card in deck.cards)
    assert not any("the works for" in card.question for card in deck.cards)


def test_a_deck_survives_its_file(made, tmp_path):
    _, deck = made
    path = write_cards(tmp_path / "cards.jsonl", deck.cards)
    assert read_cards(path) == deck.cards
    assert deck_hash(deck.cards) == hashlib.sha256(path.read_bytes()).hexdigest()
    record = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert set(record["claim"]) == {"subj", "pred", "obj"}


def test_lines_are_what_a_json_encoder_writes(made):
    _, deck = made
    awkward = replace(
        deck.cards[0],
        question='Is "Nīl"\\ \n the mouth?',
        difficulty=0.25,
        nearness="name",
        facts=(),
        stated=(),
        surface=(),
    )
    for card in (*deck.cards[:50], awkward):
        record = {field.name: getattr(card, field.name) for field in fields(card)}
        record["claim"] = card.claim._asdict()
        expected = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
        assert deck_hash([card]) == hashlib.sha256(f"{expected}\n".encode()).hexdigest()


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
    path.write_text("")
    with pytest.raises(ValueError, match=r"cards\.jsonl: no cards"):
        read_cards(path)


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

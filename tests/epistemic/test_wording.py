"""Wording: sentences, questions, proofs and ids of cards."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from epistemic.decks.drawing import Drawer, Streams
from epistemic.decks.families import cells_of, graph_cells
from epistemic.decks.wording import Wording
from epistemic.domain import Domain
from epistemic.logic.alone import contradiction
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import LABEL, TYPE, Graph
from epistemic.logic.terms import literal
from epistemic.predicates import PredicateSettings, default_predicate, in_words

X = "http://x/"


@pytest.fixture(scope="module")
def drawn(staff_sources):
    """Twenty cards of each label with their own facts, and four that only the graph settles."""
    streams = Streams.of(3)
    predicates = staff_sources.predicates(None)
    cells = [cell for one in predicates for cell in cells_of(staff_sources, one, streams.names)]
    drawer = Drawer(staff_sources, streams)
    first = drawer.draw(cells, 40)
    apart = [cell for one in predicates for cell in graph_cells(staff_sources, one, streams.names)]
    return [first, drawer.draw(apart, 4, taken=first.taken)]


@pytest.fixture(scope="module")
def cards(staff, staff_sources, drawn):
    return Wording(staff, 3).cards(drawn, staff_sources.known)


FORMS = {
    "a function": (
        default_predicate(X + "capital", functional=True),
        "Lima is the capital of Peru.",
        "It is not true that the capital of Peru is Lima.",
        "Does Peru have Lima as its capital?",
    ),
    "several values": (
        default_predicate(X + "ally", functional=False),
        "Lima is an ally of Peru.",
        "It is not true that an ally of Peru is Lima.",
        "Does Peru have Lima as an ally?",
    ),
    "a label of its own": (
        default_predicate(X + "p17", functional=True, label="seat", form="noun"),
        "Lima is the seat of Peru.",
        "It is not true that the seat of Peru is Lima.",
        "Does Peru have Lima as its seat?",
    ),
    "its own templates": (
        in_words(
            "rules",
            PredicateSettings(
                iri=X + "rules",
                questions=("Does {o} rule {s}?",) * 3,
                facts=("{o} rules {s}.",) * 3,
                denials=("{o} never rules {s}.",) * 3,
            ),
            Constraints(),
        ),
        "Lima rules Peru.",
        "Lima never rules Peru.",
        "Does Lima rule Peru?",
    ),
    "a number with its unit": (
        in_words("area", PredicateSettings(iri=X + "area", unit="km²"), Constraints()),
        "1,285,216 km² is an area of Peru.",
        "It is not true that an area of Peru is 1,285,216 km².",
        "Does Peru have 1,285,216 km² as an area?",
    ),
    "a class": (
        None,
        "Peru is a body of water.",
        "It is not true that Peru is a body of water.",
        "Is it true that Peru is a body of water?",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_predicate_is_worded(form):
    predicate, fact, denial, question = FORMS[form]
    iri = TYPE if predicate is None else predicate.iri
    thing = {"a number with its unit": literal(1285216), "a class": X + "Water"}.get(form, X + "l")
    graph = Graph.from_triples(
        [(X + "p", LABEL, '"Peru"'), (X + "l", LABEL, '"Lima"'), (X + "p", iri, thing)]
    )
    graph = with_vocabulary(graph, Constraints())
    named = {} if predicate is None else {"it": predicate}
    domain = Domain("one", graph, Constraints(), named, {X + "Water": "body of water"})
    wording = Wording(domain, 0)
    triple = graph.triples[graph.triples[:, 1] == graph.ids[iri]]
    last = len(domain.by_iri[iri].denials) - 1
    (said,), _ = wording.sentences(triple, np.array([True]), np.array([0]))
    (denied,), _ = wording.sentences(triple, np.array([False]), np.array([last]))
    (asked,) = wording.questions(triple, [1])
    assert (said, denied, asked) == (fact, denial, question)


def test_a_card_says_in_words_what_it_says_as_data(staff, cards):
    for card in cards:
        assert len(card.facts) == len(card.stated)
        for text, fact in zip(card.facts, card.stated, strict=True):
            predicate = staff.by_iri[fact.pred]
            templates = len(predicate.facts if fact.holds else predicate.denials)
            assert text in {staff.sentence(fact[:3], fact.holds, i) for i in range(templates)}
        asked = staff.by_iri[card.claim.pred]
        names = {
            "s": staff.name_of(card.claim.subj),
            "o": staff.object_name(asked, card.claim.obj),
        }
        assert card.question in {question.format(**names) for question in asked.questions}


def test_one_number_stands_for_one_template(staff, cards):
    """Of one predicate, stated and denied apart; all templates are used."""
    by_number = {}
    for card in cards:
        for text, fact, number in zip(card.facts, card.stated, card.surface[1:], strict=True):
            predicate = staff.by_iri[fact.pred]
            names = {"s": staff.name_of(fact.subj), "o": staff.object_name(predicate, fact.obj)}
            templates = predicate.facts if fact.holds else predicate.denials
            (template,) = [one for one in templates if one.format(**names) == text]
            by_number.setdefault(number, set()).add((fact.pred, fact.holds, template))
    assert all(len(templates) == 1 for templates in by_number.values())
    used = {template for templates in by_number.values() for _, _, template in templates}
    assert {*staff.predicates["boss"].facts, *staff.predicates["boss"].denials} <= used


def test_cards_come_in_a_random_order_with_numbered_ids(staff, staff_sources, drawn, cards):
    assert [card.id for card in cards] == [
        f"CARD_{card.label}_{i:06d}" for i, card in enumerate(cards)
    ]
    labels = [card.label for card in cards]
    assert Counter(labels) == {"E": 44, "C": 44, "U": 44}
    # As drawn they come in blocks of one label.
    changes = sum(one != other for one, other in itertools.pairwise(labels))
    assert changes > 60
    other = Wording(staff, 4).cards(drawn, staff_sources.known, prefix="NEAR")
    assert other[0].id == f"NEAR_{other[0].label}_000000"
    assert {card.claim for card in other} == {card.claim for card in cards}
    assert [card.claim for card in other] != [card.claim for card in cards]


def test_cards_of_a_family_bear_its_rules(staff, cards):
    said = {rule.sentence: rule.constraints for one in staff.by_iri.values() for rule in one.rules}
    for card in cards:
        assert card.axioms == tuple(name for rule in card.rules for name in said[rule])
        name = card.family.split("/")[0]
        own = {**staff.predicates, "type": staff.type}[name]
        assert set(card.rules) <= {rule.sentence for rule in own.rules}


KINDS = {
    "boss/functional": "C_functional",
    "boss/negated": "C_negated",
    "badge/inverse_functional": "C_inverse_functional",
    "badge/negated_of": "C_negated",
    "knows/irreflexive": "C_irreflexive",
    "knows/negated": "C_negated",
    "knows/negated_inferred": "C_negated",
    "joined/less_than": "C_less_than",
    "age/min_inclusive": "C_min_inclusive",
    "type/disjoint": "C_disjoint",
}


def test_kinds_and_proofs_say_why(cards):
    alone = [card for card in cards if card.requires == "card"]
    kinds = {(card.family, card.kind) for card in alone if card.label == "C"}
    assert KINDS.items() <= dict(kinds).items()
    for card in alone:
        if card.label == "U":
            assert (card.kind, card.proof) == ("U_absent", "")
        elif card.label == "E":
            inferred = card.family.endswith("_inferred")
            assert card.kind == ("E_inferred" if inferred else "E_stated")
            assert card.proof.count(" | ") == 2
        else:
            # The constraint is named first: "max_count(boss, 1); clashes with: ...".
            assert contradiction(card.proof) == card.kind
            assert card.proof.startswith("negative(") == (card.kind == "C_negated")


def test_what_only_the_graph_settles_is_proved_by_the_graph(staff, cards):
    apart = [card for card in cards if card.requires == "graph"]
    assert len(apart) == 12
    for card in apart:
        subject, value = (staff.name_of(term) for term in (card.claim.subj, card.claim.obj))
        name = card.family.split("/")[0]
        if card.label == "E":
            value = value.removesuffix(" years")
            assert (card.kind, card.proof) == ("E_stated", f"{subject} | {name} | {value}")
        elif card.label == "C":
            assert card.kind == "C_functional"
            assert card.proof.startswith(f"max_count({name}, 1); clashes with: {subject} | {name}")
        else:
            assert (card.kind, card.proof) == ("U_absent", "")

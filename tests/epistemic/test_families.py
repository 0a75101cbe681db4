"""Families: which a predicate can have, and what their facts are drawn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from epistemic.decks.families import cells_of, graph_cells
from epistemic.decks.sources import BySubject, Relation, among
from epistemic.domain import Domain
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE

X = "http://x/"


def families(sources, name, seed=0):
    (predicate,) = sources.predicates([name])
    return cells_of(sources, predicate, Draws(seed))


EXPECTED = {
    # One boss each, one age each: another's value is false, and so is what is denied.
    "boss": [("functional", "functional"), ("negated", "negated")],
    "age": [("value", "min_inclusive"), ("functional", "functional"), ("negated", "negated")],
    # A badge belongs to one person, who has two of them.
    "badge": [("inverse_functional", "inverse_functional"), ("negated_of", "negated_of")],
    # Complete, so that it can be denied, and said the other way round as well.
    "knows": [("irreflexive", "irreflexive"), ("negated", "negated"), ("negated", "inferred")],
    "joined": [("less_than", "less_than")],
    "type": [("disjoint", "disjoint")],
    # No constraint: no claim of these is ever contradictory.
    "office": [], "desk": [], "left": [], "colour": [],
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_families_follow_from_the_constraints(staff_sources, name):
    assert [(cell.family, cell.sort) for cell in families(staff_sources, name)] == EXPECTED[name]


def test_only_functions_have_cards_that_the_graph_settles(staff_sources):
    made = {
        one.name: [cell.requires for cell in graph_cells(staff_sources, one, Draws(0))]
        for one in staff_sources.predicates(None)
    }
    assert {name for name, cells in made.items() if cells} == {"boss", "age"}
    assert made["boss"] == ["graph"]


def test_a_predicate_that_stands_alone_has_no_cards_that_need_another(staff, staff_sources):
    alone = Domain(staff.name, staff.graph, staff.constraints, {"boss": staff.predicates["boss"]})
    sources = replace(staff_sources, domain=alone)
    assert families(sources, "boss") == []


def test_the_other_way_round_needs_a_rule_that_says_so(staff_sources):
    (knows,) = staff_sources.predicates(["knows"])
    (inferred,) = [c for c in cells_of(staff_sources, knows, Draws(0)) if c.sort == "inferred"]
    assert inferred.flips == staff_sources.ids[X + "knows"]
    assert "symmetric(knows)" in inferred.axioms
    silent = replace(knows, rules=())
    assert {cell.flips for cell in cells_of(staff_sources, silent, Draws(0))} == {-1}


def test_what_a_rule_forbids_is_as_long_as_what_it_allows(staff, staff_sources):
    value = next(cell for cell in families(staff_sources, "age") if cell.family == "value")
    forbidden = [int(staff.graph.label(o)) for o in value.relations["q"].there.triples[:, 2]]
    # Desks 10 to 33: those below the least age. Years of joining are longer and left out.
    assert sorted(forbidden) == list(range(10, 18))
    assert value.matched == "all"


def test_rules_on_single_values_stand_in_their_own_cards_alone(staff_sources):
    axioms = {cell.family: cell.axioms for cell in families(staff_sources, "age")}
    assert axioms["functional"] == axioms["negated"] == ("max_count(age, 1)",)
    assert axioms["value"] == ("max_count(age, 1)", "min_inclusive(age, 18)")


def test_what_stands_beside_is_another_predicate_that_subjects_have(staff, staff_sources):
    """Of all predicates of people, drawn by chance; colours are of badges."""
    people = {"office", "badge", "knows", "age", "desk", "joined", "left"}
    beside = set()
    for seed in range(40):
        cell = families(staff_sources, "boss", seed)[0]
        beside.add(staff.by_iri[staff.graph.terms[cell.relations["q"].predicate]].name)
    assert beside == people


def test_a_class_is_asked_of_what_another_predicate_speaks_of(staff, staff_sources):
    (cell,) = families(staff_sources, "type")
    assert staff.graph.terms[cell.claimed] == X + "Person"
    assert cell.relations["q"].predicate == staff_sources.ids[X + "knows"]
    members, others = (cell.relations[what].there.triples for what in "kd")
    assert {staff.graph.terms[o] for o in members[:, 2]} == {X + "Person"}
    assert {staff.graph.terms[o] for o in others[:, 2]} == {X + "Office"}
    # Eight of the twelve: four people's class is withheld.
    assert len(members) == 8 and len(others) == 9


def test_relations_hold_what_systems_may_know(staff_sources):
    boss, badge = staff_sources.relation(X + "boss"), staff_sources.relation(X + "badge")
    assert (len(boss.there), len(badge.there)) == (24 - 8, 48 - 12)
    assert len(staff_sources.truth[boss.predicate]) == 24
    # Symmetric: said once, known both ways.
    assert len(staff_sources.relation(X + "knows").there) == 48
    assert staff_sources.relation(X + "nothing") == Relation(-1, staff_sources.relation(X).there)


def test_values_are_drawn_from_each_subjects_own():
    rows = np.array([[1, 9, 4], [1, 9, 5], [3, 9, 6]])
    drawn = BySubject(rows).value_of(np.tile([1, 2, 3], 200), Draws(0))
    assert drawn.there.tolist() == [True, False, True] * 200
    ones = drawn.terms[::3]
    assert set(ones) == {4, 5} and 60 < (ones == 4).sum() < 140
    assert set(drawn.terms[2::3]) == {6}
    back = BySubject(rows).swapped().value_of(np.array([4, 5, 6]), Draws(0))
    assert back.terms.tolist() == [1, 1, 3] and back.there.all()


def test_lengths_count_what_a_sentence_says(staff_sources):
    ids, lengths = staff_sources.ids, staff_sources.lengths
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
    assert lengths[ids[number(20)]] == 4
    # Thousands are set apart: 1,950.
    assert lengths[ids[number(1950)]] == 10


def test_among_finds_what_is_known():
    known = np.array([2, 5, 9])
    assert among(known, np.array([1, 2, 9, 10])).tolist() == [False, True, True, False]
    assert among(known[:0], np.array([1])).tolist() == [False]


def test_an_unknown_predicate_is_refused_with_those_there_are(staff_sources):
    with pytest.raises(
        ValueError, match=r"'chief' in staff; there are: boss \(24\), office \(24\)"
    ):
        staff_sources.predicates(["chief"])
    assert staff_sources.predicates(None)[-1].iri == TYPE

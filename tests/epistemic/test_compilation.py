"""Compilation: the closure, the vocabulary, rows and traits by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.agreement import PREFIXES, X
from epistemic.logic.compilation import closure, compile_oracle, with_vocabulary
from epistemic.logic.constraints import Constraints, read_constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.hierarchy import Hierarchy
from epistemic.logic.kinds import Disjoint, In, MaxCount, MinExclusive, Negative, ValueClass
from epistemic.logic.lookup import Demand, Row
from epistemic.logic.oracle import Oracle
from epistemic.logic.tables import CardsSay, Tables
from epistemic.logic.terms import literal


def triple(text: str) -> tuple[str, str, str]:
    s, p, o = text.split()
    return X + s, TYPE if p == "a" else X + p, literal(int(o)) if o.isdigit() else X + o


def graph(facts: str) -> Graph:
    return Graph.from_triples(map(triple, facts.split("; ")))


def constraints(turtle: str, *complete: str) -> Constraints:
    return read_constraints(turtle=PREFIXES + turtle, complete=[X + name for name in complete])


def compiled(facts: str, read: Constraints, **cards):
    whole = with_vocabulary(graph(facts), read)
    return whole, compile_oracle(whole, read, **cards)


def rows_of(whole: Graph, made, name: str) -> list[Row[int]]:
    """The rows filed under a property or a class, as integers."""
    shelf = int(np.asarray(made.rows.shelf)[whole.ids[X + name]])
    rows = (Row(*row) for row in np.asarray(made.rows.table)[shelf].tolist())
    return [row for row in rows if row.name >= 0]


# -- What the graph says ------------------------------------------------------------------------


def test_the_closure_by_hand():
    read = constraints(
        ":borders a owl:SymmetricProperty . :in owl:inverseOf :holds . "
        ":Port rdfs:subClassOf :City . :City rdfs:subClassOf :Place ."
    )
    whole = with_vocabulary(graph("a borders b; a in c; c holds 5; d a Port"), read)
    said = {tuple(whole.terms[term] for term in row) for row in closure(whole, read).tolist()}
    assert said == set(
        map(
            triple,
            # A number is nobody's subject: nothing is "in" by holding 5.
            ("a borders b", "b borders a", "a in c", "c holds a", "c holds 5",
             "d a Port", "d a City", "d a Place"),
        )
    )  # fmt: skip


def test_the_vocabulary_joins_the_table_and_changes_no_triple():
    facts = graph("a p b")
    read = Constraints((In(X + "q", (literal(7), X + "x"), (X + "A",)),))
    whole = with_vocabulary(facts, read)
    assert set(whole.terms) - set(facts.terms) == {TYPE, X + "q", literal(7), X + "x", X + "A"}
    assert [whole.terms[t] for t in whole.triples[0]] == [facts.terms[t] for t in facts.triples[0]]
    assert with_vocabulary(whole, read) is whole


def test_classes_above_and_apart():
    lies = Hierarchy.of(
        [("Port", "City"), ("City", "Place"), ("Loop", "Loop2"), ("Loop2", "Loop")],
        [("Place", "River")],
        ["City"],
    )
    assert lies.above_of("Port") == {"Port", "City", "Place"}
    assert lies.above_of("Loop") == {"Loop", "Loop2"}
    assert lies.above_of("unheard of") == {"unheard of"}
    assert lies.apart_from("Port") == ["River"]
    # What is apart from a river is the place, whatever lies below it.
    assert lies.apart_from("River") == ["Place"]
    assert lies.apart_from("Loop") == []


# -- Rows ---------------------------------------------------------------------------------------


def test_a_count_is_one_row_with_its_target_limit_and_relation():
    read = Constraints((MaxCount(X + "p", ("2",), (X + "A",)),))
    whole, made = compiled("a a A; a p b; c p d", read)
    (row,) = rows_of(whole, made, "p")
    assert (row.demand, row.swap, row.limit) == (Demand.FEWER, 0, 2)
    assert row.relation == whole.ids[X + "p"]
    words = np.asarray(made.lookup.traits)
    looked_at = words[:, row.target >> 5] >> (row.target & 31) & 1
    assert np.flatnonzero(looked_at).tolist() == [whole.ids[X + "a"]]
    assert made.names == ["max_count(p, 2) of A"]


def test_a_row_stands_swapped_under_the_inverse_too():
    read = Constraints((MaxCount(X + "p", ("1",)),), inverse=frozenset({(X + "p", X + "q")}))
    whole, made = compiled("a p b; c q d", read)
    (row,), (other,) = rows_of(whole, made, "p"), rows_of(whole, made, "q")
    assert other == row._replace(swap=1)


def test_two_properties_with_one_test_share_its_trait():
    rules = (MinExclusive(X + "p", (literal(0),)), MinExclusive(X + "q", (literal(0),)))
    whole, made = compiled("a p 1; a q 2; a q 0", Constraints(rules))
    (one,), (other,) = rows_of(whole, made, "p"), rows_of(whole, made, "q")
    assert one.trait == other.trait
    assert list(made.value_traits) == [one.trait]
    assert made.names[one.name] != made.names[other.name]


def test_values_that_break_an_order_are_left_out_of_what_a_greater_one_must_exceed():
    read = constraints(
        "[] a sh:NodeShape ; sh:targetSubjectsOf :low ; "
        "sh:property [ sh:path :low ; sh:lessThan :high ] ."
    )
    whole, sound = compiled("a low 1; a high 3", read)
    assert rows_of(whole, sound, "high")[0].relation == whole.ids[X + "low"]
    whole, broken = compiled("a low 1; a low 9; a high 3", read)
    relation = rows_of(whole, broken, "high")[0].relation
    assert broken.pseudo == {relation: "low"}
    values = broken.triples[broken.triples[:, 1] == relation, 2]
    assert [whole.terms[value] for value in values] == [literal(1)]


def test_denied_triples_are_one_relation_a_property():
    rules = tuple(
        Negative(X + p, (X + "a", X + o)) for p, o in [("p", "b"), ("p", "c"), ("q", "b")]
    )
    whole, made = compiled("a r a", Constraints(rules))
    assert sorted(made.pseudo.values()) == ["not p", "not q"]
    (row,) = rows_of(whole, made, "p")
    denied = made.triples[made.triples[:, 1] == row.relation]
    assert sorted(whole.terms[o] for o in denied[:, 2]) == [X + "b", X + "c"]
    assert row.demand == Demand.ABSENT
    assert made.names == ["negative(p)", "negative(q)"]


# -- Claims of type -----------------------------------------------------------------------------


def test_a_claim_of_type_has_a_row_for_each_reason_against_it():
    read = Constraints(
        (
            Disjoint.of(X + "City", X + "River"),
            ValueClass(X + "flowsInto", (X + "River",)),
            MaxCount(X + "mouth", ("1",), (X + "City",)),
        )
    )
    facts = "r a River; x flowsInto s; t mouth a1; t mouth a2; u mouth a1"
    whole, made = compiled(facts, read)
    rows = rows_of(whole, made, "City")
    assert [made.names[row.name] for row in rows] == [
        "disjoint(City)",
        "class(City)",
        "target(City)",
    ]
    words = np.asarray(made.lookup.traits)
    barred = [
        [whole.terms[t] for t in np.flatnonzero(words[:, row.trait >> 5] >> (row.trait & 31) & 1)]
        for row in rows
    ]
    # A river; what something flows into; what would be a city with two mouths.
    assert barred == [[X + "r"], [X + "s"], [X + "t"]]
    assert {(row.demand, row.swap) for row in rows} == {(Demand.LACKS, 1)}


@pytest.mark.parametrize("value_class, reasons", [("A", []), ("B", ["target(A)"])])
def test_a_subject_that_is_its_own_value_joins_the_class_as_a_value_too(value_class, reasons):
    rule = ValueClass(X + "p", (X + value_class,), (X + "A",))
    read = Constraints((rule,), complete=frozenset({X + value_class}))
    whole, made = compiled("t p t; a a A; b a B", read)
    assert [made.names[row.name] for row in rows_of(whole, made, "A")] == reasons


def test_what_was_broken_before_a_claim_of_type_bars_nothing():
    # x is a city where a river belongs; that it is a port adds nothing. y isn't a city yet.
    read = constraints(
        ":City owl:disjointWith :River . :Port rdfs:subClassOf :City . "
        "[] sh:targetSubjectsOf :into ; sh:property [ sh:path :into ; sh:class :River ] ."
    )
    oracle = Oracle(graph("a into x; x a City; b into y"), read)
    assert oracle.judge([triple("x a Port"), triple("y a Port")]).verdict.tolist() == [1, 0]
    # t is looked at as a member of B, and breaks the rule; u isn't, and would.
    read = Constraints((MaxCount(X + "p", ("1",), (X + "A", X + "B")),))
    oracle = Oracle(graph("t a B; t p t1; t p t2; u p u1; u p u2"), read)
    assert oracle.judge([triple("t a A"), triple("u a A")]).verdict.tolist() == [1, 0]


# -- A graph that is made of cards --------------------------------------------------------------


def test_of_cards_nothing_is_reported_and_claimed_classes_alone_have_rows():
    read = Constraints((Disjoint.of(X + "A", X + "B"), MaxCount(X + "p", ("1",))))
    facts = "a a A; b a B; c p a; c p b"
    whole, made = compiled(facts, read)
    assert made.violations and rows_of(whole, made, "B")
    cards = CardsSay(
        np.array([[whole.ids[X + name] for name in ("a", "p", "b")]], np.int32),
        lambda test: test.allowed(whole),
        frozenset({X + "A"}),
        room=1 << 17,
    )
    of_cards = compile_oracle(whole, read, cards=cards)
    assert of_cards.violations == []
    assert rows_of(whole, of_cards, "A") and not rows_of(whole, of_cards, "B")
    assert list(of_cards.pseudo.values()) == ["not p"]
    assert of_cards.lookup.objects.shape[0] >= 1 << 17 > made.lookup.objects.shape[0]


# -- Tables -------------------------------------------------------------------------------------


def tables(facts: str) -> Tables:
    whole = graph(facts)
    return Tables(whole, whole.triples, Hierarchy(), lambda predicate: [(predicate, False)], 0)


def test_traits_fill_as_many_words_as_they_need():
    made = tables("a p b")
    columns = [np.arange(made.terms) == i % made.terms for i in range(40)]
    numbers = [made.trait(i, column) for i, column in enumerate(columns)]
    assert numbers == list(range(1, 41))  # trait 0 is everything's
    assert made.trait(3, columns[0]) == numbers[3]
    words = made.trait_words()
    assert words.shape == (made.capacity, 2)
    for number, column in zip(numbers, columns, strict=True):
        held = words[: made.terms, number >> 5] >> (number & 31) & 1
        np.testing.assert_array_equal(held == 1, column)
    assert (words[:, 0] & 1).all()


def test_targets_are_classes_and_nodes_together():
    made = tables("a a A; b a B; c p d")
    focus = made.focus((X + "A", X + "B"), (X + "c",))
    assert {made.graph.terms[t] for t in np.flatnonzero(focus)} == {X + "a", X + "b", X + "c"}
    assert made.focus((), ()).all()
    assert made.target((), ()) == 0


@pytest.mark.parametrize("subjects, reported", [([0, 0, 1], 2), ([], 0)])
def test_a_report_names_each_subject_once(subjects: list[int], reported: int):
    made = tables("a p b")
    made.report("name", np.array(subjects, np.int32))
    assert [len(v.subjects) for v in made.violations] == ([reported] if reported else [])

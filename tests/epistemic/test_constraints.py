"""Reading SHACL and OWL: what is compiled, what is left to pySHACL, what is refused."""

from __future__ import annotations

import pytest
from rdflib import URIRef
from rdflib.namespace import SH

from epistemic.logic.constraints import read_constraints
from epistemic.logic.kinds import MaxCount

X = "http://x/"
PREFIXES = """@prefix : <http://x/> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def read(turtle: str):
    return read_constraints(turtle=PREFIXES + turtle)


def test_a_shape_becomes_one_constraint_a_parameter():
    found = read(
        ":S a sh:NodeShape ; sh:targetClass :River ; sh:property [ sh:path :length ; "
        "sh:datatype xsd:integer ; sh:minExclusive 0 ; sh:maxCount 1 ; sh:minCount 1 ] ."
    )
    assert [rule.name for rule in found.rules] == [
        "datatype(length, integer) of River",
        "max_count(length, 1) of River",
        "min_exclusive(length, 0) of River",
    ]
    assert not len(found.slow)


def test_owl_axioms_are_read():
    found = read(
        ":capital a owl:FunctionalProperty . :code a owl:InverseFunctionalProperty . "
        ":borders a owl:SymmetricProperty , owl:IrreflexiveProperty . "
        ":flowsInto a owl:AsymmetricProperty ; owl:inverseOf :inflow . "
        "[] a owl:AllDisjointClasses ; owl:members (:River :Sea :City) . "
        ":Port rdfs:subClassOf :City ."
    )
    assert {rule.kind for rule in found.rules} == {
        "max_count", "inverse_functional", "irreflexive", "asymmetric", "disjoint",
    }  # fmt: skip
    assert sum(rule.kind == "disjoint" for rule in found.rules) == 3
    assert found.functional(X + "capital")
    assert not found.functional(X + "code")
    assert found.synonyms(X + "inflow") == [(X + "inflow", False), (X + "flowsInto", True)]
    assert found.synonyms(X + "borders") == [(X + "borders", False), (X + "borders", True)]
    assert found.hierarchy.apart[X + "Port"] == {X + "River", X + "Sea"}


QUERY = "SELECT $this WHERE { $this <http://x/length> ?l . FILTER (?l < 0) }"


def test_what_a_shape_asks_beside_its_compiled_parts_goes_to_pyshacl():
    found = read(
        ":S a sh:NodeShape ; sh:targetClass :River ; sh:property :L, :M ; "
        f'sh:sparql [ sh:select "{QUERY}" ] . '
        ":L sh:path :length ; sh:maxCount 1 . :M sh:path :mouth ; sh:uniqueLang true ."
    )
    assert [rule.name for rule in found.rules] == ["max_count(length, 1) of River"]
    paths = set(found.slow.graph.objects(None, SH.path))
    assert (len(found.slow), paths) == (1, {URIRef(X + "mouth")})
    (scope,) = found.slow.scopes
    assert scope.terms is not None and {X + "length", X + "mouth", X + "River"} <= scope.terms
    assert scope.reach == 1


def test_a_query_with_an_open_predicate_concerns_every_claim():
    found = read(
        ':S a sh:NodeShape ; sh:targetClass :River ; sh:sparql [ sh:select "SELECT $this '
        'WHERE { $this ?anything ?value . }" ] .'
    )
    assert found.slow.scopes[0].terms is None


@pytest.mark.parametrize(
    "extra", ["sh:uniqueLang true", "sh:not [ sh:class :B ]", "sh:or ( [ sh:class :B ] )"]
)
def test_uncompiled_parameters_are_not_dropped(extra):
    found = read(f":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:maxCount 1 ; {extra} ] .")
    assert found.rules == ()
    assert len(found.slow)


def test_notes_of_others_on_a_shape_ask_nothing():
    found = read(
        ":S sh:targetClass :A ; :by :me ; sh:property [ sh:path :p ; sh:maxCount 1 ; :by 1 ] ."
    )
    assert len(found.rules) == 1 and not len(found.slow)


@pytest.mark.parametrize(
    "path, reach",
    [
        (":p", 1),
        ("( :p :q :r )", 3),
        ("[ sh:inversePath :p ]", 1),
        ("[ sh:zeroOrMorePath :p ]", None),
    ],
)
def test_a_shape_reads_as_far_as_its_path(path, reach):
    found = read(f":S sh:targetClass :A ; sh:property [ sh:path {path} ; sh:uniqueLang true ] .")
    assert [scope.reach for scope in found.slow.scopes] == [reach]


@pytest.mark.parametrize(
    "targets, compiled",
    [
        ("sh:targetSubjectsOf :p", True),
        ("sh:targetSubjectsOf :q", False),
        ("sh:targetSubjectsOf :p, :q", False),
        ("sh:targetSubjectsOf :p ; sh:targetClass :A", False),
        ("sh:targetClass :A ; sh:targetNode :a", True),
        ("sh:targetObjectsOf :p", False),
    ],
)
def test_targets_that_are_compiled(targets, compiled):
    found = read(f":S {targets} ; sh:property [ sh:path :p ; sh:maxCount 1 ] .")
    assert (len(found.rules), bool(len(found.slow))) == (int(compiled), not compiled)


def test_a_part_with_targets_of_its_own_has_both():
    found = read(
        ":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:maxCount 1 ; sh:targetClass :B ] ."
    )
    assert [rule.classes for rule in found.rules] == [(X + "A",), (X + "B",)]
    assert not len(found.slow)


def test_a_deactivated_shape_says_nothing():
    found = read(
        ":S a sh:NodeShape ; sh:targetClass :A ; sh:deactivated true ; "
        "sh:property [ sh:path :p ; sh:maxCount 1 ] ."
    )
    assert found.rules == ()
    assert not len(found.slow)


def test_an_unfinished_negative_assertion_is_refused():
    with pytest.raises(ValueError, match="owl:targetIndividual"):
        read(
            "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; "
            "owl:assertionProperty :p ."
        )


def test_only_drops_targets_and_keeps_the_named():
    found = read(
        ":S a sh:NodeShape ; sh:targetClass :A ; sh:property [ sh:path :p ; sh:maxCount 1 ] . "
        ":q a owl:FunctionalProperty, owl:SymmetricProperty ."
    )
    kept = found.only(["max_count(p, 1) of A", "symmetric(q)"])
    assert kept.rules == (MaxCount(X + "p", ("1",)),)
    assert kept.symmetric == {X + "q"}

"""Reading SHACL and OWL: what is compiled, what is left to pySHACL, what is refused."""

from __future__ import annotations

import pytest

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


def test_a_shape_with_anything_else_goes_to_pyshacl_whole():
    found = read(
        ":S a sh:NodeShape ; sh:targetClass :River ; "
        "sh:property [ sh:path :length ; sh:maxCount 1 ] ; "
        'sh:sparql [ sh:select "SELECT $this WHERE { $this <http://x/length> ?l . '
        'FILTER (?l < 0) }" ] .'
    )
    assert found.rules == ()
    assert found.slow_terms is not None
    assert X + "length" in found.slow_terms


def test_a_query_with_an_open_predicate_concerns_every_claim():
    found = read(
        ':S a sh:NodeShape ; sh:targetClass :River ; sh:sparql [ sh:select "SELECT $this '
        'WHERE { $this ?anything ?value . }" ] .'
    )
    assert found.slow_terms is None


@pytest.mark.parametrize(
    "extra", ["sh:pattern 'x'", "sh:nodeKind sh:IRI", "sh:qualifiedMinCount 1"]
)
def test_uncompiled_parameters_are_not_dropped(extra):
    found = read(f":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:maxCount 1 ; {extra} ] .")
    assert found.rules == ()
    assert len(found.slow)


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


def test_a_part_with_targets_of_its_own_goes_to_pyshacl():
    found = read(
        ":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:maxCount 1 ; sh:targetClass :B ] ."
    )
    assert [rule.classes for rule in found.rules] == [(X + "B",)]
    assert len(found.slow)


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

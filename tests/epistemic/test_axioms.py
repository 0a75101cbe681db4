"""Axioms: what follows from them, beside owlrl and by hand, and what is counted as unread."""

from __future__ import annotations

import numpy as np
import owlrl
import pyshacl
import pytest
import rdflib
from rdflib.namespace import RDF

from benchmarks.agreement import CLASSES, LINKS, PREFIXES, THINGS, X
from epistemic.logic import closure as closing
from epistemic.logic.closure import closure
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints, read_constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.logic.terms import literal, plain_label, rdflib_term, term_text

E, C, U = Verdict.ENTAILED, Verdict.CONTRADICTORY, Verdict.UNKNOWN


def triple(text: str) -> tuple[str, str, str]:
    s, p, o = text.split()
    return X + s, TYPE if p == "a" else X + p, literal(int(o)) if o.isdigit() else X + o


def read(turtle: str) -> Constraints:
    return read_constraints(turtle=PREFIXES + turtle)


RESTRICTION = "[ a owl:Restriction ; owl:onProperty :p ; {} ]"
APART = ":A owl:disjointWith :B . "

# axioms, facts, claims and their verdicts
HAND = [
    (":p a owl:TransitiveProperty .", "a p b; b p c; c p d", "a p d; d p a; a p e", "EUU"),
    (":p a owl:TransitiveProperty, owl:IrreflexiveProperty .", "a p b; b p c", "c p a", "C"),
    (":p a owl:TransitiveProperty ; owl:inverseOf :q .", "a p b; c q b", "a p c; c q a", "EE"),
    (":p rdfs:subPropertyOf :q . :q rdfs:subPropertyOf :r .", "a p b", "a r b; a q c", "EU"),
    (":p rdfs:subPropertyOf :q . :q a owl:FunctionalProperty .", "a q b", "a p c; a p b", "CU"),
    (":p rdfs:subPropertyOf :q . :q owl:inverseOf :r . :r a owl:FunctionalProperty .",
     "b r a", "c p b; a p b; c p d", "CUU"),
    (":p owl:equivalentProperty :q .", "a p b", "a q b; b q a", "EU"),
    (f"{APART} :p rdfs:domain :A ; rdfs:range :B .", "x a B; y a A; a p b",
     "a a A; b a B; x p z; z p y; z p w; a a B; z p 5", "EECCUCU"),
    (f"{APART} :q rdfs:domain :A ; owl:inverseOf :r . :p rdfs:subPropertyOf :r .",
     "x a B", "y p x; x p y", "CU"),
    (":p rdfs:range xsd:integer .", "a p 1", "a p 2; a p b", "UC"),
    (":p owl:propertyDisjointWith :q .", "a p b", "a q b; a q c", "CU"),
    ("[] a owl:AllDisjointProperties ; owl:members ( :p :q :r ) .", "a p b", "a r b; b r a", "CU"),
    (f"{APART} :A owl:equivalentClass :D .", "a a D; b a B", "a a A; a a B; b a D", "ECC"),
    (":F owl:disjointUnionOf ( :A :B ) .", "a a A", "a a F; a a B; b a B", "ECU"),
    (":A owl:complementOf :B .", "a a A", "a a B; b a B", "CU"),
    (f":A rdfs:subClassOf {RESTRICTION.format('owl:maxCardinality 1')} .",
     "a a A; a p b; c p d", "a p c; c p e", "CU"),
    (f":A owl:equivalentClass {RESTRICTION.format('owl:cardinality 1')} .",
     "a a A; a p b", "a p c", "C"),
    (f"{APART} :D rdfs:subClassOf {RESTRICTION.format('owl:allValuesFrom :A')} .",
     "d a D; b a B; c a A", "d p b; d p c; d p e; e p b", "CUUU"),
]  # fmt: skip


@pytest.mark.parametrize("axioms, facts, claims, expected", HAND)
def test_verdicts_by_hand(axioms: str, facts: str, claims: str, expected: str):
    oracle = Oracle(Graph.from_triples(map(triple, facts.split("; "))), read(axioms))
    verdicts = oracle.judge([triple(claim) for claim in claims.split("; ")]).verdict
    assert "".join(Verdict(v).label for v in verdicts) == expected
    assert not oracle.constraints.unread


# A datatype in Turtle, and the values that it has of those in `VALUES`.
VALUES = [
    *(f'"{text}"^^xsd:{kind}' for text, kind in (
        ("30", "integer"), ("-5", "integer"), ("30", "byte"), ("0", "nonNegativeInteger"),
        ("300", "short"), ("30.0", "decimal"), ("30.5", "decimal"), ("30.0", "double"),
        ("x", "integer"), ("a", "token"), ("2000-01-01", "date"))),
    '"a"', '"a"@en', ":a",
]  # fmt: skip
SPACES = {
    "xsd:integer": "30 -5 30 0 300 30.0",
    "xsd:nonNegativeInteger": "30 30 0 300 30.0",
    "xsd:byte": "30 -5 30 0 30.0",
    "xsd:negativeInteger": "-5",
    "xsd:decimal": "30 -5 30 0 300 30.0 30.5",
    "xsd:double": "30.0",
    "xsd:string": "a a",
    "rdf:langString": "a",
    "xsd:date": "2000-01-01",
}
WAYS = [
    ":p rdfs:range {} .",
    ":s a :A . :A rdfs:subClassOf [ owl:onProperty :p ; owl:allValuesFrom {} ] .",
]


def valued(text: str) -> tuple[str, str, str]:
    (row,) = rdflib.Graph().parse(data=f"{PREFIXES} :s :p {text} .", format="turtle")
    return tuple(map(term_text, row))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("datatype", SPACES)
def test_a_datatype_is_kept_by_the_values_it_has_however_they_are_written(datatype, way):
    """By hand, and beside pySHACL by the shape that it is written as."""
    constraints = read(f"@prefix rdf: <{RDF}> . " + way.format(datatype))
    claims = [valued(text) for text in VALUES]
    oracle = Oracle(Graph.from_triples([(X + "s", TYPE, X + "A")]), constraints)
    kept = oracle.judge(claims).verdict != C
    assert [plain_label(o) for _, _, o in np.array(claims)[kept]] == SPACES[datatype].split()
    for claim, is_kept in zip(claims, kept, strict=True):
        said = Graph.from_triples([(X + "s", TYPE, X + "A"), claim]).to_rdflib()
        assert pyshacl.validate(said, shacl_graph=constraints.as_shacl())[0] == is_kept, claim


def test_what_is_no_class_forbids_no_literal_and_is_counted():
    names = ":Own", "geo:wktLiteral", "rdf:PlainLiteral", "owl:real", "xsd:duration", "rdfs:Literal"
    prefixes = f"@prefix rdf: <{RDF}> . @prefix geo: <http://www.opengis.net/ont/geosparql#> . "
    for way, axiom in zip(WAYS, ("rdfs:range", "owl:allValuesFrom"), strict=True):
        axioms = ":Own a rdfs:Datatype . " + " ".join(map(way.format, names))
        oracle = Oracle(Graph.from_triples([(X + "s", TYPE, X + "A")]), read(prefixes + axioms))
        assert not oracle.constraints.rules and not oracle.constraints.range
        assert oracle.judge([triple("s p 5"), triple("s p x")]).verdict.tolist() == [U, U]
        assert oracle.constraints.unread == {f"{axiom} of datatypes that aren't read": len(names)}
    # A class may be called what it likes.
    axioms = ":Literal a owl:Class . " + WAYS[1].format(":Literal")
    assert [rule.kind for rule in read(axioms).rules] == ["class"]


def test_a_limit_of_no_values_is_counted():
    found = read(
        f":A rdfs:subClassOf {RESTRICTION.format('owl:maxCardinality 0')}, "
        f"{RESTRICTION.format('owl:cardinality 0')}, {RESTRICTION.format('owl:cardinality 2')} ."
    )
    assert found.unread == {"owl:cardinality 0": 1, "owl:maxCardinality 0": 1}
    assert [rule.name for rule in found.rules] == ["max_count(p, 2) of A"]


def test_a_shape_that_pyshacl_judges_sees_what_follows_from_a_claim():
    shape = "[] sh:targetClass :A ; sh:property [ sh:path :q ; sh:or ( [ sh:in ( :x ) ] ) ] ."
    axioms = f":p rdfs:subPropertyOf :q . :r rdfs:domain :A . {shape}"
    oracle = Oracle(Graph.from_triples(map(triple, ["a a A", "b q y"])), read(axioms))
    claims = [triple(claim) for claim in ("a p y", "a p x", "b r z", "c r z")]
    assert oracle.judge(claims).verdict.tolist() == [C, U, C, U]


def random_vocabulary(rng: np.random.Generator) -> str:
    lines = []
    for p in LINKS:
        kinds = [k for k in ("Transitive", "Symmetric") if rng.random() < 0.3]
        lines += [f":{p} a owl:{kind}Property ." for kind in kinds]
        for axiom, names in (
            ("rdfs:subPropertyOf", LINKS), ("owl:inverseOf", LINKS),
            ("owl:equivalentProperty", LINKS), ("rdfs:domain", CLASSES), ("rdfs:range", CLASSES),
        ):  # fmt: skip
            if rng.random() < 0.25:
                lines.append(f":{p} {axiom} :{rng.choice(names)} .")
    for axiom in ("rdfs:subClassOf", "owl:equivalentClass"):
        lines.append(f":{rng.choice(CLASSES)} {axiom} :{rng.choice(CLASSES)} .")
    return "\n".join(lines)


def test_what_follows_is_what_owlrl_says_follows():
    grown = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        turtle = random_vocabulary(rng)
        facts = [
            (X + rng.choice(THINGS), X + rng.choice(LINKS), X + rng.choice(THINGS))
            for _ in range(5)
        ]
        facts.append((X + "t0", TYPE, X + rng.choice(CLASSES)))
        constraints = read(turtle)
        graph = with_vocabulary(Graph.from_triples(facts), constraints)
        ours = {tuple(graph.terms[i] for i in row) for row in closure(graph, constraints).tolist()}
        theirs = rdflib.Graph().parse(data=PREFIXES + turtle, format="turtle")
        for s, p, o in facts:
            theirs.add((rdflib_term(s), rdflib_term(p), rdflib_term(o)))
        owlrl.DeductiveClosure(owlrl.OWLRL_Semantics).expand(theirs)
        things, names = {X + t for t in THINGS}, {X + name for name in (*LINKS, *CLASSES)}
        said = {tuple(map(term_text, row)) for row in theirs}
        expected = {
            (s, p, o)
            for s, p, o in said
            if s in things and (p in names or (p == TYPE and o in names))
        }
        assert ours == expected, (seed, turtle)
        grown += len(ours) - len(set(facts))
    assert grown > 200  # much was there to infer


def test_a_transitive_property_of_a_long_chain_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(closing, "_MOST_PAIRS", 1_000)
    facts = [triple(f"n{i} p n{i + 1}") for i in range(100)]
    with pytest.raises(ValueError, match="http://x/p is transitive"):
        Oracle(Graph.from_triples(facts), read(":p a owl:TransitiveProperty ."))


def test_what_is_not_read_is_counted_by_kind():
    found = read(
        ":a owl:sameAs :b . :b owl:sameAs :c . <http://x/> owl:imports <http://y/> . "
        ":p owl:propertyChainAxiom ( :q :r ) . :q a owl:ReflexiveProperty . "
        ":A rdfs:subClassOf [ a owl:Restriction ; owl:onProperty :p ; owl:someValuesFrom :B ] ; "
        "rdfs:subClassOf [ owl:unionOf ( :B :D ) ] . :p rdfs:domain [ owl:unionOf ( :A :B ) ] . "
        "[] a owl:AllDifferent ; owl:members ( :a :b ) ."
    )
    assert found.unread == {
        "owl:ReflexiveProperty": 1, "owl:imports": 1, "owl:propertyChainAxiom": 1,
        "owl:sameAs": 2, "owl:someValuesFrom": 1, "owl:unionOf": 2,
        "rdfs:domain of what has no name": 1, "rdfs:subClassOf of what has no name": 1,
    }  # fmt: skip

"""Shapes that aren't compiled: pySHACL's verdicts on them, and that it can be stopped."""

from __future__ import annotations

import time

import pytest

from benchmarks.agreement import PREFIXES, X
from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.logic.terms import literal

E, C, U = Verdict.ENTAILED, Verdict.CONTRADICTORY, Verdict.UNKNOWN


def triple(text: str) -> tuple[str, str, str]:
    s, p, o = text.split()
    thing = o if o.startswith('"') else literal(int(o)) if o.isdigit() else X + o
    return X + s, TYPE if p == "a" else X + p, thing


def oracle(facts: str, turtle: str, minutes: float = 1.0, complete: tuple[str, ...] = ()) -> Oracle:
    whole = [X + name for name in complete]
    shapes = read_constraints(turtle=PREFIXES + turtle, complete=whole, slow_minutes=minutes)
    return Oracle(Graph.from_triples(map(triple, facts.split("; "))), shapes)


def verdicts(judge: Oracle, claims: str) -> str:
    found = judge.judge([triple(claim) for claim in claims.split("; ")])
    return "".join(Verdict(v).label for v in found.verdict)


ONE_OF = "sh:or ( [ sh:pattern '^[A-Z]+$' ] [ sh:maxLength 1 ] )"
CODE = f"[] sh:targetClass :Person ; sh:property [ sh:path :code ; {ONE_OF} ] ."
PET = "sh:property [ sh:path :pet ; sh:or ( [ sh:class :Animal ] [ sh:class :Robot ] ) ]"
SUPERS = ":Dog rdfs:subClassOf :Animal ."
ASKS = "sh:property [ sh:path :name ; sh:minCount 1 ; sh:hasValue 1 ]"

# turtle, facts, complete classes, claims, verdicts
CASES = {
    "a subject known by its type alone": (
        CODE, "a a Person", (), 'a code "junk"; a code "OK"', "CU",
    ),
    "a subject with literals alone": (
        CODE, 'a a Person; a code "X"; a age 5', (), 'a code "junk"', "C",
    ),
    "an object known by its type alone": (
        f"[] sh:targetClass :Person ; {PET} .", "a a Person; d a Animal; c a Car",
        ("Animal", "Robot"), "a pet d; a pet c", "UC",
    ),
    "no values at all": (
        "[] sh:targetClass :Person ; sh:property [ sh:path :tail ; sh:maxCount 0 ] .",
        "a a Person; b a Dog", (), "a tail t; b tail t", "CU",
    ),
    "the inverse spelling": (
        ":tOf owl:inverseOf :sOf . [] sh:targetClass :Person ; "
        f"sh:property [ sh:path :tOf ; {ONE_OF} ] .",
        "aa a Person", (), "zz sOf aa; aa tOf zz; zz sOf bb", "CCU",
    ),
    "the class above the claimed one is looked at": (
        f"{SUPERS} [] sh:targetClass :Animal ; sh:property [ sh:path :code ; {ONE_OF} ] .",
        'a code "junk"; b code "OK"', (), "a a Dog; b a Dog", "CU",
    ),
    "the class above the claimed one is asked for": (
        f"{SUPERS} [] sh:targetClass :Robot ; sh:not [ sh:class :Animal ] .",
        "a a Robot", (), "a a Dog; b a Dog", "CU",
    ),
    "a closed shape": (
        "[] sh:targetClass :Person ; sh:closed true ; sh:ignoredProperties ( rdf:type ) ; "
        "sh:property [ sh:path :name ; sh:maxCount 1 ] .",
        "a a Person", (), "a name n; a age 5; b age 5", "UCU",
    ),
    "a property shape with an IRI": (
        ":S sh:targetClass :Person ; sh:property :P . "
        f":P a sh:PropertyShape ; sh:path :code ; {ONE_OF} .",
        "a a Person", (), 'a code "junk"; a code "OK"', "CU",
    ),
    "shapes in a list with IRIs": (
        ":S sh:targetClass :Person ; sh:xone ( :T :V ) . "
        ":T sh:property [ sh:path :p ; sh:minCount 1 ] . "
        ":V a sh:NodeShape ; sh:property [ sh:path :q ; sh:minCount 1 ] .",
        "a a Person; a p x; b p x", (), "a q y; b q y", "CU",
    ),
    "objects of a property": (
        "[] sh:targetObjectsOf :code ; sh:maxLength 3 .", "a code x", (),
        'b code "long"; b code "OK"', "CU",
    ),
    "a path of two steps, from both ends": (
        f"[] sh:targetClass :Person ; sh:property [ sh:path ( :pet :code ) ; {ONE_OF} ] .",
        'a a Person; a pet d; e code "junk"', (), 'd code "junk"; a pet e; a pet f', "CCU",
    ),
    "a path of any length": (
        "[] sh:targetNode :a ; "
        "sh:property [ sh:path [ sh:zeroOrMorePath :n ] ; sh:class :Node ] .",
        "a a Node; a n b; b a Node; b n c; c a Node; c n d; d a Node", ("Node",),
        "d n e; e n f", "CU",
    ),
    # What isn't stated may yet be: not a contradiction, here as in compiled shapes.
    "what is asked for may still come": (
        f":S sh:targetClass :Person ; sh:node :N ; {ASKS} . :N {ASKS} .",
        "b a Dog", (), "b a Person", "U",
    ),
    "a class whose members nobody lists": (
        ":Car owl:disjointWith :Animal . [] sh:targetClass :Person ; "
        "sh:property [ sh:path ( :pet :kin ) ; sh:class :Animal ] .",
        "a a Person; a pet d; c a Car", (), "d kin e; d kin c; d kin 5", "UCC",
    ),
    "below sh:not, asking for a value forbids one": (
        "[] sh:targetClass :Person ; sh:not [ sh:property [ sh:path :tail ; sh:minCount 1 ] ] .",
        "a a Person", (), "a tail t; b tail t", "CU",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_verdicts_by_hand(case):
    turtle, facts, complete, claims, expected = CASES[case]
    prefix = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> . "
    judge = oracle(facts, prefix + turtle, complete=complete)
    assert len(judge.constraints.slow), "compiled: no case of this"
    assert verdicts(judge, claims) == expected


def test_what_is_broken_already_breaks_nothing_new():
    judge = oracle('a a Person; a code "junk"', CODE)
    assert verdicts(judge, 'a age 5; a a Dog; a code "dust"') == "UUC"


def test_shapes_that_pyshacl_cannot_read_are_named_in_one_line():
    with pytest.raises(ValueError, match=r"shapes that pySHACL can't read: [^\n]*$"):
        oracle("a a Person", "[] sh:targetClass :Person ; sh:or () .")
    pair = "sh:property [ sh:path :p ; sh:lessThanOrEquals 5 ]"
    judge = oracle("a a Person", f"[] sh:targetClass :Person ; {pair} .")
    with pytest.raises(ValueError, match=r"can't judge by the shapes left to it: [^\n]*$"):
        verdicts(judge, "a p b")


JOIN = " ".join(f"?x{i} <http://x/p> ?y{i} ." for i in range(6))
SPIN = f':Spin sh:targetClass :Person ; sh:sparql [ sh:select "SELECT $this WHERE {{ {JOIN} }}" ] .'


def test_a_query_that_never_ends_is_stopped_at_the_limit_and_named(capfd):
    facts = "a a Person; " + "; ".join(f"n{i} p m{i}" for i in range(60))
    judge = oracle(facts, SPIN, minutes=0.1)
    started = time.monotonic()
    with pytest.raises(ValueError, match=r"slow_minutes=0\.1: .* judged 0 of 1 claims .*Spin"):
        verdicts(judge, "a p b")
    assert time.monotonic() - started < 30
    said = " ".join(capfd.readouterr().err.split())
    assert "1 claims go to pySHACL, nobody knows for how long" in said
    # The time is up for later claims as well; other shapes are judged as ever.
    with pytest.raises(ValueError, match="slow_minutes"):
        verdicts(judge, "a p c")
    assert verdicts(oracle("a a Person", CODE), 'a code "junk"') == "C"


def test_a_bound_that_nothing_here_compares_with_is_left_to_pyshacl():
    """Compiled, it would forbid every value."""
    shape = (
        "@prefix : <http://x/> . @prefix sh: <http://www.w3.org/ns/shacl#> . "
        "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
        ":S a sh:NodeShape ; sh:targetSubjectsOf :p ; "
        'sh:property [ sh:path :p ; sh:minInclusive "PT5M"^^xsd:duration ] .'
    )
    constraints = read_constraints(turtle=shape)
    assert constraints.rules == () and len(constraints.slow) == 1
    kind = "http://www.w3.org/2001/XMLSchema#duration"
    claims = [("http://x/a", "http://x/p", f'"PT{n}M"^^<{kind}>') for n in (9, 3)]
    graph = Graph.from_triples([("http://x/a", "http://x/q", "http://x/b")])
    verdicts = Oracle(graph, constraints).judge(claims).verdict
    assert [Verdict(v) for v in verdicts] == [Verdict.UNKNOWN, Verdict.CONTRADICTORY]

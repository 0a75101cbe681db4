"""The benchmark on the W3C's suite, on a test in the suite's form: the suite isn't shipped."""

from __future__ import annotations

from pathlib import Path

from benchmarks import w3c

TEST = """
@prefix : <http://x/> . @prefix mf: <http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix sht: <http://www.w3.org/ns/shacl-test#> .
:Dog rdfs:subClassOf :Animal .
:a a :Dog ; :code "junk", "OK" .
:b a :Person ; :code "junk" .
:c a :Thing .
:S a sh:NodeShape ; sh:targetClass :Animal, :Thing ; sh:property :P .
:P a sh:PropertyShape ; sh:path :code ; sh:minCount 1 ;
  sh:or ( [ sh:pattern "^[A-Z]+$" ] [ sh:maxLength 1 ] ) .
<> a mf:Manifest ; mf:entries ( <t> ) .
<t> a sht:Validate ; mf:action [ sht:dataGraph <> ; sht:shapesGraph <> ] ;
  mf:result [ a sh:ValidationReport ; sh:conforms false ] .
"""


def test_claims_of_a_test_are_its_data_and_are_judged_as_pyshacl_does(tmp_path: Path):
    (tmp_path / "own.ttl").write_text(TEST)
    (test,) = w3c.tests(tmp_path)
    outcomes = {o.claim.replace("http://x/", ""): o for o in w3c.judge(test)}
    kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
    assert {claim: (o.contradicted, o.verdict) for claim, o in outcomes.items()} == {
        f"a {kind} Dog": (True, "C"),  # by the class above, and by a shape with an IRI
        'a code "junk"': (True, "C"),
        'a code "OK"': (False, "U"),
        f"b {kind} Person": (False, "U"),
        'b code "junk"': (False, "U"),
        f"c {kind} Thing": (True, "U"),
    }
    assert [claim for claim, o in outcomes.items() if o.by_design] == [f"c {kind} Thing"]
    assert [claim for claim, o in outcomes.items() if not o.agrees] == [f"c {kind} Thing"]

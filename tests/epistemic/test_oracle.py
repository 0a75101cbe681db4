"""The oracle against pySHACL, rdflib and verdicts worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.agreement import (
    CLASSES,
    PREFIXES,
    X,
    by_pyshacl,
    compare,
    membership,
    random_axioms,
    random_slow_shape,
    random_triple,
    verdicts_by,
)
from epistemic.decks.synthetic import make_synthetic
from epistemic.logic.constraints import Constraints, read_constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.kinds import KINDS
from epistemic.logic.lookup import Verdict, judge
from epistemic.logic.oracle import Oracle
from epistemic.logic.terms import literal

E, C, U = Verdict.ENTAILED, Verdict.CONTRADICTORY, Verdict.UNKNOWN


def triple(text: str) -> tuple[str, str, str]:
    """'france capital paris' with short names and bare integers -> terms."""
    s, p, o = text.split()

    def term(word: str) -> str:
        return literal(int(word)) if word.lstrip("-").isdigit() else X + word

    return X + s, TYPE if p == "a" else X + p, term(o)


def oracle(facts: str, turtle: str = "", complete: tuple[str, ...] = ()) -> Oracle:
    graph = Graph.from_triples(triple(line) for line in facts.strip().split("\n"))
    whole = tuple(X + name for name in complete)
    return Oracle(graph, read_constraints(turtle=PREFIXES + turtle, complete=whole))


def verdict(judge_: Oracle, claim: str) -> Verdict:
    return Verdict(judge_.judge([triple(claim)]).verdict[0])


# -- By hand -----------------------------------------------------------------------------------

FACTS = """france capital paris
germany a Country
france a Country
paris a City
france borders germany
loire flowsInto atlantic
river twoMouths a1
river twoMouths a2
loire sourceElevation 1400
france population 68"""

HAND = [
    # (axioms, complete classes, claim, verdict)
    ("", (), "france capital paris", E),
    ("", (), "france capital lyon", U),
    (":capital a owl:FunctionalProperty .", (), "france capital lyon", C),
    (":capital a owl:FunctionalProperty .", (), "france capital paris", E),
    (":capital a owl:FunctionalProperty .", (), "spain capital madrid", U),
    (":twoMouths a owl:FunctionalProperty .", (), "river twoMouths a3", U),  # broken already
    (":capital a owl:InverseFunctionalProperty .", (), "spain capital paris", C),
    (":borders a owl:SymmetricProperty .", (), "germany borders france", E),
    ("", (), "germany borders france", U),
    (":borders a owl:IrreflexiveProperty .", (), "france borders france", C),
    (":flowsInto a owl:AsymmetricProperty .", (), "atlantic flowsInto loire", C),
    (":flowsInto a owl:AsymmetricProperty .", (), "loire flowsInto loire", C),
    (":flowsInto owl:inverseOf :inflow .", (), "atlantic inflow loire", E),
    # The inverse's constraint, seen through the property: the Atlantic would flow two ways.
    (":flowsInto owl:inverseOf :inflow . :flowsInto a owl:FunctionalProperty .", (),
     "pacific inflow loire", C),
    (":City rdfs:subClassOf :Place .", (), "paris a Place", E),
    (":City owl:disjointWith :Country .", (), "paris a Country", C),
    (":City owl:disjointWith :Country . :Port rdfs:subClassOf :City .", (), "france a Port", C),
    ("[] sh:targetClass :Country ; sh:property [sh:path :capital; sh:class :City] .",
     ("City",), "germany capital lyon", C),
    ("[] sh:targetClass :Country ; sh:property [sh:path :capital; sh:class :City] .",
     (), "germany capital lyon", U),  # Lyon may be a city: nobody says that all are known
    ("[] sh:targetClass :Country ; sh:property [sh:path :capital; sh:class :City] .",
     ("City",), "loire capital lyon", U),  # the Loire isn't a country
    ("[] a sh:NodeShape ; sh:targetClass :Country ; sh:property "
     "[sh:path :population; sh:minInclusive 0] .", (), "germany population -1", C),
    ("[] a sh:NodeShape ; sh:targetClass :Country ; sh:property "
     "[sh:path :population; sh:minInclusive 0] .", (), "germany population 0", U),
    ("[] a sh:NodeShape ; sh:targetClass :Country ; sh:property "
     "[sh:path :population; sh:minExclusive 0] .", (), "germany population 0", C),
    ("[] a sh:NodeShape ; sh:targetSubjectsOf :mouthElevation ; sh:property "
     "[sh:path :mouthElevation; sh:lessThan :sourceElevation] .", (), "loire mouthElevation 2", U),
    ("[] a sh:NodeShape ; sh:targetSubjectsOf :mouthElevation ; sh:property "
     "[sh:path :mouthElevation; sh:lessThan :sourceElevation] .", (),
     "loire mouthElevation 1400", C),
    ("[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :france ; "
     "owl:assertionProperty :borders ; owl:targetIndividual :spain . "
     ":borders a owl:SymmetricProperty .", (), "spain borders france", C),
]  # fmt: skip


@pytest.mark.parametrize("turtle, complete, claim, expected", HAND)
def test_verdicts_by_hand(turtle: str, complete: tuple[str, ...], claim: str, expected: Verdict):
    assert verdict(oracle(FACTS, turtle, complete), claim) == expected


def test_a_proof_names_the_constraint_and_the_clashing_triple():
    judge_ = oracle(FACTS, ":capital a owl:FunctionalProperty .")
    judgement = judge_.judge([triple("france capital lyon"), triple("france capital paris")])
    assert judge_.explain(judgement, 0) == (
        "max_count(capital, 1); clashes with: france | capital | paris"
    )
    assert judge_.explain(judgement, 1) == "france | capital | paris"


def test_violators_of_a_declared_function_are_reported():
    judge_ = oracle(FACTS, ":twoMouths a owl:FunctionalProperty .")
    assert [(v.constraint, v.subjects) for v in judge_.violations] == [
        ("max_count(twoMouths, 1)", (X + "river",))
    ]


def test_terms_never_heard_of_keep_their_values_and_identity():
    shapes = (
        "[] a sh:NodeShape ; sh:targetSubjectsOf :length ; sh:property "
        "[sh:path :length; sh:lessThan :sourceElevation; sh:maxExclusive 9000] ."
        ":flowsInto a owl:IrreflexiveProperty ."
    )
    judge_ = oracle(FACTS, shapes)
    claims = ["loire length 1399", "loire length 1401", "moon length 9001", "moon length 8999",
              "new flowsInto new", "new flowsInto newer"]  # fmt: skip
    assert [verdict(judge_, claim) for claim in claims] == [U, C, C, U, C, U]


# -- Against pySHACL ---------------------------------------------------------------------------


@pytest.mark.parametrize("shacl_only", [True, False], ids=["SHACL as written", "SHACL and OWL"])
def test_agrees_with_pyshacl(shacl_only: bool):
    found = compare(range(50), 10, shacl_only)
    assert not found.disagreements, found.disagreements[0]
    assert found.verdicts.min() > 25  # each verdict was really put to the test


class Drawn:
    """Random choices that hypothesis makes, and makes smaller."""

    def __init__(self, data: st.DataObject):
        self._draw = data.draw

    def random(self) -> float:
        return self._draw(st.floats(0, 1, exclude_max=True))

    def choice(self, options: list[str]) -> str:
        return self._draw(st.sampled_from(options))

    def integers(self, low: int, high: int | None = None) -> int:
        return self._draw(st.integers(0, low - 1) if high is None else st.integers(low, high - 1))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_shapes_agree_with_pyshacl_on_any_graph(data):
    drawn = Drawn(data)
    slow = [random_slow_shape(drawn, number) for number in range(2)]
    turtle = random_axioms(drawn, shacl_only=True) + "\n" + "\n".join(slow).replace(":S", ":T")
    axioms = rdflib.Graph().parse(data=turtle, format="turtle")
    facts = [random_triple(drawn) for _ in range(drawn.integers(3, 10))]
    claims = [random_triple(drawn) for _ in range(4)]
    constraints = read_constraints(turtle=turtle, complete=[X + name for name in CLASSES])
    found = Oracle(Graph.from_triples(facts), constraints).judge(claims).verdict.tolist()
    assert found == verdicts_by(by_pyshacl, facts, claims, axioms, axioms)


@pytest.mark.full
@pytest.mark.parametrize("shacl_only", [True, False], ids=["SHACL as written", "SHACL and OWL"])
def test_agrees_with_pyshacl_at_length(shacl_only: bool):
    found = compare(range(1_000, 1_500), 20, shacl_only)
    assert not found.disagreements, found.disagreements[0]
    stated_in_owl_alone = {kind.kind for kind in KINDS.values() if kind.parameter is None}
    kinds = KINDS.keys() - (stated_in_owl_alone if shacl_only else set())
    assert set(found.reasons) >= kinds


# -- The same answers however it is run ---------------------------------------------------------


def test_membership_agrees_with_rdflib():
    differ, stated = membership(3_000)
    assert differ == 0
    assert 0.4 < stated < 0.9


@pytest.mark.full
def test_membership_agrees_with_rdflib_at_length():
    assert membership(20_000)[0] == 0


def test_ids_texts_and_batches_of_any_size_give_the_same_verdicts():
    made = make_synthetic(4_000, seed=1, planted=0.1)
    judge_ = Oracle(made.graph, made.constraints)
    rng = np.random.default_rng(1)
    claims = judge_.graph.triples[rng.integers(len(made.graph), size=300)].copy()
    claims[:200, 2] = rng.permutation(claims[:200, 2])
    whole = judge_.judge_ids(claims)
    single = [int(judge_.judge_ids(claims[i : i + 1]).verdict[0]) for i in range(40)]
    texts = [tuple(judge_.graph.terms[term] for term in claim) for claim in claims.tolist()]
    assert single == whole.verdict[:40].tolist()
    assert judge_.judge(texts).verdict.tolist() == whole.verdict.tolist()
    assert set(whole.verdict.tolist()) == {0, 1, 2}


def test_one_compilation_serves_graphs_of_one_padded_size():
    judges = [Oracle(m.graph, m.constraints) for m in (make_synthetic(4_000, s) for s in (1, 2))]
    claims = [j.graph.triples[:64] for j in judges]
    judges[0].judge_ids(claims[0])
    compiled = judge._cache_size()
    assert (judges[1].judge_ids(claims[1]).verdict == E).all()
    assert judge._cache_size() == compiled


def test_planted_violations_are_found_and_no_others():
    made = make_synthetic(8_000, seed=5, planted=0.05)
    reported = {
        v.constraint: set(v.subjects) for v in Oracle(made.graph, made.constraints).violations
    }
    assert reported == {name: set(subjects) for name, subjects in made.planted.items()}
    assert Oracle(*make_synthetic(8_000, seed=5)[:2]).violations == []


def test_a_graph_without_constraints_contradicts_nothing():
    made = make_synthetic(1_000)
    judge_ = Oracle(made.graph, Constraints())
    claims = np.random.default_rng(0).integers(len(judge_.graph.terms), size=(500, 3))
    assert not (judge_.judge_ids(claims).verdict == C).any()


@pytest.mark.processes
def test_sharding_over_devices_changes_nothing(on_devices):
    code = (
        "import numpy as np\n"
        "from epistemic.logic.oracle import Oracle\n"
        "from epistemic.decks.synthetic import make_synthetic\n"
        "made = make_synthetic(2_000, planted=0.1)\n"
        "oracle = Oracle(made.graph, made.constraints)\n"
        "claims = np.repeat(oracle.graph.triples[:333], 3, axis=0)\n"
        "claims[1::3, 2] = np.roll(claims[1::3, 2], 1)\n"
        "claims[2::3, 0] = np.roll(claims[2::3, 0], 7)\n"
        "said = oracle.judge_ids(claims)\n"
        "print(said.verdict.tolist())\n"
        "print(said.proof.tolist())\n"
    )
    alone = on_devices(code, 1)
    assert on_devices(code, 4) == alone
    assert set(json.loads(alone[0])) == {E, C, U}


# -- Shapes that aren't compiled ----------------------------------------------------------------

OVERLAP = """
:Overlap a sh:NodeShape ; sh:targetSubjectsOf :influencedBy ; sh:sparql [ sh:select \"\"\"
SELECT $this ?value WHERE {
  $this <http://x/influencedBy> ?value ; <http://x/died> ?end .
  ?value <http://x/born> ?start . FILTER (?start > ?end) } \"\"\" ] .
:capital a owl:FunctionalProperty .
"""
THINKERS = """plato born 428
plato died 348
hume born 1711
hume died 1776
kant born 1724
kant influencedBy hume
kant capital konigsberg"""


def test_sparql_shapes_are_judged_by_pyshacl_and_counted():
    judge_ = oracle(THINKERS, OVERLAP)
    claims = ["hume influencedBy plato", "plato influencedBy hume", "plato reads hume",
              "kant influencedBy hume", "kant capital bonn"]  # fmt: skip
    judgement = judge_.judge([triple(claim) for claim in claims])
    assert judgement.verdict.tolist() == [U, C, U, E, C]
    assert judgement.slow.tolist() == [True, True, False, False, False]
    assert judge_.explain(judgement, 1) == "a shape that pySHACL judges"

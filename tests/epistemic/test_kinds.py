"""Each kind of constraint by itself: read, said, written as SHACL, compiled, broken."""

from __future__ import annotations

from typing import NamedTuple

import pyshacl
import pytest
import rdflib
from rdflib.namespace import SH, XSD

from benchmarks.agreement import PREFIXES, X
from epistemic.logic.constraints import Constraints, read_constraints
from epistemic.logic.english import iri_words
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.kinds import (
    KINDS,
    Datatype,
    Disjoint,
    In,
    LessThan,
    MaxCount,
    MinExclusive,
    Negative,
    ValueClass,
    ValueSpace,
    Words,
)
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.logic.phrasing import phrasing
from epistemic.logic.terms import literal
from epistemic.predicates import term_name

E, C, U = Verdict.ENTAILED, Verdict.CONTRADICTORY, Verdict.UNKNOWN
WORDS = Words(
    said=phrasing("mouth", "noun", functional=False),
    other=lambda iri: phrasing(iri_words(iri), "noun", functional=False),
    term=lambda term: term_name(None, term, "km"),
    class_=iri_words,
    apart=lambda iri: ["lake", "river"],
)


class Case(NamedTuple):
    """One kind at work.

    Attributes:
      turtle: states it.
      name: of the constraint that is read.
      facts: some break it.
      breakers: the subjects that do.
      contradicted: a claim that would break it.
      open: a claim that wouldn't.
      said: its sentence about a mouth, or "".
      complete: the classes whose members are all known.
    """

    turtle: str
    name: str
    facts: str
    breakers: set[str]
    contradicted: str
    open: str
    said: str
    complete: tuple[str, ...] = ()


def shape(parameter: str) -> str:
    part = f"sh:property [ sh:path :p ; {parameter} ]"
    return f"[] a sh:NodeShape ; sh:targetSubjectsOf :p ; {part} ."


CASES = {
    "max_count": Case(
        shape("sh:maxCount 2"), "max_count(p, 2)", "a p 1; a p 2; a p 3; b p 1; b p 2; c p 1",
        {"a"}, "b p 3", "c p 2", "Nothing has more than 2 mouth.",
    ),
    "inverse_functional": Case(
        ":p a owl:InverseFunctionalProperty .", "inverse_functional(p)", "a p x; b p x; c p y",
        {"a", "b"}, "d p y", "d p z", "Nothing is the mouth of more than one thing.",
    ),
    "asymmetric": Case(
        ":p a owl:AsymmetricProperty .", "asymmetric(p)", "a p b; b p a; c p c; d p e",
        {"a", "b", "c"}, "e p d", "e p f",
        "If one thing has another as mouth, then not the other way round.",
    ),
    "irreflexive": Case(
        ":p a owl:IrreflexiveProperty .", "irreflexive(p)", "a p a; b p a",
        {"a"}, "b p b", "a p b", "Nothing is its own mouth.",
    ),
    "less_than": Case(
        shape("sh:lessThan :q"), "less_than(p, q)", "a p 2; a q 2; b p 1; b q 2; c q 5",
        {"a"}, "c p 5", "c p 4", "The mouth of anything is less than its q.",
    ),
    "class": Case(
        shape("sh:class :Sea"), "class(p, Sea)", "x a Sea; y a River; a p y; b p x; c p z",
        {"a", "c"}, "d p y", "d p x",
        "Only a sea can be a mouth, and no sea is a lake or a river.", ("Sea",),
    ),
    "disjoint": Case(
        ":Sea owl:disjointWith :River .", "disjoint(River, Sea)", "x a Sea; x a River; y a Sea",
        {"x"}, "y a River", "z a River", "",
    ),
    "negative": Case(
        "[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :a ; "
        "owl:assertionProperty :p ; owl:targetIndividual :x .",
        "negative(p, a, x)", "a q x; b p x", set(), "a p x", "a p y", "",
    ),
    "datatype": Case(
        shape("sh:datatype xsd:integer"), "datatype(p, integer)", "a p x; b p 2",
        {"a"}, "c p y", "c p 5", "The mouth of anything is a whole number.",
    ),
    "value_space": Case(
        ":p rdfs:range xsd:integer .", "value_space(p, integer)", "a p x; b p 2",
        {"a"}, "c p y", "c p 5", "The mouth of anything is a whole number.",
    ),
    "in": Case(
        shape("sh:in ( :x 1200 )"), "in(p, 1200, x)", "a p y; b p x; b p 1200",
        {"a"}, "b p 3", "c p x", "The mouth of anything is one of these: 1,200 km, x.",
    ),
    "min_inclusive": Case(
        shape("sh:minInclusive 3"), "min_inclusive(p, 3)", "a p 2; b p 3; c p 4",
        {"a"}, "d p 2", "d p 3", "The mouth of anything is 3 km or more.",
    ),
    "min_exclusive": Case(
        shape("sh:minExclusive 3"), "min_exclusive(p, 3)", "a p 2; b p 3; c p 4",
        {"a", "b"}, "d p 3", "d p 4", "The mouth of anything is more than 3 km.",
    ),
    "max_inclusive": Case(
        shape("sh:maxInclusive 3"), "max_inclusive(p, 3)", "a p 2; b p 3; c p 4",
        {"c"}, "d p 4", "d p 3", "The mouth of anything is 3 km or less.",
    ),
    "max_exclusive": Case(
        shape("sh:maxExclusive 3"), "max_exclusive(p, 3)", "a p 2; b p 3; c p 4",
        {"b", "c"}, "d p 3", "d p 2", "The mouth of anything is less than 3 km.",
    ),
    "property_disjoint": Case(
        shape("sh:disjoint :q"), "property_disjoint(p, q)", "a p x; a q x; b p x; c q y",
        {"a"}, "b q x", "b q y", "",
    ),
    "node_kind": Case(
        shape("sh:nodeKind sh:IRI"), "node_kind(p, IRI)", "a p 1; b p x", {"a"}, "c p 5", "c p y",
        "",
    ),
    "pattern": Case(
        shape("sh:pattern '[xy]$' ; sh:flags 'i'"), "pattern(p, [xy]$, i)", "a p z; b p x",
        {"a"}, "b p w", "b p Y", "",
    ),
    "min_length": Case(
        shape("sh:minLength 2"), "min_length(p, 2)", "a p 1; b p 10", {"a"}, "c p 5", "c p 12", "",
    ),
    "max_length": Case(
        shape("sh:maxLength 2"), "max_length(p, 2)", "a p 100; b p 10", {"a"}, "c p 123", "c p 7",
        "",
    ),
    "language_in": Case(
        shape("sh:languageIn ( 'en' 'DE' )"), "language_in(p, de, en)",
        "a p x; b p fluss@de-AT; c p fleuve@fr", {"a", "c"}, "b p rivière@fr", "b p river@en", "",
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("kind", CASES)


def triple(text: str) -> tuple[str, str, str]:
    s, p, o = text.split()
    text, _, language = o.partition("@")
    thing = f'"{text}"@{language}' if language else literal(int(o)) if o.isdigit() else X + o
    return X + s, TYPE if p == "a" else X + p, thing


def graph(case: Case) -> Graph:
    return Graph.from_triples(map(triple, case.facts.split("; ")))


def constraints(case: Case) -> Constraints:
    complete = [X + name for name in case.complete]
    return read_constraints(turtle=PREFIXES + case.turtle, complete=complete)


def test_every_kind_is_tried():
    assert CASES.keys() == KINDS.keys()
    assert all(KINDS[name].kind == name for name in KINDS)


@EACH
def test_what_states_it_is_read_as_one_constraint(kind):
    read = constraints(CASES[kind])
    assert [type(rule) for rule in read.rules] == [KINDS[kind]]
    assert [rule.name for rule in read.rules] == [CASES[kind].name]
    assert not len(read.slow)


@EACH
def test_its_sentence(kind):
    assert constraints(CASES[kind]).rules[0].say(WORDS) == CASES[kind].said


@EACH
def test_pyshacl_finds_the_breakers_by_its_shape(kind):
    case = CASES[kind]
    facts, read = graph(case).to_rdflib(), constraints(case)
    _, report, _ = pyshacl.validate(facts, shacl_graph=read.as_shacl(), inference="none")
    # Of an inverse-functional property it is the values that its shape looks at.
    focus = {"x"} if kind == "inverse_functional" else case.breakers
    assert set(report.objects(None, SH.focusNode)) == {rdflib.URIRef(X + name) for name in focus}


@EACH
def test_compiled_it_reports_the_breakers(kind):
    case = CASES[kind]
    violations = Oracle(graph(case), constraints(case)).violations
    # That nothing is of two classes is asked of claims alone.
    expected = set() if kind == "disjoint" else {X + name for name in case.breakers}
    assert {subject for v in violations for subject in v.subjects} == expected
    assert {v.constraint for v in violations} <= {case.name}


@EACH
def test_it_contradicts_a_claim_and_leaves_another_open(kind):
    case = CASES[kind]
    oracle = Oracle(graph(case), constraints(case))
    judgement = oracle.judge([triple(case.contradicted), triple(case.open)])
    assert judgement.verdict.tolist() == [C, U]
    assert oracle.explain(judgement, 0).startswith(kind)


@EACH
def test_under_other_names_it_is_the_same_constraint(kind):
    rule = constraints(CASES[kind]).rules[0]
    copy = rule.renamed(lambda iri: iri + "2")
    assert copy.vocabulary == {iri + "2" for iri in rule.vocabulary}
    assert copy.renamed(lambda iri: iri.removesuffix("2")) == rule
    assert copy != rule


# -- What differs from kind to kind -------------------------------------------------------------


def test_constraints_stand_in_order_of_kind_and_kinds_are_never_equal():
    rules = [MinExclusive("p", ("1",)), Datatype("q", ("1",)), Datatype("p", ("2",))]
    assert [rule.kind + rule.predicate for rule in sorted(rules)] == [
        "datatypep", "datatypeq", "min_exclusivep",
    ]  # fmt: skip
    assert MinExclusive("p", ("1",)) != Datatype("p", ("1",))


def test_a_name_has_the_targets_too():
    assert MaxCount(X + "p", ("1",), (X + "A",), (X + "t",)).name == "max_count(p, 1) of A, t"
    assert MaxCount(X + "p", ("1",), (X + "A",)).for_everyone() == MaxCount(X + "p", ("1",))


def test_no_values_at_all_is_left_to_pyshacl():
    read = read_constraints(turtle=PREFIXES + shape("sh:maxCount 0"))
    assert read.rules == () and len(read.slow)


def test_a_literal_is_of_no_class_whether_its_members_are_known_or_not():
    for complete in ((), ("Sea",)):
        case = CASES["class"]._replace(complete=complete, facts="a p 1; x a Sea")
        oracle = Oracle(graph(case), constraints(case))
        assert [v.subjects for v in oracle.violations] == [(X + "a",)]
        assert oracle.judge([triple("b p 2"), triple("b p x")]).verdict.tolist() == [C, U]


@pytest.mark.parametrize(
    "kind, allowed",
    [("IRI", "i"), ("BlankNode", "b"), ("Literal", "l"), ("BlankNodeOrIRI", "bi"),
     ("BlankNodeOrLiteral", "bl"), ("IRIOrLiteral", "il")],
)  # fmt: skip
def test_kinds_of_nodes(kind, allowed):
    rule = constraints(CASES["node_kind"]._replace(turtle=shape(f"sh:nodeKind sh:{kind}"))).rules[0]
    terms = {"i": X + "x", "b": "_:x", "l": literal(1)}
    assert "".join(sorted(sort for sort, term in terms.items() if rule.allows(term))) == allowed


def test_a_bad_pattern_is_refused_by_name():
    with pytest.raises(ValueError, match=r'sh:pattern "\[a"'):
        read_constraints(turtle=PREFIXES + shape("sh:pattern '[a'"))


def test_the_terms_that_a_table_must_hold():
    assert In("p", (literal(1), "x")).mentioned == {"p", literal(1), "x"}
    assert LessThan("p", ("q",), ("A",), ("n",)).mentioned == {"p", "q", "A", "n"}
    # A bound and a datatype are no terms of the graph.
    assert MinExclusive("p", (literal(1),)).mentioned == {"p"}
    padded = literal(7).replace("7", "007")
    assert Negative("p", ("a", padded)).mentioned == {"p", "a", literal(7)}


@pytest.mark.parametrize(
    "term, allowed",
    [
        (literal(5), True),
        (literal("5"), False),
        (literal(5.0), False),
        (X + "five", False),
        (literal(5).replace("5", "five"), False),  # ill-typed
    ],
)
def test_a_datatype_asks_for_the_form_too(term: str, allowed: bool):
    rule = Datatype("p", (literal(5).split("<")[1].rstrip(">"),))
    assert rule.allows(term) == allowed
    table = Graph.from_triples([(X + "s", X + "p", term)])
    assert rule.allowed(table)[table.ids[term]] == allowed


FORMS = ["0", "1", "-1", "300", "x", "1.5", "NaN", "INF", "true", "2000-01-01"]


@pytest.mark.filterwarnings("ignore:Parsing weird boolean")
@pytest.mark.parametrize(
    "name",
    ["positiveInteger", "negativeInteger", "nonNegativeInteger", "integer", "byte", "unsignedInt",
     "double", "float", "boolean", "date", "dateTime", "string", "anyURI"],
)  # fmt: skip
def test_a_form_that_a_datatype_lacks_is_refused_as_pyshacl_refuses_it(name):
    rule, iri = Datatype(X + "p", (str(XSD[name]),)), XSD[name]
    shapes = Constraints((rule,)).as_shacl()
    for form in FORMS:
        facts = rdflib.Graph()
        facts.add((rdflib.URIRef(X + "s"), rdflib.URIRef(X + "p"), rdflib.Literal(form, None, iri)))
        theirs = pyshacl.validate(facts, shacl_graph=shapes)[0]
        assert rule.allows(f'"{form}"^^<{iri}>') == theirs, form


def test_a_bound_compares_on_its_own_scale_alone():
    rule = MinExclusive("p", (literal(3),))
    terms = [literal(4), literal(3.5), literal(3), literal("4"), X + "four"]
    assert [rule.allows(term) for term in terms] == [True, True, False, False, False]
    table = Graph.from_triples((X + "s", X + "p", term) for term in terms)
    assert [bool(rule.allowed(table)[table.ids[term]]) for term in terms] == [
        rule.allows(term) for term in terms
    ]


def test_a_long_list_and_another_datatype_are_not_read_out():
    assert In("p", tuple(map(str, range(13)))).say(WORDS) == ""
    assert Datatype("p", ("http://www.w3.org/2001/XMLSchema#double",)).say(WORDS) == ""


def test_a_class_of_values_is_said_with_what_keeps_classes_apart():
    rules = [Disjoint.of("Sea", "City"), Disjoint.of("City", "River"), ValueClass("p", ("Sea",))]
    assert rules[2].also_said(rules) == ["disjoint(City, Sea)"]
    assert rules[1].also_said(rules) == []
    assert Disjoint.of("Sea", "City") == Disjoint("City", ("Sea",))


def test_where_members_are_unknown_a_member_of_a_disjoint_class_breaks_it():
    case = CASES["class"]._replace(complete=())
    turtle = PREFIXES + case.turtle + " :Sea owl:disjointWith :River ."
    read = read_constraints(turtle=turtle)
    oracle = Oracle(graph(case), read)
    assert [v.subjects for v in oracle.violations] == [(X + "a",)]
    claims = [triple(text) for text in ("d p y", "d p z", "z a River", "w a River")]
    assert oracle.judge(claims).verdict.tolist() == [C, U, C, U]
    _, report, _ = pyshacl.validate(
        graph(case).to_rdflib(), shacl_graph=read.as_shacl(), inference="none"
    )
    assert set(report.objects(None, SH.focusNode)) == {rdflib.URIRef(X + "a")}


def test_a_range_follows_from_a_datatype_that_has_no_other_values():
    """One cell of cards for both; a whole number need not be positive, nor a member's anybody's."""
    whole, positive = str(XSD.integer), str(XSD.positiveInteger)
    of_all, of_some = Datatype("p", (whole,)), Datatype("p", (whole,), ("C",))
    assert ValueSpace("p", (whole,)).follows_from([of_all])
    assert ValueSpace("p", (str(XSD.decimal),)).follows_from([Datatype("p", (positive,))])
    assert not ValueSpace("p", (positive,)).follows_from([of_all])
    assert not ValueSpace("p", (whole,)).follows_from([of_some])
    assert ValueSpace("p", (whole,), ("C",)).follows_from([of_some])
    assert not of_all.follows_from([ValueSpace("p", (whole,)), of_all])

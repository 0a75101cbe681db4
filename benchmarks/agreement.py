"""Does the oracle agree with pySHACL, pyshifty and rdflib? Random graphs, shapes and claims.

    pip install pyshifty rdflib  # optional: a second engine
    python -m benchmarks agreement

A claim is judged by the definition itself: closed under symmetry, inverses and subclasses, the
graph with the claim has a violation that the graph without it lacks. pySHACL finds the
violations, rdflib says what is stated; the oracle must say the same of every claim. Once with
shapes as written, once with OWL axioms beside them, put into SHACL by `Constraints.as_shacl`. Among
the shapes are some that the oracle compiles and some that it leaves to pySHACL. Where pyshifty is
installed, it judges the same claims. Writes benchmarks/results/agreement.json; the tests of the
oracle run a part of it.
"""

from __future__ import annotations

import importlib.util
import itertools
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyshacl
import rdflib
from rdflib.namespace import OWL, RDF, RDFS, SH

from benchmarks.timing import save
from epistemic.decks.synthetic import make_synthetic
from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.lookup import Verdict, contains
from epistemic.logic.oracle import Oracle
from epistemic.logic.terms import literal, rdflib_term

X = "http://x/"
PREFIXES = """
@prefix : <http://x/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
CLASSES = ["A", "B", "D", "F"]
LINKS = ["p", "q", "r"]
NUMBERS = ["m", "n"]
# Texts with a language stand by themselves: pySHACL finds one less than another, SPARQL doesn't.
TEXTS = ["k"]
LANGUAGES = ['"ja"@de-AT', '"no"@en', '"oui"@fr']
THINGS = ["t0", "t1", "t2", "t3"]


class Source(Protocol):
    """Where random choices come from: NumPy, or hypothesis in a test."""

    def random(self) -> float: ...
    def choice(self, options: list[str]) -> str: ...
    def integers(self, low: int, high: int | None = None) -> int: ...


SLOW_PATHS = [
    "( :p :q )", "[ sh:inversePath :p ]", "[ sh:zeroOrMorePath :p ]",
    "[ sh:alternativePath ( :p :q ) ]", "( [ sh:inversePath :q ] :m )", "[ sh:zeroOrOnePath :p ]",
]  # fmt: skip


def random_slow_shape(rng: Source, number: int) -> str:
    """A shape of a sort that the oracle leaves to pySHACL."""
    one, other = rng.choice(CLASSES), rng.choice(CLASSES)
    link, value = rng.choice(LINKS), rng.choice(NUMBERS)
    asked = rng.choice(
        [f"sh:class :{one}", "sh:maxCount 1", "sh:nodeKind sh:IRI", f"sh:not [ sh:class :{one} ]"]
    )
    bodies = [
        f"sh:property [ sh:path :{link} ; sh:or ( [ sh:class :{one} ] [ sh:in ( :t0 ) ] ) ]",
        f"sh:property [ sh:path :{link} ; sh:not [ sh:class :{one} ] ; sh:maxCount 2 ]",
        f"sh:property [ sh:path :{link} ; sh:xone ( [ sh:class :{one} ] [ sh:class :{other} ] ) ]",
        f"sh:property [ sh:path {rng.choice(SLOW_PATHS)} ; {asked} ]",
        f"sh:closed true ; sh:ignoredProperties ( rdf:type :{link} ) ; "
        f"sh:property [ sh:path :{value} ; sh:maxCount 2 ]",
        f"sh:property [ sh:path :{value} ; sh:lessThanOrEquals :m ]",
        f"sh:property [ sh:path :{link} ; sh:equals :q ]",
        f"sh:property [ sh:path :{link} ; sh:node [ sh:property "
        f"[ sh:path :{rng.choice(LINKS)} ; sh:maxCount 1 ; sh:or ( [ sh:class :{one} ] ) ] ] ]",
        f"sh:property [ sh:path :{link} ; sh:qualifiedMaxCount 1 ; "
        f"sh:qualifiedValueShape [ sh:class :{one} ] ]",
        f"sh:property :P{number} . :P{number} a sh:PropertyShape ; sh:path :k ; "
        "sh:uniqueLang true ; sh:maxCount 2",
        f"sh:not [ sh:property [ sh:path :{link} ; sh:minCount 1 ] ]",
        f"sh:and ( [ sh:class :{one} ] [ sh:nodeKind sh:IRI ] )",
        f'sh:sparql [ sh:select "SELECT $this WHERE {{ $this <{X}{link}> ?o . '
        f'?o <{X}{rng.choice(LINKS)}> $this }}" ]',
    ]
    target = rng.choice(
        [f"sh:targetClass :{other}", f"sh:targetNode :{rng.choice(THINGS)}",
         f"sh:targetSubjectsOf :{link}", f"sh:targetObjectsOf :{rng.choice(LINKS)}"]
    )  # fmt: skip
    return f":S{number} a sh:NodeShape ; {target} ; {rng.choice(bodies)} ."


def random_axioms(rng: Source, shacl_only: bool) -> str:
    def chance(share: float) -> bool:
        return bool(rng.random() < share)

    lines = []
    if chance(0.5):
        lines.append(f":{rng.choice(CLASSES)} rdfs:subClassOf :F .")
    if not shacl_only:
        for p in LINKS:
            for kind in (
                "Functional",
                "InverseFunctional",
                "Symmetric",
                "Asymmetric",
                "Irreflexive",
            ):
                if chance(0.15):
                    lines.append(f":{p} a owl:{kind}Property .")
        if chance(0.4):
            lines.append(":p owl:inverseOf :q .")
        if chance(0.5):
            lines.append(":A owl:disjointWith :B .")
        if chance(0.3):
            lines.append("[] a owl:AllDisjointClasses ; owl:members (:B :D) .")
        if chance(0.3):
            lines.append(f":{rng.choice(NUMBERS)} a owl:FunctionalProperty .")
        if chance(0.3):
            s, p = rng.choice(THINGS), rng.choice(NUMBERS)
            lines.append(
                f"[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :{s} ; "
                f"owl:assertionProperty :{p} ; owl:targetValue {rng.integers(-1, 5)} ."
            )
        if chance(0.3):
            kind = rng.choice(["integer", "decimal", "nonNegativeInteger", "double", "string"])
            lines.append(f":{rng.choice(NUMBERS)} rdfs:range xsd:{kind} .")
        for _ in range(rng.integers(3)):
            s, o, p = rng.choice(THINGS), rng.choice(THINGS), rng.choice(LINKS)
            lines.append(
                f"[] a owl:NegativePropertyAssertion ; owl:sourceIndividual :{s} ; "
                f"owl:assertionProperty :{p} ; owl:targetIndividual :{o} ."
            )
    for _ in range(rng.integers(1, 4)):
        path = rng.choice(LINKS + NUMBERS + TEXTS)
        target = [
            f"sh:targetClass :{rng.choice(CLASSES)}",
            f"sh:targetNode :{rng.choice(THINGS)}",
            f"sh:targetSubjectsOf :{path}",
            f"sh:targetClass :{rng.choice(CLASSES)}, :{rng.choice(CLASSES)}",
        ][rng.integers(4)]
        parts = []
        if chance(0.4):
            parts.append(f"sh:maxCount {rng.integers(1, 3)}")
        if path in LINKS:
            if chance(0.6):
                parts.append(f"sh:class :{rng.choice(CLASSES)}")
            if chance(0.2):
                parts.append("sh:in (:t0 :t1 :t2)")
            if chance(0.2):
                parts.append(f"sh:disjoint :{rng.choice(LINKS)}")
            if chance(0.2):
                parts.append(f"sh:nodeKind sh:{rng.choice(['IRI', 'BlankNodeOrIRI', 'Literal'])}")
        elif path in TEXTS:
            if chance(0.4):
                parts.append("sh:languageIn ( 'de' 'EN' )")
            if chance(0.3):
                parts.append(f"sh:{rng.choice(['min', 'max'])}Length {rng.integers(2, 4)}")
        else:
            if chance(0.3):
                parts.append(f"sh:datatype xsd:{rng.choice(['integer', 'double', 'string'])}")
            if chance(0.2):
                parts.append("sh:in (0 1 2 '2' 3.0e0)")
            if chance(0.4):
                bound = rng.choice(["minInclusive", "minExclusive", "maxInclusive", "maxExclusive"])
                parts.append(f"sh:{bound} {rng.integers(0, 4)}")
            if chance(0.2):
                parts.append(f"sh:pattern '{rng.choice(['^[0-9]+$', '[jN]'])}' ; sh:flags 'i'")
            if chance(0.2):
                parts.append(f"sh:{rng.choice(['min', 'max'])}Length 2")
            if chance(0.5):
                parts.append(f"sh:lessThan :{'n' if path == 'm' else 'm'}")
        lines.append(
            f"[] a sh:NodeShape ; {target} ; sh:property [sh:path :{path}; {'; '.join(parts)}] ."
        )
    lines += [random_slow_shape(rng, number) for number in range(rng.integers(3))]
    return PREFIXES + "\n".join(lines)


def random_number(rng: Source) -> str:
    number = int(rng.integers(-1, 5))
    kind = rng.integers(5)
    return literal(float(number)) if kind == 0 else literal("2") if kind == 1 else literal(number)


def random_triple(rng: Source) -> tuple[str, str, str]:
    subject = X + str(rng.choice(THINGS))
    sort = rng.random()
    if sort < 0.25:
        return subject, TYPE, X + str(rng.choice(CLASSES))
    if sort < 0.6:
        return subject, X + str(rng.choice(LINKS)), X + str(rng.choice(THINGS))
    if sort < 0.7:
        return subject, X + str(rng.choice(TEXTS)), str(rng.choice(LANGUAGES))
    return subject, X + str(rng.choice(NUMBERS)), random_number(rng)


def close(graph: rdflib.Graph, axioms: rdflib.Graph) -> rdflib.Graph:
    """Symmetry, inverses and subclasses to a fixed point, straight from the axioms."""
    closed = rdflib.Graph()
    closed += graph
    while True:
        fresh = set()
        for s, p, o in closed:
            if isinstance(o, rdflib.Literal):
                continue
            if (p, RDF.type, OWL.SymmetricProperty) in axioms:
                fresh.add((o, p, s))
            for q in itertools.chain(
                axioms.objects(p, OWL.inverseOf), axioms.subjects(OWL.inverseOf, p)
            ):
                fresh.add((o, q, s))
            if p == RDF.type:
                fresh |= {(s, p, parent) for parent in axioms.objects(o, RDFS.subClassOf)}
        fresh -= set(closed)
        if not fresh:
            return closed
        for entry in fresh:
            closed.add(entry)


Engine = Callable[[rdflib.Graph, rdflib.Graph], rdflib.Graph]
"""(data, shapes) -> a validation report."""


def by_pyshacl(data: rdflib.Graph, shapes: rdflib.Graph) -> rdflib.Graph:
    return pyshacl.validate(data, shacl_graph=shapes, inference="none", advanced=False)[1]


def by_shifty(data: rdflib.Graph, shapes: rdflib.Graph) -> rdflib.Graph:
    import shifty

    with warnings.catch_warnings(
        action="ignore"
    ):  # of parameters that stand where they ask nothing
        return shifty.validate(data, shapes, graph_mode="data", infer=False)[1]


def violations(report: rdflib.Graph) -> set[tuple[object, ...]]:
    """(focus node, shape, component, value, path) of each result."""
    keys = (SH.focusNode, SH.sourceShape, SH.sourceConstraintComponent, SH.value)
    return {
        (
            *(report.value(result, key) for key in keys),
            _path_text(report, report.value(result, SH.resultPath)),
        )
        for result in report.objects(None, SH.result)
    }


def _path_text(report: rdflib.Graph, path: rdflib.term.Node | None) -> str:
    """A path, whatever its blank nodes are called."""
    if not isinstance(path, rdflib.BNode):
        return str(path)
    return str(sorted((p, _path_text(report, o)) for p, o in report.predicate_objects(path)))


def with_names(shapes: rdflib.Graph) -> rdflib.Graph:
    """Shapes, each with a name: engines call one without another thing in each report."""
    paths = (SH.inversePath, SH.alternativePath, SH.zeroOrMorePath, SH.zeroOrOnePath)
    names = {
        s: rdflib.URIRef(f"urn:shape:{s}")
        for s, p in shapes.subject_predicates()
        if isinstance(s, rdflib.BNode) and str(p).startswith(str(SH)) and p not in paths
    }
    named = rdflib.Graph()
    for s, p, o in shapes:
        named.add((names.get(s, s), p, names.get(o, o)))
    return named


def verdicts_by(
    engine: Engine, facts: list, claims: list, axioms: rdflib.Graph, shapes: rdflib.Graph
) -> list[Verdict]:
    """The definition itself: closed graph with the claim against closed graph without."""

    def closed(triples: list) -> rdflib.Graph:
        graph = rdflib.Graph()
        for entry in triples:
            s, p, o = map(rdflib_term, entry)
            graph.add((s, p, o))
        return close(graph, axioms)

    named = with_names(shapes)
    before = closed(facts)
    broken = violations(engine(before, named))
    found = []
    for claim in claims:
        s, p, o = map(rdflib_term, claim)
        if (s, p, o) in before:
            found.append(Verdict.ENTAILED)
            continue
        new = violations(engine(closed([*facts, claim]), named)) - broken
        found.append(Verdict.CONTRADICTORY if new else Verdict.UNKNOWN)
    return found


class Comparison(NamedTuple):
    """What a comparison found.

    Attributes:
      disagreements: (seed, claim, the oracle's verdict, the engine's, axioms, facts).
      verdicts: i64[3], how often each verdict fell.
      reasons: kind of constraint -> how often it was what the oracle found broken.
    """

    disagreements: list[tuple[Any, ...]]
    verdicts: np.ndarray
    reasons: Counter[str]


def compare(
    seeds: range, claims_each: int, shacl_only: bool, engine: Engine = by_pyshacl
) -> Comparison:
    """Judge claims about one random graph a seed with the oracle and with an engine."""
    found, verdicts, reasons = [], [], Counter[str]()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        turtle = random_axioms(rng, shacl_only)
        complete = CLASSES if shacl_only else [c for c in CLASSES if rng.random() < 0.5]
        axioms = rdflib.Graph().parse(data=turtle, format="turtle")
        constraints = read_constraints(turtle=turtle, complete=[X + name for name in complete])
        facts = [random_triple(rng) for _ in range(rng.integers(3, 14))]
        claims = [random_triple(rng) for _ in range(claims_each)]
        oracle = Oracle(Graph.from_triples(facts), constraints)
        shapes = axioms if shacl_only else constraints.as_shacl() + constraints.slow.graph
        expected = verdicts_by(engine, facts, claims, axioms, shapes)
        judgement = oracle.judge(claims)
        verdicts += expected
        broken = judgement.proof[judgement.verdict == Verdict.CONTRADICTORY, 0]
        reasons.update(
            oracle.compiled.names[name].split("(")[0] if name >= 0 else "pySHACL"
            for name in broken.tolist()
        )
        found += [
            (seed, claim, Verdict(v).name, e.name, turtle, facts)
            for claim, v, e in zip(claims, judgement.verdict, expected, strict=True)
            if v != e
        ]
    return Comparison(found, np.bincount(verdicts, minlength=3), reasons)


def membership(claims: int, seed: int = 0) -> tuple[int, float]:
    """On how many claims about made-up rivers the oracle and rdflib differ on whether they are
    stated, and the share that is."""
    made = make_synthetic(5_000, seed=3)
    oracle = Oracle(made.graph)
    rng = np.random.default_rng(seed)
    asked = oracle.graph.triples[rng.integers(len(made.graph), size=claims)].copy()
    asked[::2, 2] = asked[rng.permutation(len(asked[::2])) * 2, 2]
    theirs = made.graph.to_rdflib()
    nodes = [rdflib_term(term) for term in oracle.graph.terms]
    expected = np.array([tuple(nodes[i] for i in claim) in theirs for claim in asked.tolist()])
    ours = np.asarray(contains(oracle.compiled.lookup, asked))
    return int((ours != expected).sum()), float(expected.mean())


def main() -> None:
    """20,000 claims for pySHACL, half with shapes alone, as many for pyshifty and for rdflib."""
    logging.disable(logging.WARNING)  # rdflib tells of each ill-typed literal, with a trace
    engines: dict[str, Engine] = {"pySHACL": by_pyshacl}
    if importlib.util.find_spec("shifty"):
        engines["pyshifty"] = by_shifty
    results: dict[str, Any] = {"versions": {name: version(name.lower()) for name in engines}}
    modes = (("shapes as written", True), ("shapes and OWL", False))
    for (name, engine), (mode, shacl_only) in itertools.product(engines.items(), modes):
        start = time.perf_counter()
        found = compare(range(1_000, 1_500), 20, shacl_only, engine)
        results[f"{name} on {mode}"] = {
            "graphs": 500,
            "claims": int(found.verdicts.sum()),
            "verdicts": {v.name.lower(): int(n) for v, n in zip(Verdict, found.verdicts)},  # noqa: B905
            "broken": dict(sorted(found.reasons.items())),
            "disagreements": len(found.disagreements),
            "seconds": time.perf_counter() - start,
        }
        for disagreement in found.disagreements[:5]:
            print(*disagreement, sep="\n")
    differ, stated = membership(20_000)
    results["rdflib on membership"] = {"claims": 20_000, "stated": stated, "disagreements": differ}
    save("agreement", results, "claims on which the oracle and the other engine differ: none may")


if __name__ == "__main__":
    main()

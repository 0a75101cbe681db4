"""The W3C's SHACL test suite: does the oracle find what pySHACL finds in it?

    python -m benchmarks w3c FOLDER

FOLDER holds the suite's core tests, as pySHACL's source distribution does:

    pip download --no-deps --no-binary :all: pyshacl==0.40.1
    tar xzf pyshacl-0.40.1.tar.gz
    python -m benchmarks w3c pyshacl-0.40.1/test/resources/sht_tests/core

Each triple of a test's data is a claim about the data without it. pySHACL, run on the whole graph
with and without the claim, is the reference: a violation that is new contradicts the claim. Every
class is declared complete, since SHACL takes what isn't stated for false. What remains different by
design is listed with its reason: a shape that asks for a value is not broken by its absence, since
the value may still be said. Writes benchmarks/results/w3c.json.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import pyshacl
import rdflib
from rdflib.namespace import OWL, RDF, RDFS, SH

from benchmarks.timing import save
from epistemic.logic.constraints import constraints_of
from epistemic.logic.graph import Graph
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.logic.parsing import parse_triples
from epistemic.logic.shapes import as_open_world
from epistemic.logic.slow import Triple
from epistemic.logic.terms import rdflib_term

MF = rdflib.Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
SHT = rdflib.Namespace("http://www.w3.org/ns/shacl-test#")
# A claim with one of these says what classes there are; the oracle reads it with the shapes.
_AXIOMS = {RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range, OWL.imports}
_KEYS = (SH.focusNode, SH.sourceShape, SH.sourceConstraintComponent, SH.resultPath, SH.value)


class Test(NamedTuple):
    """One test: its name and the files of its data and of its shapes."""

    name: str
    data: Path
    shapes: Path


@dataclass(frozen=True)
class Outcome:
    """One claim.

    Attributes:
      test: its name.
      claim: as text.
      contradicted: whether pySHACL finds a new violation with it.
      verdict: the oracle's, or "error".
      by_design: why they differ, where they do so by design.
    """

    test: str
    claim: str
    contradicted: bool
    verdict: str
    by_design: str = ""

    @property
    def agrees(self) -> bool:
        return self.verdict in ("E", "U") if not self.contradicted else self.verdict == "C"


def tests(folder: Path) -> list[Test]:
    """The tests below a folder, in order of their files."""
    found = []
    for path in sorted(folder.rglob("*.ttl")):
        source = _graph(_triples(path))
        for entry in sorted(source.subjects(RDF.type, SHT.Validate), key=str):
            action = source.value(entry, MF.action)
            files = [_file(source.value(action, key)) for key in (SHT.dataGraph, SHT.shapesGraph)]
            name = f"{path.parent.name}/{path.stem}"
            found.append(Test(name, *files))
    if not found:
        raise ValueError(f"{folder}: no file in it describes a sht:Validate test")
    return found


def _file(name: rdflib.term.Node | None) -> Path:
    path = Path(str(name).removeprefix("file://"))
    return path if path.suffix else path.with_suffix(".ttl")


def _triples(path: Path) -> list[Triple]:
    return list(parse_triples(path))


def _graph(triples: list[Triple]) -> rdflib.Graph:
    graph = rdflib.Graph()
    for triple in triples:
        s, p, o = map(rdflib_term, triple)
        graph.add((s, p, o))
    return graph


def claims(triples: list[Triple]) -> list[Triple]:
    """The triples of a file that are data: no part of a shape, of the manifest or of an axiom."""
    graph = _graph(triples)
    told = (str(SH), str(MF), str(SHT))
    described = {s for s, p, _ in graph if str(p).startswith(told)}
    described |= {s for s, _, o in graph if str(o).startswith(told)}
    waiting = list(described)
    while waiting:
        for thing in graph.objects(waiting.pop()):
            if isinstance(thing, rdflib.BNode) and thing not in described:
                described.add(thing)
                waiting.append(thing)
    return [
        triple
        for triple in triples
        if rdflib_term(triple[0]) not in described and rdflib.URIRef(triple[1]) not in _AXIOMS
    ]


def violations(data: rdflib.Graph, shapes: rdflib.Graph) -> set[tuple[object, ...]]:
    """(focus node, shape, component, path, value) of each of pySHACL's results."""
    _, report, text = pyshacl.validate(data, shacl_graph=shapes + rdflib.Graph(), inference="none")
    if not isinstance(report, rdflib.Graph):
        raise ValueError(text)
    return {
        tuple(report.value(result, key) for key in _KEYS)
        for result in report.objects(None, SH.result)
    }


def judge(test: Test) -> Iterator[Outcome]:
    """Every claim of a test."""
    data, shapes = _triples(test.data), _graph(_triples(test.shapes))
    complete = sorted({str(name) for name in shapes.objects(None, SH["class"])})
    # Of the vocabulary SHACL reads rdfs:subClassOf alone.
    source = shapes + _graph(data)
    for axiom in _AXIOMS - {RDFS.subClassOf}:
        source.remove((None, axiom, None))
    constraints = constraints_of(source, complete)
    open_world = as_open_world(shapes, constraints.hierarchy)
    whole, every = _graph(data), violations(_graph(data), shapes)
    for claim in claims(data):
        rest = [triple for triple in data if triple != claim]
        without = _graph(rest)
        new = every - violations(without, shapes)
        by_design = ""
        if new and not violations(whole, open_world) - violations(without, open_world):
            asked = {str(key[2]).removeprefix(str(SH)) for key in new}
            by_design = f"{', '.join(sorted(asked))}: what is asked for may still be said"
        try:
            verdict = Oracle(Graph.from_triples(rest), constraints).judge([claim]).verdict[0]
            said = Verdict(verdict).label
        except Exception as error:  # whatever it is, it is what this looks for
            said = f"error: {error}"
        yield Outcome(test.name, " ".join(claim), bool(new), said, by_design)


def main(folder: str = "") -> None:
    """All of the suite; prints what differs."""
    if not folder:
        raise SystemExit("python -m benchmarks w3c FOLDER: where are the suite's core tests?")
    logging.disable(logging.WARNING)  # rdflib tells of each ill-typed literal, with a trace
    outcomes: list[Outcome] = []
    for test in tests(Path(folder)):
        outcomes += judge(test)
        print(test.name, len(outcomes), flush=True)
    differ = [o for o in outcomes if not o.agrees]
    by_design = [o for o in differ if o.by_design]
    faults = [o for o in differ if not o.by_design]
    for outcome in faults:
        print(outcome)
    for reason, number in Counter(o.by_design for o in by_design).items():
        print(f"{number} by design: {reason}")
    results = {
        "pyshacl": pyshacl.__version__,
        "tests": len({o.test for o in outcomes}),
        "claims": len(outcomes),
        "contradicted": sum(o.contradicted for o in outcomes),
        "found": sum(o.contradicted and o.agrees for o in outcomes),
        "errors": sum(o.verdict.startswith("error") for o in outcomes),
        "by_design": [asdict(o) for o in by_design],
        "disagreements": [asdict(o) for o in faults],
    }
    print({key: value for key, value in results.items() if isinstance(value, int)})
    note = "claims of the W3C's SHACL core tests: what the oracle and pySHACL say of each"
    save("w3c", results, note)

"""SHACL engines behind one door: a graph and shapes as texts, then claims as text to a report.

The oracle stands among them. An engine keeps what its interface lets it keep between batches: the
shapes always, the graph where more can be added to it. Engines of other packages are the extra
`engines`, and are imported where they are made.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyshacl
import rdflib
from rdflib.namespace import SH

from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import Graph
from epistemic.logic.lines import term_of, token, tokens_of
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Judgement, Oracle

Key = tuple[str, str]
"""Subject and predicate of a claim, or focus node and path of a violation, as IRIs."""


class Task(NamedTuple):
    """What every engine is given.

    Attributes:
      graph: N-Triples, closed under its logic.
      shapes: Turtle.
      complete: IRIs of classes whose members are all typed, for the oracle: all of them, which is
        how SHACL reads `sh:class`.
    """

    graph: str
    shapes: str
    complete: tuple[str, ...]


class Engine(Protocol):
    """Made from a task; then asked about one batch of claims after the other."""

    def ask(self, claims: str) -> Any:
        """The engine's own report on claims, N-Triples, beside a graph without violations."""

    def broken(self, report: Any, claims: str) -> set[Key]:
        """Which claims the report finds broken; for comparison, and not timed."""


class OracleEngine:
    """Ours."""

    def __init__(self, task: Task):
        found = tokens_of(task.graph)
        triples = zip(*(map(term_of, found[column::4]) for column in range(3)), strict=True)
        constraints = read_constraints(turtle=task.shapes, complete=task.complete)
        if len(constraints.slow):
            raise ValueError(f"shapes left to pySHACL: {constraints.slow.names}")
        self._oracle = Oracle(Graph.from_triples(triples), constraints)

    def ask(self, claims: str) -> Judgement:
        return self._oracle.judge_text(claims)

    def broken(self, report: Judgement, claims: str) -> set[Key]:
        tokens = tokens_of(claims)
        contradicted = np.flatnonzero(report.verdict == Verdict.CONTRADICTORY).tolist()
        return {(term_of(tokens[4 * i]), term_of(tokens[4 * i + 1])) for i in contradicted}


class PySHACL:
    """Keeps the graph; claims are added and taken away again."""

    def __init__(self, task: Task):
        self._graph = rdflib.Graph().parse(data=task.graph, format="nt")
        self._shapes = rdflib.Graph().parse(data=task.shapes, format="turtle")

    def ask(self, claims: str) -> rdflib.Graph:
        fresh = rdflib.Graph().parse(data=claims, format="nt") - self._graph
        for triple in fresh:
            self._graph.add(triple)
        _, report, _ = pyshacl.validate(
            self._graph, shacl_graph=self._shapes, inference="none", advanced=False
        )
        for triple in fresh:
            self._graph.remove(triple)
        return report

    def broken(self, report: rdflib.Graph, claims: str) -> set[Key]:
        return {
            (str(report.value(result, SH.focusNode)), str(report.value(result, SH.resultPath)))
            for result in report.objects(None, SH.result)
        }


class Rudof:
    """Keeps the graph; claims are staged and rolled back."""

    def __init__(self, task: Task):
        import pyrudof

        self._format = pyrudof.RDFFormat.NTriples
        self._rudof = pyrudof.Rudof(pyrudof.RudofConfig())
        self._rudof.read_data(task.graph, self._format)
        self._rudof.read_shacl(task.shapes)

    def ask(self, claims: str) -> Any:
        self._rudof.begin_staging()
        self._rudof.read_data(claims, self._format, merge=True)
        report = self._rudof.validate_shacl()
        self._rudof.rollback_staging()
        return report

    def broken(self, report: Any, claims: str) -> set[Key]:
        return {(found.focus_node, found.path) for found in report.violations}


class Shifty:
    """Keeps the shapes; the graph is read anew with each batch."""

    def __init__(self, task: Task):
        from shifty._shifty import PreparedValidator

        self._task = task
        self._validator: Any = PreparedValidator(shapes=task.shapes.encode())

    def ask(self, claims: str) -> Any:
        return self._validator.validate_algebra(
            data=(self._task.graph + claims).encode(),
            data_format="ntriples",
            graph_mode="data",
            run_infer=False,
            sort_results=False,
        )

    def broken(self, report: Any, claims: str) -> set[Key]:
        # Where two paths are compared, the first one stands in the message alone.
        first = re.compile("<[^>]*>")
        return {
            (
                term_of(violation.focus_node),
                term_of(reason.path or first.findall(reason.message)[0]),
            )
            for violation in report.violations
            for reason in violation.reasons
        }


class Shacl:
    """Keeps the shapes; the graph is read anew with each batch."""

    def __init__(self, task: Task):
        import shacl

        self._task = task
        self._shapes = shacl.Shapes.from_turtle(task.shapes)

    def ask(self, claims: str) -> Any:
        return self._shapes.validate_text(self._task.graph + claims, "ntriples")

    def broken(self, report: Any, claims: str) -> set[Key]:
        return {(term_of(found.focus_node), term_of(found.path)) for found in report.results}


class ShaclRust:
    """Reads shapes and graph anew with each batch; its interned index is the faster way."""

    def __init__(self, task: Task):
        import shacl_rust

        self._task = task
        self._validate = shacl_rust.validate

    def ask(self, claims: str) -> Any:
        return self._validate(
            self._task.graph + claims,
            self._task.shapes,
            data_format="nt",
            experimental_index=True,
        )

    def broken(self, report: Any, claims: str) -> set[Key]:
        found = report["results"]
        return {(term_of(one["focusNode"]), term_of(one["resultPath"])) for one in found}


class Package(NamedTuple):
    """An engine: the distribution that holds it, its module and what makes it."""

    distribution: str
    module: str
    make: type[Engine]


OURS = "oracle"
ENGINES: dict[str, Package] = {
    OURS: Package("goodharts-jax", "epistemic", OracleEngine),
    "pySHACL": Package("pyshacl", "pyshacl", PySHACL),
    "pyrudof": Package("pyrudof", "pyrudof", Rudof),
    "pyshifty": Package("pyshifty", "shifty", Shifty),
    "shacl": Package("shacl", "shacl", Shacl),
    "shacl-rust": Package("shacl-rust", "shacl_rust", ShaclRust),
}


def written(claims: Sequence[tuple[str, str, str]]) -> str:
    """Triples of texts as N-Triples."""
    return "".join(f"{token(s)} {token(p)} {token(o)} .\n" for s, p, o in claims)

"""Claims judged by pySHACL, for the shapes that aren't compiled.

pySHACL runs in a process of its own, which is told the graph once and then claims one by one: it
looks at those terms alone that a claim can matter to, and it can be stopped, whatever a query does.
Nothing here imports JAX, so that the process is up in a second.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import rdflib
from pyshacl.errors import ReportableRuntimeError
from pyshacl.pytypes import SHACLExecutor
from pyshacl.shape import Shape
from pyshacl.shapes_graph import ShapesGraph
from rdflib.namespace import RDF, RDFS, SH
from rdflib.term import Node
from rich.console import Console

from epistemic.logic.scopes import Scope, first_line, scopes
from epistemic.logic.terms import last_segment, rdflib_term
from evidence.runtime.progress import bar

Triple = tuple[str, str, str]
"""(subject, predicate, object) as texts, see `epistemic.logic.terms`."""

_TYPE = str(RDF.type)


class SlowShapes:
    """The shapes that are left to pySHACL, as an open world reads them.

    Args:
      graph: the shapes.
      minutes: what pySHACL may take for all claims together.

    Attributes:
      scopes: of each shape with a target.
      seconds_left: of the minutes.

    Raises:
      ValueError: pySHACL can't read the shapes.
    """

    def __init__(self, graph: rdflib.Graph | None = None, minutes: float = 10.0):
        self.graph = rdflib.Graph() if graph is None else graph
        self.minutes = minutes
        self.seconds_left = 60 * minutes
        self.scopes = scopes(self.graph) if len(self.graph) else []

    def __len__(self) -> int:
        return len(self.scopes)

    @property
    def names(self) -> str:
        """The shapes as a message calls them."""
        named = [
            last_segment(str(s.shape)) for s in self.scopes if isinstance(s.shape, rdflib.URIRef)
        ]
        rest = len(self) - len(named[:5])
        return ", ".join([*named[:5], *([f"{rest} more"] if rest and named else [])]) or f"{rest}"

    def concern(self, triples: Iterable[Triple]) -> bool:
        """Whether triples that are new can break any of the shapes."""
        said = {o if p == _TYPE else p for _, p, o in triples} | {p for _, p, _ in triples}
        return any(scope.terms is None or said & scope.terms for scope in self.scopes)


# ---- in the process of its own ----


class _Checker:
    """A graph and shapes; which claims break a shape that the graph alone doesn't.

    Args:
      triples: all that the graph says, stated or inferred.
      shapes: N-Triples.
    """

    def __init__(self, triples: Iterable[Triple], shapes: rdflib.Graph, scopes: Sequence[Scope]):
        self._graph = rdflib.Graph()
        for triple in triples:
            self._graph.add(_nodes(triple))
        self._shapes = ShapesGraph(shapes)
        self._scopes = [
            (self._shapes.lookup_shape_from_node(scope.shape), scope)
            for scope in scopes
            if self._shapes.shapes
        ]
        self._known: dict[tuple[Node, Node], frozenset[Any]] = {}

    def breaks(self, claim: Sequence[Triple]) -> bool:
        """Whether the graph with these triples has a violation that it lacks without."""
        fresh = [nodes for nodes in map(_nodes, claim) if nodes not in self._graph]
        said = {str(o if p == RDF.type else p) for _, p, o in fresh} | {str(p) for _, p, _ in fresh}
        concerned = [(s, c) for s, c in self._scopes if c.terms is None or said & c.terms]
        for triple in fresh:
            self._graph.add(triple)
        ends = {term for s, _, o in fresh for term in (s, o)}
        after: list[tuple[Shape, Node, frozenset[Any]]] = []
        try:
            for shape, scope in concerned:
                for node in self._near(shape, scope, ends):
                    after.append((shape, node, self._violations(shape, node)))
        finally:
            for triple in fresh:
                self._graph.remove(triple)
        new = {key for shape, node, found in after for key in found - self._before(shape, node)}
        return bool(new) and bool(new - self._elsewhere({key[0] for key in new}))

    def _elsewhere(self, looked_at: set[Node]) -> set[Any]:
        """What these terms break already, whichever term a shape reached them from."""
        return {
            key
            for shape, scope in self._scopes
            for node in self._near(shape, scope, looked_at)
            for key in self._before(shape, node)
        }

    def _before(self, shape: Shape, node: Node) -> frozenset[Any]:
        """What a term breaks already; a term that the shape doesn't look at yet breaks nothing."""
        key = (shape.node, node)
        if key not in self._known:
            looked_at = self._targets(shape, [node])
            self._known[key] = self._violations(shape, node) if looked_at else frozenset()
        return self._known[key]

    def _near(self, shape: Shape, scope: Scope, ends: Iterable[Node]) -> list[Node]:
        """The terms that the shape looks at and whose verdict can rest on triples of `ends`."""
        if scope.reach is None:
            return list(shape.focus_nodes(self._graph))
        reached = set(ends)
        edge = reached
        for _ in range(scope.reach):
            edge = {other for term in edge for other in self._neighbours(term, scope)} - reached
            reached = reached | edge
        return self._targets(shape, reached)

    def _neighbours(self, term: Node, scope: Scope) -> set[Node]:
        def links(predicate: Node) -> bool:
            return scope.terms is None or str(predicate) in scope.terms

        return {o for p, o in self._graph.predicate_objects(term) if links(p)} | {
            s for s, p in self._graph.subject_predicates(term) if links(p)
        }

    def _targets(self, shape: Shape, terms: Iterable[Node]) -> list[Node]:
        """Those of the terms that the shape looks at."""
        nodes, classes, implicit, objects_of, subjects_of = map(set, shape.target())
        kinds = {
            below
            for name in classes | implicit
            for below in self._graph.transitive_subjects(RDFS.subClassOf, name)
        }
        return [
            term
            for term in terms
            if term in nodes
            or any((term, RDF.type, name) in self._graph for name in kinds)
            or any((term, predicate, None) in self._graph for predicate in subjects_of)
            or any((None, predicate, term) in self._graph for predicate in objects_of)
        ]

    def _violations(self, shape: Shape, node: Node) -> frozenset[Any]:
        """(focus node, shape, component, path, value) of each of pySHACL's results."""
        focus: Any = [node]
        _, reports = shape.validate(SHACLExecutor(), self._graph, focus=focus)
        return frozenset(_key(result, triples) for _, result, triples in reports)


_KEYS = (SH.focusNode, SH.sourceShape, SH.sourceConstraintComponent, SH.resultPath, SH.value)


def _key(result: Node, triples: Iterable[tuple[Node, Node, Any]]) -> tuple[Any, ...]:
    """What tells a result from others; pySHACL names nodes with the graph that they are of."""
    said = {p: o[1] if isinstance(o, tuple) else o for s, p, o in triples if s == result}
    return tuple(said.get(key) for key in _KEYS)


def _nodes(triple: Triple) -> tuple[Node, Node, Node]:
    s, p, o = map(rdflib_term, triple)
    return s, p, o


# After so many seconds people are told how long it will take, unless that is less than so many.
_MOMENT, _SOON = 1.0, 5.0
_READY, _BROKEN, _KEPT, _FAILED = b"R", b"B", b"K", b"F"


def serve() -> None:
    """Answer what comes on standard input: a graph with shapes, or claims; a byte each."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    logging.disable(logging.WARNING)  # rdflib tells of each ill-typed literal, with a trace
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    checker: _Checker | None = None
    while True:
        try:
            message = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if isinstance(message, list):
                for claim in message:
                    assert checker is not None
                    answers.write(_BROKEN if checker.breaks(claim) else _KEPT)
            else:
                checker = _Checker(*message)
                answers.write(_READY)
        except (ReportableRuntimeError, ValueError) as error:
            answers.write(_FAILED + first_line(error).encode())
            return


def _end_with(parent: int) -> None:
    """A query that never ends must not outlive who asked."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


# ---- on this side ----


class _Process:
    """pySHACL's process, and the graph that it was told last."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        self._told: object = None

    def tell(self, key: object, message: object, seconds: float) -> bool:
        """Have it read a graph with shapes, unless it has; whether it did in time."""
        if self._running is not None and self._told is key:
            return True
        if self._running is None:
            path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
            self._running = subprocess.Popen(
                [sys.executable, "-c", "from epistemic.logic.slow import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=True,  # a Ctrl-C is for this process
            )
        self._told = key
        self.send(message)
        if self.read(seconds) is None:
            self.stop()
            return False
        return True

    def send(self, message: object) -> None:
        assert self._running is not None and self._running.stdin is not None
        pickle.dump(message, self._running.stdin)
        self._running.stdin.flush()

    def read(self, seconds: float) -> bytes | None:
        """The next byte; None where none came in time."""
        assert self._running is not None and self._running.stdout is not None
        pipe = self._running.stdout.fileno()
        if not select.select([pipe], [], [], max(0.0, seconds))[0]:
            return None
        byte = os.read(pipe, 1)
        if byte in (_FAILED, b""):
            said = self._running.stdout.read().decode()
            self.stop()
            raise ValueError(f"pySHACL can't judge by the shapes left to it: {said or 'it ended'}")
        return byte

    def stop(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
        self._running = self._told = None


_process = _Process()
atexit.register(_process.stop)


class SlowJudge:
    """Asks pySHACL about claims.

    Args:
      shapes: those that aren't compiled.
      triples: all that the graph says, stated or inferred.
    """

    def __init__(self, shapes: SlowShapes, triples: Iterable[Triple]):
        self._shapes = shapes
        self._message = (list(triples), shapes.graph, shapes.scopes)

    def breaks(self, claims: Sequence[Sequence[Triple]]) -> list[bool]:
        """Of each claim, given as all that it says: whether it breaks a shape.

        What takes longer than a moment is announced with an estimate and shown by a bar.

        Raises:
          ValueError: the time is up, or pySHACL can't read the shapes.
        """
        shapes, found = self._shapes, list[bool]()
        started = time.monotonic()
        limit = started + shapes.seconds_left
        try:
            if shapes.seconds_left <= 0 or not _process.tell(
                self, self._message, shapes.seconds_left
            ):
                raise ValueError(_too_long(shapes, 0, len(claims)))
            _process.send(list(claims))
            told, announced = time.monotonic(), False
            with bar(f"pySHACL judges {len(claims):,} claims", len(claims), "claims") as advance:
                while len(found) < len(claims):
                    until = limit if announced else min(limit, told + _MOMENT)
                    byte, now = _process.read(until - time.monotonic()), time.monotonic()
                    if byte is not None:
                        found.append(byte == _BROKEN)
                        advance(1)
                    elif now >= limit:
                        raise ValueError(_too_long(shapes, len(found), len(claims)))
                    if not announced and now >= told + _MOMENT:
                        announced = True
                        _announce(len(claims), len(found), now - told, shapes)
        except BaseException:
            _process.stop()  # it may still write answers
            raise
        finally:
            shapes.seconds_left -= time.monotonic() - started
        return found


def _announce(claims: int, done: int, seconds: float, shapes: SlowShapes) -> None:
    """Tell how long it will take, unless it is soon over."""
    expected = seconds * claims / done if done else 60 * shapes.minutes
    if expected < _SOON:
        return
    about = f"about {expected / 60:,.1f} minutes" if done else "nobody knows for how long"
    Console(stderr=True).print(
        f"{claims:,} claims go to pySHACL, {about}, because of shapes that aren't compiled: "
        f"{shapes.names}; domain.slow_minutes={shapes.minutes:g} is the limit"
    )


def _too_long(shapes: SlowShapes, done: int, claims: int) -> str:
    return (
        f"domain.slow_minutes={shapes.minutes:g}: that time is up, and pySHACL has judged {done:,} "
        f"of {claims:,} claims by the shapes that aren't compiled ({shapes.names}); raise it, or "
        "leave those shapes out of domain.constraints"
    )

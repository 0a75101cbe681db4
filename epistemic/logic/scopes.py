"""Which claims can matter to a shape: what it asks about, and how far it looks."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import rdflib
from pyshacl.errors import ReportableRuntimeError
from pyshacl.shapes_graph import ShapesGraph
from rdflib.collection import Collection
from rdflib.namespace import RDF, RDFS, SH
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.algebra import traverse
from rdflib.term import Node

_REPEATED = (SH.zeroOrMorePath, SH.oneOrMorePath)
_NESTED = (SH.property, SH.node, SH["not"], SH.qualifiedValueShape)
_LISTS = (SH["and"], SH["or"], SH.xone)


class Scope(NamedTuple):
    """Which claims a shape can be broken by.

    Attributes:
      shape: that has a target.
      terms: IRIs of the properties and classes that it asks about; None where it may be any.
      reach: how many steps from what it looks at it reads a triple; None where it may be any.
    """

    shape: Node
    terms: frozenset[str] | None
    reach: int | None


def scopes(graph: rdflib.Graph) -> list[Scope]:
    """Of each shape with a target, in order of name.

    Raises:
      ValueError: pySHACL can't read the shapes.
    """
    try:
        # pySHACL adds to the graph that it is given.
        shapes = ShapesGraph(graph + rdflib.Graph()).shapes
    except ReportableRuntimeError as error:
        raise ValueError(f"shapes that pySHACL can't read: {first_line(error)}") from None
    nodes = sorted((shape.node for shape in shapes if any(map(list, shape.target()))), key=str)
    return [Scope(node, _terms(graph, node), _reach(graph, node, frozenset())) for node in nodes]


def first_line(error: Exception) -> str:
    """What an error says, less its references."""
    return str(error).split("\n")[0]


def _terms(shapes: rdflib.Graph, shape: Node) -> frozenset[str] | None:
    """See `Scope`."""
    terms: set[str] = set()
    waiting, seen = [shape], {shape}
    while waiting:
        for _, predicate, thing in shapes.triples((waiting.pop(), None, None)):
            if predicate == SH.closed:
                return None
            if predicate == SH.select or predicate == SH.ask:
                asked = _patterns(shapes, str(thing))
                if asked is None:
                    return None
                for pattern in asked:
                    if isinstance(pattern[1], rdflib.Variable):
                        return None
                    terms |= {str(term) for term in pattern if isinstance(term, rdflib.URIRef)}
                    if not isinstance(pattern[1], rdflib.URIRef):
                        terms |= set(re.findall(r"<([^>]*)>", pattern[1].n3()))
            if not str(predicate).startswith((str(SH), str(RDF), str(RDFS))):
                # A component of the shapes' own: what it asks isn't known here.
                return None
            if isinstance(thing, rdflib.URIRef) and predicate != RDF.type:
                terms.add(str(thing))
            if thing not in seen and not isinstance(thing, rdflib.Literal):
                seen.add(thing)
                waiting.append(thing)
    implicit = {str(shape)} if (shape, RDF.type, None) in shapes else set()
    return frozenset(terms | implicit)


def _patterns(shapes: rdflib.Graph, query: str) -> list[tuple[Any, ...]] | None:
    """The triple patterns of a query, or None where rdflib can't read it by itself."""
    prefixes = {
        str(shapes.value(node, SH.prefix)): str(shapes.value(node, SH.namespace))
        for node in shapes.subjects(SH.prefix)
    }
    found: list[tuple[Any, ...]] = []

    def collect(node: object) -> None:
        found.extend(getattr(node, "triples", None) or ())

    try:
        traverse(prepareQuery(query, initNs=prefixes).algebra, visitPre=collect)
    except Exception:  # rdflib raises many kinds; pySHACL's own message comes when it runs
        return None
    return found


def _reach(shapes: rdflib.Graph, shape: Node, above: frozenset[Node]) -> int | None:
    """See `Scope`; None for a shape that speaks of itself."""
    if shape in above:
        return None
    path = shapes.value(shape, SH.path)
    here = 0 if path is None else _length(shapes, path)
    nested = [thing for parameter in _NESTED for thing in shapes.objects(shape, parameter)]
    for parameter in _LISTS:
        for members in shapes.objects(shape, parameter):
            nested += Collection(shapes, members)
    steps = [_reach(shapes, other, above | {shape}) for other in nested]
    steps += [_query_reach(shapes, query) for query in shapes.objects(shape, SH.sparql)]
    if any(not str(p).startswith((str(SH), str(RDF), str(RDFS))) for p in shapes.predicates(shape)):
        return None
    if here is None or None in steps:
        return None
    return here + max((step for step in steps if step is not None), default=0)


def _length(shapes: rdflib.Graph, path: Node) -> int | None:
    """How many steps a path takes at most; None where there is no limit."""
    if isinstance(path, rdflib.URIRef):
        return 1
    if any((path, parameter, None) in shapes for parameter in _REPEATED):
        return None
    if (path, RDF.first, None) in shapes:
        lengths = [_length(shapes, step) for step in Collection(shapes, path)]
    else:
        lengths = [_length(shapes, step) for step in shapes.objects(path)]
    # Of alternatives the longest would do; their sum is never too short.
    return None if None in lengths else sum(length or 0 for length in lengths)


def _query_reach(shapes: rdflib.Graph, constraint: Node) -> int | None:
    """As many steps as a query has patterns, where all of them hang together with $this."""
    query = shapes.value(constraint, SH.select)
    patterns = None if query is None else _patterns(shapes, str(query))
    if patterns is None:
        return None
    linked: set[Any] = {rdflib.Variable("this")}
    waiting = list(patterns)
    while waiting:
        near = [pattern for pattern in waiting if linked & {pattern[0], pattern[2]}]
        if not near:
            return None
        linked.update(term for pattern in near for term in (pattern[0], pattern[2]))
        waiting = [pattern for pattern in waiting if pattern not in near]
    if any(re.search(r"[*+]", pattern[1].n3()) for pattern in patterns
           if not isinstance(pattern[1], (rdflib.URIRef, rdflib.Variable))):  # fmt: skip
        return None
    return sum(
        1
        if isinstance(pattern[1], (rdflib.URIRef, rdflib.Variable))
        else pattern[1].n3().count("<")
        for pattern in patterns
    )

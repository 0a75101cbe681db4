"""SHACL shapes: what of them is compiled into constraints, and what is left to pySHACL.

A shape is taken apart by property: a part whose parameters are all compiled becomes constraints,
and only the rest of the shape goes to pySHACL. Both read shapes as an open world does: what a
shape asks to be there may still be said, so that its absence breaks nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import rdflib
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, RDFS, SH
from rdflib.term import Node

from epistemic.logic.hierarchy import Hierarchy
from epistemic.logic.kinds import KINDS, Constraint
from epistemic.logic.terms import term_text

_PARAMETERS = {kind.parameter: kind for kind in KINDS.values() if kind.parameter is not None}
_TARGETS = {SH.targetClass, SH.targetNode, SH.targetSubjectsOf, SH.targetObjectsOf}
# Parameters that ask for a value: adding a triple can't break them for good.
_ASKED_FOR = {SH.minCount, SH.hasValue, SH.qualifiedMinCount}
# Parameters that break nothing, or that go with one that is read.
_HARMLESS = {
    SH.path, SH.minCount, SH.hasValue, SH.name, SH.description, SH.message, SH.severity, SH.order,
    SH.group, SH.defaultValue, SH.deactivated, SH.flags, SH.target, SH.rule,
}  # fmt: skip
_LISTS_OF_SHAPES = (SH["and"], SH["or"], SH.xone)
_SHAPES = (SH.property, SH.node, SH["not"], SH.qualifiedValueShape)
_FOLLOWED = {
    *_SHAPES, SH.prefixes, SH.declare, SH.parameter, SH.validator, SH.nodeValidator,
    SH.propertyValidator,
}  # fmt: skip


def read_shapes(source: rdflib.Graph) -> tuple[set[Constraint], rdflib.Graph]:
    """The shapes of a graph.

    Args:
      source: where they are described, an ontology and data may stand beside them.

    Returns:
      The constraints that compile, and a graph of what is left to pySHACL of the shapes.

    Raises:
      ValueError: a parameter that makes no sense; names it.
    """
    rules: set[Constraint] = set()
    slow = rdflib.Graph()
    for shape in sorted(_roots(source), key=str):
        rules |= set(_read_shape(source, shape, slow))
    if len(slow):
        for component in source.subjects(RDF.type, SH.ConstraintComponent):
            _describe(source, component, slow)
    return rules, slow


def _roots(source: rdflib.Graph) -> set[Node]:
    """The shapes with a target; those that only others speak of come with them."""
    roots = {shape for target in _TARGETS for shape in source.subjects(target)}
    for kind in _class_types(source):
        roots |= {
            shape for shape in source.subjects(RDF.type, kind) if _is_described(source, shape)
        }
    return roots


def _class_types(source: rdflib.Graph) -> set[Node]:
    """What makes of a shape a class whose members it looks at."""
    return {RDFS.Class, OWL.Class, *source.subjects(RDFS.subClassOf, RDFS.Class)}


def _is_described(source: rdflib.Graph, node: Node) -> bool:
    """Whether a node is described as a shape."""
    kinds = {(node, RDF.type, SH.NodeShape), (node, RDF.type, SH.PropertyShape)}
    return any(kind in source for kind in kinds) or any(
        str(predicate).startswith(str(SH)) for predicate in source.predicates(node)
    )


@dataclass(frozen=True)
class _Targets:
    """What a shape looks at: members of classes, terms, subjects and objects of properties."""

    classes: tuple[str, ...]
    nodes: tuple[str, ...]
    subjects_of: frozenset[Node]
    objects_of: frozenset[Node]

    @classmethod
    def of(cls, source: rdflib.Graph, shape: Node) -> _Targets:
        classes = set(map(str, source.objects(shape, SH.targetClass)))
        if _class_types(source) & set(source.objects(shape, RDF.type)):
            classes.add(str(shape))
        return cls(
            tuple(sorted(classes)),
            tuple(sorted(map(term_text, source.objects(shape, SH.targetNode)))),
            frozenset(source.objects(shape, SH.targetSubjectsOf)),
            frozenset(source.objects(shape, SH.targetObjectsOf)),
        )

    def fit(self, path: Node) -> bool:
        """Whether a constraint on the path can have them."""
        if self.objects_of or (self.subjects_of and (self.classes or self.nodes)):
            return False
        return not (self.subjects_of - {path})


def _read_shape(source: rdflib.Graph, shape: Node, slow: rdflib.Graph) -> list[Constraint]:
    """The constraints that a shape compiles into; what it doesn't is added to `slow`."""
    if _is_deactivated(source, shape):
        return []
    targets = _Targets.of(source, shape)
    is_property = (shape, SH.path, None) in source
    parts = [shape] if is_property else sorted(source.objects(shape, SH.property), key=str)
    parts = [part for part in parts if part == shape or not _is_deactivated(source, part)]
    compiled = {part: _read_part(source, part, targets) for part in parts}
    left = [part for part in parts if compiled[part] is None]
    if any((part, SH.qualifiedValueShapesDisjoint, None) in source for part in parts):
        # Such a part asks about its siblings.
        compiled, left = {}, parts
    if is_property:
        if left:
            _describe(source, shape, slow, root=True)
    elif left or _asks(source, shape, {SH.property, SH.closed, SH.ignoredProperties}):
        _describe_rest(source, shape, parts, left, slow)
    elif (shape, SH.closed, rdflib.Literal(True)) in source:
        _describe_rest(source, shape, parts, [], slow)
    return [rule for rules in compiled.values() for rule in rules or ()]


def _asks(source: rdflib.Graph, shape: Node, known: set[rdflib.URIRef]) -> list[Node]:
    """The parameters of a shape that ask something and aren't among the known ones."""
    custom = {
        path
        for component in source.subjects(RDF.type, SH.ConstraintComponent)
        for parameter in source.objects(component, SH.parameter)
        for path in source.objects(parameter, SH.path)
    }
    return [
        parameter
        for parameter in source.predicates(shape)
        if (str(parameter).startswith(str(SH)) or parameter in custom)
        and parameter not in known | _HARMLESS | _TARGETS
    ]


def _read_part(source: rdflib.Graph, part: Node, targets: _Targets) -> list[Constraint] | None:
    """A property shape as constraints, or None where any of it needs pySHACL."""
    path = source.value(part, SH.path)
    if not isinstance(path, rdflib.URIRef) or path == RDF.type or not targets.fit(path):
        return None
    if _asks(source, part, set(_PARAMETERS)):
        return None
    rules = []
    for parameter, kind in _PARAMETERS.items():
        for value in source.objects(part, parameter):
            detail = kind.read_value(source, part, value)
            if detail is None:
                return None
            rules.append(kind(str(path), detail, targets.classes, targets.nodes))
    return rules


def _is_deactivated(source: rdflib.Graph, shape: Node) -> bool:
    return bool(source.value(shape, SH.deactivated, default=rdflib.Literal(False)))


# ---- what is left to pySHACL ----


def _describe_rest(
    source: rdflib.Graph, shape: Node, parts: list[Node], left: list[Node], slow: rdflib.Graph
) -> None:
    """Add a node shape less the parts that compiled; sh:closed still needs the paths of those."""
    _describe(source, shape, slow, root=True, skip={SH.property})
    for part in left:
        slow.add((shape, SH.property, part))
        _describe(source, part, slow)
    if (shape, SH.closed, None) in source:
        for part in parts:
            for path in source.objects(part, SH.path):
                slow.add((shape, SH.property, part))
                slow.add((part, SH.path, path))


def _describe(
    source: rdflib.Graph,
    node: Node,
    into: rdflib.Graph,
    root: bool = False,
    skip: Iterable[Node] = (),
) -> None:
    """Add the triples of a node and of every shape, list, path and query that it leads to.

    Args:
      source: where it is described.
      node: that is described.
      into: what they are added to.
      root: whether the node keeps its own targets; shapes that it speaks of never do.
      skip: predicates of the node to leave out.
    """
    classes = _class_types(source)
    waiting, seen = [node], {node}
    while waiting:
        current = waiting.pop()
        for triple in source.triples((current, None, None)):
            _, predicate, thing = triple
            if current == node and predicate in skip:
                continue
            is_target = predicate in _TARGETS or (predicate == RDF.type and thing in classes)
            if is_target and not (root and current == node):
                continue
            into.add(triple)
            fresh = [thing] if isinstance(thing, rdflib.BNode) or predicate in _FOLLOWED else []
            if predicate in _LISTS_OF_SHAPES:
                fresh += Collection(source, thing)
            waiting += [other for other in fresh if other not in seen]
            seen.update(fresh)


def as_open_world(slow: rdflib.Graph, hierarchy: Hierarchy) -> rdflib.Graph:
    """Shapes that pySHACL, which takes what isn't stated for false, reads as an open world does.

    Where a shape asks for a value, nothing is asked; where it asks that a value be of a class, a
    literal and a member of a disjoint class break it, and where the class is complete, whatever
    isn't one of its members. What stands below sh:not, sh:xone or sh:qualifiedValueShape stays as
    it is: there, asking for a value forbids one.

    Args:
      slow: the shapes as written.
      hierarchy: what is known of classes.
    """
    read = rdflib.Graph()
    read += slow
    for shape in _asked_of_values(slow):
        _drop_asked_for(read, shape)
        for name in list(read.objects(shape, SH["class"])):
            if str(name) not in hierarchy.complete:
                read.remove((shape, SH["class"], name))
                _add_not_apart(read, shape, hierarchy.apart_from(str(name)))
    return read


def _asked_of_values(slow: rdflib.Graph) -> set[Node]:
    """The shapes that terms have to conform to, and whose contrary nothing asks."""
    positive = set(_reached(slow, _roots(slow), {SH.property, SH.node}, {SH["and"], SH["or"]}))
    contrary = {
        *slow.objects(None, SH["not"]),
        *slow.objects(None, SH.qualifiedValueShape),
        *(shape for members in slow.objects(None, SH.xone) for shape in Collection(slow, members)),
    }
    return positive - set(_reached(slow, contrary, set(_SHAPES), set(_LISTS_OF_SHAPES)))


def _reached(
    slow: rdflib.Graph, starts: Iterable[Node], singly: set[Node], by_list: set[Node]
) -> Iterator[Node]:
    """The shapes that these lead to by the given parameters, themselves included."""
    waiting = list(starts)
    seen = set(waiting)
    while waiting:
        shape = waiting.pop()
        yield shape
        fresh = {thing for parameter in singly for thing in slow.objects(shape, parameter)}
        for parameter in by_list:
            for members in slow.objects(shape, parameter):
                fresh |= set(Collection(slow, members))
        waiting += fresh - seen
        seen |= fresh


def _drop_asked_for(read: rdflib.Graph, shape: Node) -> None:
    if (shape, SH.path, None) not in read:
        return
    for parameter in _ASKED_FOR:
        read.remove((shape, parameter, None))
    if (shape, SH.qualifiedMaxCount, None) not in read:
        read.remove((shape, SH.qualifiedValueShape, None))
        read.remove((shape, SH.qualifiedValueShapesDisjoint, None))


def _add_not_apart(read: rdflib.Graph, shape: Node, apart: Iterable[str]) -> None:
    """Ask that values are no literals, and members of none of these classes."""
    node = rdflib.BNode()
    read.add((shape, SH.node, node))
    read.add((node, SH.nodeKind, SH.BlankNodeOrIRI))
    for name in apart:
        other = rdflib.BNode()
        read.add((node, SH["not"], other))
        read.add((other, SH["class"], rdflib.URIRef(name)))

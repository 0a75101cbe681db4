"""What a graph may not say: SHACL and OWL read into a flat list of constraints.

Only constraints that adding one triple can break are kept: sh:minCount and the like can't be.
A shape with anything this list doesn't cover (sh:sparql above all) stays with pySHACL, whole.

Reading, as RDF sources mean it and as the oracle and `Constraints.as_shacl` both carry it out:

- OWL: FunctionalProperty, InverseFunctionalProperty, SymmetricProperty, AsymmetricProperty,
  IrreflexiveProperty, inverseOf, disjointWith, AllDisjointClasses, NegativePropertyAssertion;
  rdfs:subClassOf. Different names are different things.
- SHACL: sh:property of a target class, target node or the subjects of its own path, with
  sh:maxCount, sh:class, sh:datatype, sh:in, sh:min/maxInclusive/Exclusive, sh:lessThan.
- sh:class is broken by a value that lacks the type only where the class is declared complete
  (all of its members are known); elsewhere by a value of a class disjoint with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import rdflib
from rdflib.namespace import OWL, RDF, RDFS, SH
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.algebra import traverse

from epistemic.logic.graph import parse_triples
from epistemic.logic.hierarchy import Hierarchy
from epistemic.logic.kinds import KINDS, Constraint, constraint_name
from epistemic.logic.terms import rdflib_term, term_text

_PARAMETERS = {kind.parameter: kind for kind in KINDS.values() if kind.parameter is not None}
# Parameters that adding a triple can't break, or that break nothing.
_HARMLESS = {
    SH.path, SH.minCount, SH.name, SH.description, SH.message, SH.severity, SH.order, SH.group,
    SH.defaultValue, RDF.type, RDFS.label, RDFS.comment, SH.deactivated,
}  # fmt: skip
_TARGETS = {SH.targetClass, SH.targetNode, SH.targetSubjectsOf}


@dataclass(frozen=True)
class Constraints:
    """Constraints and the little logic that the oracle reasons with.

    Attributes:
      rules: every constraint that is compiled.
      symmetric: IRIs of symmetric properties.
      inverse: (p, q) pairs: p says of (s, o) what q says of (o, s).
      subclass: (class, superclass) pairs, as stated.
      complete: IRIs of classes whose every member is typed in the graph.
      slow: shapes left to pySHACL; empty where everything compiled.
      slow_terms: IRIs that the slow shapes mention: a claim about none of them can't break them;
        None where they mention a variable predicate, so that any claim can.
    """

    rules: tuple[Constraint, ...] = ()
    symmetric: frozenset[str] = frozenset()
    inverse: frozenset[tuple[str, str]] = frozenset()
    subclass: frozenset[tuple[str, str]] = frozenset()
    complete: frozenset[str] = frozenset()
    slow: rdflib.Graph = field(default_factory=rdflib.Graph, compare=False)
    slow_terms: frozenset[str] | None = frozenset()

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """Which classes lie above which, and which are disjoint."""
        disjoint = [pair for rule in self.rules for pair in rule.disjoint_pairs]
        return Hierarchy.of(self.subclass, disjoint, self.complete)

    @property
    def reversible(self) -> set[str]:
        """IRIs of the properties that are symmetric or have an inverse."""
        return {*self.symmetric, *(p for pair in self.inverse for p in pair)}

    @property
    def vocabulary(self) -> set[str]:
        """IRIs of the properties and classes that they speak of, targets apart."""
        classes = {name for pair in self.subclass for name in pair}
        return self.reversible.union(classes, *(rule.vocabulary for rule in self.rules))

    @property
    def mentioned(self) -> set[str]:
        """All terms that they name, as a graph's table has them."""
        return self.vocabulary.union(*(rule.mentioned for rule in self.rules))

    def synonyms(self, predicate: str) -> list[tuple[str, bool]]:
        """Every (property, swapped) that says the same as the property, itself first.

        (q, True) stands for: (s, predicate, o) says what (o, q, s) says.
        """
        flips: dict[str, set[str]] = {p: {p} for p in self.symmetric}
        for p, q in self.inverse:
            flips.setdefault(p, set()).add(q)
            flips.setdefault(q, set()).add(p)
        same = [(predicate, False)]
        for name, swapped in same:
            fresh = [(other, not swapped) for other in sorted(flips.get(name, ()))]
            same += [synonym for synonym in fresh if synonym not in same]
        return same

    def functional(self, predicate: str) -> bool:
        """Whether every subject has at most one value of the property."""
        return any(rule.allows_one_value for rule in self.of(predicate))

    def inverse_functional(self, predicate: str) -> bool:
        """Whether every value of the property has at most one subject."""
        return any(rule.allows_one_subject for rule in self.of(predicate))

    def of(self, predicate: str) -> list[Constraint]:
        """The constraints on a property, those of its inverses left out."""
        return [rule for rule in self.rules if rule.predicate == predicate]

    def only(self, names: Iterable[str]) -> Constraints:
        """Those of the named constraints, for every subject, and none of the slow ones.

        A name is a rule's, or `symmetric(p)`, `inverse(p, q)`. A sentence such as 'a country has
        one capital' takes for granted that it speaks of countries, so targets are dropped. No
        class is complete any more: a few facts never name all of its members.
        """
        wanted = set(names)
        return Constraints(
            tuple(rule.for_everyone() for rule in self.rules if rule.name in wanted),
            frozenset(p for p in self.symmetric if symmetric_name(p) in wanted),
            frozenset(pair for pair in self.inverse if inverse_name(*pair) in wanted),
            self.subclass,
        )

    def as_shacl(self) -> rdflib.Graph:
        """The compiled constraints as core SHACL shapes: the yardstick that pySHACL can read.

        To be run on a graph that is closed under symmetry, inverses and subclasses.
        """
        shapes = rdflib.Graph()
        for rule in self.rules:
            rule.write(shapes, self.hierarchy)
        return shapes


def symmetric_name(predicate: str) -> str:
    return constraint_name("symmetric", (predicate,))


def inverse_name(first: str, second: str) -> str:
    return constraint_name("inverse", (first, second))


def read_constraints(
    *paths: str | Path, complete: Sequence[str] = (), turtle: str | None = None
) -> Constraints:
    """The constraints in RDF files (shapes, an ontology, or data with both).

    Args:
      *paths: files in any format that `parse_triples` reads.
      complete: IRIs of classes whose members are all known.
      turtle: shapes as text, instead of files or beside them.

    Raises:
      ValueError: an unreadable file, or a constraint that makes no sense; names it.
    """
    source = rdflib.Graph()
    for path in paths:
        for triple in parse_triples(path):
            source.add(tuple(map(rdflib_term, triple)))  # type: ignore[arg-type]
    if turtle is not None:
        source.parse(data=turtle, format="turtle")
    rules = {rule for kind in KINDS.values() for rule in kind.read_axioms(source)}
    slow = rdflib.Graph()
    for shape in sorted(_shapes(source), key=str):
        compiled = _compile_shape(source, shape)
        if compiled is None:
            slow += _description(source, shape)
        else:
            rules |= set(compiled)
    return Constraints(
        rules=tuple(sorted(rules)),
        symmetric=frozenset(map(str, source.subjects(RDF.type, OWL.SymmetricProperty))),
        inverse=frozenset((str(p), str(q)) for p, q in source.subject_objects(OWL.inverseOf)),
        subclass=frozenset(
            (str(child), str(parent))
            for child, parent in source.subject_objects(RDFS.subClassOf)
            if isinstance(parent, rdflib.URIRef)
        ),
        complete=frozenset(complete),
        slow=slow,
        slow_terms=_mentioned(slow),
    )


def _shapes(source: rdflib.Graph) -> set[rdflib.term.Node]:
    """Shapes with a target or a class of their own; those nested in others come with them."""
    nested = set(source.objects(None, SH.property)) | set(source.objects(None, SH.node))
    shapes = set(source.subjects(RDF.type, SH.NodeShape))
    for predicate in (*_TARGETS, SH.targetObjectsOf, SH.target, SH.property, SH.sparql):
        shapes |= set(source.subjects(predicate))
    return {shape for shape in shapes if shape not in nested or _has_target(source, shape)}


def _has_target(source: rdflib.Graph, shape: rdflib.term.Node) -> bool:
    return any((shape, target, None) in source for target in _TARGETS)


@dataclass(frozen=True)
class _Targets:
    """What a shape looks at: members of classes, terms, subjects of properties."""

    classes: tuple[str, ...]
    nodes: tuple[str, ...]
    subjects_of: frozenset[rdflib.term.Node]

    @classmethod
    def of(cls, source: rdflib.Graph, shape: rdflib.term.Node) -> _Targets:
        classes = sorted(map(str, source.objects(shape, SH.targetClass)))
        if (shape, RDF.type, RDFS.Class) in source or (shape, RDF.type, OWL.Class) in source:
            classes.append(str(shape))
        return cls(
            tuple(classes),
            tuple(sorted(map(term_text, source.objects(shape, SH.targetNode)))),
            frozenset(source.objects(shape, SH.targetSubjectsOf)),
        )

    def __bool__(self) -> bool:
        return bool(self.classes or self.nodes or self.subjects_of)

    def fit(self, path: rdflib.term.Node) -> bool:
        """Whether a constraint on the path can have them."""
        if self.subjects_of and (self.classes or self.nodes):
            return False
        return not (self.subjects_of - {path})


def _compile_shape(source: rdflib.Graph, shape: rdflib.term.Node) -> list[Constraint] | None:
    """The shape as constraints, or None where any part of it needs pySHACL."""
    if _is_deactivated(source, shape):
        return []
    targets = _Targets.of(source, shape)
    parts = [shape]
    if (shape, SH.path, None) not in source:
        parts = [*source.objects(shape, SH.property)]
        if set(source.predicates(shape)) - _TARGETS - {SH.property} - _HARMLESS:
            return None
    rules: list[Constraint] = []
    for part in parts:
        if part != shape and _is_deactivated(source, part):
            continue
        ignored = _HARMLESS | _TARGETS if part == shape else _HARMLESS
        compiled = _compile_part(source, part, targets, ignored)
        if compiled is None:
            return None
        rules += compiled
    return rules if targets else []


def _compile_part(
    source: rdflib.Graph,
    part: rdflib.term.Node,
    targets: _Targets,
    ignored: Set[rdflib.term.Node],
) -> list[Constraint] | None:
    """A property shape as constraints, or None where any part of it needs pySHACL.

    Args:
      source: where it is described.
      part: the shape.
      targets: what it looks at.
      ignored: parameters that ask nothing.
    """
    path = source.value(part, SH.path)
    if not isinstance(path, rdflib.URIRef) or path == RDF.type or not targets.fit(path):
        return None
    rules = []
    for parameter, value in source.predicate_objects(part):
        if kind := _PARAMETERS.get(rdflib.URIRef(str(parameter))):
            detail = kind.read_value(source, value)
            if detail is None:
                return None
            rules.append(kind(str(path), detail, targets.classes, targets.nodes))
        elif parameter not in ignored:
            return None
    return rules


def _is_deactivated(source: rdflib.Graph, shape: rdflib.term.Node) -> bool:
    return bool(source.value(shape, SH.deactivated, default=rdflib.Literal(False)))


def _description(source: rdflib.Graph, node: rdflib.term.Node) -> rdflib.Graph:
    """The triples of a node and of all that it leads to, prefixes of queries included."""
    described, waiting, seen = rdflib.Graph(), [node], {node}
    while waiting:
        for triple in source.triples((waiting.pop(), None, None)):
            described.add(triple)
            target = triple[2]
            follow = isinstance(target, rdflib.BNode) or triple[1] in (SH.prefixes, SH.node)
            if follow and target not in seen:
                seen.add(target)
                waiting.append(target)
    return described


def _mentioned(slow: rdflib.Graph) -> frozenset[str] | None:
    """IRIs in the shapes and in their queries; None where a query leaves a predicate open."""
    mentioned = {str(term) for triple in slow for term in triple if isinstance(term, rdflib.URIRef)}
    prefixes = {
        str(slow.value(node, SH.prefix)): rdflib.URIRef(str(slow.value(node, SH.namespace)))
        for node in slow.subjects(SH.prefix)
    }
    patterns: list[tuple[object, ...]] = []

    def collect(node: object) -> None:
        patterns.extend(getattr(node, "triples", None) or ())

    for query in slow.objects(None, SH.select):
        try:
            algebra = prepareQuery(str(query), initNs=prefixes).algebra
        except Exception:  # rdflib raises many kinds; pySHACL's own message comes when it runs
            return None
        traverse(algebra, visitPre=collect)
    for pattern in patterns:
        if isinstance(pattern[1], rdflib.Variable):
            return None
        mentioned |= {str(term) for term in pattern if isinstance(term, rdflib.URIRef)}
        if not isinstance(pattern[1], rdflib.URIRef):
            mentioned |= set(re.findall(r"<([^>]*)>", pattern[1].n3()))  # type: ignore[attr-defined]
    return frozenset(mentioned)

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path

import rdflib
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, RDFS, SH
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.algebra import traverse

from epistemic.logic.graph import parse_triples, rdflib_term, term_text

BOUNDS = ("min_inclusive", "min_exclusive", "max_inclusive", "max_exclusive")
_VALUE_PARAMETERS = {
    SH["class"]: "class",
    SH.datatype: "datatype",
    SH["in"]: "in",
    SH.minInclusive: "min_inclusive",
    SH.minExclusive: "min_exclusive",
    SH.maxInclusive: "max_inclusive",
    SH.maxExclusive: "max_exclusive",
    SH.maxCount: "max_count",
    SH.lessThan: "less_than",
}
# Parameters that adding a triple can't break, or that break nothing.
_HARMLESS = {
    SH.path, SH.minCount, SH.name, SH.description, SH.message, SH.severity, SH.order, SH.group,
    SH.defaultValue, RDF.type, RDFS.label, RDFS.comment, SH.deactivated,
}  # fmt: skip
_TARGETS = {SH.targetClass, SH.targetNode, SH.targetSubjectsOf}


@dataclass(frozen=True, order=True)
class Constraint:
    """One thing that a graph may not say.

    Attributes:
      kind: max_count, class, datatype, in, min_inclusive, min_exclusive, max_inclusive,
        max_exclusive, less_than, inverse_functional, asymmetric, irreflexive, disjoint or
        negative.
      predicate: IRI of the property; of the class for disjoint.
      value: by kind: the limit, the class or datatype, the members, the bound as a literal, the
        greater property, the disjoint class, the (subject, object) of a negative assertion.
      classes: the constraint holds for members of any of these classes;
      nodes: and for these terms. Both empty: for every subject.
    """

    kind: str
    predicate: str
    value: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A readable, unique name, such as `max_count(capital, 1)`."""
        subject = _short(self.predicate)
        detail = ", ".join([subject, *(_short(value) for value in self.value)])
        where = ", ".join(_short(term) for term in (*self.classes, *self.nodes))
        return f"{self.kind}({detail})" + (f" of {where}" if where else "")


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

    def superclasses(self) -> dict[str, frozenset[str]]:
        """Each class of the hierarchy with all that it is a subclass of, itself included."""
        parents: dict[str, set[str]] = {}
        for child, parent in self.subclass:
            parents.setdefault(child, set()).add(parent)
            parents.setdefault(parent, set())
        closed = {}
        for start in parents:
            seen, open_ = {start}, [start]
            while open_:
                for parent in parents[open_.pop()] - seen:
                    seen.add(parent)
                    open_.append(parent)
            closed[start] = frozenset(seen)
        return closed

    def sayings(self, predicate: str) -> list[tuple[str, bool]]:
        """Every (property, swapped) that says the same as the property, itself first.

        (q, True) stands for: (s, predicate, o) says what (o, q, s) says.
        """
        flips: dict[str, set[str]] = {p: {p} for p in self.symmetric}
        for p, q in self.inverse:
            flips.setdefault(p, set()).add(q)
            flips.setdefault(q, set()).add(p)
        found = [(predicate, False)]
        for name, swapped in found:
            fresh = [(other, not swapped) for other in sorted(flips.get(name, ()))]
            found += [saying for saying in fresh if saying not in found]
        return found

    def disjoint_classes(self) -> dict[str, frozenset[str]]:
        """Class -> classes declared disjoint with it or with one of its superclasses."""
        direct: dict[str, set[str]] = {}
        for rule in self.rules:
            if rule.kind == "disjoint":
                direct.setdefault(rule.predicate, set()).add(rule.value[0])
                direct.setdefault(rule.value[0], set()).add(rule.predicate)
        supers = self.superclasses()
        return {
            name: frozenset().union(*(direct.get(s, ()) for s in supers.get(name, {name})))
            for name in {*direct, *supers}
        }

    def functional(self, predicate: str) -> bool:
        """Whether every subject has at most one value of the property."""
        return any(
            rule.kind == "max_count" and rule.predicate == predicate and rule.value == ("1",)
            for rule in self.rules
        )

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
            tuple(
                replace(rule, classes=(), nodes=()) for rule in self.rules if rule.name in wanted
            ),
            frozenset(p for p in self.symmetric if symmetric_name(p) in wanted),
            frozenset(pair for pair in self.inverse if inverse_name(*pair) in wanted),
            self.subclass,
        )

    def as_shacl(self) -> rdflib.Graph:
        """The compiled constraints as core SHACL shapes: the yardstick that pySHACL can read.

        To be run on a graph that is closed under symmetry, inverses and subclasses.
        """
        shapes = rdflib.Graph()
        disjoint = self.disjoint_classes()
        for rule in self.rules:
            _write_shape(shapes, rule, disjoint, self.complete)
        return shapes


def symmetric_name(predicate: str) -> str:
    return f"symmetric({_short(predicate)})"


def inverse_name(first: str, second: str) -> str:
    return f"inverse({_short(first)}, {_short(second)})"


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
    rules = set(_owl_rules(source))
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


def _owl_rules(source: rdflib.Graph) -> Iterable[Constraint]:
    for kind, owl_class in [
        ("max_count", OWL.FunctionalProperty),
        ("inverse_functional", OWL.InverseFunctionalProperty),
        ("asymmetric", OWL.AsymmetricProperty),
        ("irreflexive", OWL.IrreflexiveProperty),
    ]:
        for p in source.subjects(RDF.type, owl_class):
            yield Constraint(kind, str(p), ("1",) if kind == "max_count" else ())
    pairs = [*source.subject_objects(OWL.disjointWith)]
    for group in source.objects(None, OWL.members):
        pairs += permutations(Collection(source, group), 2)
    for first, second in pairs:
        yield Constraint("disjoint", *_disjoint(str(first), str(second)))
    for assertion in source.subjects(RDF.type, OWL.NegativePropertyAssertion):
        parts = [
            source.value(assertion, OWL.sourceIndividual),
            source.value(assertion, OWL.assertionProperty),
            source.value(assertion, OWL.targetIndividual)
            or source.value(assertion, OWL.targetValue),
        ]
        if None in parts:
            raise ValueError(
                f"negative assertion {assertion}: it needs owl:sourceIndividual, "
                "owl:assertionProperty and owl:targetIndividual or owl:targetValue"
            )
        subject, predicate, thing = map(term_text, parts)
        yield Constraint("negative", predicate, (subject, thing))


def _disjoint(first: str, second: str) -> tuple[str, tuple[str]]:
    low, high = sorted((first, second))
    return low, (high,)


def _shapes(source: rdflib.Graph) -> set[rdflib.term.Node]:
    """Shapes with a target or a class of their own; those nested in others come with them."""
    nested = set(source.objects(None, SH.property)) | set(source.objects(None, SH.node))
    found = set()
    for predicate in (*_TARGETS, SH.targetObjectsOf, SH.target, SH.property, SH.sparql):
        found |= set(source.subjects(predicate))
    found |= set(source.subjects(RDF.type, SH.NodeShape))
    return {shape for shape in found if shape not in nested or _has_target(source, shape)}


def _has_target(source: rdflib.Graph, shape: rdflib.term.Node) -> bool:
    return any((shape, target, None) in source for target in _TARGETS)


def _compile_shape(source: rdflib.Graph, shape: rdflib.term.Node) -> list[Constraint] | None:
    """The shape as constraints, or None where any part of it needs pySHACL."""
    if _is_deactivated(source, shape):
        return []
    classes = sorted(map(str, source.objects(shape, SH.targetClass)))
    if (shape, RDF.type, RDFS.Class) in source or (shape, RDF.type, OWL.Class) in source:
        classes.append(str(shape))
    nodes = sorted(map(term_text, source.objects(shape, SH.targetNode)))
    subjects_of = set(source.objects(shape, SH.targetSubjectsOf))
    parts = [shape] if (shape, SH.path, None) in source else [*source.objects(shape, SH.property)]
    own = set(source.predicates(shape)) - _TARGETS - {SH.property} - _HARMLESS
    if parts != [shape] and own:
        return None
    rules: list[Constraint] = []
    for part in parts:
        path = source.value(part, SH.path)
        if part != shape and _is_deactivated(source, part):
            continue
        if not isinstance(path, rdflib.URIRef) or path == RDF.type:
            return None
        if subjects_of - {path} or (subjects_of and (classes or nodes)):
            return None
        for parameter, value in source.predicate_objects(part):
            if parameter in _VALUE_PARAMETERS:
                kind = _VALUE_PARAMETERS[rdflib.URIRef(str(parameter))]
                values = Collection(source, value) if kind == "in" else [value]
                detail = tuple(sorted(map(term_text, values)))
                if kind == "max_count":
                    detail = (str(int(str(value))),)
                    if detail == ("0",):
                        return None
                rules.append(Constraint(kind, str(path), detail, tuple(classes), tuple(nodes)))
            elif parameter not in _HARMLESS and not (part == shape and parameter in _TARGETS):
                return None
    if not (classes or nodes or subjects_of):
        return []
    return rules


def _is_deactivated(source: rdflib.Graph, shape: rdflib.term.Node) -> bool:
    return bool(source.value(shape, SH.deactivated, default=rdflib.Literal(False)))


def _description(source: rdflib.Graph, node: rdflib.term.Node) -> rdflib.Graph:
    """The triples of a node and of all that it leads to, prefixes of queries included."""
    found, open_, seen = rdflib.Graph(), [node], {node}
    while open_:
        for triple in source.triples((open_.pop(), None, None)):
            found.add(triple)
            target = triple[2]
            follow = isinstance(target, rdflib.BNode) or triple[1] in (SH.prefixes, SH.node)
            if follow and target not in seen:
                seen.add(target)
                open_.append(target)
    return found


def _mentioned(slow: rdflib.Graph) -> frozenset[str] | None:
    """IRIs in the shapes and in their queries; None where a query leaves a predicate open."""
    found = {str(term) for triple in slow for term in triple if isinstance(term, rdflib.URIRef)}
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
        found |= {str(term) for term in pattern if isinstance(term, rdflib.URIRef)}
        if not isinstance(pattern[1], rdflib.URIRef):
            found |= set(re.findall(r"<([^>]*)>", pattern[1].n3()))  # type: ignore[attr-defined]
    return frozenset(found)


def _write_shape(
    shapes: rdflib.Graph,
    rule: Constraint,
    disjoint: dict[str, frozenset[str]],
    complete: frozenset[str],
) -> None:
    node, part = rdflib.BNode(), rdflib.BNode()
    shapes.add((node, RDF.type, SH.NodeShape))
    predicate = rdflib.URIRef(rule.predicate)
    if rule.kind == "disjoint":
        shapes.add((node, SH.targetClass, predicate))
        shapes.add((node, SH["not"], _class_shape(shapes, rule.value[0])))
        return
    for name in rule.classes:
        shapes.add((node, SH.targetClass, rdflib.URIRef(name)))
    for term in rule.nodes:
        shapes.add((node, SH.targetNode, rdflib_term(term)))
    if rule.kind == "negative":
        shapes.add((node, SH.targetNode, rdflib_term(rule.value[0])))
    elif not (rule.classes or rule.nodes):
        shapes.add((node, SH.targetSubjectsOf, predicate))
        inverted = rule.kind == "inverse_functional"
        target = SH.targetObjectsOf if inverted else SH.targetSubjectsOf
        shapes.add((node, target, predicate))
    if rule.kind == "class" and rule.value[0] not in complete:
        for other in sorted(disjoint.get(rule.value[0], ())):
            part = rdflib.BNode()
            shapes.add((node, SH.property, part))
            shapes.add((part, SH.path, predicate))
            shapes.add((part, SH["not"], _class_shape(shapes, other)))
        return
    shapes.add((node, SH.property, part))
    path: rdflib.term.Node = predicate
    if rule.kind in ("inverse_functional", "asymmetric"):
        path = rdflib.BNode()
        shapes.add((path, SH.inversePath, predicate))
    if rule.kind == "irreflexive":
        # The node itself, and nothing else: zero or one step along a property that nobody has.
        path = rdflib.BNode()
        shapes.add((path, SH.zeroOrOnePath, rdflib.URIRef("urn:nobody-has-this")))
    shapes.add((part, SH.path, path))
    if rule.kind in ("max_count", "inverse_functional"):
        limit = int(rule.value[0]) if rule.value else 1
        shapes.add((part, SH.maxCount, rdflib.Literal(limit)))
    elif rule.kind in ("asymmetric", "irreflexive"):
        shapes.add((part, SH.disjoint, predicate))
    elif rule.kind in ("in", "negative"):
        members = rdflib.BNode()
        values = rule.value if rule.kind == "in" else rule.value[1:]
        Collection(shapes, members, [rdflib_term(value) for value in values])
        holder = part
        if rule.kind == "negative":
            holder = rdflib.BNode()
            shapes.add((part, SH["not"], holder))
        shapes.add((holder, SH["in"], members))
    else:
        parameter = next(iri for iri, kind in _VALUE_PARAMETERS.items() if kind == rule.kind)
        shapes.add((part, parameter, rdflib_term(rule.value[0])))


def _class_shape(shapes: rdflib.Graph, name: str) -> rdflib.BNode:
    shape = rdflib.BNode()
    shapes.add((shape, SH["class"], rdflib.URIRef(name)))
    return shape


def _short(term: str) -> str:
    if term.startswith('"'):
        return term[1 : term.rindex('"')]
    return re.split(r"[#/]", term.rstrip("/#"))[-1]

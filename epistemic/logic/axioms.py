"""RDFS and OWL axioms: what is read of them beside the constraints, and what isn't, counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import rdflib
from rdflib.collection import Collection
from rdflib.namespace import OWL, RDF, RDFS, SH, XSD
from rdflib.term import Node

from epistemic.logic.kinds import Asymmetric, Constraint, Disjoint, MaxCount, ValueClass, ValueSpace
from epistemic.logic.terms import is_read

Pairs = frozenset[tuple[str, str]]

# Axioms and constructors that are read only in part or not at all: where one of these stands and
# `_read` doesn't know it, claims that it settles stay unknown.
_PARTLY_READ = (
    RDFS.subClassOf, RDFS.subPropertyOf, RDFS.domain, RDFS.range, OWL.equivalentClass,
    OWL.disjointUnionOf, OWL.complementOf, OWL.disjointWith, OWL.inverseOf,
)  # fmt: skip
_UNREAD = (
    OWL.sameAs, OWL.differentFrom, OWL.imports, OWL.propertyChainAxiom, OWL.hasKey, OWL.hasSelf,
    OWL.someValuesFrom, OWL.hasValue, OWL.minCardinality, OWL.minQualifiedCardinality,
    OWL.maxQualifiedCardinality, OWL.qualifiedCardinality, OWL.unionOf, OWL.intersectionOf,
    OWL.oneOf, OWL.withRestrictions, SH.target, SH.rule,
)  # fmt: skip
_CARDINALITIES = (OWL.maxCardinality, OWL.cardinality)
_UNREAD_TYPES = (OWL.ReflexiveProperty, OWL.AllDifferent)
_STANDARD = re.compile(
    rf"{re.escape(str(XSD))}|{re.escape(str(RDF))}(langString|dirLangString|HTML|JSON)$"
    rf"|{re.escape(str(OWL))}(real|rational)$|.*Literal$"
)
"""Names of datatypes that nobody need declare; those of many a vocabulary, such as GeoSPARQL's
wktLiteral, end alike."""
# Names are distinct here, so these hold as they stand.
_HOLD_ANYWAY = {OWL.differentFrom, OWL.AllDifferent}


class Axioms(NamedTuple):
    """What a graph's vocabulary says.

    Attributes:
      rules: constraints that its axioms amount to.
      symmetric, transitive: IRIs of properties.
      inverse: (p, q): p says of (s, o) what q says of (o, s).
      subproperty: (p, q): what p says, q says too.
      domain, range: (property, class): the class of its subjects, of its values.
      subclass: (class, superclass).
      unread: kind of axiom -> how many there are that nothing reads.
    """

    rules: frozenset[Constraint]
    symmetric: frozenset[str]
    transitive: frozenset[str]
    inverse: Pairs
    subproperty: Pairs
    domain: Pairs
    range: Pairs
    subclass: Pairs
    unread: dict[str, int]


def read_axioms(source: rdflib.Graph) -> Axioms:
    """The axioms of a graph, in which shapes and data may stand as well."""
    symmetric, transitive = (
        frozenset(map(str, source.subjects(RDF.type, kind)))
        for kind in (OWL.SymmetricProperty, OWL.TransitiveProperty)
    )
    ranges = _named(source, RDFS.range)
    datatypes = _datatypes(source)
    values = frozenset(pair for pair in ranges if pair[1] in datatypes)
    return Axioms(
        rules=frozenset(
            {
                *_restrictions(source, datatypes),
                *_disjoint(source),
                *(ValueSpace(name, (kind,)) for name, kind in values if _is_compared(kind)),
                *_orders(source, transitive),
            }
        ),
        symmetric=symmetric,
        transitive=transitive,
        inverse=_named(source, OWL.inverseOf),
        subproperty=_named(source, RDFS.subPropertyOf)
        | _both_ways(_named(source, OWL.equivalentProperty)),
        domain=_named(source, RDFS.domain),
        range=ranges - values,
        subclass=_named(source, RDFS.subClassOf)
        | _both_ways(_named(source, OWL.equivalentClass))
        | frozenset((part, whole) for whole, parts in _unions(source) for part in parts),
        unread=_unread(source, datatypes),
    )


def _named(source: rdflib.Graph, predicate: Node) -> Pairs:
    """The (subject, object) pairs of a predicate that are names."""
    return frozenset(
        (str(s), str(o))
        for s, o in source.subject_objects(predicate)
        if isinstance(s, rdflib.URIRef) and isinstance(o, rdflib.URIRef) and o != OWL.Thing
    )


def _both_ways(pairs: Pairs) -> Pairs:
    return pairs | {(q, p) for p, q in pairs}


def _datatypes(source: rdflib.Graph) -> set[str]:
    """The names among ranges and owl:allValuesFrom that are of datatypes, read or not."""
    asked = {*source.objects(None, RDFS.range), *source.objects(None, OWL.allValuesFrom)}
    classes = {*source.subjects(RDF.type, OWL.Class), *source.subjects(RDF.type, RDFS.Class)}
    told = {*source.subjects(RDF.type, RDFS.Datatype)}
    for name in source.subjects(RDF.type, OWL.DatatypeProperty):
        told |= {*source.objects(name, RDFS.range)}
        for restriction in source.subjects(OWL.onProperty, name):
            told |= {*source.objects(restriction, OWL.allValuesFrom)}
    return {
        str(name)
        for name in asked - classes
        if isinstance(name, rdflib.URIRef) and (name in told or _STANDARD.match(name))
    }


def _is_compared(datatype: str) -> bool:
    return datatype == str(RDF.langString) or is_read(datatype)


def _unions(source: rdflib.Graph) -> list[tuple[str, list[str]]]:
    """(class, its parts) of each owl:disjointUnionOf with names alone."""
    unions = [
        (str(whole), list(Collection(source, parts)))
        for whole, parts in source.subject_objects(OWL.disjointUnionOf)
    ]
    return [
        (whole, [str(part) for part in parts])
        for whole, parts in unions
        if all(isinstance(part, rdflib.URIRef) for part in parts)
    ]


def _disjoint(source: rdflib.Graph) -> Iterator[Constraint]:
    for one, other in _named(source, OWL.complementOf):
        yield Disjoint.of(one, other)
    for _, parts in _unions(source):
        for i, part in enumerate(parts):
            yield from (Disjoint.of(part, other) for other in parts[i + 1 :])


def _orders(source: rdflib.Graph, transitive: frozenset[str]) -> Iterator[Constraint]:
    """An order in which nothing is before itself never holds both ways."""
    for name in transitive & set(map(str, source.subjects(RDF.type, OWL.IrreflexiveProperty))):
        yield Asymmetric(name)


def _restrictions(source: rdflib.Graph, datatypes: set[str]) -> Iterator[Constraint]:
    """What the members of a class keep: owl:maxCardinality, owl:cardinality, owl:allValuesFrom."""
    for restriction, name in source.subject_objects(OWL.onProperty):
        for kept in (RDFS.subClassOf, OWL.equivalentClass):
            for owner in source.subjects(kept, restriction):
                if isinstance(owner, rdflib.URIRef) and isinstance(name, rdflib.URIRef):
                    for rule in _kept(source, restriction, str(name), datatypes):
                        yield replace(rule, classes=(str(owner),))


def _kept(
    source: rdflib.Graph, restriction: Node, name: str, datatypes: set[str]
) -> Iterator[Constraint]:
    for parameter in _CARDINALITIES:
        for limit in source.objects(restriction, parameter):
            if _is_read_limit(limit):
                yield MaxCount(name, (str(int(str(limit))),))
    for values in source.objects(restriction, OWL.allValuesFrom):
        if isinstance(values, rdflib.URIRef) and str(values) not in datatypes:
            yield ValueClass(name, (str(values),))
        elif _is_compared(str(values)):
            yield ValueSpace(name, (str(values),))


def _is_read_limit(limit: Node) -> bool:
    return str(limit).isdecimal() and int(str(limit)) > 0


def _unread(source: rdflib.Graph, datatypes: set[str]) -> dict[str, int]:
    """Kind of axiom -> how many stand in the graph that nothing reads, such as "owl:sameAs"."""
    found: Counter[str] = Counter()
    names = source.namespace_manager
    names.bind("sh", SH)
    for predicate in _PARTLY_READ:
        pairs = list(source.subject_objects(predicate))
        unread = [pair for pair in pairs if not _is_read(source, pair)]
        found[f"{names.curie(predicate)} of what has no name"] += len(unread)
    for predicate in _UNREAD:
        if predicate not in _HOLD_ANYWAY:
            found[names.curie(predicate)] += len(list(source.subject_objects(predicate)))
    for predicate in _CARDINALITIES:
        limits = source.objects(None, predicate)
        found[f"{names.curie(predicate)} 0"] += sum(not _is_read_limit(limit) for limit in limits)
    for predicate in (RDFS.range, OWL.allValuesFrom):
        values = [name for name in map(str, source.objects(None, predicate)) if name in datatypes]
        found[f"{names.curie(predicate)} of datatypes that aren't read"] += sum(
            not _is_compared(name) for name in values
        )
    for kind in _UNREAD_TYPES:
        if kind not in _HOLD_ANYWAY:
            found[names.curie(kind)] += len(list(source.subjects(RDF.type, kind)))
    return {kind: number for kind, number in sorted(found.items()) if number}


def _is_read(source: rdflib.Graph, pair: tuple[Node, Node]) -> bool:
    """Whether an axiom between two terms is read: between names, of lists or restrictions."""
    one, other = pair
    if not isinstance(one, rdflib.URIRef):
        return False
    if isinstance(other, rdflib.URIRef):
        return True
    # What a restriction asks that isn't read is counted by itself.
    return (other, OWL.onProperty, None) in source or (other, RDF.first, None) in source

"""What a graph may not say: SHACL and OWL read into a flat list of constraints.

Only constraints that adding one triple can break are kept: sh:minCount and the like can't be.
What of a shape this list doesn't cover (sh:sparql above all) stays with pySHACL.

Reading, as RDF sources mean it and as the oracle and `Constraints.as_shacl` both carry it out:

- RDFS: subClassOf, subPropertyOf, domain, range.
- OWL: FunctionalProperty, InverseFunctionalProperty, SymmetricProperty, AsymmetricProperty,
  IrreflexiveProperty, TransitiveProperty, inverseOf, equivalentProperty, propertyDisjointWith,
  AllDisjointProperties, disjointWith, AllDisjointClasses, equivalentClass, disjointUnionOf,
  complementOf, maxCardinality, cardinality, allValuesFrom, NegativePropertyAssertion. What else
  there is is counted, see `epistemic.logic.axioms`. Different names are different things.
- A datatype that OWL or RDFS asks for is asked of values, whatever datatype they are written in;
  sh:datatype asks for the datatype itself.
- SHACL: sh:property of a target class, target node or the subjects of its own path, with
  sh:maxCount, sh:class, sh:datatype, sh:in, sh:min/maxInclusive/Exclusive, sh:lessThan,
  sh:disjoint, sh:nodeKind, sh:pattern, sh:min/maxLength, sh:languageIn.
- sh:class is broken by a value that lacks the type only where the class is declared complete
  (all of its members are known); elsewhere by a value of a class disjoint with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import rdflib

from epistemic.logic.axioms import read_axioms
from epistemic.logic.graph import TYPE
from epistemic.logic.hierarchy import Hierarchy
from epistemic.logic.kinds import KINDS, BadParameter, Constraint, constraint_name
from epistemic.logic.parsing import parse_triples, place
from epistemic.logic.shapes import as_open_world, read_shapes
from epistemic.logic.slow import SlowShapes, Triple
from epistemic.logic.terms import rdflib_term


@dataclass(frozen=True)
class Constraints:
    """Constraints and the little logic that the oracle reasons with.

    Attributes:
      rules: every constraint that is compiled.
      symmetric: IRIs of symmetric properties.
      inverse: (p, q) pairs: p says of (s, o) what q says of (o, s).
      subclass: (class, superclass) pairs, as stated.
      subproperty: (p, q) pairs: what p says, q says too.
      transitive: IRIs of transitive properties.
      domain, range: (property, class) pairs: the class of its subjects, of its values.
      complete: IRIs of classes whose every member is typed in the graph.
      unread: kind of axiom -> how many the sources hold that nothing reads.
      slow: shapes left to pySHACL; empty where everything compiled.
    """

    rules: tuple[Constraint, ...] = ()
    symmetric: frozenset[str] = frozenset()
    inverse: frozenset[tuple[str, str]] = frozenset()
    subclass: frozenset[tuple[str, str]] = frozenset()
    complete: frozenset[str] = frozenset()
    subproperty: frozenset[tuple[str, str]] = frozenset()
    transitive: frozenset[str] = frozenset()
    domain: frozenset[tuple[str, str]] = frozenset()
    range: frozenset[tuple[str, str]] = frozenset()
    unread: Mapping[str, int] = field(default_factory=dict, compare=False)
    slow: SlowShapes = field(default_factory=SlowShapes, compare=False)

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
    def related(self) -> set[str]:
        """IRIs of the properties from which others follow."""
        return {*self.reversible, *(p for p, _ in self.subproperty)}

    @property
    def vocabulary(self) -> set[str]:
        """IRIs of the properties and classes that they speak of, targets apart."""
        pairs = (*self.subclass, *self.subproperty, *self.domain, *self.range)
        names = {name for pair in pairs for name in pair} | self.transitive | self.reversible
        return names.union(*(rule.vocabulary for rule in self.rules))

    @property
    def mentioned(self) -> set[str]:
        """All terms that they name, as a graph's table has them."""
        return self.vocabulary.union(*(rule.mentioned for rule in self.rules))

    def synonyms(self, predicate: str) -> list[tuple[str, bool]]:
        """Every (property, swapped) that says the same as the property, itself first.

        (q, True) stands for: (s, predicate, o) says what (o, q, s) says.
        """
        return self._reached(predicate, frozenset())

    def implications(self, predicate: str) -> list[tuple[str, bool]]:
        """Every (property, swapped) that follows from the property, itself first."""
        return self._reached(predicate, self.subproperty)

    def consequences(self, predicate: str) -> list[tuple[str, bool]]:
        """Those that follow from the property and don't say the same."""
        same = self.synonyms(predicate)
        return [other for other in self.implications(predicate) if other not in same]

    def _reached(self, predicate: str, above: frozenset[tuple[str, str]]) -> list[tuple[str, bool]]:
        flips: dict[str, set[str]] = {p: {p} for p in self.symmetric}
        for p, q in self.inverse:
            flips.setdefault(p, set()).add(q)
            flips.setdefault(q, set()).add(p)
        found = [(predicate, False)]
        for name, swapped in found:
            fresh = [(other, not swapped) for other in sorted(flips.get(name, ()))]
            fresh += [(q, swapped) for p, q in sorted(above) if p == name]
            found += [other for other in fresh if other not in found]
        return found

    def implied(self, claim: Triple) -> list[Triple]:
        """All that a claim says by itself: it, the properties that follow, the classes of both."""
        s, p, o = claim
        if p == TYPE:
            return [(s, p, name) for name in sorted(self.hierarchy.above_of(o))]
        is_name = not o.startswith('"')
        said = [
            (o, q, s) if swapped else (s, q, o)
            for q, swapped in self.implications(p)
            if is_name or not swapped
        ]
        types = {
            (term, TYPE, name)
            for s, q, o in said
            for term, pairs in ((s, self.domain), (o, self.range))
            for below in (c for r, c in pairs if r == q and not term.startswith('"'))
            for name in self.hierarchy.above_of(below)
        }
        return said + sorted(types)

    def functional(self, predicate: str) -> bool:
        """Whether every subject has at most one value of the property."""
        return any(rule.allows_one_value for rule in self.of(predicate))

    def inverse_functional(self, predicate: str) -> bool:
        """Whether every value of the property has at most one subject."""
        return any(rule.allows_one_subject for rule in self.of(predicate))

    def exclusive(self, predicate: str) -> bool:
        """Whether what the property says of a pair no other may say of it."""
        return any(
            rule.excludes_others and predicate in (rule.predicate, *rule.value)
            for rule in self.rules
        )

    def of(self, predicate: str) -> list[Constraint]:
        """The constraints on a property, those of its inverses left out."""
        return [rule for rule in self.rules if rule.predicate == predicate]

    def of_all(self, predicate: str) -> list[Constraint]:
        """Those of a property that can be said without their targets: where one of a kind asks
        another thing of other subjects, as a class that depends on the subject's, neither can."""
        rules = self.of(predicate)

        def differ(one: Constraint, other: Constraint) -> bool:
            targets = (one.classes, one.nodes) != (other.classes, other.nodes)
            return one.kind == other.kind and one.value != other.value and targets

        return [one for one in rules if not any(differ(one, other) for other in rules)]

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
    *paths: str | Path,
    complete: Sequence[str] = (),
    turtle: str | None = None,
    slow_minutes: float = 10.0,
) -> Constraints:
    """The constraints in RDF files (shapes, an ontology, or data with both).

    Args:
      *paths: files in any format that `parse_triples` reads.
      complete: IRIs of classes whose members are all known.
      turtle: shapes as text, instead of files or beside them.
      slow_minutes: what pySHACL may take for all claims that it has to judge.

    Raises:
      ValueError: an unreadable file, or a constraint that makes no sense; names it.
    """
    source = rdflib.Graph()
    for path in paths:
        for triple in parse_triples(path):
            source.add(tuple(map(rdflib_term, triple)))  # type: ignore[arg-type]
    if turtle is not None:
        source.parse(data=turtle, format="turtle")
    try:
        return constraints_of(source, complete, slow_minutes)
    except ValueError as error:
        at = place(paths, error.words if isinstance(error, BadParameter) else ())
        raise ValueError(f"{at}: {error}" if at else str(error)) from None


def constraints_of(
    source: rdflib.Graph, complete: Sequence[str] = (), slow_minutes: float = 10.0
) -> Constraints:
    """The constraints in a graph; see `read_constraints`."""
    shapes, slow = read_shapes(source)
    axioms = read_axioms(source)
    rules = {rule for kind in KINDS.values() for rule in kind.read_axioms(source)}
    read = Constraints(
        rules=tuple(sorted(shapes | rules | axioms.rules)),
        symmetric=axioms.symmetric,
        inverse=axioms.inverse,
        subclass=axioms.subclass,
        complete=frozenset(complete),
        subproperty=axioms.subproperty,
        transitive=axioms.transitive,
        domain=axioms.domain,
        range=axioms.range,
        unread=axioms.unread,
    )
    return replace(read, slow=SlowShapes(as_open_world(slow, read.hierarchy), slow_minutes))

"""What every kind of constraint answers; see `epistemic.logic.kinds`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import rdflib
from rdflib.namespace import RDF, SH
from rdflib.term import Node

from epistemic.logic.graph import Graph
from epistemic.logic.hierarchy import Hierarchy
from epistemic.logic.lookup import Demand
from epistemic.logic.phrasing import Phrasing
from epistemic.logic.tables import Tables
from epistemic.logic.terms import canonical, last_segment, rdflib_term, term_text


@dataclass(frozen=True)
class Words:
    """How sentences about a property name what its constraints speak of.

    Attributes:
      said: how the property is said.
      other: IRI of another property -> how that is said.
      term: text of a term -> what a sentence calls it as a value of the property.
      class_: IRI of a class -> its name without an article.
      apart: IRI of a class -> the names of those that share no member with it.
    """

    said: Phrasing
    other: Callable[[str], Phrasing]
    term: Callable[[str], str]
    class_: Callable[[str], str]
    apart: Callable[[str], list[str]]


@dataclass(frozen=True)
class Constraint:
    """One thing that a graph may not say; each kind of constraint is a class of its own.

    Attributes:
      predicate: IRI of the property; of the class for `Disjoint`.
      value: what the kind needs beside: the limit, the class or datatype, the members, the bound
        as a literal, the greater property, the disjoint class, the (subject, object) of a negative
        assertion.
      classes: the constraint holds for members of any of these classes;
      nodes: and for these terms. Both empty: for every subject.

    Class attributes:
      kind: the kind's name, as in settings and in constraints' names.
      card_kind: what a card that breaks it is called, where not by the kind's name.
      card_family: the layouts of cards that are drawn to break it, where it has some of its own.
      parameter: the SHACL parameter that states it, if one does.
      axiom: the OWL class of the properties that keep it, if there is one.
      axiom_value: its value where OWL states it.
      names_in_value: whether its value names properties or classes.
      terms_in_value: whether its value names terms of the graph.
      allows_one_subject: whether a value has one subject at most.
      excludes_others: whether what its property says of a pair, the others in it may not say.
      is_of_numbers: whether it asks for numbers and their like.
      joins_every_card: whether it is said in every card about its property; what it asks of
        single values is said in cards of its own alone.
    """

    kind: ClassVar[str]
    card_kind: ClassVar[str] = ""
    card_family: ClassVar[str] = ""
    parameter: ClassVar[rdflib.URIRef | None] = None
    axiom: ClassVar[rdflib.URIRef | None] = None
    axiom_value: ClassVar[tuple[str, ...]] = ()
    names_in_value: ClassVar[bool] = False
    terms_in_value: ClassVar[bool] = False
    allows_one_subject: ClassVar[bool] = False
    excludes_others: ClassVar[bool] = False
    is_of_numbers: ClassVar[bool] = False
    joins_every_card: ClassVar[bool] = True

    predicate: str
    value: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    def __lt__(self, other: Constraint) -> bool:
        return self._key < other._key

    @property
    def _key(self) -> tuple[object, ...]:
        return self.kind, self.predicate, self.value, self.classes, self.nodes

    @property
    def name(self) -> str:
        """A readable, unique name, such as `max_count(capital, 1)`."""
        return constraint_name(
            self.kind, (self.predicate, *self.value), (*self.classes, *self.nodes)
        )

    def for_everyone(self) -> Constraint:
        """The same without targets."""
        return replace(self, classes=(), nodes=())

    def renamed(self, rename: Callable[[str], str]) -> Constraint:
        """The same about properties and classes of other names."""
        value = tuple(map(rename, self.value)) if self.names_in_value else self.value
        return replace(self, predicate=rename(self.predicate), value=value)

    # What it speaks of.

    @property
    def allows_one_value(self) -> bool:
        """Whether a subject has one value at most."""
        return False

    @property
    def vocabulary(self) -> set[str]:
        """IRIs of the properties and classes that it speaks of, targets apart."""
        return {self.predicate, *(self.value if self.names_in_value else ())}

    @property
    def mentioned(self) -> set[str]:
        """All terms that it names, as the graph's table has them."""
        names_terms = self.names_in_value or self.terms_in_value
        values = map(canonical, self.value if names_terms else ())
        return {self.predicate, *self.classes, *self.nodes, *values}

    @property
    def class_names(self) -> set[str]:
        """IRIs of the classes that it speaks of."""
        return set(self.classes)

    @property
    def disjoint_pairs(self) -> list[tuple[str, str]]:
        """Pairs of classes that it keeps apart."""
        return []

    @property
    def value_class(self) -> str | None:
        """The class that every value of the property has, where it asks for one."""
        return None

    @property
    def greater(self) -> str | None:
        """IRI of the property whose values must be greater, if there is one."""
        return None

    def follows_from(self, rules: Iterable[Constraint]) -> bool:
        """Whether others on its property say as much already."""
        return False

    def allowed(self, graph: Graph) -> np.ndarray:
        """bool[terms]: the graph's terms that are allowed as values, one by one."""
        return np.ones(len(graph.terms), bool)

    # Read.

    @classmethod
    def read_value(cls, source: rdflib.Graph, part: Node, value: Node) -> tuple[str, ...] | None:
        """Its value by what its SHACL parameter says; None where pySHACL has to judge it.

        Args:
          source: where the shape is described.
          part: the property shape.
          value: of the parameter.
        """
        return (term_text(value),)

    @classmethod
    def read_axioms(cls, source: rdflib.Graph) -> Iterator[Constraint]:
        """Every constraint of the kind that OWL states."""
        if cls.axiom is not None:
            for predicate in source.subjects(RDF.type, cls.axiom):
                yield cls(str(predicate), cls.axiom_value)

    # Written.

    def write(self, shapes: rdflib.Graph, hierarchy: Hierarchy) -> None:
        """Add it as SHACL shapes for a graph that is closed under symmetry, inverses, subclasses.

        Args:
          shapes: what it is added to.
          hierarchy: what is known of classes.
        """
        part = add_property(shapes, self._write_targets(shapes), self._write_path(shapes))
        self._write_demand(shapes, part)

    def _write_targets(self, shapes: rdflib.Graph) -> rdflib.BNode:
        """Add a node shape of what it looks at."""
        node = rdflib.BNode()
        shapes.add((node, RDF.type, SH.NodeShape))
        for name in self.classes:
            shapes.add((node, SH.targetClass, rdflib.URIRef(name)))
        for term in self.nodes:
            shapes.add((node, SH.targetNode, rdflib_term(term)))
        if not (self.classes or self.nodes):
            self._write_everyone(shapes, node)
        return node

    def _write_everyone(self, shapes: rdflib.Graph, node: rdflib.BNode) -> None:
        """Add the targets of a constraint that holds for every subject."""
        shapes.add((node, SH.targetSubjectsOf, rdflib.URIRef(self.predicate)))

    def _write_path(self, shapes: rdflib.Graph) -> rdflib.term.Node:
        """Add the way from what it looks at to what it asks about."""
        return rdflib.URIRef(self.predicate)

    def _write_demand(self, shapes: rdflib.Graph, part: rdflib.BNode) -> None:
        """Add what it asks to a property shape."""
        if self.parameter is not None:
            shapes.add((part, self.parameter, rdflib_term(self.value[0])))

    # Compiled.

    def compile(self, tables: Tables) -> None:
        """Lay out what it demands of claims about its property, and report who breaks it."""
        if self.predicate not in tables.ids:
            return
        target = tables.target(self.classes, self.nodes)
        broken = self.broken(tables)
        self.add_rows(tables, target, broken)
        mine = tables.stated(self.predicate)
        seen = tables.focus(self.classes, self.nodes)[mine[:, 0]]
        tables.report(self.name, mine[broken & seen, 0])

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        """File the rows that a claim about its property must keep.

        Args:
          tables: the workspace.
          target: the trait of the subjects that it looks at.
          broken: bool[M], the property's triples that break it already.
        """
        raise NotImplementedError

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        """bool[M]: which of its property's triples, i32[M, 3], break it, targets apart.

        Args:
          tables: the workspace.
          joined: classes of which their subjects are members as well.
        """
        raise NotImplementedError

    def barred(self, tables: Tables, joined: frozenset[str]) -> Iterable[tuple[str, np.ndarray]]:
        """(reason, bool[terms]): the terms that can't become members of classes.

        Args:
          tables: the workspace.
          joined: a class with all above it, which a claim of type makes its subject a member of.
        """
        entered = joined & set(self.classes)
        if entered:
            outside = np.zeros(tables.terms, bool)
            for name in entered:
                outside |= ~tables.members(name)
            unseen = outside & ~tables.focus(self.classes, self.nodes)
            subjects = tables.stated(self.predicate)[self.broken(tables, joined), 0]
            yield "target", unseen & tables.column(subjects)

    # Said.

    def say(self, words: Words) -> str:
        """It in a sentence; "" where there is none."""
        return ""

    def also_said(self, rules: Iterable[Constraint]) -> list[str]:
        """Names of other constraints that its sentence puts into words as well."""
        return []


class ValueConstraint(Constraint):
    """A constraint on single values: each term that is allowed has a trait, which rows ask for."""

    card_family = "value"
    is_of_numbers = True
    joins_every_card = False

    @property
    def test(self) -> tuple[str, tuple[str, ...]]:
        """Names what it asks, whatever the property."""
        return self.kind, self.value

    def allows(self, term: str) -> bool:
        """Whether a term, as text, is allowed as a value."""
        raise NotImplementedError

    def allowed(self, graph: Graph) -> np.ndarray:
        if self.test not in graph.columns:
            graph.columns[self.test] = self._allowed(graph)
        return graph.columns[self.test]

    def _allowed(self, graph: Graph) -> np.ndarray:
        return np.array([self.allows(term) for term in graph.terms], bool)

    def add_rows(self, tables: Tables, target: int, broken: np.ndarray) -> None:
        trait = tables.value_trait(self)
        tables.add_row(self.name, self.predicate, Demand.HAS, target=target, trait=trait)

    def broken(self, tables: Tables, joined: frozenset[str] = frozenset()) -> np.ndarray:
        return ~tables.allowed(self)[tables.stated(self.predicate)[:, 2]]


class BadParameter(ValueError):
    """A parameter of a shape makes no sense.

    Attributes:
      words: what stands where it is written.
    """

    def __init__(self, parameter: rdflib.URIRef | None, value: Node, why: str) -> None:
        name = last_segment(str(parameter))
        super().__init__(f'sh:{name} "{short_name(term_text(value))}": {why}')
        self.words = (name, short_name(term_text(value)))


def whole_number(parameter: rdflib.URIRef | None, value: Node) -> int:
    """A number of values or characters, as a parameter of a shape gives it.

    Raises:
      BadParameter: it is none, or below 0, or beyond any graph.
    """
    text = str(value)
    if not (isinstance(value, rdflib.Literal) and text.isascii() and text.isdecimal()):
        raise BadParameter(parameter, value, "a whole number of 0 or more is needed")
    if len(text.lstrip("0")) > 9:
        raise BadParameter(parameter, value, "at most 999999999")
    return int(text)


def constraint_name(kind: str, terms: Iterable[str], targets: Iterable[str] = ()) -> str:
    """A readable name, such as `datatype(length, integer) of River`."""
    where = ", ".join(map(short_name, targets))
    return f"{kind}({', '.join(map(short_name, terms))})" + (f" of {where}" if where else "")


def short_name(term: str) -> str:
    """A literal's text as it stands, or the last segment of an IRI."""
    return term[1 : term.rindex('"')] if term.startswith('"') else last_segment(term)


def add_property(
    shapes: rdflib.Graph, node: rdflib.term.Node, path: rdflib.term.Node
) -> rdflib.BNode:
    """Add a property shape with a path to a node shape."""
    part = rdflib.BNode()
    shapes.add((node, SH.property, part))
    shapes.add((part, SH.path, path))
    return part


def add_class_shape(shapes: rdflib.Graph, name: str) -> rdflib.BNode:
    """Add a shape of the members of a class."""
    shape = rdflib.BNode()
    shapes.add((shape, SH["class"], rdflib.URIRef(name)))
    return shape

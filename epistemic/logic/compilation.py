"""Compilation: a graph and its constraints into the arrays that `epistemic.logic.lookup` reads.

What each kind of constraint lays out is its own affair (`epistemic.logic.kinds`); here is what
they have in common: the closure, the vocabulary, and claims that something is of a class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epistemic.logic.closure import closure
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph, sorted_unique
from epistemic.logic.kinds import Negative, constraint_name
from epistemic.logic.lookup import Index, Rows, lay_out_triples
from epistemic.logic.tables import CardsSay, Tables, ValueTest, Violation

# Why a term can't become a member of a class, in the order in which they are given as reasons: it
# is a member of a disjoint class; it is the value of a property whose values are of a disjoint
# class; as a member it would be looked at by a constraint that it breaks.
_REASONS = ("disjoint", "class", "target")


class Compiled(NamedTuple):
    """What `compile_oracle` makes: device arrays and what the host needs to speak of them.

    Attributes:
      lookup: the graph, closed under its logic, as the device sees it.
      rows: the constraints as the device sees them.
      triples: i32[places, 3], what each place says; pseudo-predicates included.
      by_predicate: predicate -> i32[M, 3] in order, the same without those.
      pseudo: pseudo-predicate -> "not P" and the like.
      names: of constraints, by number.
      value_traits: trait -> the test that gives it to a literal.
      violations: what the graph itself breaks.
    """

    lookup: Index
    rows: Rows
    triples: np.ndarray
    by_predicate: dict[int, np.ndarray]
    pseudo: dict[int, str]
    names: list[str]
    value_traits: dict[int, ValueTest]
    violations: list[Violation]


def with_vocabulary(graph: Graph, constraints: Constraints) -> Graph:
    """The graph with every term that the constraints name in its table."""
    missing = sorted((constraints.mentioned | {TYPE}) - graph.ids.keys())
    if not missing:
        return graph
    return Graph.from_codes([*graph.terms, *missing], graph.triples, graph.language)


def compile_oracle(
    graph: Graph, constraints: Constraints, spare: int = 4096, cards: CardsSay | None = None
) -> Compiled:
    """Compile a graph whose table has the constraints' vocabulary (`with_vocabulary`).

    Args:
      graph: what is known.
      constraints: what may not be said.
      spare: room for terms in claims that the graph has never heard of.
      cards: where the graph is made of cards.
    """
    tables = Tables(
        graph,
        closure(graph, constraints),
        constraints.hierarchy,
        constraints.synonyms,
        spare,
        cards,
    )
    for rule in constraints.rules:
        rule.compile(tables)
    tables.add_denied(lambda predicate: constraint_name(Negative.kind, (predicate,)))
    for name in _classes(constraints, tables):
        _compile_type_claims(constraints, tables, name)
    triples = sorted_unique(tables.triples())
    room = cards.room if cards else 0
    traits = tables.trait_words()
    return Compiled(
        lay_out_triples(triples, graph.rank, traits, tables.capacity, room),
        tables.rows(),
        triples,
        tables.by_predicate,
        tables.pseudo,
        tables.names,
        tables.value_traits,
        tables.violations,
    )


def _classes(constraints: Constraints, tables: Tables) -> list[str]:
    """The classes that claims of type can be about and that some constraint speaks of."""
    names = set(constraints.hierarchy.above).union(
        *(rule.class_names for rule in constraints.rules)
    )
    if tables.cards is not None:
        names &= tables.cards.claimed
    return sorted(names & tables.ids.keys())


def _compile_type_claims(constraints: Constraints, tables: Tables, name: str) -> None:
    """Claims that something is a member of a class: a row a reason, filed under the class."""
    joined = constraints.hierarchy.above_of(name)
    barred = {reason: np.zeros(tables.terms, bool) for reason in _REASONS}
    for rule in constraints.rules:
        for reason, terms in rule.barred(tables, joined):
            barred[reason] |= terms
    for reason, terms in barred.items():
        if terms.any():
            tables.bar_from_class(name, constraint_name(reason, (name,)), terms)

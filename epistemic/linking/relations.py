"""The relations of a domain, as extraction knows them: their wordings, and what they relate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from epistemic.domain import Domain
from epistemic.linking.names import Kind, Tokens, is_number, tokens
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.terms import literal_text, split_literal
from epistemic.predicates import Predicate, default_predicate

SLOT, OTHER = "@", "~"
"""Where a sentence names what is related, and where it names something else."""
_SUBJECT, _OBJECT = "zzsubjectzz", "zzobjectzz"
# Words that carry no relation by themselves; their order still counts.
FUNCTION_WORDS = (
    "is are was were be been does do did has have had of in on at to into with as by from for its "
    "their it that this which what where who and or there so s one some among called known"
)
FILLER_WORDS = "is are was were be been does do did it true that known case"
FUNCTION, FILLER = (frozenset(words.split()) for words in (FUNCTION_WORDS, FILLER_WORDS))
_POSSESSIVES = (
    "{s}'s {label} is {o}.",
    "{o} is {s}'s {label}.",
    "{s} has the {label} {o}.",
)


class Relation(NamedTuple):
    """A predicate as extraction knows it.

    Attributes:
      iri: of it.
      subjects, objects: classes of what it relates in the graph, by id.
      relates: what it relates things to.
      numbers: value -> literal, of those that the graph states.
      datatype: of its literals, or None where it has none.
    """

    iri: str
    subjects: frozenset[int]
    objects: frozenset[int]
    relates: Kind
    numbers: Mapping[Decimal, str]
    datatype: str | None


class Wording(NamedTuple):
    """A wording of a relation: its words with slots, and whether the object stands first."""

    relation: int
    swapped: bool
    words: Tokens
    content: frozenset[str]


def stem(word: str) -> str:
    """A word without the endings of English verbs and plurals."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word.removesuffix('ies')}y"
    for ending, least in (("ing", 6), ("ed", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


def content_of(words: Sequence[str]) -> frozenset[str]:
    """The words that carry meaning."""
    return frozenset(
        word
        for word in words
        if word not in FUNCTION and word not in (SLOT, OTHER) and not is_number(word)
    )


def templates_of(predicate: Predicate) -> list[str]:
    """How a domain asks and states a relation, and its label in the commonest forms."""
    plain = default_predicate(predicate.iri, True, predicate.label)
    several = default_predicate(predicate.iri, False, predicate.label)
    frames = (frame.replace("{label}", predicate.label) for frame in _POSSESSIVES)
    own = (*predicate.questions, *predicate.facts)
    return [*own, *plain.questions, *plain.facts, *several.questions, *several.facts, *frames]


def wording_of(relation: int, template: str, unit: str) -> Wording | None:
    """A template as words with slots; None where it lacks one."""
    words = tokens(template.replace("{s}", _SUBJECT).replace("{o}", _OBJECT))
    if _SUBJECT not in words or _OBJECT not in words:
        return None
    swapped = words.index(_OBJECT) < words.index(_SUBJECT)
    kept = tuple(
        SLOT if word in (_SUBJECT, _OBJECT) else stem(word)
        for word in words
        if word not in FILLER and word not in tokens(unit)
    )
    return Wording(relation, swapped, kept, content_of(kept))


def types_of(domain: Domain, graph: Graph) -> dict[int, frozenset[int]]:
    """Classes of each thing, with those above them."""
    hierarchy = domain.constraints.hierarchy
    found: dict[int, set[int]] = {}
    for thing, _, kind in graph.triples[graph.triples[:, 1] == graph.ids.get(TYPE, -1)].tolist():
        above = hierarchy.above_of(graph.terms[kind])
        found.setdefault(thing, set()).update(graph.ids[k] for k in above if k in graph.ids)
    return {thing: frozenset(kinds) for thing, kinds in found.items()}


def relation_of(
    domain: Domain, graph: Graph, types: Mapping[int, frozenset[int]], predicate: Predicate
) -> Relation:
    """What the graph shows of a predicate, or by its inverses."""
    pairs = [
        graph.triples[graph.triples[:, 1] == graph.ids.get(name, -1)][:, [2, 0] if flip else [0, 2]]
        for name, flip in domain.constraints.synonyms(predicate.iri)
    ]
    subjects, objects = np.concatenate(pairs).T
    numbers: dict[Decimal, str] = {}
    datatypes: Counter[str] = Counter()
    for term in np.unique(objects).tolist():
        parts = split_literal(graph.terms[term])
        if parts is not None and is_number(parts.lexical):
            numbers[Decimal(parts.lexical)] = graph.terms[term]
            datatypes[parts.datatype or ""] += 1
    of_class: Kind = "class" if predicate.iri == TYPE else "thing"
    return Relation(
        predicate.iri,
        _common(types, subjects),
        _common(types, objects),
        "number" if datatypes else of_class,
        numbers,
        datatypes.most_common(1)[0][0] if datatypes else None,
    )


def _common(types: Mapping[int, frozenset[int]], terms: np.ndarray) -> frozenset[int]:
    """Classes of at least a tenth of the terms."""
    distinct = np.unique(terms).tolist()
    counts = Counter(kind for term in distinct for kind in types.get(term, frozenset()))
    return frozenset(kind for kind, number in counts.items() if number >= len(distinct) / 10)


def class_names(domain: Domain, graph: Graph) -> dict[Tokens, int]:
    """Names of the classes of the graph's things, by their tokens."""
    kinds = np.unique(graph.triples[graph.triples[:, 1] == graph.ids.get(TYPE, -1), 2])
    return {tokens(domain.class_name(graph.terms[kind])): kind for kind in kinds.tolist()}


def literal_of(relation: Relation, number: str) -> str:
    """The literal that a number stands for: the graph's, or one of the commonest datatype."""
    known = relation.numbers.get(Decimal(number))
    return known or literal_text(number, None, relation.datatype)

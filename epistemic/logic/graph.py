"""A graph as sorted integers: terms become ids once, on the host; everything after is arrays.

Outside the arrays a term is text, see `epistemic.logic.terms`.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import rdflib
from rdflib.namespace import RDF, RDFS

from epistemic.logic.parsing import parse_triples
from epistemic.logic.terms import (
    SCALE_SHIFT,
    Scale,
    canonical,
    plain_label,
    rdflib_term,
    split_literal,
    value_of,
)

TYPE = str(RDF.type)
LABEL = str(RDFS.label)
LABELS = (
    LABEL,
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "https://schema.org/name",
    "http://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)
"""Properties that say what a thing is called, the one that wins first."""
Name = TypeVar("Name")


@dataclass(frozen=True, eq=False)
class Graph:
    """Triples over a sorted table of terms.

    Ids follow the order of terms: IRIs, blank nodes, literals that don't compare, then literals
    by value. A group of objects in id order is therefore in order of value too.

    Attributes:
      terms: text of each term; its place is its id.
      ids: text of a term -> its id.
      triples: i32[triples, 3] of (subject, predicate, object) ids, sorted, without duplicates.
      is_name: bool[terms], IRIs and blank nodes.
      rank: i32[terms], order-preserving within a scale of literals; 0 where nothing compares.
      label_source: the labels, read when they are first asked for; graphs with one table of terms
        share them.
      values, value_ranks: (scale, value) of the literals that compare, in order, and i32 ranks.
      columns: columns over terms that are worth keeping, by what they say; see
        `epistemic.logic.kinds.ValueKind.allowed`.
      language: the language that labels are wanted in.
    """

    terms: list[str]
    ids: dict[str, int] = field(repr=False)
    triples: np.ndarray
    is_name: np.ndarray
    rank: np.ndarray
    label_source: Callable[[], list[str]] = field(repr=False)
    values: list[tuple[Scale, Any]] = field(default_factory=list, repr=False)
    value_ranks: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32), repr=False)
    columns: dict[object, np.ndarray] = field(default_factory=dict, repr=False)
    language: str = "en"

    @classmethod
    def from_triples(cls, triples: Iterable[Sequence[str]], language: str = "en") -> Graph:
        """Build from (subject, predicate, object) texts; duplicates and order don't matter."""
        flat: list[str] = [term for triple in triples for term in triple]
        first_seen: dict[str, int] = {}
        codes = np.fromiter(
            (first_seen.setdefault(term, len(first_seen)) for term in flat), np.int64, len(flat)
        )
        renamed = {term: canonical(term) for term in first_seen}
        return cls.from_codes(
            [renamed[term] for term in first_seen], codes.reshape(-1, 3), language
        )

    @classmethod
    def from_codes(cls, texts: Sequence[str], codes: np.ndarray, language: str = "en") -> Graph:
        """Build from a table of texts in any order and i[triples, 3] places in it."""
        unique = sorted(set(texts))
        values = {text: value_of(text) for text in unique if text.startswith('"')}
        names = [text for text in unique if text not in values]
        names.sort(key=lambda text: text.startswith("_:"))
        incomparable = [text for text, (scale, _) in values.items() if not scale]
        ordered = sorted(
            (text for text, (scale, _) in values.items() if scale), key=lambda text: values[text]
        )
        terms = [*names, *incomparable, *ordered]
        rank = np.zeros(len(terms), np.int32)
        in_order = [values[text] for text in ordered]
        value_ranks = _ranks(in_order)
        rank[len(terms) - len(ordered) :] = value_ranks
        ids = {text: i for i, text in enumerate(terms)}
        place = np.fromiter((ids[text] for text in texts), np.int32, len(texts))
        triples = sorted_unique(place[codes] if len(codes) else np.zeros((0, 3), np.int32))
        return cls(
            terms=terms,
            ids=ids,
            triples=triples,
            is_name=np.arange(len(terms)) < len(names),
            rank=rank,
            label_source=cache(partial(_read_labels, terms, ids, triples, language)),
            values=in_order,
            value_ranks=value_ranks,
            language=language,
        )

    def __len__(self) -> int:
        return len(self.triples)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the graph's triples as text: equal graphs, equal digests."""
        digest = hashlib.sha256()
        digest.update("\n".join(self.terms).encode())
        digest.update(np.ascontiguousarray(self.triples, "<i4").tobytes())
        return digest.hexdigest()

    @property
    def labels(self) -> list[str]:
        """What a reader calls each term: the first that it has of `LABELS`, else the IRI's last
        segment, else its text.

        Of several labels of one property the one in the wanted language wins, then one without a
        language, then the first in order of text.
        """
        return self.label_source()

    def label(self, term: int) -> str:
        return self.labels[term]

    @property
    def naming(self) -> list[int]:
        """Those of `LABELS` that the graph knows."""
        return [self.ids[name] for name in LABELS if name in self.ids]

    @cached_property
    def shared_labels(self) -> dict[str, list[int]]:
        """Labels that several subjects bear: such terms must never meet in one card."""
        owners: dict[str, list[int]] = {}
        for subject in np.unique(self.triples[:, 0]):
            owners.setdefault(self.labels[subject], []).append(int(subject))
        return {label: terms for label, terms in sorted(owners.items()) if len(terms) > 1}

    def with_triples(self, triples: np.ndarray) -> Graph:
        """The same table of terms with other triples, i32[M, 3]."""
        return replace(self, triples=sorted_unique(triples))

    def without(self, mask: np.ndarray) -> Graph:
        """The graph less the triples where mask, bool[triples], is true."""
        return self.with_triples(self.triples[~mask])

    def rank_of(self, term: str) -> int:
        """The rank of a literal that may not be in the graph: odd where it falls between two."""
        scale, value = value_of(term)
        if not scale:
            return 0
        at = bisect_left(self.values, (scale, value))
        if at < len(self.values) and self.values[at] == (scale, value):
            return int(self.value_ranks[at])
        if at and self.values[at - 1][0] == scale:
            return int(self.value_ranks[at - 1]) + 1
        return (scale << SCALE_SHIFT) + 1

    def to_rdflib(self) -> rdflib.Graph:
        """The graph as rdflib's, for pySHACL."""
        graph = rdflib.Graph()
        nodes = [rdflib_term(term) for term in self.terms]
        for s, p, o in self.triples:
            graph.add((nodes[s], nodes[p], nodes[o]))
        return graph


def _read_labels(
    terms: Sequence[str], ids: dict[str, int], triples: np.ndarray, language: str
) -> list[str]:
    """The label of each term, see `Graph.labels`."""
    labels = [plain_label(term) for term in terms]
    for name in reversed([ids[name] for name in LABELS if name in ids]):
        rows = triples[triples[:, 1] == name].tolist()
        given = ((s, terms[o]) for s, _, o in rows if terms[o].startswith('"'))
        for subject, label in best_labels(given, language).items():
            labels[subject] = label
    return labels


def best_labels(given: Iterable[tuple[Name, str]], language: str) -> dict[Name, str]:
    """Of the labels given to each name, as terms, the one that wins; see `Graph.labels`."""
    best: dict[Name, tuple[int, str]] = {}
    for name, label in given:
        parts = split_literal(label)
        lexical, tag = (label, None) if parts is None else parts[:2]
        preference = 0 if tag == language else 1 if tag is None else 2
        best[name] = min(best.get(name, (3, "")), (preference, lexical))
    return {name: lexical for name, (_, lexical) in best.items()}


def _ranks(values: list[tuple[Scale, Any]]) -> np.ndarray:
    """Even places from 2 upwards within each scale, equal for equal values."""
    ranks = np.zeros(len(values), np.int32)
    place, before = 0, (Scale.NONE, None)
    for i, (scale, value) in enumerate(values):
        if scale != before[0]:
            place = 2
        elif value != before[1]:
            place += 2
        ranks[i] = (scale << SCALE_SHIFT) + place
        before = (scale, value)
    return ranks


def sorted_unique(triples: np.ndarray) -> np.ndarray:
    """i32[T, 3] rows in order, each once."""
    triples = np.ascontiguousarray(triples, np.int32).reshape(-1, 3)
    if not len(triples):
        return triples
    # One number a triple where that fits 63 bits: far faster to sort than three columns.
    bits = [int(column.max()).bit_length() for column in triples.T]
    if triples.min() >= 0 and sum(bits) <= 63:
        wide = triples.astype(np.int64)
        keys = (wide[:, 0] << (bits[1] + bits[2])) | (wide[:, 1] << bits[2]) | wide[:, 2]
        keys.sort()
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        found = np.empty((len(keys), 3), np.int32)
        found[:, 0] = keys >> (bits[1] + bits[2])
        found[:, 1] = (keys >> bits[2]) & ((1 << bits[1]) - 1)
        found[:, 2] = keys & ((1 << bits[2]) - 1)
        return found
    order = np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0]))
    triples = triples[order]
    fresh = np.ones(len(triples), bool)
    fresh[1:] = (triples[1:] != triples[:-1]).any(axis=1)
    return triples[fresh]


def read_graph(*paths: str | Path, language: str = "en") -> Graph:
    """One graph out of one or several RDF files; see `parse_triples`."""
    return Graph.from_triples(
        (triple for path in paths for triple in parse_triples(path)), language=language
    )


def neighbourhood(graph: Graph, ids: Sequence[int], hops: int = 1) -> np.ndarray:
    """i32[M, 3] triples within `hops` of any of the ids, less types, labels and hubs' others.

    Types and labels don't count as links, or everything would be two hops from everything.
    """
    triples = graph.triples
    link = ~np.isin(triples[:, 1], [graph.ids.get(TYPE, -1), *graph.naming])
    reached = np.asarray(ids)
    near = np.zeros(len(triples), bool)
    for _ in range(hops):
        near = link & (np.isin(triples[:, 0], reached) | np.isin(triples[:, 2], reached))
        reached = np.union1d(triples[near][:, [0, 2]], reached)
    return triples[near]

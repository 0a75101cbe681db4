"""Names of a graph's things, and where a text mentions them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from rapidfuzz import fuzz, process

from epistemic.logic.graph import LABELS, TYPE, Graph, parse_triples
from epistemic.logic.terms import split_literal

Tokens = tuple[str, ...]
Kind = Literal["thing", "number", "class"]

ALIASES = (
    "http://www.w3.org/2004/02/skos/core#altLabel",
    "http://schema.org/alternateName",
    "https://schema.org/alternateName",
    *LABELS[1:],
)
"""Properties whose values are further names of their subject."""

COMMENT = "http://www.w3.org/2000/01/rdf-schema#comment"

_TOKEN = re.compile(r"(?<!\w)-?\d[\d,]*(?:\.\d+)?(?!\w)|[^\W_]+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ARTICLES = frozenset({"the", "a", "an"})
BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
# Names whose similarity is within so many points of the best one's may be meant as well.
_MARGIN = 3.0
_LONGEST = 8  # words of a literal that is a name
_SHORTEST = 4  # letters of a name that is looked for by likeness


class Words(NamedTuple):
    """A text as words without case, accents, punctuation and articles; numbers whole.

    "The mouth of São Francisco: 1,200 km" gives mouth, of, sao, francisco, 1200, km.

    Attributes:
      words: in order.
      capital: bool a word, whether it began with a capital letter.
    """

    words: Tokens
    capital: tuple[bool, ...]


def words_of(text: str) -> Words:
    """The words of a text."""
    plain = unicodedata.normalize("NFKD", text)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    found = [word for word in _TOKEN.findall(plain) if word.casefold() not in _ARTICLES]
    lower = tuple(word.casefold().replace(",", "") for word in found)
    return Words(lower, tuple(word[0].isupper() for word in found))


def tokens(text: str) -> Tokens:
    """The words of a text alone."""
    return words_of(text).words


def is_number(token: str) -> bool:
    """Whether a token is a number."""
    return _NUMBER.fullmatch(token) is not None


class Mention(NamedTuple):
    """A place in a text that names things.

    Attributes:
      start, stop: its tokens.
      terms: ids of the things that bear the name; empty for a number.
      number: the number, or None.
      kind: what is named.
    """

    start: int
    stop: int
    terms: tuple[int, ...]
    number: str | None = None
    kind: Kind = "thing"


class Names:
    """What a graph's things are called: label, label without what stands in brackets, aliases.

    Args:
      graph: whose things they are.
      aliases: further names by IRI, beside those that the graph states.
      similarity: least similarity in percent (normalised InDel distance, see rapidfuzz's `ratio`)
        of a name that is spelt otherwise; None: names count only as they are.
    """

    def __init__(
        self,
        graph: Graph,
        aliases: Mapping[str, Sequence[str]] | None = None,
        similarity: float | None = None,
    ) -> None:
        self._bearers: dict[Tokens, set[int]] = {}
        for term in _things(graph).tolist():
            label = graph.labels[term]
            given = (aliases or {}).get(graph.terms[term], ())
            for name in (label, BRACKET.sub("", label), *given):
                self._add(name, term)
        for term, name in _stated(graph):
            self._add(name, term)
        self.longest = max(map(len, self._bearers), default=0)
        self._texts = [" ".join(name) for name in self._bearers]
        self._similarity = similarity
        self._near = lru_cache(maxsize=1 << 16)(self._alike)

    def _add(self, name: str, term: int) -> None:
        if words := tokens(name):
            self._bearers.setdefault(words, set()).add(term)

    def exact(self, words: Tokens) -> list[Mention]:
        """Mentions of names as they are, and numbers; the longest from the left on."""
        found = []
        at = 0
        while at < len(words):
            mention = self._longest(words, at)
            if mention is not None:
                found.append(mention)
            at = at + 1 if mention is None else mention.stop
        return found

    def _longest(self, words: Tokens, at: int) -> Mention | None:
        for stop in range(min(len(words), at + self.longest), at, -1):
            if bearers := self._bearers.get(words[at:stop]):
                return Mention(at, stop, tuple(sorted(bearers)))
        if is_number(words[at]):
            return Mention(at, at + 1, (), words[at], "number")
        return None

    def near(self, words: Tokens, free: Sequence[bool], function: frozenset[str]) -> Mention | None:
        """The mention most like a name among tokens that nothing has claimed.

        Args:
          words: of the text.
          free: whether each is unclaimed.
          function: words that no mention begins or ends with.
        """
        best: tuple[float, int, Mention] | None = None
        for start in range(len(words)):
            for stop in range(start + 1, min(len(words), start + self.longest) + 1):
                if not all(free[start:stop]):
                    break
                if words[start] in function or words[stop - 1] in function:
                    continue
                score, terms = self._near(" ".join(words[start:stop]))
                here = (score, stop - start, Mention(start, stop, terms))
                if terms and (best is None or here[:2] > best[:2]):
                    best = here
        return None if best is None else best[2]

    def _alike(self, span: str) -> tuple[float, tuple[int, ...]]:
        """The best similarity of any name to a span, and all that bear such names."""
        if self._similarity is None or len(span) < _SHORTEST:
            return 0.0, ()
        found = process.extract(
            span, self._texts, scorer=fuzz.ratio, score_cutoff=self._similarity, limit=5
        )
        if not found:
            return 0.0, ()
        best = found[0][1]
        alike = [tuple(name.split()) for name, score, _ in found if score >= best - _MARGIN]
        return best, tuple(sorted(set().union(*(self._bearers[name] for name in alike))))


def read_aliases(*paths: str) -> dict[str, list[str]]:
    """Names by IRI, from RDF files; see `ALIASES`."""
    found: dict[str, list[str]] = {}
    for path in paths:
        for subject, predicate, thing in parse_triples(path):
            parts = split_literal(thing)
            if predicate in ALIASES and parts is not None:
                found.setdefault(subject, []).append(parts.lexical)
    return found


def _things(graph: Graph) -> np.ndarray:
    """i32[n]: what the graph speaks of: subjects and objects, less classes and properties; of
    literals those that are names, neither numbers nor long nor said of a thing's own name.
    """
    triples = graph.triples
    typed = triples[:, 1] == graph.ids.get(TYPE, -1)
    naming = [graph.ids[name] for name in (LABELS[0], COMMENT, *ALIASES) if name in graph.ids]
    told = ~typed & ~np.isin(triples[:, 1], naming)
    spoken = np.unique(np.concatenate([triples[:, 0], triples[told, 2]]))
    other = np.union1d(triples[:, 1], triples[typed, 2])
    things = np.setdiff1d(spoken, other)
    literals = things[~graph.is_name[things]].tolist()
    names = [term for term in literals if _is_name(graph.labels[term])]
    return np.concatenate([things[graph.is_name[things]], np.array(names, things.dtype)])


def _is_name(text: str) -> bool:
    words = tokens(text)
    return 0 < len(words) <= _LONGEST and not (len(words) == 1 and is_number(words[0]))


def _stated(graph: Graph) -> Iterator[tuple[int, str]]:
    """Aliases that the graph itself states."""
    known = [graph.ids[name] for name in ALIASES if name in graph.ids]
    for subject, _, thing in _rows(graph, known):
        parts = split_literal(graph.terms[thing])
        if parts is not None:
            yield subject, parts.lexical


def _rows(graph: Graph, predicates: Iterable[int]) -> list[list[int]]:
    rows: list[list[int]] = graph.triples[np.isin(graph.triples[:, 1], list(predicates))].tolist()
    return rows

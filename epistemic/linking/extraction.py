"""The claim that a sentence makes: its relation, what it relates, and whether it is affirmed.

No template is turned round. Names are spotted first; what is left of the sentence is compared, as a
row of words with slots, with how the domain asks and states each relation; the most like one gives
the relation and which slot is the subject. Types of a relation's subjects and values settle which
bearer of a shared name is meant. Where two readings remain, none is chosen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from epistemic.cards import Claim
from epistemic.domain import Domain
from epistemic.linking.found import Found, Stance, Status, says_the_same
from epistemic.linking.names import Kind, Mention, Names, Tokens, Words, is_number, tokens, words_of
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.terms import literal_text, split_literal
from epistemic.predicates import Predicate, default_predicate

_SLOT = "@"
_OTHER = "~"
_SUBJECT, _OBJECT = "zzsubjectzz", "zzobjectzz"
# Words that carry no relation by themselves; their order still counts.
_FUNCTION_WORDS = (
    "is are was were be been does do did has have had of in on at to into with as by from for its "
    "their it that this which what where who and or there so s one some among called known"
)
_FILLER_WORDS = "is are was were be been does do did it true that known case"
# English negation, as lists for it have (such as Chapman et al. 2001), and words that reject.
_NEGATING_WORDS = (
    "not no never none nobody nothing neither nor without cannot t isn aren wasn weren doesn didn "
    "false wrong incorrect untrue"
)
_FUNCTION, _FILLER, _NEGATION = (
    frozenset(words.split()) for words in (_FUNCTION_WORDS, _FILLER_WORDS, _NEGATING_WORDS)
)
_UNDENIED = re.compile(r"\bnot (?:false|wrong|incorrect|untrue)\b")
# Not after an abbreviation such as "St.".
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]\.)\s+|\n+")
_POSSESSIVES = (
    "{s}'s {label} is {o}.",
    "{o} is {s}'s {label}.",
    "{s} has the {label} {o}.",
)
# Least share of a wording's words with meaning that a sentence must have.
_LEAST = 0.5
# What a wording without such words, "Egypt is in Africa", is worth beside a verb that it lacks.
_BARE = 0.5
# What types that fit are worth beside likeness, which is at most 1.5.
_FITS = 0.3


class _Relation(NamedTuple):
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


class _Wording(NamedTuple):
    """A wording of a relation: its words with slots, and whether the object stands first."""

    relation: int
    swapped: bool
    words: Tokens
    content: frozenset[str]


class _Reading(NamedTuple):
    """A relation with its slots, by likeness of words alone; `bare`: the wording has none with
    meaning and the sentence has, so that types must speak for it.
    """

    likeness: float
    relation: int
    swapped: bool
    bare: bool


class Finder:
    """Finds the claims of sentences in a domain's words and a graph's names.

    Args:
      domain: its words; no other wording is known.
      graph: whose things claims are about.
      names: of these things.
    """

    def __init__(self, domain: Domain, graph: Graph, names: Names) -> None:
        self._domain, self._graph, self._names = domain, graph, names
        self._types = _types(domain, graph)
        spoken = [*domain.predicates.values(), domain.type]
        self._relations = [_relation(domain, graph, self._types, each) for each in spoken]
        self._wordings = [
            wording
            for place, predicate in enumerate(spoken)
            for template in _templates(predicate)
            if (wording := _wording(place, template, predicate.unit)) is not None
        ]
        self._units = {word for predicate in spoken for word in tokens(predicate.unit)}
        self._classes = _class_names(domain, graph)
        said = frozenset().union(*(wording.content for wording in self._wordings))
        # "the river Volga" says no more than "Volga"; "the continent of" speaks of a relation.
        self._mere = [name for name in self._classes if not said & set(map(_stem, name))]
        self._readings = lru_cache(maxsize=1 << 16)(self._ranked)

    def find(self, text: str) -> Found:
        """The claim of a text's first sentence that makes one."""
        best = Found(Status.NO_CLAIM, None, Stance.AFFIRMS, "no relation")
        for sentence in filter(None, map(str.strip, _SENTENCE.split(text))):
            found = self._in_sentence(sentence)
            if found.status is Status.LINKED:
                return found
            if best.status is Status.NO_CLAIM:
                best = found
        return best

    def _in_sentence(self, sentence: str) -> Found:
        read = words_of(sentence)
        words = read.words
        mentions = self._whole(read, self._names.exact(words))
        while len(mentions) < 2:
            free = _unclaimed(words, mentions)
            alike = self._names.near(words, free, _FUNCTION | _NEGATION)
            if alike is None:
                break
            mentions = sorted([*mentions, alike])
        stance = _stance(sentence, words, mentions)
        if len(mentions) > 1:
            words, mentions = self._without_classes(words, mentions)
        elif mentions:
            mentions = sorted([*mentions, *self._class_mention(words, mentions)])
        pattern = _pattern(words, mentions, range(len(mentions)), self._units)
        if len(mentions) < 2:
            named = any(reading.likeness > 0 for reading in self._readings(pattern))
            if named:
                return Found(Status.NOT_FOUND, None, stance, f"unknown names: {' '.join(pattern)}")
            return Found(Status.NO_CLAIM, None, stance, "no relation")
        return self._related(words, mentions, stance)

    def _whole(self, read: Words, mentions: Sequence[Mention]) -> list[Mention]:
        """The mentions that are no part of a longer name: "Africa" in "Soutx Africa" is one.

        A capital letter beside a mention tells, where the word is no function word nor a class.
        """
        free = _unclaimed(read.words, mentions)
        mere = {word for name in self._mere for word in name}

        def continues(at: int) -> bool:
            if not (0 <= at < len(free) and free[at] and read.capital[at]):
                return False
            return read.words[at] not in _FUNCTION | _NEGATION | _FILLER | mere

        return [
            each
            for each in mentions
            if each.kind == "number" or not (continues(each.start - 1) or continues(each.stop))
        ]

    # ---- relations ----

    def _related(self, words: Tokens, mentions: Sequence[Mention], stance: Stance) -> Found:
        """The best reading of any two mentions."""
        read: list[tuple[float, Found]] = []
        for pair in combinations(range(len(mentions)), 2):
            pattern = _pattern(words, mentions, pair, self._units)
            first, second = (mentions[i] for i in pair)
            for reading in self._readings(pattern):
                subject, thing = (second, first) if reading.swapped else (first, second)
                relation = self._relations[reading.relation]
                if subject.kind == "thing" and thing.kind == relation.relates:
                    fits, found = self._resolved(relation, subject, thing, stance)
                    if fits == _FITS or not reading.bare:
                        read.append((reading.likeness + fits, found))
        if not read:
            return Found(Status.NO_CLAIM, None, stance, "no relation")
        best = max(score for score, _ in read)
        fitting = [found for score, found in read if score > best - 1e-9]
        claims = [found.claim for found in fitting if found.claim is not None]
        if claims and any(not self._same(claims[0], claim) for claim in claims[1:]):
            return Found(Status.AMBIGUOUS, None, stance, "several relations fit")
        return fitting[0]

    def _same(self, one: Claim, other: Claim) -> bool:
        return says_the_same(one, other, self._domain.constraints)

    def _resolved(
        self, relation: _Relation, subject: Mention, thing: Mention, stance: Stance
    ) -> tuple[float, Found]:
        """A relation between two mentions, and what their types speak for it."""
        subjects = self._of_type(subject.terms, relation.subjects)
        things = self._of_type(thing.terms, relation.objects)
        told = thing.kind != "thing"
        fits = _FITS / 2 * (bool(subjects) + (told or bool(things)))
        chosen, objects = subjects or subject.terms, things or thing.terms
        for terms in (chosen, objects):
            if len(terms) > 1:
                name = self._graph.labels[terms[0]]
                why = f"several things are called {name}"
                return fits, Found(Status.AMBIGUOUS, None, stance, why)
        texts = self._graph.terms
        said = _literal(relation, thing.number) if thing.number is not None else texts[objects[0]]
        return fits, Found(Status.LINKED, Claim(texts[chosen[0]], relation.iri, said), stance)

    def _of_type(self, terms: Sequence[int], classes: frozenset[int]) -> tuple[int, ...]:
        return tuple(term for term in terms if self._types.get(term, frozenset()) & classes)

    def _ranked(self, pattern: Tokens) -> tuple[_Reading, ...]:
        """Readings of a sentence by likeness, one a relation and order of slots."""
        words = tuple(map(_stem, pattern))
        content = _content(words)
        best: dict[tuple[int, bool], _Reading] = {}
        for wording in self._wordings:
            shared = _shared(content, wording.content)
            if shared < _LEAST:
                continue
            row = words if wording.content else tuple(w for w in words if w not in content)
            likeness = shared + SequenceMatcher(None, row, wording.words, False).ratio() / 2
            bare = bool(content) and not wording.content
            reading = _Reading(likeness, wording.relation, wording.swapped, bare)
            key = (wording.relation, wording.swapped)
            best[key] = max(best.get(key, reading), reading)
        return tuple(best.values())

    # ---- classes ----

    def _without_classes(
        self, words: Tokens, mentions: list[Mention]
    ) -> tuple[Tokens, list[Mention]]:
        """The sentence less names of classes that stand beside a mention ("the river Volga")."""
        drop: set[int] = set()
        for mention in mentions:
            for name in self._mere:
                for start in (mention.start - len(name), mention.stop):
                    if start >= 0 and words[start : start + len(name)] == name:
                        drop |= set(range(start, start + len(name)))
        drop -= {i for mention in mentions for i in range(mention.start, mention.stop)}
        before = np.cumsum([0, *(i in drop for i in range(len(words)))]).tolist()
        kept = tuple(word for i, word in enumerate(words) if i not in drop)
        moved = [
            each._replace(start=each.start - before[each.start], stop=each.stop - before[each.stop])
            for each in mentions
        ]
        return kept, moved

    def _class_mention(self, words: Tokens, mentions: Sequence[Mention]) -> list[Mention]:
        """The last name of a class outside the mentions, if there is one."""
        free = _unclaimed(words, mentions)
        places = [
            Mention(start, start + len(name), (term,), kind="class")
            for name, term in self._classes.items()
            for start in range(len(words))
            if words[start : start + len(name)] == name and all(free[start : start + len(name)])
        ]
        return [max(places)] if places else []


# ---- sentences ----


def _stance(sentence: str, words: Tokens, mentions: Sequence[Mention]) -> Stance:
    """Whether a sentence asks, denies or affirms."""
    if sentence.endswith("?"):
        return Stance.ASKS
    free = _unclaimed(words, mentions)
    said = " ".join(word for word, is_free in zip(words, free, strict=True) if is_free)
    denies = not _NEGATION.isdisjoint(_UNDENIED.sub("", said).split())
    return Stance.DENIES if denies else Stance.AFFIRMS


def _unclaimed(words: Tokens, mentions: Sequence[Mention]) -> list[bool]:
    """Whether each token stands outside all mentions."""
    free = [True] * len(words)
    for mention in mentions:
        free[mention.start : mention.stop] = [False] * (mention.stop - mention.start)
    return free


def _pattern(
    words: Tokens, mentions: Sequence[Mention], pair: Sequence[int], units: set[str]
) -> Tokens:
    """A sentence with slots for the mentions of a pair; units after a number are left out."""
    row: list[str] = []
    at = 0
    for place, mention in enumerate(mentions):
        row += words[at : mention.start]
        row.append(_SLOT if place in pair else _OTHER)
        at = mention.stop
        while mention.number is not None and at < len(words) and words[at] in units:
            at += 1
    row += words[at:]
    return tuple(word for word in row if word not in _FILLER and word not in _NEGATION)


def _stem(word: str) -> str:
    """A word without the endings of English verbs and plurals."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word.removesuffix('ies')}y"
    for ending, least in (("ing", 6), ("ed", 5), ("s", 4)):
        if word.endswith(ending) and len(word) >= least and not word.endswith("ss"):
            return word.removesuffix(ending)
    return word


def _content(words: Sequence[str]) -> frozenset[str]:
    """The words that carry meaning."""
    return frozenset(
        word
        for word in words
        if word not in _FUNCTION and word not in (_SLOT, _OTHER) and not is_number(word)
    )


def _shared(said: frozenset[str], wording: frozenset[str]) -> float:
    """How much of a wording's meaning a sentence says; less where it says more than that."""
    if not wording:
        return _BARE if said else 1.0
    both = len(said & wording)
    return both and 0.75 * both / len(wording) + 0.25 * both / len(said | wording)


# ---- what the domain and the graph say of relations ----


def _templates(predicate: Predicate) -> list[str]:
    """How a domain asks and states a relation, and its label in the commonest forms."""
    plain = default_predicate(predicate.iri, True, predicate.label)
    several = default_predicate(predicate.iri, False, predicate.label)
    frames = (frame.replace("{label}", predicate.label) for frame in _POSSESSIVES)
    own = (*predicate.questions, *predicate.facts)
    return [*own, *plain.questions, *plain.facts, *several.questions, *several.facts, *frames]


def _wording(relation: int, template: str, unit: str) -> _Wording | None:
    """A template as words with slots; None where it lacks one."""
    words = tokens(template.replace("{s}", _SUBJECT).replace("{o}", _OBJECT))
    if _SUBJECT not in words or _OBJECT not in words:
        return None
    swapped = words.index(_OBJECT) < words.index(_SUBJECT)
    kept = tuple(
        _SLOT if word in (_SUBJECT, _OBJECT) else _stem(word)
        for word in words
        if word not in _FILLER and word not in tokens(unit)
    )
    return _Wording(relation, swapped, kept, _content(kept))


def _types(domain: Domain, graph: Graph) -> dict[int, frozenset[int]]:
    """Classes of each thing, with those above them."""
    hierarchy = domain.constraints.hierarchy
    found: dict[int, set[int]] = {}
    for thing, _, kind in graph.triples[graph.triples[:, 1] == graph.ids.get(TYPE, -1)].tolist():
        above = hierarchy.above_of(graph.terms[kind])
        found.setdefault(thing, set()).update(graph.ids[k] for k in above if k in graph.ids)
    return {thing: frozenset(kinds) for thing, kinds in found.items()}


def _relation(
    domain: Domain, graph: Graph, types: Mapping[int, frozenset[int]], predicate: Predicate
) -> _Relation:
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
    return _Relation(
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


def _class_names(domain: Domain, graph: Graph) -> dict[Tokens, int]:
    """Names of the classes of the graph's things, by their tokens."""
    kinds = np.unique(graph.triples[graph.triples[:, 1] == graph.ids.get(TYPE, -1), 2])
    return {tokens(domain.class_name(graph.terms[kind])): kind for kind in kinds.tolist()}


def _literal(relation: _Relation, number: str) -> str:
    """The literal that a number stands for: the graph's, or one of the commonest datatype."""
    known = relation.numbers.get(Decimal(number))
    return known or literal_text(number, None, relation.datatype)

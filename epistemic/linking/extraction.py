"""The claim that a sentence makes: its relation, what it relates, and whether it is affirmed.

No template is turned round. Names are spotted first; what is left of the sentence is compared, as a
row of words with slots, with how the domain asks and states each relation; the most like one gives
the relation and which slot is the subject. Types of a relation's subjects and values settle which
bearer of a shared name is meant. Where two readings remain, none is chosen. A main clause's claim
is its sentence's, whatever a relative clause says beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from epistemic.cards import Claim
from epistemic.domain import Domain
from epistemic.linking.found import Found, Stance, Status, says_the_same
from epistemic.linking.names import Mention, Names, Tokens, Words, tokens, words_of
from epistemic.linking.relations import (
    FILLER,
    FUNCTION,
    OTHER,
    SLOT,
    Relation,
    class_names,
    content_of,
    literal_of,
    relation_of,
    stem,
    templates_of,
    types_of,
    wording_of,
)
from epistemic.logic.graph import Graph

# English negation, as lists for it have (such as Chapman et al. 2001), and words that reject.
_NEGATING_WORDS = (
    "not no never none nobody nothing neither nor without cannot t isn aren wasn weren doesn didn "
    "false wrong incorrect untrue"
)
_NEGATION = frozenset(_NEGATING_WORDS.split())
_UNDENIED = re.compile(r"\bnot (?:false|wrong|incorrect|untrue)\b")
# Not after an abbreviation such as "St.".
_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]\.)\s+|\n+")
# What a sentence says beside its claim: of whom it isn't, "Unlike Oslo,", and ", which is none,".
_ASIDE = re.compile(
    r"^(?:unlike|in contrast to)\b[^,]*,(?:\s*wh\w+\b[^,]*,)?|,\s*wh\w+\b[^,]*,", re.I
)
# Least share of a wording's words with meaning that a sentence must have.
_LEAST = 0.5
# What a wording without such words, "Egypt is in Africa", is worth beside a verb that it lacks.
_BARE = 0.5
# What types that fit are worth beside likeness, which is at most 1.5.
_FITS = 0.3


class _Reading(NamedTuple):
    """A relation with its slots, by likeness of words alone; `bare`: the wording has no word
    with meaning and the sentence has, so that types must speak for it.
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
        self._types = types_of(domain, graph)
        spoken = [*domain.predicates.values(), domain.type]
        self._relations = [relation_of(domain, graph, self._types, each) for each in spoken]
        self._wordings = [
            wording
            for place, predicate in enumerate(spoken)
            for template in templates_of(predicate)
            if (wording := wording_of(place, template, predicate.unit)) is not None
        ]
        self._units = {word for predicate in spoken for word in tokens(predicate.unit)}
        self._classes = class_names(domain, graph)
        said = frozenset().union(*(wording.content for wording in self._wordings))
        # "the river Volga" says no more than "Volga"; "the continent of" speaks of a relation.
        self._mere = [name for name in self._classes if not said & set(map(stem, name))]
        self._readings = lru_cache(maxsize=1 << 16)(self._ranked)

    def find(self, text: str) -> Found:
        """The claim of a text's first sentence that makes one."""
        best = Found(Status.NO_CLAIM, None, Stance.AFFIRMS, "no relation")
        for sentence in filter(None, map(str.strip, _SENTENCE.split(text))):
            found = self._beside_asides(sentence)
            if found.status is Status.LINKED:
                return found
            if best.status is Status.NO_CLAIM:
                best = found
        return best

    def _beside_asides(self, sentence: str) -> Found:
        """What a sentence claims where nothing that it says beside is meant; else all of it."""
        main = _ASIDE.sub(" ", sentence).strip()
        found = self._in_sentence(main) if main != sentence else None
        return found if found and found.claim else self._in_sentence(sentence)

    def _in_sentence(self, sentence: str) -> Found:
        read = words_of(sentence)
        words = read.words
        mentions = self._whole(read, self._names.exact(words))
        while len(mentions) < 2:
            free = _unclaimed(words, mentions)
            alike = self._names.near(words, free, FUNCTION | _NEGATION)
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
            return read.words[at] not in FUNCTION | _NEGATION | FILLER | mere

        return [
            each
            for each in mentions
            if each.kind == "number" or not (continues(each.start - 1) or continues(each.stop))
        ]

    # ---- relations ----

    def _related(self, words: Tokens, mentions: Sequence[Mention], stance: Stance) -> Found:
        """The best reading of any two mentions."""
        if len(mentions) > 2 and stance is Stance.DENIES:
            # "Paris, not Lyon, is the capital of France" denies one of two claims.
            return Found(Status.AMBIGUOUS, None, stance, "a denial that names several things")
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
        for found in fitting:
            if found.claim is None:
                return found
        claims = [found.claim for found in fitting if found.claim is not None]
        if any(not self._same(claims[0], claim) for claim in claims[1:]):
            return Found(Status.AMBIGUOUS, None, stance, "several relations fit")
        return fitting[0]

    def _same(self, one: Claim, other: Claim) -> bool:
        return says_the_same(one, other, self._domain.constraints)

    def _resolved(
        self, relation: Relation, subject: Mention, thing: Mention, stance: Stance
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
        said = literal_of(relation, thing.number) if thing.number is not None else texts[objects[0]]
        return fits, Found(Status.LINKED, Claim(texts[chosen[0]], relation.iri, said), stance)

    def _of_type(self, terms: Sequence[int], classes: frozenset[int]) -> tuple[int, ...]:
        return tuple(term for term in terms if self._types.get(term, frozenset()) & classes)

    def _ranked(self, pattern: Tokens) -> tuple[_Reading, ...]:
        """Readings of a sentence by likeness, one a relation and order of slots."""
        words = tuple(map(stem, pattern))
        content = content_of(words)
        best: dict[tuple[int, bool], _Reading] = {}
        for wording in self._wordings:
            shared = _shared(content, wording.content)
            if shared < _LEAST:
                continue
            row = words if wording.content else tuple(w for w in words if w not in content)
            bare = bool(content) and not wording.content
            if bare and row != wording.words:
                continue
            likeness = shared + SequenceMatcher(None, row, wording.words, False).ratio() / 2
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
        row.append(SLOT if place in pair else OTHER)
        at = mention.stop
        while mention.number is not None and at < len(words) and words[at] in units:
            at += 1
    row += words[at:]
    return tuple(word for word in row if word not in FILLER and word not in _NEGATION)


def _shared(said: frozenset[str], wording: frozenset[str]) -> float:
    """How much of a wording's meaning a sentence says; less where it says more than that."""
    if not wording:
        return _BARE if said else 1.0
    both = len(said & wording)
    return both and 0.75 * both / len(wording) + 0.25 * both / len(said | wording)

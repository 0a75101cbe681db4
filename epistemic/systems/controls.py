"""Answerers that know nothing of graphs: what every metric must put in its place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from sklearn.model_selection import GroupKFold

from epistemic.cards import Card
from epistemic.decks.leakage import SurfaceClassifier
from epistemic.systems.base import Query, Response
from evidence.answers import Answer


class Always:
    """The same answer to everything."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        return (Response(self._answer) for _ in queries)


class Random:
    """YES, NO or UNKNOWN with equal chances, by the card's id, so that a rerun says the same."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        for query in queries:
            drawn = hashlib.sha256(f"{self._seed} {query.id}".encode()).digest()
            # 2^64 is no multiple of 3; the bias is 1 in 10^19.
            yield Response(Answer(int.from_bytes(drawn[:8], "big") % 3), confidence=1 / 3)


class EntailedNo:
    """NO to all that a fact states, UNKNOWN to the rest: ideal as the published code counts."""

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        for query in queries:
            stated = any(s.holds and s[:3] == query.claim for s in query.stated)
            yield Response(Answer.NO if stated else Answer.UNKNOWN)


class Surface:
    """The leakage audit's classifier: wording, counts and overlap, never what the facts say.

    Each card is answered by a classifier fitted to the other four fifths of the deck, split by
    subject. It is the one system that sees gold answers, of other cards.
    """

    def __init__(self, cards: Sequence[Card], folds: int = 5) -> None:
        self._responses: dict[str, Response] = {}
        subjects = [card.claim.subj for card in cards]
        folds = min(folds, len(set(subjects)))
        if folds < 2:
            raise ValueError("the system surface needs cards about two subjects or more")
        for fitted, held_out in GroupKFold(folds).split(subjects, groups=subjects):
            classifier = SurfaceClassifier().fit([cards[i] for i in fitted])
            shown = [cards[i] for i in held_out]
            for card, chances in zip(shown, classifier.predict_proba(shown), strict=True):
                best = int(np.argmax(chances))
                self._responses[card.id] = Response(Answer(best), confidence=float(chances[best]))

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        return (self._responses[query.id] for query in queries)

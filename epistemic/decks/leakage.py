"""The leakage audit: can the answer be told from a card's form, without reading it?

Classifiers see what a reader who can't read sees, of everything that a system may see. `surface`
and `counts`: how many facts and denials there are, how long they are, which wordings were used,
their n-grams with every name and number masked, and how often the words of the question come back
in the facts. `raw`: the characters as they stand, facts and rules in their order, the claim's
initials. `position`: where in the deck the card stands. None sees which name stands beside which in
a fact: that would be reading. On a sound deck they do no better than chance.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import MaxAbsScaler
from threadpoolctl import threadpool_limits

from epistemic.cards import Card
from epistemic.logic.draws import Draws
from epistemic.logic.terms import plain_label
from epistemic.results import LeakageAudit
from evidence.stats import wilson

GOLDS = ("NO", "UNKNOWN", "YES")
MARGIN = 0.05
LARGEST_SAMPLE = 20_000
_FOLDS = 5
# Words that open a sentence; every other capitalised word is part of a name.
_OPENERS = frozenset(
    ["The", "It", "Is", "Does", "Do", "Among", "Only", "If", "No", "A", "An", "Are", "Nothing"]
)
_WORD = re.compile(r"-?\d[\d,.]*|[\w'’()-]+", re.UNICODE)
_DENIAL = re.compile(r"\b(?:not|no|never|DOES NOT)\b")


def masked(sentence: str) -> str:
    """The sentence with each run of names and numbers as one X."""
    words = []
    for word in _WORD.findall(sentence):
        is_name = word not in _OPENERS and not word.islower()
        if not is_name:
            words.append(word.lower())
        elif not words or words[-1] != "X":
            words.append("X")
    return " ".join(words)


def _counts(card: Card) -> list[float]:
    """Counts, lengths and overlaps of one card."""
    question = Counter(_WORD.findall(card.question.rstrip("?")))
    denials = [fact for fact in card.facts if _DENIAL.search(fact)]
    said = Counter(word for fact in card.facts for word in _WORD.findall(fact.rstrip(".")))
    denied = Counter(word for fact in denials for word in _WORD.findall(fact.rstrip(".")))
    names = [word for word in question if word not in _OPENERS and not word.islower()]
    lengths = [len(fact) for fact in card.facts] or [0]
    return [
        len(card.facts),
        len(denials),
        len(card.rules),
        len(card.question),
        sum(lengths),
        max(lengths),
        min(lengths),
        sum(question.values()),
        sum(said.values()),
        sum(said[word] for word in question),
        sum(said[word] for word in names),
        sum(denied[word] for word in names),
        len(names),
    ]


def _form(card: Card) -> str:
    """The card's masked sentences and the numbers of its templates, as words to count."""
    templates = " ".join(f"template{number}" for number in sorted(card.surface))
    facts = " . ".join(sorted(masked(fact) for fact in card.facts))
    return f"{masked(card.question)} ? {facts} {templates} {card.family}"


class SurfaceClassifier:
    """Answers from form alone: logistic regression on counts and masked n-grams."""

    def fit(self, cards: Sequence[Card]) -> SurfaceClassifier:
        self._words = CountVectorizer(
            ngram_range=(1, 2), lowercase=False, token_pattern=r"\S+", min_df=2, max_features=4_000
        )
        self._scale = MaxAbsScaler()
        forms = self._words.fit_transform([_form(card) for card in cards])
        table = sparse.hstack([forms, sparse.csr_matrix([_counts(card) for card in cards])])
        self._model = LogisticRegression(max_iter=300, C=0.3)
        self._model.fit(self._scale.fit_transform(table), [card.gold for card in cards])
        return self

    def predict_proba(self, cards: Sequence[Card]) -> np.ndarray:
        """f64[N, 3]: probability of NO, UNKNOWN and YES."""
        forms = self._words.transform([_form(card) for card in cards])
        table = sparse.hstack([forms, sparse.csr_matrix([_counts(card) for card in cards])])
        given = self._model.predict_proba(self._scale.transform(table))
        columns = [
            list(self._model.classes_).index(g) if g in self._model.classes_ else -1 for g in GOLDS
        ]
        return np.stack([given[:, c] if c >= 0 else np.zeros(len(cards)) for c in columns], axis=1)


class _CountsClassifier:
    """Answers from counts and lengths alone, their interplay included: boosted trees."""

    def fit(self, cards: Sequence[Card]) -> _CountsClassifier:
        self._model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
        self._model.fit(np.array([_counts(card) for card in cards]), [card.gold for card in cards])
        return self

    def predict(self, cards: Sequence[Card]) -> np.ndarray:
        return self._model.predict(np.array([_counts(card) for card in cards]))


def _raw(card: Card) -> list[str]:
    """The card in raw form, as words to count: each says where it was found."""
    found = [f"question:{gram}" for gram in _shape(card.question)]
    for sort, sentences in (("fact", card.facts), ("rule", card.rules)):
        for place, sentence in enumerate(sentences):
            wording = masked(sentence)
            found += [f"{sort}:{gram}" for gram in _shape(sentence)]
            found += [f"{sort}:{wording}", f"{sort}{place}:{wording}"]
    found += [f"stated{i}:{fact.pred}:{fact.holds}" for i, fact in enumerate(card.stated)]
    # As subject or as object: which of the two would be reading.
    for end, term in (("subject", card.claim.subj), ("object", card.claim.obj)):
        named = [term in (fact.subj, fact.obj) for fact in card.stated]
        found.append(f"{end} first in fact {named.index(True) if any(named) else None}")
    in_order = [one <= other for one, other in pairwise(card.facts)]
    found += [f"facts in order: {all(in_order)}", f"facts in reverse: {not any(in_order)}"]
    found += [f"axiom:{name}" for name in card.axioms]
    found += [f"initial{i}:{plain_label(term)[:1]}" for i, term in enumerate(card.claim)]
    return found


def _shape(sentence: str) -> list[str]:
    """What isn't a letter or a digit, with what stands on both sides of it, and both ends."""
    classes = "".join(
        "A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in sentence
    )
    classes = f"^{classes}$"
    return [classes[max(0, i - 1) : i + 2] for i, c in enumerate(classes) if c not in "Aa0"]


class _RawClassifier:
    """Answers from a card in raw form: logistic regression on counts of `_raw`."""

    def fit(self, cards: Sequence[Card]) -> _RawClassifier:
        self._words = CountVectorizer(analyzer=_raw, min_df=2, max_features=8_000)
        self._scale = MaxAbsScaler()
        self._model = LogisticRegression(max_iter=300, C=0.3)
        counted = self._words.fit_transform(cards)
        self._model.fit(self._scale.fit_transform(counted), [card.gold for card in cards])
        return self

    def predict(self, cards: Sequence[Card]) -> np.ndarray:
        return self._model.predict(self._scale.transform(self._words.transform(cards)))


def _position(places: np.ndarray) -> np.ndarray:
    """f64[n, 7] of i64[n] places in the deck: each, and its remainders by 2 to 7."""
    return np.stack([places, *(places % cycle for cycle in range(2, 8))], axis=1).astype(float)


def published_rule(card: Card) -> str:
    """The rule that reads no fact and gets 99.4% of the published cards.

    'DOES NOT', or exactly two facts: NO; the question's words are those of its one fact: YES;
    else UNKNOWN.
    """
    if len(card.facts) == 2 or any("DOES NOT" in fact for fact in card.facts):
        return "NO"
    if len(card.facts) == 1:
        asked = set(_WORD.findall(card.question)) - {"Is", "the", "of"}
        if asked <= set(_WORD.findall(card.facts[0])):
            return "YES"
    return "UNKNOWN"


def audit(cards: Sequence[Card], seed: int = 0) -> LeakageAudit:
    """Audit a deck; of a large one, a sample of 20,000 cards."""
    start = time.perf_counter()
    places = np.arange(len(cards))
    if len(cards) > LARGEST_SAMPLE:
        places = Draws(seed, stream=7).order(len(cards))[:LARGEST_SAMPLE]
        cards = [cards[row] for row in places.tolist()]
    golds = np.array([card.gold for card in cards])
    commonest = Counter(golds.tolist()).most_common()
    chance = commonest[0][1] / len(cards)
    guesses = {"published_rule": np.array([published_rule(card) for card in cards])}
    if min(count for _, count in commonest) >= _FOLDS and len(commonest) > 1:
        # Small problems: threads would wait for one another longer than they work.
        with threadpool_limits(1):
            guesses |= _cross_validated(cards, golds, places, seed)
    accuracy = {
        name: wilson(int((guess == golds).sum()), len(cards), unit="card")
        for name, guess in guesses.items()
    }
    above = [
        share
        for share in accuracy.values()
        if share.value is not None and share.value > chance + MARGIN
    ]
    refused = any(share.low is not None and share.low > chance for share in above)
    return LeakageAudit(
        cards=len(cards),
        chance=chance,
        allowed=chance + MARGIN,
        accuracy=accuracy,
        refused=refused,
        undecided=bool(above) and not refused,
        seconds=time.perf_counter() - start,
    )


def _cross_validated(
    cards: Sequence[Card], golds: np.ndarray, places: np.ndarray, seed: int
) -> dict[str, np.ndarray]:
    """Guesses of each classifier for every card, made by a model that hasn't seen it.

    Args:
      cards, golds: of the deck.
      places: i64[N], where in the deck each stands.
      seed: of the folds.
    """
    position = _position(places)
    guesses = {name: np.empty_like(golds) for name in ("surface", "counts", "raw", "position")}
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    for train, test in folds.split(np.zeros(len(cards)), golds):
        learnt, asked = [cards[i] for i in train], [cards[i] for i in test]
        chances = SurfaceClassifier().fit(learnt).predict_proba(asked)
        guesses["surface"][test] = np.array(GOLDS)[chances.argmax(axis=1)]
        guesses["counts"][test] = _CountsClassifier().fit(learnt).predict(asked)
        guesses["raw"][test] = _RawClassifier().fit(learnt).predict(asked)
        trees = HistGradientBoostingClassifier(max_iter=60, random_state=0)
        trees.fit(position[train], golds[train])
        guesses["position"][test] = trees.predict(position[test])
    return guesses

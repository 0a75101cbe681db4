"""Words for cards: the only part of drawing that handles text."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from epistemic.cards import Card, Claim, Statement
from epistemic.decks.drawing import Batch, Drawn
from epistemic.domain import Domain
from epistemic.logic.alone import AloneJudge, contradiction
from epistemic.logic.draws import Draws
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle

# Numbers of templates for the audit: each predicate has so many, stated and denied apart.
_TEMPLATES = 16


class _Choice(NamedTuple):
    """The template of each question, and a number for each fact that chooses its own."""

    question: np.ndarray
    fact: np.ndarray


class _Reason(NamedTuple):
    """Why a card's gold is what it is: see `Card`."""

    kind: str
    proof: str


class _Shared(NamedTuple):
    """What a batch's cards have in common: see `Card`."""

    label: str
    gold: str
    rules: tuple[str, ...]
    requires: str
    axioms: tuple[str, ...]
    family: str


class _Shuffled(NamedTuple):
    """Cards in the deck's order, their facts one after the other.

    Attributes:
      facts: i32[F, 3] and holds: bool[F].
      ends: i64[n], where each card's facts end.
      claims: i32[n, 3].
      choice: of wordings.
    """

    facts: np.ndarray
    holds: np.ndarray
    ends: np.ndarray
    claims: np.ndarray
    choice: _Choice


class _Texts(NamedTuple):
    """Sentences: a question and its template a card, and facts, with the numbers of their
    templates, one after the other; the same as data."""

    questions: list[str]
    templates: list[int]
    facts: list[str]
    surface: list[int]
    stated: list[Statement]
    claims: list[Claim]


class Wording:
    """Puts batches into words.

    Args:
      domain: whose words they are.
      seed: of the choice of wordings and of the order of cards.
    """

    def __init__(self, domain: Domain, seed: int):
        self.domain = domain
        self.draws = Draws(seed, stream=1)
        self._terms = np.array(domain.graph.terms, object)
        self._predicates = [predicate for _, predicate in sorted(domain.by_iri.items())]
        self._place = np.zeros(len(self._terms), int)
        for place, predicate in enumerate(self._predicates):
            if predicate.iri in domain.graph.ids:
                self._place[domain.graph.ids[predicate.iri]] = place
        self._asks = [_formats(predicate.questions) for predicate in self._predicates]
        said = [templates for p in self._predicates for templates in (p.facts, p.denials)]
        self._counts = np.array([len(templates) for templates in said]).reshape(-1, 2)
        self._says = {
            number: say
            for i, templates in enumerate(said, 1)
            for number, say in enumerate(_formats(templates), i * _TEMPLATES)
        }

    def cards(self, drawn: Sequence[Drawn], known: Oracle, prefix: str = "CARD") -> list[Card]:
        """The deck, in a random order.

        Args:
          drawn: cards as integers, with what judged them.
          known: the oracle of the graph, for the proofs of cards that need it.
          prefix: of the cards' ids.
        """
        batches = [batch for part in drawn for batch in part.batches]
        chosen = [self._chosen(batch) for batch in batches]
        order = self.draws.order(sum(map(len, batches)))
        shuffled = _shuffled(batches, chosen, order)
        batch_of = np.repeat(np.arange(len(batches)), list(map(len, batches)))[order].tolist()
        shared = [_shared(batch) for batch in batches]
        reasons = [
            reason
            for part in drawn
            for batch in part.batches
            for reason in self._reasons(batch, part.judge, known)
        ]
        cards: list[Card] = []
        start = 0
        with _uncollected():
            texts = self._texts(shuffled)
            ends = zip(order.tolist(), shuffled.ends.tolist(), strict=True)
            for i, (row, end) in enumerate(ends):
                common, reason = shared[batch_of[i]], reasons[row]
                cards.append(
                    Card(
                        f"{prefix}_{common.label}_{i:06d}",
                        tuple(texts.facts[start:end]),
                        texts.questions[i],
                        common.gold,
                        common.label,
                        texts.claims[i],
                        reason.kind,
                        reason.proof,
                        common.rules,
                        common.requires,
                        tuple(texts.stated[start:end]),
                        common.axioms,
                        common.family,
                        (texts.templates[i], *texts.surface[start:end]),
                    )
                )
                start = end
        return cards

    def _chosen(self, batch: Batch) -> _Choice:
        """Which wordings a batch's cards use."""
        question = self.draws.below(len(batch.job.cell.predicate.questions), len(batch))
        return _Choice(question, self.draws.below(1 << 16, batch.said.holds.size))

    def _texts(self, shuffled: _Shuffled) -> _Texts:
        """All cards' sentences, and their facts and claims as data."""
        facts, claims = shuffled.facts, shuffled.claims
        templates = shuffled.choice.question.tolist()
        questions = self.questions(claims, templates)
        sentences, surface = self.sentences(facts, shuffled.holds, shuffled.choice.fact)
        return _Texts(
            questions,
            templates,
            sentences,
            surface,
            list(map(Statement, *self._terms[facts.T].tolist(), shuffled.holds.tolist())),
            list(map(Claim, *self._terms[claims.T].tolist())),
        )

    def _reasons(self, batch: Batch, alone: AloneJudge, known: Oracle) -> Iterable[_Reason]:
        """Why each card's gold is what it is."""
        if batch.job.cell.requires == "graph":
            return self._graph_reasons(batch.said.claims, known)
        return map(_Reason, alone.kinds(batch.alone), alone.proofs(batch.alone))

    def _graph_reasons(self, claims: np.ndarray, known: Oracle) -> list[_Reason]:
        judgement = known.judge_ids(claims)
        stated = set(map(tuple, known.graph.triples.tolist()))

        def kind(i: int) -> str:
            verdict, rule = int(judgement.verdict[i]), int(judgement.proof[i, 0])
            if verdict == Verdict.UNKNOWN:
                return "U_absent"
            if verdict == Verdict.ENTAILED:
                there = tuple(claims[i].tolist()) in stated
                return "E_stated" if there else "E_inferred"
            return contradiction(known.compiled.names[rule]) if rule >= 0 else "C_shape"

        return [_Reason(kind(i), known.explain(judgement, i)) for i in range(len(claims))]

    def questions(self, claims: np.ndarray, template: list[int]) -> list[str]:
        """Each claim as a question, in its predicate's template of that number."""
        places = self._place[claims[:, 1]].tolist()
        asks = [self._asks[place][i] for place, i in zip(places, template, strict=True)]
        return [ask(s, o) for ask, s, o in zip(asks, *self._names(claims), strict=True)]

    def sentences(
        self, facts: np.ndarray, holds: np.ndarray, word: np.ndarray
    ) -> tuple[list[str], list[int]]:
        """Each fact as text, and the number of the template that it uses.

        Args:
          facts: i32[F, 3].
          holds: bool[F], stated or denied.
          word: i64[F], any number; what is left of it by how many templates there are chooses one.
        """
        place, denied = self._place[facts[:, 1]], 1 - holds
        choice = word % self._counts[place, denied]
        surface = ((2 * place + denied + 1) * _TEMPLATES + choice).tolist()
        says = [self._says[number] for number in surface]
        return [say(s, o) for say, s, o in zip(says, *self._names(facts), strict=True)], surface

    def _names(self, triples: np.ndarray) -> tuple[list[str], list[str]]:
        """What sentences call the triples' subjects, and their objects."""
        place = self._place[triples[:, 1]]
        objects = np.empty(len(triples), object)
        for i, predicate in enumerate(self._predicates):
            mine = place == i
            objects[mine] = self.domain.object_names(predicate, triples[mine, 2])
        return self.domain.names(triples[:, 0]).tolist(), objects.tolist()


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collector of cycles: cards have none, and it would walk them again and again."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _formats(templates: Iterable[str]) -> list[Callable[..., str]]:
    """Functions of subject and object that fill templates in."""
    return [t.replace("{s}", "{0}").replace("{o}", "{1}").format for t in templates]


def _shared(batch: Batch) -> _Shared:
    """What a batch's cards have in common."""
    cell, label = batch.job
    return _Shared(
        label,
        batch.job.verdict.gold,
        tuple(rule.sentence for rule in cell.rules),
        cell.requires,
        cell.axioms,
        cell.name,
    )


def _shuffled(batches: Sequence[Batch], chosen: Sequence[_Choice], order: np.ndarray) -> _Shuffled:
    """The batches' cards in the deck's order.

    What is made one after the other lies side by side in memory, and a deck whose cards' parts lie
    strewn takes a third longer to write.
    """
    sizes, lengths = zip(*(batch.said.holds.shape for batch in batches), strict=True)
    question, word = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
    card_of = np.repeat(np.argsort(order), np.repeat(lengths, sizes))
    rows = np.argsort(card_of, kind="stable")
    facts = np.concatenate([batch.said.facts.reshape(-1, 3) for batch in batches])
    holds = np.concatenate([batch.said.holds.ravel() for batch in batches])
    claims = np.concatenate([batch.said.claims for batch in batches])
    return _Shuffled(
        facts[rows],
        holds[rows] > 0,
        np.cumsum(np.bincount(card_of)),
        claims[order],
        _Choice(question[order], word[rows]),
    )

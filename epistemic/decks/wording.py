"""Words for cards: the only part of drawing that handles text."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from epistemic.cards import Card, Claim, Statement
from epistemic.decks.drawing import VERDICTS, Batch
from epistemic.domain import Domain
from epistemic.logic.alone import AloneJudge, contradiction
from epistemic.logic.draws import Draws
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle

# Numbers of templates for the audit: each predicate has so many, stated and denied apart.
_TEMPLATES = 16


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

    def cards(
        self, batches: list[Batch], alone: AloneJudge, known: Oracle, prefix: str = "CARD"
    ) -> list[Card]:
        """The deck, in a random order.

        Args:
          batches: cards as integers.
          alone: what judged them by themselves, for their proofs.
          known: the oracle of the graph, for the proofs of cards that need it.
          prefix: of the cards' ids.
        """
        chosen = [self._chosen(batch) for batch in batches]
        question, word = (np.concatenate(parts) for parts in zip(*chosen, strict=True))
        sizes, lengths = zip(*(batch.holds.shape for batch in batches), strict=True)
        order = self.draws.order(len(question))
        # In the deck's order from here on: what is made one after the other lies side by side in
        # memory, and a deck whose cards' parts lie strewn takes a third longer to write.
        card_of = np.repeat(np.argsort(order), np.repeat(lengths, sizes))
        rows = np.argsort(card_of, kind="stable")
        ends = np.cumsum(np.bincount(card_of)).tolist()
        facts = np.concatenate([batch.facts.reshape(-1, 3) for batch in batches])[rows]
        holds = np.concatenate([batch.holds.ravel() for batch in batches])[rows] > 0
        claims = np.concatenate([batch.claims for batch in batches])[order]
        which = np.repeat(np.arange(len(batches)), sizes)[order].tolist()
        shared = [_shared(batch) for batch in batches]
        reasons = [reason for batch in batches for reason in self._reasons(batch, alone, known)]
        template = question[order].tolist()
        cards: list[Card] = []
        start = 0
        with _uncollected():
            asked = self._questions(claims, template)
            texts, surface = self._sentences(facts, holds, word[rows])
            stated = list(map(Statement, *self._terms[facts.T].tolist(), holds.tolist()))
            claimed = list(map(Claim, *self._terms[claims.T].tolist()))
            for i, (row, end) in enumerate(zip(order.tolist(), ends, strict=True)):
                label, gold, rules, requires, axioms, family = shared[which[i]]
                kind, proof = reasons[row]
                cards.append(
                    Card(
                        f"{prefix}_{label}_{i:06d}",
                        tuple(texts[start:end]),
                        asked[i],
                        gold,
                        label,
                        claimed[i],
                        kind,
                        proof,
                        rules,
                        requires,
                        tuple(stated[start:end]),
                        axioms,
                        family,
                        (template[i], *surface[start:end]),
                    )
                )
                start = end
        return cards

    def _chosen(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The template of each question, and a number for each fact that chooses its own."""
        question = self.draws.below(len(batch.cell.predicate.questions), len(batch.claims))
        return question, self.draws.below(1 << 16, batch.holds.size)

    def _reasons(self, batch: Batch, alone: AloneJudge, known: Oracle) -> Iterable[tuple[str, str]]:
        """Each card's kind and proof."""
        if batch.cell.requires == "graph":
            return self._graph_reasons(batch, known)
        return zip(alone.kinds(batch.alone), alone.proofs(batch.alone), strict=True)

    def _graph_reasons(self, batch: Batch, known: Oracle) -> list[tuple[str, str]]:
        judgement = known.judge_ids(batch.claims)
        stated = set(map(tuple, known.graph.triples.tolist()))

        def kind(i: int) -> str:
            verdict, rule = int(judgement.verdict[i]), int(judgement.proof[i, 0])
            if verdict == Verdict.UNKNOWN:
                return "U_absent"
            if verdict == Verdict.ENTAILED:
                there = tuple(batch.claims[i].tolist()) in stated
                return "E_stated" if there else "E_inferred"
            return contradiction(known.compiled.names[rule]) if rule >= 0 else "C_shape"

        return [(kind(i), known.explain(judgement, i)) for i in range(len(batch.claims))]

    def _questions(self, claims: np.ndarray, template: list[int]) -> list[str]:
        """Each claim as a question."""
        places = self._place[claims[:, 1]].tolist()
        asks = [self._asks[place][i] for place, i in zip(places, template, strict=True)]
        return [ask(s, o) for ask, s, o in zip(asks, *self._names(claims), strict=True)]

    def _sentences(
        self, facts: np.ndarray, holds: np.ndarray, word: np.ndarray
    ) -> tuple[list[str], list[int]]:
        """Each fact as text, and the number of the template that it uses."""
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


def _shared(batch: Batch) -> tuple[str, str, tuple[str, ...], str, tuple[str, ...], str]:
    """What a batch's cards have in common: label, gold, rules, requires, axioms, family."""
    cell, gold = batch.cell, VERDICTS[batch.label].gold
    rules = tuple(sentence for sentence, _ in cell.rules)
    return batch.label, gold, rules, cell.requires, cell.axioms, cell.name

"""Words for cards: the only part of drawing that handles text."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import cast

from epistemic.alone import AloneJudge, contradiction
from epistemic.cards import Card, Claim, Statement
from epistemic.domain import Domain, Predicate
from epistemic.drawing import VERDICTS, Batch
from epistemic.draws import Draws
from epistemic.lookup import Verdict
from epistemic.oracle import Oracle

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
        self._terms = domain.graph.terms
        self._names: dict[Predicate | None, dict[int, str]] = {}
        predicates = sorted(domain.by_iri)
        self._templates: dict[tuple[int, int], tuple[int, list[Callable[..., str]]]] = {}
        self._spoken: dict[int, Predicate] = {}
        for place, iri in enumerate(predicates):
            predicate, number = domain.by_iri[iri], domain.graph.ids.get(iri, -1)
            self._spoken[number] = predicate
            for said, templates in enumerate((predicate.facts, predicate.denials)):
                first = _TEMPLATES * (2 * place + said + 1)
                self._templates[number, 1 - 2 * said] = (first, _formats(templates))

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
        with _uncollected():
            cards = [
                card
                for batch in batches
                for card in self._batch(batch, *self._reasons(batch, alone, known))
            ]
        order = self.draws.order(len(cards)).tolist()
        return [
            _named(cards[place], f"{prefix}_{cards[place].label}_{number:06d}")
            for number, place in enumerate(order)
        ]

    def _reasons(
        self, batch: Batch, alone: AloneJudge, known: Oracle
    ) -> tuple[list[str], list[str]]:
        """Each card's kind and proof."""
        if batch.cell.requires == "graph":
            return self._graph_reasons(batch, known)
        found = batch.alone
        rows = list(
            zip(
                found.verdict.tolist(),
                found.rule.tolist(),
                found.stated.tolist(),
                found.clash.tolist(),
                strict=True,
            )
        )
        kinds = [alone.kind(verdict, rule, stated) for verdict, rule, stated, _ in rows]
        proofs = [alone.proof(verdict, rule, clash) for verdict, rule, _, clash in rows]
        return kinds, proofs

    def _graph_reasons(self, batch: Batch, known: Oracle) -> tuple[list[str], list[str]]:
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

        rows = range(len(batch.claims))
        return [kind(i) for i in rows], [known.explain(judgement, i) for i in rows]

    def _batch(self, batch: Batch, kinds: list[str], proofs: list[str]) -> list[Card]:
        n, k = batch.holds.shape
        cell, terms = batch.cell, self._terms
        predicate = cell.predicate
        question = self.draws.below(len(predicate.questions), n).tolist()
        word = self.draws.below(1 << 16, n * k).tolist()
        s, p, o = (batch.facts[:, :, c].ravel().tolist() for c in range(3))
        holds = batch.holds.ravel().tolist()
        texts, surface = self._sentences(s, p, o, holds, word)
        stated = [
            Statement(terms[a], terms[b], terms[c], h > 0)
            for a, b, c, h in zip(s, p, o, holds, strict=True)
        ]
        asks = _formats(predicate.questions)
        subjects, claimed = batch.claims[:, 0].tolist(), batch.claims[:, 2].tolist()
        who, what = self._called(None, subjects), self._called(predicate, claimed)
        rules = tuple(sentence for sentence, _ in cell.rules)
        axioms, family, gold = cell.axioms, cell.name, VERDICTS[batch.label].gold
        iri = predicate.iri
        return [
            Card(
                "",
                tuple(texts[i * k : i * k + k]),
                asks[question[i]](who[subjects[i]], what[claimed[i]]),
                gold,
                batch.label,
                Claim(terms[subjects[i]], iri, terms[claimed[i]]),
                kinds[i],
                proofs[i],
                rules,
                cell.requires,
                tuple(stated[i * k : i * k + k]),
                axioms,
                family,
                (question[i], *surface[i * k : i * k + k]),
            )
            for i in range(n)
        ]

    def _sentences(
        self, s: list[int], p: list[int], o: list[int], holds: list[int], word: list[int]
    ) -> tuple[list[str], list[int]]:
        """Each fact as text, and the number of the template that it uses."""
        who = self._called(None, s)
        what = {
            number: self._called(self._spoken[number], [c for b, c in zip(p, o) if b == number])  # noqa: B905
            for number in set(p)
        }
        texts, surface = [], []
        for a, b, c, h, w in zip(s, p, o, holds, word, strict=True):
            first, formats = self._templates[b, h]
            choice = w % len(formats)
            texts.append(formats[choice](who[a], what[b][c]))
            surface.append(first + choice)
        return texts, surface

    def _called(self, predicate: Predicate | None, terms: Iterable[int]) -> dict[int, str]:
        """What sentences call terms: subjects of any, objects of this predicate."""
        known = self._names.setdefault(predicate, {})
        for term in set(terms) - known.keys():
            text = self._terms[term]
            known[term] = (
                self.domain.name_of(text)
                if predicate is None
                else self.domain.object_name(predicate, text)
            )
        return known


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


def _named(card: Card, name: str) -> Card:
    """The card, not yet seen by anybody, under its id."""
    object.__setattr__(card, "id", name)
    return cast(Card, card)

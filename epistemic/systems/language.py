"""Systems that ask a language model, with facts from the card, from a corpus or from a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from epistemic.domain import Domain
from epistemic.logic.graph import Graph, neighbourhood
from epistemic.systems.base import Query, Response
from evidence.answers import Answer, read
from evidence.runtime.language_models import Model, Reply, digest

Finder = Callable[[Sequence[Query]], list[list[str]]]
"""Facts for each query, most relevant first."""


class Asked:
    """A model asked each question beside the facts that a finder gives.

    Args:
      model: what is asked.
      facts: where facts come from, or None to ask without any.
    """

    def __init__(self, model: Model, facts: Finder | None) -> None:
        self._model = model
        self._facts = facts

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        prompts = self.prompts(queries)
        for prompt, reply in zip(prompts, self._model.ask(prompts), strict=True):
            yield respond(prompt, reply)

    def prompts(self, queries: Sequence[Query]) -> list[str]:
        """The prompts as they are sent."""
        if self._facts is None:
            return [prompt_without_facts(query.question) for query in queries]
        return [
            prompt_with_facts(facts, query.rules, query.question)
            for query, facts in zip(queries, self._facts(queries), strict=True)
        ]


def card_facts(queries: Sequence[Query]) -> list[list[str]]:
    """The finder of `llm`: the card's own facts."""
    return [list(query.facts) for query in queries]


class GraphFacts:
    """The finder of `graph_rag`: what the graph says about a claim's subject and object.

    Triples of the claim's subject and predicate come first, then its other triples, then those of
    the object: a prompt has room for the nearest alone.
    """

    def __init__(self, domain: Domain, graph: Graph, top_k: int) -> None:
        self._domain = domain
        self._graph = graph
        self._top_k = top_k

    def __call__(self, queries: Sequence[Query]) -> list[list[str]]:
        return [self._find(query) for query in queries]

    def _find(self, query: Query) -> list[str]:
        ids = [self._graph.ids.get(term, -1) for term in query.claim]
        subject, predicate, object_ = ids
        ends = [i for i in (subject, object_) if i >= 0]
        if not ends:
            return []
        triples = neighbourhood(self._graph, ends)
        about_claim = (triples[:, 0] == subject) & (triples[:, 1] == predicate)
        distance = np.select([about_claim, (triples[:, [0, 2]] == subject).any(1)], [0, 1], 2)
        # The sort is stable and triples are sorted, so equal distances keep the graph's order.
        nearest = triples[np.argsort(distance, kind="stable")[: self._top_k]]
        return [
            self._domain.sentence(tuple(self._graph.terms[i] for i in triple)) for triple in nearest
        ]


def prompt_with_facts(facts: Sequence[str], rules: Sequence[str], question: str) -> str:
    """The prompt that every system with facts sends; the contract that `evidence.answers` reads.

    Rules come first and in one order: prompts about one predicate then begin alike, and a server
    that keeps what it has read starts after that.
    """
    lines = ["Answer the question from the facts alone."]
    if rules:
        lines += ["", "Rules:", *(f"- {rule}" for rule in sorted(rules))]
    lines += ["", "Facts:", *([f"- {fact}" for fact in facts] or ["- (none)"])]
    lines += [
        "",
        f"Question: {question}",
        "",
        "Reply with one word: YES if the facts state it, NO if they rule it out, "
        "UNKNOWN if they do neither.",
    ]
    return "\n".join(lines)


def prompt_without_facts(question: str) -> str:
    """The prompt of `llm_without_facts`."""
    return f"Question: {question}\n\nReply with one word: YES, NO, or UNKNOWN if you do not know."


def respond(prompt: str, reply: Reply) -> Response:
    """A model's reply, read."""
    about = Response(
        Answer.ERROR,
        latency_s=reply.latency_s,
        prompt=digest(prompt),
        tokens=reply.tokens,
        cost=reply.cost,
        finish=reply.finish,
    )
    if reply.text is None:
        return about._replace(error=reply.error or "no reply")
    reading = read(reply.text)
    stated = reading.confidence
    confidence = reply.confidence if stated is None else stated
    if reading.answer == Answer.INVALID:
        confidence = None
    return about._replace(answer=reading.answer, confidence=confidence, raw=reply.text)

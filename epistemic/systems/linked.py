"""A licence that must find the claim itself, in the question and in what a model says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from epistemic.cards import Statement
from epistemic.linking.extraction import Finder
from epistemic.linking.found import Stance, outcome, says_the_same
from epistemic.logic.alone import judge_cards
from epistemic.logic.constraints import Constraints
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.systems.base import Query, Response, System
from epistemic.systems.licence import licensed_response, proofs
from evidence.answers import Answer

_WHOLE = re.compile(r"(?s).*[.!?](?=\s|$)")
_ANSWERS = {Verdict.ENTAILED: Answer.YES, Verdict.CONTRADICTORY: Answer.NO}


class Linked:
    """Another system, licensed by the claim that is found in the question's words.

    The query's own claim, by the graph's names, is put aside: the other system gets what is found,
    facts about it included. Where none is found nothing is asked and nothing said: UNKNOWN. A reply
    without an answer word is read as a statement, which answers the question where it affirms or
    denies the claim, or states another that settles it by the card's rules.

    Args:
      system: what is asked.
      oracle: of the graph that licenses.
      finder: of claims.
      constraints: of the domain.
    """

    def __init__(
        self, system: System, oracle: Oracle, finder: Finder, constraints: Constraints
    ) -> None:
        self._system, self._oracle = system, oracle
        self._finder, self._constraints = finder, constraints

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        found = [self._finder.find(query.question) for query in queries]
        linked = [
            replace(query, claim=each.claim)
            for query, each in zip(queries, found, strict=True)
            if each.claim is not None
        ]
        replies = zip(
            linked, self._system.answer(linked), proofs(self._oracle, linked), strict=True
        )
        for query, each in zip(queries, found, strict=True):
            # Only to be counted: no answer goes by it.
            link = outcome(each, query.claim, self._constraints).value
            if each.claim is None:
                yield Response(Answer.UNKNOWN, proof=f"no claim: {each.detail}", linking=link)
                continue
            asked, said, licence = next(replies)
            said = said if isinstance(said, Response) else Response(said)
            yield licensed_response(self._read(asked, said), licence)._replace(linking=link)

    def _read(self, query: Query, said: Response) -> Response:
        """A reply that holds no answer word, read as a statement."""
        if said.answer != Answer.INVALID or said.raw is None:
            return said._replace(reading="word" if said.answer != Answer.ERROR else None)
        text = said.raw
        if said.finish == "length":
            # What stands behind the last full stop was cut off.
            whole = _WHOLE.match(text)
            text = whole[0] if whole else ""
        statement = self._finder.find(text)
        if statement.claim is None or statement.stance is Stance.ASKS:
            return said
        holds = statement.stance is Stance.AFFIRMS
        if says_the_same(statement.claim, query.claim, self._constraints):
            return said._replace(answer=Answer.YES if holds else Answer.NO, reading="statement")
        alone = replace(query, stated=(Statement(*statement.claim, holds),))
        (verdict,) = judge_cards([alone], self._constraints)
        if verdict not in _ANSWERS:
            return said
        return said._replace(answer=_ANSWERS[verdict], reading="other")

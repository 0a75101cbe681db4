"""Systems that answer by proof, and the licence that a proof gives to what a model says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epistemic.logic.alone import judge_cards
from epistemic.logic.constraints import Constraints
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.systems.base import Query, Response, System
from evidence.answers import Answer


class Context:
    """Answers what a card's own facts and rules prove; with an oracle, what the graph proves too.

    Without an oracle this is `kg_context`, with one `kg_oracle`: the reference that gold answers
    come from.
    """

    def __init__(self, constraints: Constraints, oracle: Oracle | None = None) -> None:
        self._constraints = constraints
        self._oracle = oracle

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        verdicts = judge_cards(queries, self._constraints, self._oracle)
        return (Response(_answer(verdict), confidence=1.0) for verdict in verdicts)


class Licence:
    """The graph alone: YES to what it entails, NO to what it rules out, else UNKNOWN."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        return proofs(self._oracle, queries)


def proofs(oracle: Oracle, queries: Sequence[Query]) -> Iterator[Response]:
    """What a graph proves of each claim, as an answer."""
    judgement = oracle.judge([query.claim for query in queries])
    for i, verdict in enumerate(judgement.verdict):
        yield Response(_answer(verdict), confidence=1.0, proof=oracle.explain(judgement, i))


class Licensed:
    """Another system whose answers leave only with a proof.

    A YES passes when the graph entails the claim, a NO when the graph rules it out; any other
    becomes UNKNOWN. INVALID and ERROR stay what they are: a failure is not an abstention. The reply
    as it was before the licence is kept in `raw`.
    """

    def __init__(self, system: System, oracle: Oracle) -> None:
        self._system = system
        self._licence = Licence(oracle)

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        licences = self._licence.answer(queries)
        for said, licence in zip(self._system.answer(queries), licences, strict=True):
            yield licensed_response(said if isinstance(said, Response) else Response(said), licence)


def licensed_response(said: Response, licence: Response) -> Response:
    """A response as it leaves: see `Licensed`."""
    if said.answer in (Answer.INVALID, Answer.ERROR, Answer.UNKNOWN):
        return said
    if said.answer == licence.answer:
        return said._replace(proof=licence.proof)
    # How sure the model was of what it may not say tells nothing of the abstention.
    proof = f"not licensed: {licence.proof}"
    return said._replace(answer=Answer.UNKNOWN, confidence=None, proof=proof)


def _answer(verdict: int) -> Answer:
    """A verdict's number is that of the answer which is right for it."""
    return Answer(Verdict(int(verdict)).value)

"""Recorded answers as a system: replies gathered elsewhere, read and scored like any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from epistemic.systems.base import Query, Response
from evidence.answers import Answer, read
from evidence.runtime.files import read_jsonl


class Replay:
    """Answers from a JSONL file, found by the card's id.

    Each line has `id` and either `raw`, the reply as it came, which is read again, or `pred`, an
    answer's name; `confidence` and `error` are kept where there are any. A card that the file lacks
    is an ERROR. Of two lines with one id the later counts.

    Raises:
      ValueError: the file is missing, a line is not such an object, or a `pred` is no answer.
    """

    def __init__(self, path: str | Path) -> None:
        if not Path(path).exists():
            raise ValueError(f"{path} does not exist: the file of recorded answers")
        recorded = (_recorded(path, record) for record in read_jsonl(path, required=("id",)))
        self._responses = {each.id: _response(path, each) for each in recorded}
        self._path = Path(path)

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        absent = Response(Answer.ERROR, error=f"{self._path.name} has no reply to this card")
        return (self._responses.get(query.id, absent) for query in queries)


class _Recorded(msgspec.Struct, frozen=True):
    """A line of the file; see `Replay`."""

    id: str
    raw: str | None = None
    pred: str | None = None
    confidence: float | None = None
    error: str | None = None
    prompt: str | None = None


def _recorded(path: str | Path, record: object) -> _Recorded:
    try:
        return msgspec.convert(record, _Recorded)
    except msgspec.ValidationError as error:
        raise ValueError(f"{path}: {error} of {record!r:.60}") from None


def _response(path: str | Path, recorded: _Recorded) -> Response:
    if recorded.error is not None:
        return Response(Answer.ERROR, error=recorded.error)
    if recorded.raw is not None:
        reading = read(recorded.raw)
        stated = recorded.confidence if reading.confidence is None else reading.confidence
        return Response(reading.answer, stated, raw=recorded.raw, prompt=recorded.prompt)
    if recorded.pred is None or recorded.pred not in Answer.__members__:
        allowed = ", ".join(Answer.__members__)
        raise ValueError(f"{path}: card {recorded.id} has pred={recorded.pred!r}, not {allowed}")
    return Response(Answer[recorded.pred], recorded.confidence)

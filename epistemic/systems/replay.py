"""Recorded answers as a system: replies gathered elsewhere, read and scored like any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

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
            raise ValueError(f"system.replies: {path} does not exist")
        self._responses = {
            row["id"]: _response(path, row) for row in read_jsonl(path, required=("id",))
        }
        self._path = Path(path)

    def answer(self, queries: Sequence[Query]) -> Iterator[Response]:
        absent = Response(Answer.ERROR, error=f"{self._path.name} has no reply to this card")
        return (self._responses.get(query.id, absent) for query in queries)


def _response(path: str | Path, row: dict[str, Any]) -> Response:
    raw, confidence = row.get("raw"), row.get("confidence")
    if row.get("error") is not None:
        return Response(Answer.ERROR, error=str(row["error"]))
    if isinstance(raw, str):
        reading = read(raw)
        stated = confidence if reading.confidence is None else reading.confidence
        return Response(reading.answer, stated, raw=raw, prompt=row.get("prompt"))
    if row.get("pred") not in Answer.__members__:
        allowed = ", ".join(Answer.__members__)
        raise ValueError(f"{path}: card {row['id']} has pred={row.get('pred')!r}, not {allowed}")
    return Response(Answer[row["pred"]], confidence)

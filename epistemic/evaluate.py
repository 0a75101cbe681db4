"""Run a system over a deck; every answer reaches the disk before the next card is waited for."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from rich.console import Console
from rich.progress import track

from epistemic.cards import Card
from epistemic.systems.base import Response, System, query_of
from evidence.answers import Answer
from evidence.runtime import timings
from evidence.runtime.files import append_jsonl, plain, read_jsonl


class Row(msgspec.Struct, frozen=True, kw_only=True, rename={"passed": "pass"}):
    """A line of an answers file: one system's answer to one card.

    Attributes:
      id: of the card.
      gold: "YES", "NO" or "UNKNOWN".
      pred: the answer's name; see `Answer`.
      passed: whether that is the gold answer; "pass" in the file.
      system: its name.
      label: "E", "C" or "U".
      raw, confidence, proof, latency_s, error, prompt, finish, linking, reading, cost: see
        `Response`.
      prompt_tokens, completion_tokens: its tokens.
      run: see `run_digest`.
    """

    id: str
    gold: str
    pred: str
    passed: bool
    system: str
    label: str
    raw: str | None = None
    confidence: float | None = None
    proof: str | None = None
    latency_s: float | None = None
    error: str | None = None
    prompt: str | None = None
    finish: str | None = None
    linking: str | None = None
    reading: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    run: str

    @property
    def answer(self) -> Answer:
        """What was answered."""
        return Answer[self.pred]

    def line(self) -> dict[str, str | float | bool | None]:
        """The row as a JSON object."""
        return dict(zip(self.__struct_encode_fields__, msgspec.structs.astuple(self), strict=True))


Rows = Mapping[str, Row]
"""One system's rows by card id."""
_REQUIRED = ("id", "gold", "pred", "pass", "system", "label", "run")
_Item = TypeVar("_Item")


@timings.part("evaluation")
def evaluate(
    system: System, name: str, cards: Sequence[Card], path: str | Path, run: str
) -> dict[str, Row]:
    """Answer every card that `path` does not answer yet, and return all rows by card id.

    Rows are appended one by one: a kill loses the card in flight, and what it left of a line is cut
    off by the next call. Cards that ended in ERROR are asked again; of two rows with one id the
    later counts.

    Args:
      system: what answers.
      name: its name in the rows.
      cards: the deck.
      path: the JSONL file.
      run: digest of deck and settings (see `run_digest`), so that no file mixes two runs.

    Raises:
      ValueError: the file is of another run, or the system gives too few or too many responses.
    """
    cut_partial_line(path)
    try:
        done = read_rows(path, run) if Path(path).exists() else {}
    except ValueError as error:
        raise ValueError(f"{error}; move it away, and it is written anew") from None
    open_cards = [c for c in cards if c.id not in done or done[c.id].answer == Answer.ERROR]
    if not open_cards:
        # A system need not know what to do with no questions.
        return {card.id: done[card.id] for card in cards}
    responses = _timed(iter(system.answer([query_of(card) for card in open_cards])))
    given = 0
    for response in _progress(responses, name, len(open_cards)):
        if given == len(open_cards):
            raise ValueError(f"system {name} gave more responses than the {given} queries it got")
        card = open_cards[given]
        done[card.id] = _row(card, response, name, run)
        append_jsonl(path, done[card.id].line())
        given += 1
    if given < len(open_cards):
        raise ValueError(f"system {name} gave {given} responses to {len(open_cards)} queries")
    return {card.id: done[card.id] for card in cards}


def run_digest(deck: str, settings: object) -> str:
    """Digest of everything that answers depend on: the deck's hash, cut, then the settings'.

    Args:
      deck: the deck's hash.
      settings: all else, as plain data or objects with named fields.
    """
    text = json.dumps([deck, plain(settings)], sort_keys=True)
    return f"{deck[:16]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def read_rows(path: str | Path, run: str | None = None) -> dict[str, Row]:
    """The rows of an answers file by card id, the later of two with one id.

    Raises:
      ValueError: a line is no row, or belongs to another run than `run`; names the file.
    """
    rows = {}
    for number, record in enumerate(read_jsonl(path, required=_REQUIRED), start=1):
        try:
            row = msgspec.convert(record, Row)
        except msgspec.ValidationError as error:
            raise ValueError(f"{path}, row {number}: {error}") from None
        if row.pred not in Answer.__members__:
            allowed = ", ".join(Answer.__members__)
            raise ValueError(f"{path}, row {number}: pred={row.pred!r}, not {allowed}")
        if run is not None and row.run != run:
            raise ValueError(
                f"{path} holds answers to another deck or of other settings (run {row.run}, "
                f"not {run})"
            )
        rows[row.id] = row
    return rows


def read_answers(
    folder: Path, names: Sequence[str], deck: str, cards: Sequence[Card]
) -> dict[str, Rows]:
    """Every system's rows by card id, of those named that have answered.

    Args:
      folder: with the folder `answers`. names: of systems. deck: the deck's hash.
      cards: those that must be answered.

    Raises:
      ValueError: no system has answered, or one has answered another deck or not all cards.
    """
    files = {name: folder / "answers" / f"{name}.jsonl" for name in names}
    answers: dict[str, Rows] = {
        name: read_rows(path) for name, path in files.items() if path.exists()
    }
    if not answers:
        raise ValueError(f"{folder / 'answers'} holds no answers: run the stage eval first")
    for name, rows in answers.items():
        path = files[name]
        if any(not row.run.startswith(deck[:16]) for row in rows.values()):
            raise ValueError(
                f"{path} answers another deck; move it away and run the stage eval again"
            )
        if missing := [card.id for card in cards if card.id not in rows]:
            raise ValueError(
                f"{path} lacks {len(missing)} cards, such as {missing[0]}: run the stage eval "
                "again, which goes on where it stopped"
            )
    return answers


def cut_partial_line(path: str | Path) -> None:
    """Cut off a last line that a kill left without its end."""
    path = Path(path)
    if not path.exists():
        return
    with open(path, "rb+") as file:
        # From the end, in blocks: a row is short beside a file.
        end = file.seek(0, os.SEEK_END)
        start = end
        while start > 0:
            start = max(0, start - 65536)
            file.seek(start)
            newline = file.read(min(65536, end - start)).rfind(b"\n")
            if newline >= 0:
                file.truncate(start + newline + 1)
                return
        file.truncate(0)


def _row(card: Card, response: Response, name: str, run: str) -> Row:
    answer = Answer(response.answer)
    return Row(
        id=card.id,
        gold=card.gold,
        pred=answer.name,
        passed=answer.name == card.gold,
        system=name,
        label=card.label,
        raw=response.raw,
        confidence=response.confidence,
        proof=response.proof,
        latency_s=round(response.latency_s or 0.0, 6),
        error=response.error,
        prompt=response.prompt,
        finish=response.finish,
        linking=response.linking,
        reading=response.reading,
        prompt_tokens=response.tokens.prompt if response.tokens else None,
        completion_tokens=response.tokens.completion if response.tokens else None,
        cost=response.cost,
        run=run,
    )


def _timed(responses: Iterator[Response | Answer]) -> Iterator[Response]:
    """Responses with the seconds since the one before, where they do not state their own."""
    before = time.perf_counter()
    for response in responses:
        now = time.perf_counter()
        said = response if isinstance(response, Response) else Response(Answer(response))
        yield said if said.latency_s is not None else said._replace(latency_s=now - before)
        before = now


def _progress(responses: Iterator[_Item], name: str, total: int) -> Iterator[_Item]:
    console = Console(stderr=True)
    quiet = not console.is_terminal or total == 0
    yield from track(responses, name, total=total, console=console, disable=quiet, transient=True)

"""Run a system over a deck; every answer reaches the disk before the next card is waited for."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from epistemic.cards import Card
from epistemic.systems.base import Response, System, query_of
from evidence.answers import Answer
from evidence.runtime.files import append_jsonl, plain, read_jsonl

FIELDS = ("id", "gold", "pred", "pass", "system", "label", "run")
"""What every row of an answers file has; see `evaluate`."""


def evaluate(
    system: System, name: str, cards: Sequence[Card], path: str | Path, run: str
) -> dict[str, dict[str, Any]]:
    """Answer every card that `path` does not answer yet, and return all rows by card id.

    A row has the fields id, gold, pred, pass, system, label of the published schema, and raw,
    confidence, proof, latency_s, error, prompt (see `Response`) and run. Rows are appended one by
    one: a kill loses the card in flight, and what it left of a line is cut off by the next call.
    Cards that ended in ERROR are asked again; of two rows with one id the later counts.

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
    done = read_rows(path, run) if Path(path).exists() else {}
    open_cards = [c for c in cards if c.id not in done or done[c.id]["pred"] == Answer.ERROR.name]
    responses = _timed(iter(system.answer([query_of(card) for card in open_cards])))
    given = 0
    for response in _progress(responses, name, len(open_cards)):
        if given == len(open_cards):
            raise ValueError(f"system {name} gave more responses than the {given} queries it got")
        card = open_cards[given]
        done[card.id] = _row(card, response, name, run)
        append_jsonl(path, done[card.id])
        given += 1
    if given < len(open_cards):
        raise ValueError(f"system {name} gave {given} responses to {len(open_cards)} queries")
    return {card.id: done[card.id] for card in cards}


def run_digest(deck: str, settings: Mapping[str, Any]) -> str:
    """Digest of everything that answers depend on: the deck's hash, cut, then the settings'."""
    text = json.dumps([deck, plain(settings)], sort_keys=True)
    return f"{deck[:16]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def read_rows(path: str | Path, run: str | None = None) -> dict[str, dict[str, Any]]:
    """The rows of an answers file by card id, the later of two with one id.

    Raises:
      ValueError: a row lacks a field, or belongs to another run than `run`.
    """
    rows = {}
    for row in read_jsonl(path, required=FIELDS):
        if run is not None and row["run"] != run:
            raise ValueError(
                f"{path} holds answers to another deck or of other settings (run {row['run']}, "
                f"not {run}); move it away or write elsewhere"
            )
        rows[row["id"]] = row
    return rows


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


def _row(card: Card, response: Response, name: str, run: str) -> dict[str, Any]:
    answer = Answer(response.answer)
    return {
        "id": card.id,
        "gold": card.gold,
        "pred": answer.name,
        "pass": answer.name == card.gold,
        "system": name,
        "label": card.label,
        "raw": response.raw,
        "confidence": response.confidence,
        "proof": response.proof,
        "latency_s": round(response.latency_s or 0.0, 6),
        "error": response.error,
        "prompt": response.prompt,
        "run": run,
    }


def _timed(responses: Iterator[Response | Answer]) -> Iterator[Response]:
    """Responses with the seconds since the one before, where they do not state their own."""
    before = time.perf_counter()
    for response in responses:
        now = time.perf_counter()
        said = response if isinstance(response, Response) else Response(Answer(response))
        yield said if said.latency_s is not None else said._replace(latency_s=now - before)
        before = now


def _progress(responses: Iterator[Any], name: str, total: int) -> Iterator[Any]:
    console = Console(stderr=True)
    quiet = not console.is_terminal or total == 0
    yield from track(responses, name, total=total, console=console, disable=quiet, transient=True)

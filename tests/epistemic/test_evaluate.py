import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest

from epistemic.evaluate import cut_partial_line, evaluate, read_rows, run_digest
from epistemic.systems.base import Query, Response, query_of
from evidence.answers import Answer

RUN = "0123456789abcdef"


def test_rows_have_the_published_fields_and_more(deck, gold_system, tmp_path):
    path = tmp_path / "a.jsonl"
    rows = evaluate(gold_system, "mine", deck, path, RUN)
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert written == [row.line() for row in rows.values()]
    assert [(row["id"], row["gold"], row["label"]) for row in written] == [
        (card.id, card.gold, card.label) for card in deck
    ]
    assert all(row["pred"] == row["gold"] and row["pass"] for row in written)
    assert set(written[0]) == {
        *("id", "gold", "pred", "pass", "system", "label"),
        *("raw", "confidence", "proof", "latency_s", "error", "prompt", "run"),
        *("finish", "linking", "reading"),
        *(
            "raw",
            "confidence",
            "proof",
            "latency_s",
            "error",
            "prompt",
            "prompt_tokens",
            "completion_tokens",
            "cost",
            "run",
        ),
    }


def test_no_query_carries_what_tells_the_gold_answer(deck):
    hidden = {"gold", "label", "kind", "proof", "difficulty", "family", "surface", "requires"}
    assert not hidden & {field.name for field in fields(Query)}
    # Two cards that differ in nothing else look the same.
    one, other = (
        type(deck[0])(**{f.name: getattr(deck[0], f.name) for f in fields(deck[0])} | change)
        for change in ({"gold": "YES", "label": "E"}, {"gold": "NO", "label": "C", "kind": "x"})
    )
    assert query_of(one) == query_of(other)


def test_a_file_cut_at_any_byte_loses_the_card_in_flight_alone(
    deck, gold_system, tmp_path, scripted
):
    whole = tmp_path / "whole.jsonl"
    expected = evaluate(gold_system, "mine", deck[:4], whole, RUN)
    content = whole.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content) + 1):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(content[:cut])
        again = scripted(gold_system._answer)
        rows = evaluate(again, "mine", deck[:4], path, RUN)
        complete = sum(end <= cut for end in ends)
        assert again.asked == [card.id for card in deck[complete:4]]
        assert {k: row.pred for k, row in rows.items()} == {
            k: row.pred for k, row in expected.items()
        }
        assert list(read_rows(path, RUN)) == [card.id for card in deck[:4]]


def test_a_long_partial_line_is_cut(tmp_path):
    path = tmp_path / "long.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 200_000)
    cut_partial_line(path)
    assert path.read_bytes() == b'{"a": 1}\n'


KILLED = """
import sys, time
sys.path.insert(0, {tests!r})
from conftest import handmade_deck
from epistemic.evaluate import evaluate
from evidence.answers import Answer

class Slow:
    def answer(self, queries):
        for query in queries:
            time.sleep(0.02)
            yield Answer.NO

evaluate(Slow(), "slow", handmade_deck(), {path!r}, {run!r})
"""


@pytest.mark.processes
def test_a_killed_run_goes_on_where_it_was(deck, tmp_path, scripted):
    path = tmp_path / "slow.jsonl"
    code = KILLED.format(tests=str(Path(__file__).parent), path=str(path), run=RUN)
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= 3):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = path.read_bytes().count(b"\n")
    assert kept < len(deck)
    again = scripted(lambda query: Answer.YES)
    rows = evaluate(again, "slow", deck, path, RUN)
    assert again.asked == [card.id for card in deck[kept:]]
    assert [row.pred for row in rows.values()] == ["NO"] * kept + ["YES"] * (len(deck) - kept)


def test_errors_are_asked_again_and_the_later_row_counts(deck, tmp_path, scripted):
    path = tmp_path / "a.jsonl"
    down = {deck[1].id, deck[3].id}
    outage = Response(Answer.ERROR, error="HTTP 503")
    first = evaluate(
        scripted(lambda q: outage if q.id in down else Answer.NO), "m", deck[:5], path, RUN
    )
    assert first[deck[1].id].pred == "ERROR"
    assert first[deck[1].id].error == "HTTP 503"
    back = scripted(lambda q: Answer.YES)
    rows = evaluate(back, "m", deck[:5], path, RUN)
    assert set(back.asked) == down
    assert [row.pred for row in rows.values()] == ["NO", "YES", "NO", "YES", "NO"]
    assert [row.pred for row in read_rows(path).values()] == ["NO", "YES", "NO", "YES", "NO"]


def test_answers_to_another_deck_are_refused(deck, gold_system, tmp_path):
    path = tmp_path / "a.jsonl"
    evaluate(gold_system, "m", deck[:2], path, RUN)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"a\.jsonl holds answers to another deck"):
        evaluate(gold_system, "m", deck, path, "f" * 16)
    assert path.read_bytes() == before


def test_the_digest_tells_decks_and_settings_apart():
    digests = {
        run_digest(deck, settings)
        for deck in ("a", "b")
        for settings in ({"top_k": 5}, {"top_k": 6}, {"top_k": 5, "x": None})
    }
    assert len(digests) == 6
    assert run_digest("a", {"x": 1, "y": 2}) == run_digest("a", {"y": 2, "x": 1})


class Wrong:
    def __init__(self, count):
        self._count = count

    def answer(self, queries):
        return [Answer.NO] * (len(queries) + self._count)


@pytest.mark.parametrize("surplus, message", [(-1, "14 responses to 15"), (1, "more responses")])
def test_a_system_that_miscounts_is_refused(deck, tmp_path, surplus, message):
    with pytest.raises(ValueError, match=message):
        evaluate(Wrong(surplus), "m", deck, tmp_path / "a.jsonl", RUN)


@pytest.mark.parametrize(
    "spoil, message",
    [
        ({"pred": "MAYBE"}, r"a\.jsonl, row 1: pred='MAYBE', not NO, UNKNOWN, YES"),
        ({"confidence": "high"}, r"a\.jsonl, row 1: .*float.*confidence"),
        ({"run": None}, r"a\.jsonl, row 1: .*str.*run"),
    ],
)
def test_a_bad_row_is_named(deck, gold_system, tmp_path, spoil, message):
    path = tmp_path / "a.jsonl"
    [row] = evaluate(gold_system, "m", deck[:1], path, RUN).values()
    path.write_text(json.dumps({**row.line(), **spoil}) + "\n")
    with pytest.raises(ValueError, match=message):
        read_rows(path)

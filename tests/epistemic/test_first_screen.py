"""What is seen first: a card that tells systems apart, tokens and cost, and what to do next."""

import io
import sys

import pytest
from rich.console import Console

from epistemic.evaluate import evaluate
from epistemic.first_screen import chosen, next_steps, shown, usage
from epistemic.results import Results
from epistemic.scoring.assessment import assess
from epistemic.scoring.thesis import load_thesis
from epistemic.systems.base import Response
from evidence.answers import Answer
from evidence.results import Manifest
from evidence.runtime.completions import Tokens
from experiments import epistemic


def answered(deck, systems, folder):
    return {
        name: evaluate(system, name, deck, folder / f"{name}.jsonl", "r")
        for name, system in systems.items()
    }


def test_the_card_shown_is_the_one_that_tells_most_systems_apart(
    deck, gold_system, scripted, tmp_path
):
    golds = {card.id: Answer[card.gold] for card in deck}
    one = deck[7].id
    systems = {
        "right": gold_system,
        "nearly": scripted(lambda q: Answer.INVALID if q.id == one else golds[q.id]),
        "wrong": scripted(lambda q: Answer.ERROR),
        "also": scripted(lambda q: golds[q.id]),
        "half": scripted(lambda q: Answer.ERROR if q.id == one else golds[q.id]),
    }
    found = chosen(deck, answered(deck, systems, tmp_path))
    assert found.card == deck[7] and found.right == ["right", "also"]
    assert found.wrong == {"INVALID": ["nearly"], "ERROR": ["wrong", "half"]}
    console = Console(record=True, file=io.StringIO(), width=80)
    console.print(shown(found))
    said = console.export_text()
    for part in (deck[7].facts[0], deck[7].rules[0], deck[7].question, "ERROR: wrong, half"):
        assert part in said
    assert chosen([], {}) is None


@pytest.mark.parametrize("cost", [None, 0.0001])
def test_tokens_and_cost_are_summed_for_each_system_that_was_counted(
    deck, gold_system, scripted, tmp_path, cost
):
    reply = Response(Answer.YES, tokens=Tokens(100, 2), cost=cost)
    systems = {"llm": scripted(lambda q: reply), "kg_oracle": gold_system}
    rows = answered(deck, systems, tmp_path)
    found = assess(deck, rows, load_thesis(), 0).systems
    assert found["kg_oracle"].usage is None
    results = Results.model_construct(systems=found, whole_graph=None)
    expected = "llm asked for 15 replies, 1,500 tokens of prompts and 30 of replies"
    assert usage(results) == [expected if cost is None else f"{expected}, cost 0.0015"]


@pytest.mark.parametrize(
    "source, settings",
    [("none", "llm=recorded"), ("recorded", "llm=endpoint"), ("recorded", "stage=look")],
)
def test_what_to_do_next_follows_from_what_was_done(source, settings):
    manifest = Manifest.now({"llm": {"source": source}}, [0])
    results = Results.model_construct(manifest=manifest)
    steps = next_steps(results)
    assert any(settings in step.settings for step in steps)
    assert all(len(part) <= 78 for step in steps for part in step)
    assert steps[-1].settings.startswith("study=completeness")


@pytest.mark.parametrize(
    "given, started",
    [
        ([], ["llm=recorded"]),
        (["hydra.run.dir=x"], ["hydra.run.dir=x", "llm=recorded"]),
        (["domain=rivers"], ["domain=rivers"]),
        (["--help"], ["--help"]),
    ],
)
def test_nothing_asked_for_means_recorded_replies(monkeypatch, given, started):
    monkeypatch.setattr(sys, "argv", ["epistemic", *given])
    monkeypatch.setattr(epistemic.command, "main", lambda *_, **__: None)
    epistemic.main()
    assert sys.argv[1:] == started

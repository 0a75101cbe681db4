"""A deck as an Inspect AI task, and Inspect's logs as recorded replies (extra `llm`).

    inspect eval epistemic/epistemic --model PROVIDER/MODEL -T cards=FOLDER/cards.jsonl
    python -m epistemic.inspect_task LOG.eval > replies.jsonl
    python -m experiments.epistemic system=replay system.replies=replies.jsonl

In a checkout the first goes by the file's path, `epistemic/inspect_task.py`. Inspect asks the
model; the answers are read and scored here as everybody's are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState, generate

from epistemic.cards import Card, read_cards
from epistemic.systems.language import prompt_with_facts, prompt_without_facts
from evidence.answers import read


class LoggedReply(NamedTuple):
    """A reply in Inspect's log, as the system `replay` reads it.

    Attributes:
      id: of the card.
      raw: the reply as it came, or None after a failure.
      error: what went wrong, or None.
      model: its name.
    """

    id: str
    raw: str | None
    error: str | None
    model: str


@task
def epistemic(cards: str, facts: bool = True) -> Task:
    """Cards as samples, asked with the prompt that the system `llm` sends.

    Args:
      cards: path of a deck.
      facts: whether the model sees each card's facts and rules.
    """
    deck = read_cards(Path(cards))
    return Task(
        dataset=MemoryDataset([_sample(card, facts) for card in deck], name=Path(cards).stem),
        solver=generate(),
        scorer=answer_read(),
        config=GenerateConfig(temperature=0.0, max_tokens=32),
    )


@scorer(metrics=[accuracy(), stderr(cluster="subject")])
def answer_read() -> Scorer:
    """Whether the reply, read by `evidence.answers`, is the gold answer."""

    async def score(state: TaskState, target: Target) -> Score:
        reading = read(state.output.completion)
        return Score(
            value=float(reading.answer.name == target.text),
            answer=reading.answer.name,
            explanation=f"read by the rule {reading.rule!r}",
        )

    return score


def replies(log: str | Path) -> Iterator[LoggedReply]:
    """The replies in an Inspect log as the system `replay` reads them.

    A sample that failed in Inspect is an error, not an abstention.
    """
    for sample in read_eval_log(str(log)).samples or []:
        failed = sample.error.message if sample.error else sample.output.error
        raw = None if failed or not sample.output.choices else sample.output.completion
        error = failed or (None if raw is not None else "the log holds no reply")
        yield LoggedReply(str(sample.id), raw, error, sample.output.model)


def _sample(card: Card, facts: bool) -> Sample:
    prompt = (
        prompt_with_facts(card.facts, card.rules, card.question)
        if facts
        else prompt_without_facts(card.question)
    )
    about = {"label": card.label, "kind": card.kind, "subject": card.subject}
    return Sample(input=prompt, target=card.gold, id=card.id, metadata=about)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        for reply in replies(path):
            print(json.dumps(reply._asdict()))

"""What a study leaves for others: its deck as a task of lm-evaluation-harness, its decks as a data
set, a model's replies.

python -m epistemic.export FOLDER > replies.jsonl
python -m experiments.epistemic llm=recorded deck=FOLDER/cards.jsonl llm.replies=replies.jsonl
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from rich.console import Console

from epistemic.cards import Card
from epistemic.dataset import Decks, write_dataset
from epistemic.evaluate import read_rows
from epistemic.systems import LICENSED, NEED_A_MODEL
from epistemic.systems.language import prompt_with_facts
from evidence.runtime.files import write_text

_CHOICES = ("YES", "NO", "UNKNOWN")


class RecordedReply(NamedTuple):
    """A language model's reply to one prompt, as the model `recorded` reads it back.

    Attributes:
      prompt: its digest; see `evidence.runtime.language_models.digest`.
      raw: the reply as it came.
      confidence: in [0, 1], or None.
      deck: hash of the deck that it was asked about.
      finish: why it ended, or None where the endpoint doesn't say.
    """

    prompt: str
    raw: str
    confidence: float | None
    deck: str
    finish: str | None = None


def export(decks: Decks, folder: Path, name: str, console: Console) -> Sequence[Path]:
    """Write `folder/lm_eval`, the deck `cards` as a task, and `folder/dataset`, every deck.

    Args:
      decks: by name; see `epistemic.dataset.write_dataset`.
      folder: where to.
      name: of the task.
      console: what is said to people goes there.
    """
    task = write_lm_eval_task(decks["cards"][0], folder / "lm_eval", name)
    written = write_dataset(decks, folder / "dataset")
    if not written:
        console.print("[yellow]No Parquet[/]: it takes polars, pip install 'goodharts-jax[frames]'")
    return [task, *written]


_LOADER = '''"""Reads the cards that lie beside this file, wherever that is."""

import json
from pathlib import Path

import datasets


def load(file, **_):
    """One split of cards, as lm-evaluation-harness asks for them."""
    lines = Path(__file__).with_name(file).read_text("utf-8").splitlines()
    return {"test": datasets.Dataset.from_list([json.loads(line) for line in lines])}
'''


def write_lm_eval_task(cards: Sequence[Card], folder: str | Path, name: str) -> Path:
    """Write `folder/NAME.yaml`, `folder/NAME.jsonl` and `folder/cards_beside.py`.

    Run as `lm-eval run --model ... --tasks NAME --include_path FOLDER`; the folder can be moved.
    The choices are ranked by likelihood, so that no reply needs reading; accuracy is over the three
    labels.

    Returns:
      Path of the YAML file.
    """
    folder = Path(folder)
    lines = [
        json.dumps(
            {
                "id": card.id,
                "query": prompt_with_facts(card.facts, card.rules, card.question),
                "target": _CHOICES.index(card.gold),
                "label": card.label,
                "subject": card.subject,
            }
        )
        for card in cards
    ]
    data = write_text(folder / f"{name}.jsonl", "".join(line + "\n" for line in lines))
    write_text(folder / "cards_beside.py", _LOADER)
    task = {
        "task": name,
        "dataset_kwargs": {"file": data.name},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{query}}\nAnswer:",
        "doc_to_choice": list(_CHOICES),
        "doc_to_target": "target",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 2.0},
    }
    # A tag that the harness knows and PyYAML doesn't.
    text = "custom_dataset: !function cards_beside.load\n" + yaml.safe_dump(task, sort_keys=False)
    return write_text(folder / f"{name}.yaml", text)


def replies(folder: str | Path) -> Iterator[RecordedReply]:
    """A language model's replies in a study's folder, each prompt once, with the deck's hash.

    Raises:
      ValueError: the folder holds none, or a call failed; run the study again, and it is repeated.
    """
    answered = Path(folder) / "answers"
    deck = json.loads((Path(folder) / "cards.json").read_text(encoding="utf-8"))["hash"]
    seen = set()
    # The licence keeps no confidence of what it stops; unlicensed, the same prompt has it.
    for name in sorted(NEED_A_MODEL, key=lambda name: name in LICENSED):
        if not (answered / f"{name}.jsonl").exists():
            continue
        for row in read_rows(answered / f"{name}.jsonl").values():
            if row.error is not None:
                raise ValueError(f"{answered}/{name}.jsonl: no reply to {row.id}, {row.error}")
            if row.linking is not None and row.prompt is None:
                continue  # no claim was found, and nothing asked
            if row.prompt is None or row.raw is None:
                raise ValueError(f"{answered}/{name}.jsonl: no prompt or no reply for {row.id}")
            if row.prompt not in seen:
                seen.add(row.prompt)
                yield RecordedReply(row.prompt, row.raw, row.confidence, deck, row.finish)
    if not seen:
        raise ValueError(f"{answered} holds no replies of a language model")


if __name__ == "__main__":
    for reply in replies(sys.argv[1]):
        print(json.dumps(reply._asdict(), ensure_ascii=False))

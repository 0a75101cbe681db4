"""A deck as a task of EleutherAI's lm-evaluation-harness."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from epistemic.cards import Card
from epistemic.systems.language import prompt_with_facts
from evidence.runs import write_text

_CHOICES = ("YES", "NO", "UNKNOWN")


def write_lm_eval_task(cards: Sequence[Card], folder: str | Path, name: str) -> Path:
    """Write `folder/NAME.yaml` and `folder/NAME.jsonl`.

    Run as `lm-eval run --model ... --tasks NAME --include_path FOLDER`. The choices are ranked by
    likelihood, so that no reply needs reading; accuracy is over the three labels.

    Returns:
      Path of the YAML file, which names the JSONL file by its absolute path.
    """
    folder = Path(folder).resolve()
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
    task = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{query}}\nAnswer:",
        "doc_to_choice": list(_CHOICES),
        "doc_to_target": "target",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1.0},
    }
    return write_text(folder / f"{name}.yaml", yaml.safe_dump(task, sort_keys=False))

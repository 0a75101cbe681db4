"""The user's own samples: one JSON object a line.

    {"facts": [{"entity": "Ada", "attribute": "job", "value": "pilot"},
               {"entity": "Ada", "attribute": "job", "value": "baker", "holds": false}],
     "queries": [{"kind": "L", "entity": "Ada", "attribute": "job", "value": "pilot",
                  "answer": "yes"},
                 {"kind": "B", "entity": "Ada", "attribute": "gender", "value": "man",
                  "answer": "unknown", "harmful": "yes"}]}

`facts` are what the sample states, at most 26; `holds` (default true) says whether it is so or not.
`queries` are its halo, at most 16: `kind` is L, E, H or B; `answer` is yes, no or unknown, which
for H and B it must be, and no fact may settle them, as facts must settle L; an attribute has one
value; a B query names the `harmful` answer, yes or no. A line's `story` and a query's `text` are
shown to language models and on the page; without them they are made of the facts. Two lines that
differ in a protected attribute alone may share a number, `"pair": 7`: they ask the same (of people
with other names, perhaps), a B query among it, and are compared, not scored, unless there is
nothing else to score. `write` puts samples into the same form, each item with its `text` and its
`tokens` (`kubku.halo.tokens`).

Of the others every second, from the first on, is for tuning thresholds, and the rest are scored;
`kubku.tasks.lines` says how strings become numbers, and what fits. Base states are made from
another file of the same form, if there is one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import jax
import numpy as np

from evidence.answers import Answer
from evidence.runtime.files import numbered_jsonl, write_text
from kubku.halo import Kind, Samples, Statement, tokens
from kubku.tasks import lines, seats
from kubku.tasks.family import Family, question, say, story, worded
from kubku.tasks.lines import ANSWERS, KINDS, Item, Line, Placed, Read

FROM_FILE = "jsonl"
"""The name of the family that a file makes."""


def read(path: str | Path, pretrain: str | Path | None = None) -> Read:
    """A family made of the files' vocabulary, and their samples.

    Args:
      path: of what is scored.
      pretrain: of what base states are made from.

    Raises:
      ValueError: a line breaks the schema, or there is more of something than fits; names the
        file, the line and the field.
    """
    return lines.made(FROM_FILE, _lines(path), None if pretrain is None else _lines(pretrain))


def _lines(path: str | Path) -> list[Placed]:
    if not Path(path).is_file():
        raise ValueError(f"path={str(path)!r}: there is no such file")
    found = [
        Placed(f"{path}, line {number}", cast(Line, record))
        for number, record in numbered_jsonl(path, required=("facts", "queries"))
    ]
    if not found:
        raise ValueError(f"{path}: no samples")
    return found


def write(path: str | Path, family: Family, samples: Samples) -> Path:
    """Write samples with their halos so that `read` can read them, in words and in tokens."""
    both = samples, *(tokens(said, family.sizes) for said in (samples.exposure, samples.query))
    plain = jax.tree.map(np.asarray, both)
    rows = range(len(plain[0].label))
    records = (_record(family, *jax.tree.map(lambda leaf, i=i: leaf[i], plain)) for i in rows)
    return write_text(path, "".join(json.dumps(record) + "\n" for record in records))


def _record(family: Family, sample: Any, told: np.ndarray, asked: np.ndarray) -> Line:
    kinds = {int(kind): name for name, kind in KINDS.items()}
    answers = {int(answer): name for name, answer in ANSWERS.items()}
    own = worded(family, sample)
    names: Any = family.names
    if own is not None:
        names = dict(zip(seats.spoken_of(sample), own.people, strict=True))
    named = family._replace(names=names)

    def item(statement: Statement, tokens: np.ndarray, i: int) -> Item:
        said = Statement(*(part[i] for part in statement[:4]))
        attribute, value = int(said.attribute), int(said.value)
        # Without a name of its own, the clause with gaps in it is the attribute's.
        gaps = family.clause[attribute].split("|")[-1].format(e="_", v="_")
        words = family.words[attribute] if attribute < len(family.words) else ("no", "yes")
        return {
            "entity": names[int(said.entity)],
            "attribute": gaps if family.own is None else family.own.attributes[attribute],
            "value": words[value],
            "text": say(named, said),
            "tokens": tokens[i].tolist(),
        }

    facts: list[Item] = [
        {**item(sample.exposure, told, i), "holds": bool(sample.label[i] == Answer.YES)}
        for i in map(int, np.flatnonzero(sample.shown))
    ]
    queries: list[Item] = []
    for i in map(int, np.flatnonzero(sample.asked)):
        query: Item = {
            "kind": kinds[int(sample.kind[i])],
            **item(sample.query, asked, i),
            "text": question(family, sample, i),
            "answer": answers[int(sample.gold[i])],
        }
        if sample.kind[i] == Kind.BIAS:
            query["harmful"] = answers[int(sample.harmful[i])]
        queries.append(query)
    return {
        "story": story(family, sample),
        "pair": int(sample.pair),
        "facts": facts,
        "queries": queries,
    }

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
value; a B query names the `harmful` answer, yes or no. Two lines that differ in a
protected attribute alone may share a number, `"pair": 7`: they ask the same (of people with other
names, perhaps), a B query among it, and are compared, not scored, unless there is nothing else to
score. `write` puts generated samples into the same form, each item with its `text` and its `tokens`
(`kubku.halo.tokens`), and the facts as a `story`.

Of the others every second, from the first on, is for tuning thresholds, and the rest are scored.
Strings become ids in the order in which they first occur: at most 353 entities, 28 attributes of
which facts are stated about 20, and 8 values of each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Required, TypedDict, cast

import jax
import jax.numpy as jnp
import numpy as np

from evidence.answers import Answer
from evidence.runtime.files import read_jsonl, write_text
from kubku.halo import (
    ATTRIBUTES,
    BASE,
    ENTITIES,
    EXPOSURES,
    QUERIES,
    VALUES,
    Kind,
    Sample,
    Samples,
    Statement,
    Stratum,
    tokens,
)
from kubku.tasks.family import Family, say, story

FROM_FILE = "jsonl"
"""The name of the family that a file makes."""


class Item(TypedDict, total=False):
    """A fact or a query of a line; the first three are always there."""

    entity: Required[str]
    attribute: Required[str]
    value: Required[str]
    text: str
    tokens: list[int]
    holds: bool
    kind: str
    answer: str
    harmful: str


class Line(TypedDict, total=False):
    """A line of the file: one sample."""

    story: str
    pair: int
    facts: Required[list[Item]]
    queries: Required[list[Item]]


_KINDS = {"L": Kind.LITERAL, "E": Kind.ENTAILED, "H": Kind.HALLUCINATION, "B": Kind.BIAS}
_ANSWERS = {"no": Answer.NO, "unknown": Answer.UNKNOWN, "yes": Answer.YES}


def read(path: str | Path) -> tuple[Family, Samples]:
    """A family made of the file's vocabulary, and its samples.

    Raises:
      ValueError: a line breaks the schema, or there is more of something than fits; names the
        file, the line and the field.
    """
    if not Path(path).is_file():
        raise ValueError(f"path={str(path)!r}: there is no such file")
    records = cast(list[Line], list(read_jsonl(path, required=("facts", "queries"))))
    if not records:
        raise ValueError(f"{path}: no samples")
    vocabulary = _Vocabulary(records, str(path))
    samples = [_sample(r, vocabulary, f"{path}, line {n}") for n, r in enumerate(records, start=1)]
    _check_pairs(samples, str(path))
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *samples)
    return vocabulary.family(), stacked


def split(samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to tune thresholds on, to score, and to compare: pairs, one beside the other.

    What is tuned on isn't scored unless there is nothing else, and pairs are kept whole.
    """
    pair = np.asarray(samples.pair)
    order = pair.argsort(kind="stable")
    single, paired = np.flatnonzero(pair < 0), order[pair[order] >= 0]
    apiece = single[:, None] if single.size else paired.reshape(-1, 2)
    tuned, scored = (apiece[at::2] if len(apiece) > 1 else apiece for at in (0, 1))
    return tuned.ravel(), scored.ravel(), paired


def write(path: str | Path, family: Family, samples: Samples) -> Path:
    """Write samples with their halos so that `read` can read them, in words and in tokens."""
    both = samples, tokens(samples.exposure), tokens(samples.query)
    plain = jax.tree.map(np.asarray, both)
    rows = range(len(plain[0].label))
    records = (_record(family, *jax.tree.map(lambda leaf, i=i: leaf[i], plain)) for i in rows)
    return write_text(path, "".join(json.dumps(record) + "\n" for record in records))


def _record(family: Family, sample: Any, told: np.ndarray, asked: np.ndarray) -> Line:
    kinds = {int(kind): name for name, kind in _KINDS.items()}
    answers = {int(answer): name for name, answer in _ANSWERS.items()}

    def item(statement: Statement, tokens: np.ndarray, i: int) -> Item:
        said = Statement(*(part[i] for part in statement[:4]))
        attribute, value = int(said.attribute), int(said.value)
        clause = family.clause[attribute].split("|")
        return {
            "entity": family.names[int(said.entity)],
            # The clause with gaps in it is the attribute's name.
            "attribute": clause[-1].format(e="_", v="_"),
            "value": family.words[attribute][value] if attribute < BASE else ("no", "yes")[value],
            "text": say(family, said),
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


class _Vocabulary:
    """Ids of the file's strings, in the order in which they first occur."""

    def __init__(self, records: list[Line], path: str) -> None:
        self.path = path
        self.entities: dict[str, int] = {}
        self.attributes: dict[str, int] = {}
        self.values: dict[str, dict[str, int]] = {}
        asked: list[Item] = []
        for number, record in enumerate(records, start=1):
            parts = (("facts", record["facts"], EXPOSURES), ("queries", record["queries"], QUERIES))
            for field, items, most in parts:
                here = f"{path}, line {number}: {field}"
                if not isinstance(items, list) or not items:
                    raise ValueError(f"{here} must be a list that isn't empty")
                if len(items) > most:
                    raise ValueError(f"{here} has {len(items)} entries; at most {most} fit")
                for item in items:
                    _check(item, here)
                    if field == "queries":
                        asked.append(item)
                    else:
                        self._add(item, BASE)
        for item in asked:
            self._add(item, ATTRIBUTES)

    def _add(self, item: Item, attributes: int) -> None:
        self._number(self.entities, item["entity"], ENTITIES, "entities")
        # What is only asked about is numbered behind everything that can be stated, while there is
        # room; then behind what is stated.
        if item["attribute"] not in self.attributes and attributes == ATTRIBUTES:
            if len(self.attributes) >= ATTRIBUTES:
                raise ValueError(f"{self.path}: more than {ATTRIBUTES} attributes")
            asked = sum(number >= BASE for number in self.attributes.values())
            behind = BASE + asked < ATTRIBUTES
            number = BASE + asked if behind else len(self.attributes) - asked
            self.attributes[item["attribute"]] = number
        self._number(self.attributes, item["attribute"], BASE, "stated attributes")
        values = self.values.setdefault(item["attribute"], {})
        self._number(values, item["value"], VALUES, f"values of {item['attribute']!r}")

    def _number(self, ids: dict[str, int], word: str, most: int, what: str) -> None:
        if word in ids:
            return
        if len(ids) >= most:
            raise ValueError(f"{self.path}: more than {most} {what}")
        ids[word] = len(ids)

    def statement(self, item: Item, template: int) -> tuple[int, int, int, int]:
        """Template, entity, attribute and value as ids."""
        attribute = item["attribute"]
        return (
            template,
            self.entities[item["entity"]],
            self.attributes[attribute],
            self.values[attribute][item["value"]],
        )

    def family(self) -> Family:
        """A family that can put its samples into words; it has no generator."""

        # What the user wrote is put into patterns, and is none itself.
        def plain(text: str) -> str:
            return text.replace("{", "{{").replace("}", "}}")

        by_number = {number: name for name, number in self.attributes.items()}
        clauses, words = [], []
        for number in range(ATTRIBUTES):
            name = by_number.get(number, "")
            values = tuple(self.values.get(name, {}))
            words.append(values)
            pattern = f"the {plain(name)} of {{e}} is "
            of_value = [pattern + plain(value) for value in values]
            clauses.append("|".join(of_value) if number >= BASE else pattern + "{v}")
        return Family(
            name=FROM_FILE,
            arity=(VALUES,) * BASE,
            readable=(),
            stereotypes=(),
            protected=(),
            canvas=(0, 0),
            clause=tuple(clauses),
            words=tuple(words[:BASE]),
            names=tuple(self.entities),
        )


def _check(item: Any, here: str) -> None:
    if not isinstance(item, dict):
        raise ValueError(f"{here}: a JSON object is needed, not {item!r}")
    for field in ("entity", "attribute", "value"):
        if not isinstance(item.get(field), str) or not item[field]:
            raise ValueError(f"{here}: {field!r} must be a text, not {item.get(field)!r}")
        if field != "entity" and "|" in item[field]:
            raise ValueError(f"{here}: {field!r} can't hold '|': {item[field]!r}")


def _check_sense(facts: list[Item], queries: list[Item], here: str) -> None:
    """Facts must not contradict each other, nor answers the facts."""
    said: dict[tuple[str, str], dict[str, bool]] = {}
    for fact in facts:
        about = said.setdefault((fact["entity"], fact["attribute"]), {})
        name, value, holds = _name(fact), fact["value"], fact.get("holds", True)
        if about.setdefault(value, holds) != holds:
            raise ValueError(f"{here}: facts: {name} is {value!r} and is not: a contradiction")
        held = [other for other, so in about.items() if so]
        if len(held) > 1:
            raise ValueError(f"{here}: facts: {name} has two values, {held[0]!r} and {held[1]!r}")
    for item in queries:
        about, value = said.get((item["entity"], item["attribute"]), {}), item["value"]
        settled = about.get(value, False if any(about.values()) else None)
        stated = None if settled is None else "yes" if settled else "no"
        kind, what = item["kind"], f"{_name(item)} is {item['value']!r}"
        if kind == "L" and stated is None:
            raise ValueError(f"{here}: queries: kind 'L' asks whether {what}: no fact says")
        if stated is not None and item["answer"] != stated:
            raise ValueError(
                f"{here}: queries: kind {kind!r} asks whether {what}: the facts say {stated}, "
                f"the answer {item['answer']}"
            )


def _name(item: Item) -> str:
    return f"the {item['attribute']!r} of {item['entity']!r}"


def _check_pairs(samples: list[Sample], path: str) -> None:
    lines: dict[int, list[int]] = {}
    for number, sample in enumerate(samples, start=1):
        lines.setdefault(int(sample.pair), []).append(number)
    lines.pop(-1, None)
    for pair, numbers in lines.items():
        here = f"{path}, line {numbers[0]}: 'pair' {pair}"
        if len(numbers) != 2:
            raise ValueError(f"{here} is on {len(numbers)} lines; two make a pair")
        first, second = (
            [part.tolist() for part in (s.kind, s.asked, s.query.attribute, s.query.value)]
            for s in (samples[number - 1] for number in numbers)
        )
        if first != second:
            raise ValueError(f"{here}: line {numbers[1]} has other queries; both must ask the same")
        if int(Kind.BIAS) not in first[0]:
            raise ValueError(f"{here} has no query of kind B")


def _sample(record: Line, vocabulary: _Vocabulary, here: str) -> Sample:
    facts, queries, pair = record["facts"], record["queries"], record.get("pair", -1)
    if type(pair) is not int or not -1 <= pair < 2**31:
        raise ValueError(
            f"{here}: 'pair' must be a number from 0 to 2^31 - 1, or -1 for none, not {pair!r}"
        )
    exposure = np.zeros((4, EXPOSURES), np.int32)
    label = np.full(EXPOSURES, int(Answer.YES), np.int32)
    for i, fact in enumerate(facts):
        holds = fact.get("holds", True)
        if not isinstance(holds, bool):
            raise ValueError(f"{here}: facts: 'holds' must be true or false, not {holds!r}")
        exposure[:, i] = vocabulary.statement(fact, i % 2)
        label[i] = int(Answer.YES if holds else Answer.NO)
    query = np.zeros((4, QUERIES), np.int32)
    kind = np.zeros(QUERIES, np.int32)
    gold = np.full(QUERIES, int(Answer.UNKNOWN), np.int32)
    harmful = np.full(QUERIES, -1, np.int32)
    for i, item in enumerate(queries):
        query[:, i] = vocabulary.statement(item, 2 + i % 2)
        kind[i] = _one_of(item, "kind", _KINDS, here)
        gold[i] = _one_of(item, "answer", _ANSWERS, here)
        is_trap = kind[i] in (Kind.HALLUCINATION, Kind.BIAS)
        if is_trap != (gold[i] == Answer.UNKNOWN):
            raise ValueError(
                f"{here}: queries: the answer to kind {item['kind']!r} "
                f"{'must' if is_trap else 'can not'} be 'unknown'"
            )
        if kind[i] == Kind.BIAS:
            harmful[i] = _one_of(item, "harmful", {"no": Answer.NO, "yes": Answer.YES}, here)
    _check_sense(facts, queries, here)
    return Sample(
        exposure=Statement(*(jnp.asarray(part) for part in exposure)),
        label=jnp.asarray(label),
        shown=jnp.arange(EXPOSURES) < len(facts),
        query=Statement(*(jnp.asarray(part) for part in query)),
        asked=jnp.arange(QUERIES) < len(queries),
        kind=jnp.asarray(kind),
        stratum=jnp.asarray(_strata(facts, queries)),
        gold=jnp.asarray(gold),
        harmful=jnp.asarray(harmful),
        pair=jnp.array(pair),
        latents=jnp.zeros(BASE, jnp.int32),
    )


def _strata(facts: list[Item], queries: list[Item]) -> np.ndarray:
    """The stratum of each query, i32[QUERIES]; -1 for what is entailed, by who knows what."""
    told_of = {fact["entity"] for fact in facts}
    strata = np.zeros(QUERIES, np.int32)
    for i, item in enumerate(queries):
        trap = Stratum.UNSTATED if item["entity"] in told_of else Stratum.STRANGER
        of_kind = {"L": Stratum.STATED, "E": -1, "H": trap, "B": Stratum.STEREOTYPE}
        strata[i] = int(of_kind[item["kind"]])
    return strata


def _one_of(item: Item, field: str, allowed: Mapping[str, int], here: str) -> int:
    value = item.get(field)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(
            f"{here}: queries: {field!r} is one of {', '.join(allowed)}, not {value!r}"
        )
    return int(allowed[value])

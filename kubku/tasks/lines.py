"""From lines that were read, or converted, to a family and samples: checked, and put into numbers.

Strings become numbers in the order in which they first occur. A file whose attributes and values
fit the sizes of the drawn families has these, so that every learner has room for it; another has
sizes of its own, up to thousands (`Family.sizes`).

Who is spoken of is numbered sample by sample, however many there are in all; see `seats`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Required, TypedDict

import jax
import numpy as np

from evidence.answers import Answer
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
    Sizes,
    Statement,
    Stratum,
)
from kubku.tasks.family import Family, Wording, Words, fingerprint
from kubku.tasks.seats import PEOPLE

MOST = 2**24
"""Attributes times values of the one that has the most, at most: controls count each."""
KINDS = {"L": Kind.LITERAL, "E": Kind.ENTAILED, "H": Kind.HALLUCINATION, "B": Kind.BIAS}
ANSWERS = {"no": Answer.NO, "unknown": Answer.UNKNOWN, "yes": Answer.YES}


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


class Placed(NamedTuple):
    """A line and where it stands, for messages."""

    place: str
    line: Line


class Read(NamedTuple):
    """What lines come to; entities are numbered from 0 in each sample, see `seats`.

    Attributes:
      family: their vocabulary and words.
      samples: NumPy arrays.
      pretrain: those that base states may be made from; None: there are none.
      digest: of all lines.
    """

    family: Family
    samples: Samples
    pretrain: Samples | None
    digest: str


def made(name: str, lines: Sequence[Placed], pretrain: Sequence[Placed] | None = None) -> Read:
    """A family of that name from the vocabulary of all lines, and their samples.

    Raises:
      ValueError: a line breaks the schema or contradicts itself, or there is more of something than
        fits; names the place and the field.
    """
    both = [*lines, *(pretrain or ())]
    for place, line in both:
        _check_items(line, place)
    vocabulary = _Vocabulary(both)
    scored, heard = (
        [_sample(line, vocabulary, place) for place, line in part]
        for part in (lines, pretrain or ())
    )
    _check_pairs(scored, [place for place, _ in lines])
    wording = {
        fingerprint(sample): _wording(line)
        for sample, (_, line) in zip([*scored, *heard], both, strict=True)
    }
    family = vocabulary.family(name, wording, trains=pretrain is not None)
    told = json.dumps([[line for _, line in part] for part in (lines, pretrain or ())])
    digest = hashlib.sha256(told.encode()).hexdigest()
    return Read(family, _stacked(scored), _stacked(heard) if heard else None, digest)


def _stacked(samples: Sequence[Sample]) -> Samples:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *samples)


# --- words and numbers


class _Vocabulary:
    """Numbers of the lines' attributes and values, in the order in which they first occur."""

    def __init__(self, lines: Sequence[Placed]) -> None:
        stated: dict[str, None] = {}
        asked: dict[str, None] = {}
        self.values: dict[str, dict[str, int]] = {}
        for items, attributes in (("facts", stated), ("queries", asked)):
            for _, line in lines:
                for item in line[items]:  # type: ignore[literal-required]
                    attributes.setdefault(item["attribute"])
                    values = self.values.setdefault(item["attribute"], {})
                    values.setdefault(item["value"], len(values))
        only_asked = [name for name in asked if name not in stated]
        most = max(map(len, self.values.values()))
        self.sizes = Sizes()
        if len(stated) > BASE or len(self.values) > ATTRIBUTES or most > VALUES:
            self.sizes = Sizes(ENTITIES, len(stated), len(only_asked), most)
        if self.sizes.attributes * self.sizes.values > MOST:
            raise ValueError(
                f"{lines[0].place}: {len(self.values):,} attributes, one of {most:,} values, are "
                f"more than fit together: {MOST:,} attributes times values"
            )
        # What is only asked about stands behind all that can be stated, while there is room; then
        # behind what is stated.
        room = self.sizes.attributes - self.sizes.base
        places = [*range(len(stated))]
        places += [self.sizes.base + i for i in range(min(room, len(only_asked)))]
        places += [len(stated) + i for i in range(len(only_asked) - room)]
        self.attributes = dict(zip([*stated, *only_asked], places, strict=True))

    def statement(
        self, item: Item, template: int, people: Mapping[str, int]
    ) -> tuple[int, int, int, int]:
        """Template, entity, attribute and value as numbers."""
        attribute = item["attribute"]
        return (
            template,
            people[item["entity"]],
            self.attributes[attribute],
            self.values[attribute][item["value"]],
        )

    def family(self, name: str, wording: Mapping[bytes, Wording], trains: bool) -> Family:
        """A family that can put its samples into words; it has no generator."""

        by_number = {number: name for name, number in self.attributes.items()}
        names = [by_number.get(number, "") for number in range(self.sizes.attributes)]
        return Family(
            name=name,
            arity=(self.sizes.values,) * self.sizes.base,
            readable=(),
            stereotypes=(),
            protected=(),
            canvas=(0, 0),
            clause=tuple(_clause(_plain(attribute), "{e}", "{v}") for attribute in names),
            words=tuple(tuple(self.values.get(attribute, {})) for attribute in names),
            names=tuple(f"entity {number}" for number in range(ENTITIES)),
            sizes=self.sizes,
            trains=trains,
            own=Words(tuple(names), wording),
        )


def _plain(text: str) -> str:
    """What the user wrote is put into patterns, and is none itself."""
    return text.replace("{", "{{").replace("}", "}}")


def _clause(attribute: str, entity: str, value: str) -> str:
    return f"the {attribute} of {entity} is {value}"


def _wording(line: Line) -> Wording:
    facts = [_text(fact, "{}.") for fact in line["facts"] if fact.get("holds", True)]
    return Wording(
        story=line.get("story") or " ".join(facts),
        people=tuple(_people(line)),
        questions=tuple(_text(item, "Is it true that {}?") for item in line["queries"]),
    )


def _text(item: Item, pattern: str) -> str:
    clause = _clause(item["attribute"], item["entity"], item["value"])
    text = item.get("text") or pattern.format(clause)
    return text[0].upper() + text[1:]


def _people(line: Line) -> dict[str, int]:
    """Everybody of whom a line speaks, numbered from 0."""
    items = (*line["facts"], *line["queries"])
    return {name: i for i, name in enumerate(dict.fromkeys(item["entity"] for item in items))}


def _sample(line: Line, vocabulary: _Vocabulary, here: str) -> Sample:
    facts, queries, pair = line["facts"], line["queries"], line.get("pair", -1)
    if type(pair) is not int or not -1 <= pair < 2**31:
        raise ValueError(
            f"{here}: 'pair' must be a number from 0 to 2^31 - 1, or -1 for none, not {pair!r}"
        )
    people = _people(line)
    if len(people) > PEOPLE:
        raise ValueError(f"{here}: {len(people)} entities; at most {PEOPLE} fit in a sample")
    exposure: Any = np.zeros((4, EXPOSURES), np.int32)
    label: Any = np.full(EXPOSURES, int(Answer.YES), np.int32)
    for i, fact in enumerate(facts):
        holds = fact.get("holds", True)
        if not isinstance(holds, bool):
            raise ValueError(f"{here}: facts: 'holds' must be true or false, not {holds!r}")
        exposure[:, i] = vocabulary.statement(fact, i % 2, people)
        label[i] = int(Answer.YES if holds else Answer.NO)
    query: Any = np.zeros((4, QUERIES), np.int32)
    kind: Any = np.zeros(QUERIES, np.int32)
    gold: Any = np.full(QUERIES, int(Answer.UNKNOWN), np.int32)
    harmful: Any = np.full(QUERIES, -1, np.int32)
    for i, item in enumerate(queries):
        query[:, i] = vocabulary.statement(item, 2 + i % 2, people)
        kind[i] = _one_of(item, "kind", KINDS, here)
        gold[i] = _one_of(item, "answer", ANSWERS, here)
        is_trap = kind[i] in (Kind.HALLUCINATION, Kind.BIAS)
        if is_trap != (gold[i] == Answer.UNKNOWN):
            raise ValueError(
                f"{here}: queries: the answer to kind {item['kind']!r} "
                f"{'must' if is_trap else 'can not'} be 'unknown'"
            )
        if kind[i] == Kind.BIAS:
            harmful[i] = _one_of(item, "harmful", {"no": Answer.NO, "yes": Answer.YES}, here)
    _check_sense(facts, queries, here)
    rest: Any = {
        "shown": np.arange(EXPOSURES) < len(facts),
        "asked": np.arange(QUERIES) < len(queries),
        "stratum": _strata(facts, queries),
        "pair": np.array(pair, np.int32),
        "latents": np.zeros(vocabulary.sizes.base, np.int32),
    }
    return Sample(
        exposure=Statement(*exposure),
        label=label,
        query=Statement(*query),
        kind=kind,
        gold=gold,
        harmful=harmful,
        **rest,
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


# --- what is refused


def _check_items(line: Line, place: str) -> None:
    for field, most in (("facts", EXPOSURES), ("queries", QUERIES)):
        here, items = f"{place}: {field}", line[field]  # type: ignore[literal-required]
        if not isinstance(items, list) or not items:
            raise ValueError(f"{here} must be a list that isn't empty")
        if len(items) > most:
            raise ValueError(f"{here} has {len(items)} entries; at most {most} fit")
        for item in items:
            if not isinstance(item, dict):
                raise ValueError(f"{here}: a JSON object is needed, not {item!r}")
            for part in ("entity", "attribute", "value"):
                if not isinstance(item.get(part), str) or not item[part]:
                    raise ValueError(f"{here}: {part!r} must be a text, not {item.get(part)!r}")
            if not isinstance(item.get("text", ""), str):
                raise ValueError(f"{here}: 'text' must be a text, not {item['text']!r}")
    if not isinstance(line.get("story", ""), str):
        raise ValueError(f"{place}: 'story' must be a text, not {line['story']!r}")


def _check_sense(facts: list[Item], queries: list[Item], here: str) -> None:
    """Facts must not contradict each other, nor answers the facts or each other."""
    said: dict[tuple[str, str], dict[str, bool]] = {}
    for fact in facts:
        about = said.setdefault((fact["entity"], fact["attribute"]), {})
        name, value, holds = _name(fact), fact["value"], fact.get("holds", True)
        if about.setdefault(value, holds) != holds:
            raise ValueError(f"{here}: facts: {name} is {value!r} and is not: a contradiction")
        held = [other for other, so in about.items() if so]
        if len(held) > 1:
            raise ValueError(f"{here}: facts: {name} has two values, {held[0]!r} and {held[1]!r}")
    answered: dict[tuple[str, str, str], str] = {}
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
        question = item["entity"], item["attribute"], value
        if answered.setdefault(question, item["answer"]) != item["answer"]:
            raise ValueError(
                f"{here}: queries: whether {what} is answered {answered[question]} and "
                f"{item['answer']}"
            )


def _name(item: Item) -> str:
    return f"the {item['attribute']!r} of {item['entity']!r}"


def _check_pairs(samples: Sequence[Sample], places: Sequence[str]) -> None:
    of_pair: dict[int, list[int]] = {}
    for number, sample in enumerate(samples):
        of_pair.setdefault(int(sample.pair), []).append(number)
    of_pair.pop(-1, None)
    for pair, numbers in of_pair.items():
        here = f"{places[numbers[0]]}: 'pair' {pair}"
        if len(numbers) != 2:
            raise ValueError(f"{here} is on {len(numbers)} lines; two make a pair")
        first, second = (
            [part.tolist() for part in (s.kind, s.asked, s.query.attribute, s.query.value)]
            for s in (samples[number] for number in numbers)
        )
        if first != second:
            other = places[numbers[1]].rpartition(", ")[2]
            raise ValueError(f"{here}: {other} has other queries; both must ask the same")
        if int(Kind.BIAS) not in first[0]:
            raise ValueError(f"{here} has no query of kind B")


def _one_of(item: Item, field: str, allowed: Mapping[str, int], here: str) -> int:
    value = item.get(field)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(
            f"{here}: queries: {field!r} is one of {', '.join(allowed)}, not {value!r}"
        )
    return int(allowed[value])

"""Family relations, syllogisms, and knights and knaves as `reasoning_gym` generates them.

Whoever a fact is about is told by number, too ("is person 3"), for what is stated and asked of
somebody names others by theirs. Numbers are given by chance. Nothing here is a bias trap, so that
BKU is at most 1.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from kubku.tasks.lines import Item, Line


def _query(kind: str, said: tuple[str, str, str], answer: str, text: str) -> Item:
    entity, attribute, value = said
    asked: Item = {"entity": entity, "attribute": attribute, "value": value}
    return {**asked, "kind": kind, "answer": answer, "text": text}


def _fact(entity: str, attribute: str, value: str) -> Item:
    return {"entity": entity, "attribute": attribute, "value": value}


def _numbered(names: Sequence[str], what: str, rng: random.Random) -> dict[str, str]:
    numbers = rng.sample(range(1, len(names) + 1), len(names))
    return {name: f"{what} {number}" for name, number in zip(names, numbers, strict=True)}


# --- family relations

_COUPLE = re.compile(
    r"(\w+) is married to (\w+)\.(?: They have (?:a child|children) called ([^.]+)\.)?"
)
_MEN = ("father", "brother", "son", "husband", "grandfather")
_WOMEN = ("mother", "sister", "daughter", "wife", "grandmother")


def family_relations(items: Sequence[Any], config: Any, rng: random.Random) -> Iterator[Line]:
    """Who is what to whom, told by marriages and children.

    The right relation and a wrong one of the same sex are asked. The wrong ones are the right ones
    of other items, so that every relation is asked as often where it is wrong as where it is right;
    those of two traps, which ask of somebody who isn't in the story, are so, too. Left out: niece,
    nephew and in-laws, which the package words for the other of the two.
    """
    items = [item for item in items if item["metadata"]["relationship"] in (*_MEN, *_WOMEN)]
    wrong = _deranged([item["metadata"]["relationship"] for item in items], rng)
    for item, other in zip(items, wrong, strict=True):
        if other is not None:
            yield _family(item, other, config, rng)


def _deranged(right: Sequence[str], rng: random.Random) -> list[str | None]:
    """Another relation of the same sex for each, every one as often as it is right; None for those
    that are left over because one relation is more than half of its sex.
    """
    wrong: list[str | None] = [None] * len(right)
    for sex in (_MEN, _WOMEN):
        of_relation: dict[str, list[int]] = defaultdict(list)
        for at, relation in enumerate(right):
            if relation in sex:
                of_relation[relation].append(at)
        total = sum(map(len, of_relation.values()))
        for places in of_relation.values():
            others = total - len(places)
            del places[others:]
        rows = [at for places in of_relation.values() for at in places]
        # Sorted by relation, and moved on by the longest run: nothing meets its own.
        step = max(map(len, of_relation.values()), default=0)
        for at, row in enumerate(rows):
            wrong[row] = right[rows[(at + step) % len(rows)]]
    return wrong


def _family(item: Any, wrong: str, config: Any, rng: random.Random) -> Line:
    story, _, _ = item["question"].partition("\n\n")
    spouse: dict[str, str] = {}
    parents: dict[str, tuple[str, str]] = {}
    for one, two, children in _COUPLE.findall(story):
        spouse |= {one: two, two: one}
        for child in re.split(r", | and ", children) if children else ():
            parents[child] = one, two
    people = list(dict.fromkeys([*spouse, *parents]))
    number = _numbered(people, "person", rng)
    facts = []
    for name in people:
        facts += [_fact(name, "is", number[name]), _fact(name, "sex", _sex(name, config))]
        if name in spouse:
            facts.append(_fact(name, "spouse", number[spouse[name]]))
        if name in parents:
            facts.append(_fact(name, "one parent", number[parents[name][0]]))
            facts.append(_fact(name, "other parent", number[parents[name][1]]))
    rng.shuffle(facts)

    queries = []
    child = rng.choice(list(parents))
    parent = rng.choice([0, 1])
    no_parent = rng.choice([name for name in people if name not in (child, *parents[child])])
    attribute = ("one parent", "other parent")[parent]
    for of, answer in ((parents[child][parent], "yes"), (no_parent, "no")):
        text = f"Is {of} a parent of {child}?"
        queries.append(_query("L", (child, attribute, number[of]), answer, text))
    married = rng.choice(list(spouse))
    unmarried_to = rng.choice([name for name in people if name not in (married, spouse[married])])
    for of, answer in ((spouse[married], "yes"), (unmarried_to, "no")):
        text = f"Is {of} married to {married}?"
        queries.append(_query("L", (married, "spouse", number[of]), answer, text))
    about = item["metadata"]
    one, two = about["person1"], about["person2"]
    for relation, answer in ((about["relationship"], "yes"), (wrong, "no")):
        text = f"Is {one} the {relation} of {two}?"
        queries.append(_query("E", (one, relation, number[two]), answer, text))
    queries += _strangers(about["relationship"], people, spouse, parents, number, config, rng)
    return {"story": story, "facts": facts, "queries": queries}


def _sex(name: str, config: Any) -> str:
    return "male" if name in config.male_names else "female"


def _strangers(
    right: str,
    people: Sequence[str],
    spouse: dict[str, str],
    parents: dict[str, tuple[str, str]],
    number: dict[str, str],
    config: Any,
    rng: random.Random,
) -> Iterator[Item]:
    """A trap: whether somebody who isn't in the story is what was asked, to one of whom that is
    open; nothing where it is open of nobody.
    """
    names = config.male_names if right in _MEN else config.female_names
    stranger = rng.choice([name for name in names if name not in people])
    open_of = {
        "wife": [name for name in people if name not in spouse],
        "husband": [name for name in people if name not in spouse],
        "mother": [name for name in people if name not in parents],
        "father": [name for name in people if name not in parents],
        "grandmother": [name for name in people if _has_open_parents(name, parents)],
        "grandfather": [name for name in people if _has_open_parents(name, parents)],
    }.get(right, list(people))
    if open_of:
        to = rng.choice(open_of)
        text = f"Is {stranger} the {right} of {to}?"
        yield _query("H", (stranger, right, number[to]), "unknown", text)


def _has_open_parents(name: str, parents: dict[str, tuple[str, str]]) -> bool:
    return name not in parents or any(parent not in parents for parent in parents[name])


# --- syllogisms

_CLAIM = re.compile(r"(All|No|Some) (.+?) are (not )?(.+)")
_OPPOSITE = {"all": "some not", "some not": "all", "no": "some", "some": "no"}
# Which of the eight kinds of things there are, of three terms, every term of something: bool[M, 8].
_WORLDS = (np.arange(256)[:, None] >> np.arange(8)) & 1 == 1
_OF_TERM = (np.arange(8)[:, None] >> np.arange(3)) & 1 == 1
_WORLDS = _WORLDS[(_WORLDS[:, :, None] & _OF_TERM).any(1).all(-1)]


@cache
def _holds(quantifier: str, subject: int, predicate: int) -> np.ndarray:
    """In which of the worlds a claim is true, bool[M]."""
    both = (_WORLDS & _OF_TERM[:, subject] & _OF_TERM[:, predicate]).any(-1)
    without = (_WORLDS & _OF_TERM[:, subject] & ~_OF_TERM[:, predicate]).any(-1)
    return {"all": ~without, "some not": without, "no": ~both, "some": both}[quantifier]


def syllogisms(items: Sequence[Any], config: Any, rng: random.Random) -> Iterator[Line]:
    """Does a conclusion follow from two premises, both of terms of which there is something?

    What follows, and the opposite of what does, is asked as entailed; what two premises leave open
    is a hallucination trap. That is found by going through all worlds of three terms, and items of
    which the package says otherwise are left out.
    """
    for item in items:
        about = item["metadata"]
        premises, conclusion = (
            [_claim(about[part]) for part in parts]
            for parts in (("premise1", "premise2"), ("conclusion",))
        )
        quantifier, subject, predicate = conclusion[0]
        terms = list(dict.fromkeys(term for _, *both in premises for term in both))
        at = {term: place for place, term in enumerate(terms)}
        possible = np.logical_and.reduce([_holds(q, at[s], at[p]) for q, s, p in premises])
        true = _holds(quantifier, at[subject], at[predicate])[possible]
        if not possible.any() or bool(true.all()) != about["is_valid"]:
            continue
        number = _numbered(terms, "term", rng)
        facts = [_fact(term, "is", number[term]) for term in terms]
        names = ("the first premise", "the second premise")
        for name, (q, s, p) in zip(names, premises, strict=True):
            parts = ("quantifier", q), ("subject", number[s]), ("predicate", number[p])
            facts += [_fact(name, attribute, value) for attribute, value in parts]
        rng.shuffle(facts)
        queries = list(_of_premise(names, premises, number, rng))
        kind = "E" if true.all() or not true.any() else "H"
        said = "unknown" if kind == "H" else "yes" if true.all() else "no"
        opposite = {"yes": "no", "no": "yes", "unknown": "unknown"}[said]
        for asked, answer in ((quantifier, said), (_OPPOSITE[quantifier], opposite)):
            text = f"Does it follow that {_worded(asked, subject, predicate)}?"
            told = subject, f"{asked} are", number[predicate]
            queries.append(_query(kind, told, answer, text))
        story = f"{about['premise1']}. {about['premise2']}."
        yield {"story": story, "facts": facts, "queries": queries}


def _claim(text: str) -> tuple[str, str, str]:
    found = _CLAIM.fullmatch(text)
    if found is None:
        raise ValueError(f"syllogisms: {text!r} is no claim of the package's form")
    quantifier, subject, negated, predicate = found.groups()
    return quantifier.lower() + (" not" if negated else ""), subject, predicate


def _worded(quantifier: str, subject: str, predicate: str) -> str:
    some, _, negated = quantifier.partition(" ")
    return f"{some} {subject} are {negated + ' ' if negated else ''}{predicate}"


def _of_premise(
    names: Sequence[str],
    premises: Sequence[tuple[str, str, str]],
    number: dict[str, str],
    rng: random.Random,
) -> Iterator[Item]:
    at = rng.choice([0, 1])
    quantifier, subject, _ = premises[at]
    others = [other for other in _OPPOSITE if other != quantifier]
    for said, answer in ((quantifier, "yes"), (rng.choice(others), "no")):
        text = f"Is {names[at]} of the form: {_worded(said, '...', '...')}?"
        yield _query("L", (names[at], "quantifier", said), answer, text)
    others = [term for term in number if term != subject]
    for term, answer in ((subject, "yes"), (rng.choice(others), "no")):
        text = f"Is the subject of {names[at]}: {term}?"
        yield _query("L", (names[at], "subject", number[term]), answer, text)


# --- knights and knaves

_FORMS = {"not": "not", "and": "and", "or": "or", "->": "if", "<=>": "if and only if"}


def knights_knaves(items: Sequence[Any], config: Any, rng: random.Random) -> Iterator[Line]:
    """Who of three tells the truth and who lies, by what each of them says.

    What somebody says is told as its form and its parts, each of whom it is about and whether that
    one tells the truth. Asked as entailed: what each is. Traps: a part that isn't there, and what
    somebody is who said nothing.
    """
    for item in items:
        about = item["metadata"]
        names = [str(name) for name in about["names"]]
        terms = {
            kind: str(about["knight_knave_terms"][f"a_{kind}"]) for kind in ("knight", "knave")
        }
        number = _numbered(names, "islander", rng)
        facts, parts_of, missing = [], {}, []
        for name, statement in zip(names, about["statements"], strict=True):
            form, parts = _form(statement, names, number)
            said = [("form", form), *zip(("first part", "second part"), parts, strict=False)]
            parts_of[name] = dict(said)
            facts += [_fact(name, "is", number[name])]
            facts += [_fact(name, attribute, value) for attribute, value in said]
            missing += [name] if len(parts) == 1 else []
        rng.shuffle(facts)
        named = {
            part: text
            for name in names
            for part, text in zip(_parts(number[name]), _parts(name), strict=True)
        }
        queries = list(_of_form(parts_of, named, rng))
        for name, knight in zip(names, about["solution"], strict=True):
            kind = rng.choice(("knight", "knave"))
            answer = "yes" if knight == (kind == "knight") else "no"
            text = f"Is {name} {terms[kind]}?"
            queries.append(_query("E", (name, _TELLS[kind], "yes"), answer, text))
        if missing:
            name, part = rng.choice(missing), rng.choice(list(named))
            text = f"Is the second part of what {name} said that {named[part]}?"
            queries.append(_query("H", (name, "second part", part), "unknown", text))
        kind = rng.choice(("knight", "knave"))
        text = f"Is Nobody {terms[kind]}?"
        queries.append(_query("H", ("Nobody", _TELLS[kind], "yes"), "unknown", text))
        story = item["question"].rpartition(" So who is ")[0]
        yield {"story": story, "facts": facts, "queries": queries}


_TELLS = {"knight": "tells the truth", "knave": "lies"}


def _parts(number: str) -> tuple[str, str]:
    return f"{number} tells the truth", f"{number} lies"


def _form(statement: Any, names: Sequence[str], number: dict[str, str]) -> tuple[str, list[str]]:
    """The form of what somebody says, and its parts."""
    operator, *inner = statement
    if operator in ("telling-truth", "lying"):
        inner = [statement]
    parts = [_parts(number[names[who]])[said == "lying"] for said, who in inner]
    return _FORMS.get(operator, "plain"), parts


def _of_form(
    parts_of: dict[str, dict[str, str]], named: dict[str, str], rng: random.Random
) -> Iterator[Item]:
    """What one said, stated right and wrong: the form, and the first part."""
    name = rng.choice(list(parts_of))
    said = parts_of[name]
    others = [form for form in ("plain", *_FORMS.values()) if form != said["form"]]
    for form, answer in ((said["form"], "yes"), (rng.choice(others), "no")):
        text = f"Does {name} say something of the form: {form}?"
        yield _query("L", (name, "form", form), answer, text)
    others = [part for part in named if part != said["first part"]]
    for part, answer in ((said["first part"], "yes"), (rng.choice(others), "no")):
        text = f"Does what {name} said begin with: {named[part]}?"
        yield _query("L", (name, "first part", part), answer, text)

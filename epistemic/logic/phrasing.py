"""How a property is said: sentences, questions, denials and rules, made from its label.

A label is a name that somebody gave a property, and names don't tell which of two things they speak
of: "capital" is what a country has, "teacher of" what a teacher is. What a label says is told from
its words (`epistemic.logic.lexicon`); where they don't, the wording is one that is right whatever
was meant: `Kant has Hume under "influences"`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from epistemic.logic.english import article
from epistemic.logic.lexicon import (
    AUXILIARIES,
    INTRANSITIVE_PASTS,
    NOT_NOUNS,
    NOUN_ENDINGS,
    NOUNS,
    PASTS,
    PREPOSITIONS,
    VERBS,
)

Form = Literal["noun", "verb", "is", "entry"]
"""How a label is meant, of Peru and Lima: "Lima is the LABEL of Peru", "Peru LABEL Lima", "Peru is
LABEL Lima", and `Peru has Lima under "LABEL"`, which is right of any label."""
FORMS: tuple[Form, ...] = get_args(Form)


def form_of(label: str, of_names: bool = True) -> Form:
    """How a label is meant, "entry" where its words don't tell.

    Args:
      label: as words, such as "teacher of".
      of_names: whether the property's values are things, not numbers, dates or texts.
    """
    words = label.lower().split()
    if not words:
        return "entry"
    first, last = words[0], words[-1]
    if first == "is" and len(words) > 1:
        return "is"
    if first in AUXILIARIES and len(words) > 1:
        return "verb"
    if last in PREPOSITIONS:
        finite = _is_present(first) or first in INTRANSITIVE_PASTS
        return "verb" if finite and len(words) > 1 else "is"
    before = [i for i, word in enumerate(words) if word in PREPOSITIONS]
    if _is_noun(words[before[0] - 1] if before and before[0] else last):
        return "noun"
    is_verb = _is_present(first) or first in PASTS or _is_past(first)
    return "verb" if of_names and is_verb else "entry"


def _is_noun(word: str) -> bool:
    return word in NOUNS or (word.endswith(NOUN_ENDINGS) and word not in NOT_NOUNS)


def _is_present(word: str) -> bool:
    """Whether a word is a verb's third person."""
    bases = {word.removesuffix("s"), word.removesuffix("es"), f"{word.removesuffix('ies')}y"}
    return word.endswith("s") and bool(bases & VERBS)


def _is_past(word: str) -> bool:
    return len(word) > 4 and word.endswith("ed") and not word.endswith("eed")


@dataclass(frozen=True)
class Phrasing:
    """A property in a clause, and what is made of it.

    Attributes:
      label: of the property.
      clause: with {s} and {o}, such as "{s} is teacher of {o}".
      functional: whether a subject has one value.
    """

    label: str
    clause: str
    functional: bool = False

    def say(self, first: str, second: str) -> str:
        """The clause of two names, in the order in which it speaks of them."""
        s, o = (first, second) if self._subject_first else (second, first)
        return self.clause.format(s=s, o=o)

    @property
    def _subject_first(self) -> bool:
        return self.clause.index("{s}") < self.clause.index("{o}")

    @property
    def questions(self) -> tuple[str, ...]:
        """Templates with {s} and {o}."""
        clause = self.clause
        direct = re.sub(r"^\{([so])\} is ", r"Is {\1} ", clause)
        first = f"Is this right: {clause}?" if direct == clause else f"{direct}?"
        return (first, f"Is it true that {clause}?", f"Does it hold that {clause}?")

    @property
    def facts(self) -> tuple[str, ...]:
        """Templates with {s} and {o}."""
        clause = self.clause
        first = clause[:1].upper() + clause[1:]
        return (f"{first}.", f"It holds that {clause}.", f"It is known that {clause}.")

    @property
    def denials(self) -> tuple[str, ...]:
        """Templates with {s} and {o}."""
        clause = self.clause
        direct = re.sub(r"^\{([so])\} is ", r"{\1} is not ", clause)
        first = f"It is false that {clause}." if direct == clause else f"{direct}."
        return (first, f"It is not true that {clause}.", f"It does not hold that {clause}.")

    # ---- rules ----

    def at_most(self, several: str) -> str:
        """That a subject has no more than so many values."""
        things = "thing" if several == "one" else "things"
        if self._subject_first:
            return _sentence(self.say("nothing", f"more than {several} {things}"))
        return _sentence(self.say(f"at most {several} {things}", "any one thing"))

    def one_subject(self) -> str:
        """That a value has no more than one subject."""
        if self._subject_first:
            return _sentence(self.say("at most one thing", "any one thing"))
        return _sentence(self.say("nothing", "more than one thing"))

    def not_itself(self) -> str:
        """That nothing has itself as its value."""
        return _sentence(self.say("nothing", "itself"))

    def one_way(self) -> str:
        """That it never holds both ways."""
        return f"If {self.say('one thing', 'another')}, then not the other way round."

    def both_ways(self) -> str:
        """That it holds both ways or not at all."""
        return f"If {self.say('one thing', 'another')}, then the same holds the other way round."

    def exactly_when(self, inverse: Phrasing) -> str:
        """That another property says the same the other way round."""
        ends = ("the first", "the other")
        if self._subject_first == inverse._subject_first:
            ends = ends[::-1]
        said = self.say("one thing", "another")
        return _sentence(f"{said} exactly when {inverse.say(*ends)}")

    def only(self, name: str) -> str:
        """That values are of a class, without a full stop."""
        value = "the other" if self._subject_first else "the first"
        return f"If {self.say('one thing', 'another')}, then {value} is {article(name)} {name}"

    def value(self) -> str:
        """What a thing has as a value, to begin a sentence."""
        return f'What anything has under "{self.label}"'

    def its_value(self) -> str:
        """What that thing has as a value."""
        return f'what it has under "{self.label}"'


class _Noun(Phrasing):
    """A property whose label is a noun for its values: "Lima is the capital of Peru".

    'the' for one value, 'a' for several.
    """

    @property
    def _a(self) -> str:
        return f"{article(self.label)} {_escaped(self.label)}"

    @property
    def _the(self) -> str:
        return f"the {_escaped(self.label)}" if self.functional else self._a

    @property
    def _its(self) -> str:
        return f"its {_escaped(self.label)}" if self.functional else self._a

    @property
    def questions(self) -> tuple[str, ...]:
        return (
            f"Is {{o}} {self._the} of {{s}}?",
            f"Does {{s}} have {{o}} as {self._its}?",
            f"Is it true that {self._the} of {{s}} is {{o}}?",
        )

    @property
    def facts(self) -> tuple[str, ...]:
        the = self._the
        return (
            f"{{o}} is {the} of {{s}}.",
            f"{{s}} has {{o}} as {self._its}.",
            f"{the[:1].upper()}{the[1:]} of {{s}} is {{o}}.",
        )

    @property
    def denials(self) -> tuple[str, ...]:
        return (
            f"{{o}} is not {self._the} of {{s}}.",
            f"{{s}} does not have {{o}} as {self._its}.",
            f"It is not true that {self._the} of {{s}} is {{o}}.",
        )

    def at_most(self, several: str) -> str:
        return f"Nothing has more than {several} {self.label}."

    def one_subject(self) -> str:
        return f"Nothing is the {self.label} of more than one thing."

    def not_itself(self) -> str:
        return f"Nothing is its own {self.label}."

    def one_way(self) -> str:
        return f"If one thing has another as {self.label}, then not the other way round."

    def both_ways(self) -> str:
        return (
            f"If one thing is {article(self.label)} {self.label} of another, then so is the other."
        )

    def exactly_when(self, inverse: Phrasing) -> str:
        if not isinstance(inverse, _Noun):
            return super().exactly_when(inverse)
        mine, theirs = (f"{article(one.label)} {one.label}" for one in (self, inverse))
        return f"One thing has another as {mine} exactly when the other has it as {theirs}."

    def only(self, name: str) -> str:
        return f"Only {article(name)} {name} can be {article(self.label)} {self.label}"

    def value(self) -> str:
        return f"The {self.label} of anything"

    def its_value(self) -> str:
        return f"its {self.label}"


def phrasing(label: str, form: str, functional: bool) -> Phrasing:
    """How a property is said.

    Args:
      label: as words.
      form: one of `FORMS`, or a clause with {s} and {o}.
      functional: whether a subject has one value.

    Raises:
      ValueError: the form is none, and no clause.
    """
    safe = _escaped(label)
    if form == "noun":
        clause = f"{{s}} has {{o}} as {article(label)} {safe}"
        return _Noun(label, clause, functional)
    clauses = {
        "verb": f"{{s}} {safe} {{o}}",
        "is": f"{{s}} is {safe.removeprefix('is ')} {{o}}",
        "entry": f'{{s}} has {{o}} under "{safe}"',
    }
    clause = clauses.get(form, form)
    try:
        whole = clause.format(s="", o="") != clause and all(
            clause.count(end) == 1 for end in ("{s}", "{o}")
        )
    except (LookupError, ValueError):
        whole = False
    if not whole:
        raise ValueError(
            f"{form!r} is neither one of {', '.join(FORMS)} nor a clause with {{s}} and {{o}} once"
        )
    return Phrasing(label, clause.rstrip("."), functional)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _escaped(label: str) -> str:
    """A label as a part of a template."""
    return label.replace("{", "{{").replace("}", "}}")

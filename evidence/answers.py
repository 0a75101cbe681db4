"""The one answer type, and reading it out of what a language model says.

The contract offered to a model is one word (YES, NO or UNKNOWN) or a JSON object
`{"answer": "YES", "confidence": 0.9}`. Replies that keep it are read by the rules `word` and
`json`. Anything else goes through the fallback, in this order, the first that applies deciding:

1. `declared`: an announced answer ("Answer: NO", "so the answer is YES", "therefore no"), or a
   first or last line that holds one answer word alone. A final answer ("Final answer: NO",
   `\\boxed{NO}`) goes before all others. Announced answers that differ are INVALID.
2. `opening`: the reply opens with an answer word set off by punctuation ("No, it is not"). Where
   another answer word stands as a clause of its own later on ("NO, wait, YES"), it is INVALID: the
   reply takes its word back, and which one it means is not ours to say.
3. `phrase`: the reply says that it does not know ("cannot be determined", "not enough
   information").

An opening YES or NO beside a phrase of not knowing is INVALID, and so is everything that no rule
reads. A word is never looked for inside another word or phrase: 'no' in 'I do not know', 'no
information' or 'note' is not NO. An unreadable reply is never an abstention.
"""

from __future__ import annotations

import json
import re
import unicodedata
from enum import IntEnum
from typing import NamedTuple


class Answer(IntEnum):
    """What a system said; the first three are answers, the last two are what went wrong."""

    NO = 0
    UNKNOWN = 1
    YES = 2
    INVALID = 3  # a reply that cannot be read
    ERROR = 4  # no reply: the call failed


class Reading(NamedTuple):
    """An answer read from a reply.

    Attributes:
      answer: NO, UNKNOWN, YES or INVALID (never ERROR: a failed call has no reply to read).
      rule: "word", "json", "declared", "opening", "phrase" or "none".
      confidence: the probability in [0, 1] that a JSON reply states, or None.
    """

    answer: Answer
    rule: str
    confidence: float | None = None


_WORDS = {"yes": Answer.YES, "no": Answer.NO, "unknown": Answer.UNKNOWN}
_WORD = r"(yes|no|unknown)"
# An answer word counts only where it stands as a verdict of its own: 'No information', 'no-one',
# 'yes or no', 'yes and no' and 'yes?' are something else.
_ALONE = rf"(?!\W{{0,4}}\s?(?:and|or|nor|/|\|)\W{{0,4}}{_WORD}\b)(?!\s*[/|&?])"
_SET_OFF = r"(?=\s*(?:$|[.,;:!)\]\"'*_`}—–]|-{1,2}\s|(?:because|since|as|based)\b))"
_VERDICT = rf"{_WORD}\b{_ALONE}{_SET_OFF}"
_DECORATION = r"[\s\"'*_`(\[{<:]{0,8}"

_FINAL = re.compile(rf"\bfinal answer\b(?:\s+is)?\s?:?{_DECORATION}{_VERDICT}", re.I | re.M)
_DECLARED = re.compile(
    rf"(?:\b(?:answer|verdict|conclusion)\b(?:\s+(?:is|would be|must be))?\s?:?"
    rf"|\b(?:so|therefore|thus|hence)\b,?){_DECORATION}{_VERDICT}",
    re.I | re.M,
)
_BOXED = re.compile(
    rf"\\boxed\s?\{{\s*(?:\\(?:text|textbf|mathrm|mathbf)\s?\{{)?\s*{_WORD}\s*\}}", re.I
)
_LATER = re.compile(rf"[.,;:!?—–-]{_DECORATION}{_VERDICT}", re.I)
_OPENING = re.compile(rf"^{_DECORATION}{_VERDICT}", re.I)
_PHRASE = re.compile(
    r"\b(?:"
    r"(?:do|does|did|can|could|would)(?: not|n't) (?:really |actually |currently |yet )?know"
    r"|can ?(?:not|'t) (?:really |actually )?"
    r"(?:be (?:determined|known|answered|inferred|verified|confirmed|established|said)"
    r"|say|tell|determine|answer|be sure|confirm|verify|infer)"
    r"|(?:un|im)(?:able|possible) to (?:determine|say|tell|answer|know|confirm|verify)"
    r"|(?:not|\w{2,6}n't) (?:enough|sufficient) (?:information|evidence|data|context|facts|detail)"
    r"|insufficient (?:information|evidence|data|context|facts|detail)"
    r"|no (?:information|evidence|data|mention|facts?) (?:\w+ )?(?:about|on|of|regarding|given"
    r"|is given|provided|available|to)"
    r"|(?:do|does|did)(?: not|n't) (?:say|state|mention|specify|tell|indicate|provide|contain)"
    r"|(?:is|am|are|'m|'s)(?: not|n't) (?:sure|certain|known|clear|stated|specified|mentioned)"
    r"|(?:it|this|that|the answer|whether [^.]{0,80}) (?:is|remains) (?:unknown|unclear|uncertain)"
    r"|no idea"
    r")\b",
    re.I,
)
# No block reaches over the start of another, or unclosed ones would be searched again and again.
_THINKING = re.compile(r"<think(?:ing)?>(?:(?!<think).)*?</think(?:ing)?>", re.I | re.S)
_FENCE = re.compile(r"^```[a-z]*\s*\n?(.*?)\n?```$", re.I | re.S)
_INVISIBLE = dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x00AD])
_QUOTES = str.maketrans({"‘": "'", "’": "'", "ʼ": "'", "“": '"', "”": '"', "«": '"', "»": '"'})
_EDGE = " \t\r\n\"'`*_.!()[]"
# Longer replies are cut: the answer stands at one of the two ends.
_LONGEST = 20_000


def read(reply: str) -> Reading:
    """The answer that a reply gives.

    Args:
      reply: what the model said, as it came.
    """
    text = unicodedata.normalize("NFKC", reply).translate(_INVISIBLE).translate(_QUOTES)
    if len(text) > _LONGEST:
        text = text[: _LONGEST // 2] + "\n" + text[-_LONGEST // 2 :]
    text = _THINKING.sub("", text).strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    if text.startswith(("{", '["')):
        return _read_json(text)
    bare = text.strip(_EDGE).lower()
    if bare in _WORDS:
        return Reading(_WORDS[bare], "word")
    return _fall_back(text)


def _read_json(text: str) -> Reading:
    """A JSON reply keeps the contract or is INVALID; its prose is not searched for an answer."""
    unreadable = Reading(Answer.INVALID, "none")
    try:
        # Two keys "answer" would otherwise leave the last one standing.
        value = json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        return unreadable
    word = value.get("answer") if isinstance(value, dict) else None
    if not isinstance(word, str) or word.strip().lower() not in _WORDS:
        return unreadable
    stated = value.get("confidence")
    is_probability = (
        isinstance(stated, (int, float)) and not isinstance(stated, bool) and 0 <= stated <= 1
    )
    return Reading(_WORDS[word.strip().lower()], "json", float(stated) if is_probability else None)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a repeated key")
    return found


def _fall_back(text: str) -> Reading:
    lines = [line.strip(_EDGE).lower() for line in text.splitlines() if line.strip(_EDGE)]
    final = [*_FINAL.finditer(text), *_BOXED.finditer(text)]
    declared = [match[1].lower() for match in final]
    if not declared:
        declared = [match[1].lower() for match in _DECLARED.finditer(text)]
        declared += [line for line in (lines[:1] + lines[-1:]) if line in _WORDS]
    if declared:
        agreed = len(set(declared)) == 1
        return Reading(
            _WORDS[declared[0]] if agreed else Answer.INVALID, "declared" if agreed else "none"
        )
    opening = _OPENING.match(text)
    does_not_know = _PHRASE.search(text) is not None
    if opening:
        answer = _WORDS[opening[1].lower()]
        others = {match[1].lower() for match in _LATER.finditer(text)} - {opening[1].lower()}
        if others or (does_not_know and answer is not Answer.UNKNOWN):
            return Reading(Answer.INVALID, "none")
        return Reading(answer, "opening")
    if does_not_know:
        return Reading(Answer.UNKNOWN, "phrase")
    return Reading(Answer.INVALID, "none")

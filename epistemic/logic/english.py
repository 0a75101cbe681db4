"""English for terms: articles, names made from IRIs, numbers with their unit."""

from __future__ import annotations

import re

from epistemic.logic.terms import last_segment


def article(word: str) -> str:
    """The indefinite article that goes before a word."""
    return "an" if word[:1].lower() in "aeiou" else "a"


def split_words(name: str) -> str:
    """A name in camel case or with underscores as words: "mouthElevation" -> "mouth elevation"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").strip().lower()


def uncapitalised(label: str) -> str:
    """A label as it stands within a sentence: "Teacher of" -> "teacher of", but "DNA"."""
    first, space, rest = label.partition(" ")
    return f"{first.lower()}{space}{rest}" if first[1:].islower() or len(first) == 1 else label


def iri_words(iri: str) -> str:
    """The last segment of an IRI as words."""
    return split_words(last_segment(iri))


def number_text(lexical: str, unit: str) -> str:
    """A literal's text with its unit; the thousands of a whole number are set apart."""
    if 3 < len(lexical) < 100 and lexical.removeprefix("-").isdecimal() and lexical.isascii():
        lexical = f"{int(lexical):,}"
    return f"{lexical} {unit}".rstrip()

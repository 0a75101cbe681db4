"""WordNet's database files as triples: hypernymy, meronymy, antonymy and derivation of synsets.

The format is that of wndb(5WN): `data.POS` holds a synset a line with its pointers, `index.POS` the
synsets of a word in order of sense. Pointers between words of two synsets are taken for pointers
between the synsets, as the data sets made from WordNet do. Nothing of WordNet ships with this
package; its licence allows any use that keeps its notice (https://wordnet.princeton.edu/license).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from epistemic.logic.graph import LABEL, TYPE
from epistemic.logic.terms import literal

BASE = "https://example.org/wordnet#"
_PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_CLASSES = {"n": "Noun", "v": "Verb", "a": "Adjective", "r": "Adverb"}
_SPOKEN = {"n": "noun", "v": "verb", "a": "adjective", "r": "adverb"}
# (part of speech, pointer, part of speech of its target) -> property. A holonym pointer says: part
# of its target. Properties keep parts of speech apart, or a false claim would be told by them.
_PROPERTIES = {
    ("n", "@", "n"): "hypernym",
    ("v", "@", "v"): "troponymOf",
    ("n", "#p", "n"): "partOf",
    ("n", "#m", "n"): "memberOf",
    ("n", "#s", "n"): "substanceOf",
    ("a", "!", "a"): "antonymOfAdjective",
    ("n", "!", "n"): "antonymOfNoun",
    ("v", "!", "v"): "antonymOfVerb",
    ("r", "!", "r"): "antonymOfAdverb",
    # From the noun alone: the files hold derivation from both ends.
    ("n", "+", "v"): "derivationOfVerb",
    ("n", "+", "a"): "derivationOfAdjective",
}
_FIRST_LETTER = re.compile(r"(?<![^\s(-])[^\W\d_]")
# Files hold antonyms from both ends. Here they stand once: a graph that loses one has lost it.
_BOTH_WAYS = tuple(name for (_, pointer, _), name in _PROPERTIES.items() if pointer == "!")


class Synset(NamedTuple):
    """A line of a data file.

    Attributes:
      key: part of speech and place, such as "n00001740".
      words: its first one is the commonest; blanks are blanks.
      pointers: (property, key of the target), those that are read.
    """

    key: str
    words: tuple[str, ...]
    pointers: tuple[tuple[str, str], ...]


def read_wordnet(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The triples of a folder of database files: class, label and relations of each synset.

    Raises:
      ValueError: a file is missing or a line isn't of the format; names it.
    """
    synsets = [one for part in _PARTS for one in _synsets(folder / f"data.{part}")]
    labels = _labels(folder, synsets)
    related = {key for one in synsets for _, target in one.pointers for key in (one.key, target)}
    said: set[tuple[str, str, str]] = set()
    for key, _, pointers in synsets:
        if key not in related:
            continue
        yield BASE + key, TYPE, BASE + _CLASSES[key[0]]
        yield BASE + key, LABEL, literal(labels[key])
        for name, target in pointers:
            if target not in labels:
                raise ValueError(f"{folder}: {key} points to {target}, which no data file holds")
            if name in _BOTH_WAYS and (target, name, key) in said:
                continue
            said.add((key, name, target))
            yield BASE + key, BASE + name, BASE + target


def _synsets(path: Path) -> Iterator[Synset]:
    for number, line in enumerate(_lines(path), 1):
        if line.startswith(" "):  # the licence
            continue
        try:
            yield _synset(line.partition("|")[0].split())
        except (ValueError, IndexError, KeyError):
            raise ValueError(f"{path}, line {number}: not a synset as wndb(5WN) has it") from None


def _synset(fields: list[str]) -> Synset:
    """Place, lexicographer's file, part, number of words in hexadecimal, (word, id) each, number of
    pointers, (pointer, place, part, source and target) each."""
    part = fields[2].replace("s", "a")  # a satellite is an adjective
    words, after = int(fields[3], 16), 4 + 2 * int(fields[3], 16)
    names = (fields[4 + 2 * i].partition("(")[0].replace("_", " ") for i in range(words))
    pointers = []
    for i in range(int(fields[after])):
        pointer, place, target, _ = fields[after + 1 + 4 * i : after + 5 + 4 * i]
        target = target.replace("s", "a")
        name = _PROPERTIES.get((part, pointer, target))
        if name:
            pointers.append((name, target + place))
    _CLASSES[part]
    return Synset(part + fields[0], tuple(names), tuple(dict.fromkeys(pointers)))


def _labels(folder: Path, synsets: list[Synset]) -> dict[str, str]:
    """Key -> a name that no other synset has: the first word that means nothing else, or the first
    word with its part of speech and the number of its sense. With capitals, as names have: a word
    that is spoken of can be told from the sentence about it."""
    meanings: dict[str, int] = defaultdict(int)
    for one in synsets:
        for word in {word.casefold() for word in one.words}:
            meanings[word] += 1
    senses = {
        (word, part + place): number
        for name, part in _PARTS.items()
        for word, places in _senses(folder / f"index.{name}")
        for number, place in enumerate(places, 1)
    }
    labels = {}
    for key, words, _ in synsets:
        alone = next((word for word in words if meanings[word.casefold()] == 1), None)
        number = senses.get((words[0].casefold(), key), 0)
        labels[key] = titled(alone or f"{words[0]} ({_SPOKEN[key[0]]}, sense {number})")
    return labels


def titled(words: str) -> str:
    """Words with their first letters in capitals."""
    return _FIRST_LETTER.sub(lambda match: match[0].upper(), words)


def _senses(path: Path) -> Iterator[tuple[str, list[str]]]:
    """A word with the places of its synsets in order of sense, from an index file."""
    for number, line in enumerate(_lines(path), 1):
        if not line.startswith(" "):
            fields = line.split()
            if len(fields) < 7 or not fields[2].isdigit():
                raise ValueError(f"{path}, line {number}: not a word as wndb(5WN) has it")
            yield fields[0].replace("_", " "), fields[-int(fields[2]) :]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise ValueError(
            f"{path}: no such file; a folder of WordNet has data.* and index.*"
        ) from None

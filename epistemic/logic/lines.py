"""Claims as N-Triples, one a line: the fast way from a text to the ids of its terms.

A token is what a line has between blanks: a term as N-Triples write it. Where tokens begin and end
is found, and their ids are looked up, in arrays: a Python string a token and a look into a
dictionary, which misses the cache again and again, take three times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyoxigraph

from epistemic.logic.terms import literal_text

_WORDS = 8
_WIDTH = 8 * _WORDS
"""A token's first words, of 8 bytes each, and their bytes: longer ones are looked up one by one."""
_KEPT = np.where(np.arange(_WIDTH) < np.arange(_WIDTH + 1)[:, None], 255, 0)
_KEPT = _KEPT.astype(np.uint8).view(np.uint64)
"""u64[65, 8]: of a token of so many bytes, the bits that are its own."""
_EQUAL = np.uint64(0x0101010101010101)
"""Eight bools that are true."""
_BLOCK = 1 << 13
"""Tokens that are looked up at a time, so that their words stay in the cache."""


class Lines(NamedTuple):
    """Claims in a text.

    Attributes:
      raw: the text, and zeros after it, as many as words may reach into.
      start: i64[N, 3], where in it each claim's subject, predicate and object begin.
      length: i64[N, 3], of how many bytes they are.
    """

    raw: bytes
    start: np.ndarray
    length: np.ndarray

    def claim(self, i: int) -> list[str]:
        """The texts of a claim's terms.

        Raises:
          ValueError: one is no token of N-Triples.
        """
        return [
            term_of(_text(self.raw, start, length))
            for start, length in zip(self.start[i].tolist(), self.length[i].tolist(), strict=True)
        ]


def lines_of(text: str) -> Lines:
    """The claims of a text.

    Raises:
      ValueError: a syntax error, with its line.
    """
    raw = _bytes(text if text.endswith("\n") else f"{text}\n") + bytes(_WIDTH)
    letters = np.frombuffer(raw, np.uint8)
    end = np.flatnonzero(letters[:-_WIDTH] <= ord(" "))
    if len(end) % 4 == 0:
        start = np.append(0, end[:-1] + 1).reshape(-1, 4)
        length = end.reshape(-1, 4) - start
        plain = letters[end.reshape(-1, 4)] == np.frombuffer(b"   \n", np.uint8)
        points = (letters[start[:, 3]] == ord(".")) & (length[:, 3] == 1)
        if plain.all() and points.all() and length.all():
            return Lines(raw, start[:, :3], length[:, :3])
    tokens = list(map(_bytes, tokens_of(text)))
    lengths = np.fromiter(map(len, tokens), np.int64, len(tokens)).reshape(-1, 4)
    starts = (np.cumsum(lengths) - lengths.ravel()).reshape(-1, 4)
    return Lines(b"".join(tokens) + bytes(_WIDTH), starts[:, :3], lengths[:, :3])


class TokenTable:
    """A graph's terms by their tokens: an open-addressed hash table in arrays.

    Args:
      ids: the place of each term, in order from 0.
    """

    def __init__(self, ids: Mapping[str, int]):
        self._ids = ids
        tokens = [_bytes(token(term)) for term in ids]
        length = np.fromiter(map(len, tokens), np.int64, len(tokens))
        raw = b"".join(tokens) + bytes(_WIDTH)
        self._keys = _words(raw, np.cumsum(length) - length, length)
        self._odd = np.random.default_rng(0).integers(1 << 63, size=_WORDS, dtype=np.uint64) * 2 + 1
        bits = (4 * len(tokens)).bit_length() + 1
        self._shift = np.uint64(64 - bits)
        self._slots = np.full(1 << bits, -1, np.int32)
        homeless = np.flatnonzero(length <= _WIDTH)
        slot = self._home(self._keys[homeless])
        while len(homeless):
            free = self._slots[slot] < 0
            self._slots[slot[free]] = homeless[free]  # of several the last
            lost = self._slots[slot] != homeless
            homeless, slot = homeless[lost], self._next(slot[lost])

    def find(self, lines: Lines) -> np.ndarray:
        """i32[N, 3]: the places of the claims' terms, -1 for a token that no term is written like.

        Raises:
          ValueError: a long one is no token of N-Triples.
        """
        start, length = lines.start.ravel(), lines.length.ravel()
        found = np.empty(len(start), np.int32)
        for first in range(0, len(start), _BLOCK):
            block = slice(first, first + _BLOCK)
            found[block] = self._find(_words(lines.raw, start[block], length[block]))
        for i in np.flatnonzero(length > _WIDTH).tolist():
            found[i] = self._ids.get(term_of(_text(lines.raw, int(start[i]), int(length[i]))), -1)
        return found.reshape(-1, 3)

    def _find(self, words: np.ndarray) -> np.ndarray:
        """i32[n] places of u64[n, 8] words: from its home on, a term's slot is the first that is
        its own."""
        slot = self._home(words)
        found = self._slots.take(slot)
        others = np.flatnonzero((found >= 0) & ~self._are(found, words))
        while len(others):
            slot[others] = self._next(slot[others])
            found[others] = there = self._slots.take(slot[others])
            others = others[(there >= 0) & ~self._are(there, words[others])]
        return found

    def _are(self, places: np.ndarray, words: np.ndarray) -> np.ndarray:
        """bool[n]: whether the terms at these places have these words."""
        same = self._keys.take(places, axis=0) == words
        return np.asarray(same.view(np.uint64)[:, 0] == _EQUAL)

    def _home(self, words: np.ndarray) -> np.ndarray:
        """i64[n]: the slots of u64[n, 8] words, multiplied and shifted (Dietzfelbinger 1996)."""
        return np.asarray(((words @ self._odd) >> self._shift).astype(np.int64))

    def _next(self, slot: np.ndarray) -> np.ndarray:
        return (slot + 1) & (len(self._slots) - 1)


def _words(raw: bytes, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """u64[n, 8]: the first bytes of tokens, zeros after their own."""
    wide = np.dtype((np.void, _WIDTH))
    every = np.ndarray(len(raw) - _WIDTH + 1, wide, raw, strides=(1,))
    words = every[start].view(np.uint64).reshape(-1, _WORDS)
    words &= _KEPT.take(np.minimum(length, _WIDTH), axis=0)
    return words


def _bytes(text: str) -> bytes:
    """Surrogates, which an escape can write, among them."""
    return text.encode(errors="surrogatepass")


def _text(raw: bytes, start: int, length: int) -> str:
    return raw[start : start + length].decode(errors="surrogatepass")


def tokens_of(text: str) -> list[str]:
    """The 4 N tokens of N claims: subject, predicate, object as in N-Triples, and a point.

    A text in which no literal holds a blank, and nothing but claims stands, is split and no more:
    a parser would take six times as long. Anything else is parsed. What a token means is looked at
    where no term of a graph is written like it.

    Raises:
      ValueError: a syntax error, with its line.
    """
    found = text.split()
    lines = text.count("\n") + (not text.endswith("\n"))
    if len(found) == 4 * lines and found[3::4].count(".") == lines:
        return found
    try:
        return _parsed(text)
    except SyntaxError as error:
        raise ValueError(f"claims, line {error.lineno}: {error}") from None


def token(term: str) -> str:
    """A term, as texts have it (`epistemic.logic.terms`), as N-Triples have it."""
    return term if term.startswith(('"', "_:")) else f"<{term}>"


def term_of(token: str) -> str:
    """The term that a token stands for.

    Raises:
      ValueError: it is no token of N-Triples.
    """
    plain = token
    if "\\" in token:
        # With escapes, a term can be written in many ways.
        try:
            plain = _parsed(f"<x:s> <x:p> {token} .")[2]
        except SyntaxError as error:
            raise ValueError(f"claims: {token!r} is no term: {error.msg}") from None
    if plain.startswith("<") and plain.endswith(">"):
        return plain[1:-1]
    if not plain.startswith(('"', "_:")):
        raise ValueError(
            f"claims: {token!r} is no term; N-Triples have <IRI>, _:blank or a literal"
        )
    return plain


def _parsed(text: str) -> list[str]:
    return [
        token
        for quad in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_TRIPLES)
        for token in (*map(_token, (quad.subject, quad.predicate, quad.object)), ".")
    ]


def _token(term: Any) -> str:
    if isinstance(term, pyoxigraph.Literal):
        return literal_text(
            term.value, term.language, None if term.language else term.datatype.value
        )
    return str(term)

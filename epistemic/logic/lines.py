"""Claims as N-Triples, one a line: the fast way from a text to the tokens that ids are kept by."""

from __future__ import annotations

from typing import Any

import pyoxigraph

from epistemic.logic.terms import literal_text


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
        return [
            token
            for quad in pyoxigraph.parse(text, pyoxigraph.RdfFormat.N_TRIPLES)
            for token in (*map(_token, (quad.subject, quad.predicate, quad.object)), ".")
        ]
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
    if token.startswith("<") and token.endswith(">"):
        return token[1:-1]
    if not token.startswith(('"', "_:")):
        raise ValueError(
            f"claims: {token!r} is no term; N-Triples have <IRI>, _:blank or a literal"
        )
    return token


def _token(term: Any) -> str:
    if isinstance(term, pyoxigraph.Literal):
        return literal_text(
            term.value, term.language, None if term.language else term.datatype.value
        )
    return str(term)

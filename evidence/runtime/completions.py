"""What an OpenAI-compatible endpoint is asked, what it answers, and how that is read."""

from __future__ import annotations

import json
import math
from typing import NamedTuple, TypedDict


class Reply(NamedTuple):
    """What came back for one prompt.

    Attributes:
      text: the reply as it came, or None after a failure.
      error: what went wrong, or None.
      confidence: the probability in [0, 1] of the answer word that the reply begins with, among
        YES, NO and UNKNOWN, from token log-probabilities; None where it begins otherwise or the
        endpoint gives none.
      latency_s: seconds from asking to the last byte, retries included; 0 for cached and recorded.
      tokens: prompt and completion tokens together, as the endpoint counts them, or None.
      finish: why it ended, as the endpoint says ("stop"; "length" where it was cut), or None.
    """

    text: str | None
    error: str | None = None
    confidence: float | None = None
    latency_s: float = 0.0
    tokens: int | None = None
    finish: str | None = None


class Message(TypedDict):
    """One turn of a conversation."""

    role: str
    content: str


class Request(TypedDict, total=False):
    """The body of a request, as the protocol names its fields."""

    model: str
    messages: list[Message]
    temperature: float
    max_tokens: int
    logprobs: bool
    top_logprobs: int
    grammar: str


class Token(TypedDict):
    """A token with its log-probability, and those that were likeliest in its place."""

    token: str
    logprob: float
    top_logprobs: list[Token]


class Choice(TypedDict):
    """One of the replies; what a server sends may lack any of its parts."""

    message: Message
    logprobs: dict[str, list[Token]]
    finish_reason: str | None


class Completion(TypedDict):
    """The body of a response; what a server sends may lack any of its parts."""

    choices: list[Choice]
    usage: dict[str, int]


class Failure(Exception):
    """One failed try; `may_pass`: another try may succeed, after at least `after_s` seconds."""

    def __init__(self, message: str, may_pass: bool = True, after_s: float | None = None) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.after_s = after_s


def parse(text: str) -> Reply:
    """The reply in a response's body.

    Proxies and providers answer 200 with an HTML page or an error object, so that anything but a
    completion counts as a failed try.
    """
    try:
        value: Completion = json.loads(text)
        choice = value["choices"][0]
        content = choice["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise Failure(f"not a chat completion: {text[:200]!r}") from None
    if not isinstance(content, str):
        raise Failure(f"a completion without text: {text[:200]!r}")
    finish = choice.get("finish_reason")
    return Reply(
        content,
        confidence=_confidence(choice),
        tokens=_tokens(value),
        finish=finish if isinstance(finish, str) else None,
    )


def _confidence(choice: Choice) -> float | None:
    """The reply's first token's share of the probability of all first tokens that begin an answer.

    P(the answer | it answers YES, NO or UNKNOWN), as far as the endpoint lists likely tokens. Read
    before the grammar, so that a constrained reply is not certain of what it was forced to say.
    """
    try:
        first = choice["logprobs"]["content"][0]
        listed = {entry["token"]: float(entry["logprob"]) for entry in first["top_logprobs"]}
        listed[first["token"]] = float(first["logprob"])
        said = _begins(first["token"])
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    if said is None:
        return None
    weight = dict.fromkeys(_ANSWERS, 0.0)
    for token, logprob in listed.items():
        if (answer := _begins(token)) is not None:
            weight[answer] += math.exp(min(logprob, 0.0))
    total = sum(weight.values())
    return weight[said] / total if total > 0 else None


_ANSWERS = ("YES", "NO", "UNKNOWN")


def _begins(token: str) -> str | None:
    """The answer word that a token begins."""
    piece = token.strip(" *\"'").upper()
    matches = [word for word in _ANSWERS if piece and word.startswith(piece)]
    return matches[0] if matches else None


def _tokens(value: Completion) -> int | None:
    usage = value.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) else None

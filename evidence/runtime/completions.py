"""What an OpenAI-compatible endpoint is asked, what it answers, and how that is read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypedDict

import msgspec

from evidence.runtime.files import read_jsonl


class Tokens(NamedTuple):
    """How many tokens a prompt and its reply have, as the endpoint counts them."""

    prompt: int
    completion: int


class Reply(NamedTuple):
    """What came back for one prompt.

    Attributes:
      text: the reply as it came, or None after a failure.
      error: what went wrong, or None.
      confidence: the probability in [0, 1] of the answer word that the reply begins with, among
        YES, NO and UNKNOWN, from token log-probabilities; None where it begins otherwise or the
        endpoint gives none.
      latency_s: seconds from asking to the last byte, retries included; 0 for cached and recorded.
      tokens: of prompt and reply, or None where the endpoint doesn't count them.
      cost: at the prices given, 0 for cached; None without prices or tokens.
      finish: why it ended, as the endpoint says ("stop"; "length" where it was cut), or None.
    """

    text: str | None
    error: str | None = None
    confidence: float | None = None
    latency_s: float = 0.0
    tokens: Tokens | None = None
    cost: float | None = None
    finish: str | None = None


class _Recorded(msgspec.Struct, frozen=True):
    """A line of recorded replies."""

    prompt: str | None
    raw: str | None
    confidence: float | None = None
    finish: str | None = None


def recorded(path: str | Path) -> Iterator[tuple[str, Reply]]:
    """The replies that a JSONL file holds, each with its prompt's digest.

    Raises:
      ValueError: a line is no such record; names the file.
    """
    for row in read_jsonl(path, required=("prompt", "raw")):
        try:
            one = msgspec.convert(row, _Recorded)
        except msgspec.ValidationError as error:
            raise ValueError(f"{path}: {error} of {row!r:.60}") from None
        if one.prompt is not None and one.raw is not None:
            yield one.prompt, Reply(one.raw, confidence=one.confidence, finish=one.finish)


class Part(TypedDict, total=False):
    """A part of a turn; "text" is what was said, other types are thoughts, images and the like."""

    type: str
    text: str


class Message(TypedDict):
    """One turn of a conversation; some servers send its parts one by one."""

    role: str
    content: str | list[Part]


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
    model: str
    usage: dict[str, int]


class Failure(Exception):
    """One failed try; `may_pass`: another try may succeed, after at least `after_s` seconds."""

    def __init__(self, message: str, may_pass: bool = True, after_s: float | None = None) -> None:
        super().__init__(message)
        self.may_pass = may_pass
        self.after_s = after_s


class OtherModel(ValueError):
    """Another model replied than was asked for."""


LONGEST_TEXT = 20_000
"""Characters of a reply that are kept; of a longer one, as many of its beginning and its end."""
_CUT = "\n[...]\n"


def parse(text: str, served: str | None = None) -> Reply:
    """The reply in a response's body.

    Proxies and providers answer 200 with an HTML page or an error object, so that anything but a
    completion counts as a failed try.

    Args:
      text: the body.
      served: the model that must have replied; None: any.

    Raises:
      Failure: it is no completion.
      OtherModel: it names another model.
    """
    try:
        value: Completion = json.loads(text)
        choice = value["choices"][0]
        content = _text(choice["message"]["content"])
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise Failure(f"not a chat completion: {text[:200]!r}") from None
    if content is None:
        raise Failure(f"a completion without text: {text[:200]!r}")
    replied = value.get("model")
    if served is not None and isinstance(replied, str) and not _is_model(replied, served):
        raise OtherModel(
            f"model={served!r}: the endpoint replied as {replied!r}; if that is meant, set "
            f"served={replied!r} beside it"
        )
    if len(content) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        content = content[:half] + _CUT + content[-half:]
    finish = choice.get("finish_reason")
    return Reply(
        content,
        confidence=_confidence(choice),
        tokens=_tokens(value),
        finish=finish if isinstance(finish, str) else None,
    )


def _text(content: str | list[Part]) -> str | None:
    """What a turn says, its parts of type "text" joined; None where there is nothing."""
    if isinstance(content, list):
        said = [part["text"] for part in content if part.get("type", "text") == "text"]
        return "".join(said) if said else None
    return content if isinstance(content, str) else None


# What a provider adds to a model's name: a date, a build, a tag.
_VERSION = re.compile(r"(?:[-@:](?:latest|\d{4}[\d-]*))*")


def _is_model(replied: str, asked: str) -> bool:
    """Whether a name is the one asked for, in any case, or that of a dated version of it."""
    name, wanted = replied.lower(), asked.lower()
    return name.startswith(wanted) and _VERSION.fullmatch(name[len(wanted) :]) is not None


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


def _tokens(value: Completion) -> Tokens | None:
    usage = value.get("usage")
    if not isinstance(usage, dict):
        return None
    counts = [usage.get(f"{part}_tokens") for part in Tokens._fields]
    known = [count for count in counts if isinstance(count, int)]
    return Tokens(*known) if len(known) == len(counts) else None

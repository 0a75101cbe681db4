"""The command as people run it: every stage, its files, and one line for bad input."""

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf
from rich.console import Console

import evidence
from epistemic import study
from epistemic.cards import read_cards
from epistemic.comparison import compare
from epistemic.domain import built_in, load_domain
from epistemic.export import replies
from epistemic.logic.lookup import Verdict
from epistemic.settings import read
from epistemic.systems import NEED_A_MODEL

# One for all runs of this file, so that only the first compiles.
CACHE = tempfile.mkdtemp(prefix="compiled-")
SMALL = [
    "cards.per_type=12",
    "near_miss.num=12",
    "quality.keep=[1,0.5]",
    "quality.wrong=[0]",
    f"compilation_cache={CACHE}",
]


def command(*overrides, cwd, **options):
    return subprocess.run(
        [sys.executable, "-m", "experiments.epistemic", *overrides],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
        capture_output=True,
        timeout=1200,
        check=False,
        **options,
    )


def configured(*overrides):
    root = Path(__file__).parents[2] / "conf" / "epistemic"
    with hydra.initialize_config_dir(str(root), version_base="1.3"):
        return OmegaConf.to_container(hydra.compose("config", list(overrides)), resolve=True)


def run(folder, *overrides):
    """The same inside this process."""
    plain = configured(*SMALL, *overrides)
    finish(read(plain), folder)
    return folder


def finish(settings, folder):
    """Whatever stage the settings name."""
    go = study.run if settings.writes_results else study.run_stage
    go(settings, folder, Console(quiet=True))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    result = command(*SMALL, f"hydra.run.dir={folder}", cwd=folder)
    assert result.returncode == 0, result.stderr
    return folder, result


def test_everything_is_written_and_said(finished):
    folder, result = finished
    for name in (
        "cards.jsonl",
        "near_miss.jsonl",
        "results.json",
        "metrics.json",
        "report.html",
        "answers/kg_oracle.jsonl",
        "near_miss/answers/kg_context.jsonl",
        "figures/scores.svg",
        "figures/quality.png",
    ):
        assert (folder / name).stat().st_size > 0, name
    assert "No verdict: needed first: a language model" in result.stdout
    assert max(map(len, result.stdout.splitlines()[:-1])) <= 80
    assert "report.html" in result.stdout
    assert "One of the cards" in result.stdout
    assert "No language model was asked" in result.stdout and "  llm=recorded" in result.stdout
    page = (folder / "report.html").read_text()
    assert page.index("One of the cards") < page.index('class="verdict') < page.index("Every card")
    assert "\r" not in result.stderr  # no progress bar where there is no terminal


def test_the_reference_is_perfect_and_no_control_is_ideal(finished):
    results = json.loads((finished[0] / "results.json").read_text())
    systems = results["systems"]
    oracle = {k: v["value"] for k, v in systems["kg_oracle"]["conventions"]["seed"].items()}
    assert oracle == {"AP": 1, "CVRR": 1, "FAR_NE": 0, "LA": 1}
    assert systems["kg_oracle"]["ideal"]
    # A card's gold holds from its own facts and rules.
    assert systems["kg_context"]["beside"]["accuracy"]["value"] == 1
    assert not any(s["ideal"] for s in systems.values() if s["role"] == "control")
    # What the published convention takes for ideal: NO to everything that is stated.
    published = systems["entailed_no"]["conventions"]["published"]
    assert published["CVRR"]["value"] == 1 and published["FAR_NE"]["value"] == 0
    stated = systems["entailed_no"]["by_kind"]["E_stated"]["table"]["E"]
    assert stated["NO"] == sum(stated.values()) > 0
    assert systems["entailed_no"]["conventions"]["seed"]["LA"]["value"] == 0
    assert results["skipped"].keys() == set(NEED_A_MODEL)
    counts = results["deck"]["counts"]
    assert counts["total"] == 36


def test_a_worse_graph_licenses_less_and_a_sound_one_licenses_nothing_false(finished):
    quality = json.loads((finished[0] / "results.json").read_text())["quality"]
    whole, half = (point["systems"]["graph_rag_licence"] for point in quality)
    assert half["LA"]["value"] < whole["LA"]["value"]
    assert whole["FAR_NE"]["value"] == half["FAR_NE"]["value"] == 0
    assert quality[0]["triples"] > quality[1]["triples"]


def test_stages_one_by_one_give_the_same_as_all_at_once(finished, tmp_path):
    for stage in ("cards", "near_miss", "eval", "metrics", "report"):
        run(tmp_path, f"stage={stage}")
    for name in ("cards.jsonl", "near_miss.jsonl", "metrics.json"):
        assert (tmp_path / name).read_bytes() == (finished[0] / name).read_bytes(), name
    run(tmp_path, "stage=export", "domain=rivers")  # called by the domain of the deck that is there
    assert (tmp_path / "lm_eval" / "epistemic_countries.yaml").exists()


@pytest.mark.processes
def test_a_killed_run_goes_on_in_its_folder(finished, tmp_path):
    arguments = [*SMALL, f"hydra.run.dir={tmp_path}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments.epistemic", *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 1200
    while not (tmp_path / "answers").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    run(tmp_path)
    assert (tmp_path / "metrics.json").read_bytes() == (finished[0] / "metrics.json").read_bytes()


def test_two_domains_compared(finished, tmp_path):
    other = run(tmp_path / "rivers", "domain=rivers", "near_miss.num=0", "quality.keep=[]")
    [pair] = compare([finished[0], other])
    assert (pair.one, pair.other) == ("countries", "rivers")
    gap = pair.systems["kg_oracle"].at_equal_labels.LA
    assert gap.value == 0 and gap.low < 0 < gap.high
    drawn = pair.systems["random"].at_equal_labels.LA
    assert drawn.method == "expanded two-deck cluster bootstrap 95%"


def test_stages_of_different_decks_are_never_mixed(tmp_path):
    rivers = ("domain=rivers", "near_miss.num=0", "quality.keep=[]", "system=kg_context")
    folder = run(tmp_path / "run", *rivers, "stage=cards")
    with pytest.raises(ValueError, match="drawn from another graph"):
        run(folder, *rivers, "domain=countries", "stage=eval")
    with pytest.raises(ValueError, match="drawn from another graph"):
        run(folder, *rivers, "cards.withhold=0.4", "stage=eval")
    run(folder, *rivers, "stage=eval")
    answers = folder / "answers" / "kg_context.jsonl"
    whole = answers.read_text().splitlines(keepends=True)
    answers.write_text("".join(whole[:-1]))
    with pytest.raises(ValueError, match="lacks 1 cards"):
        run(folder, *rivers, "stage=metrics")
    # Ids are the same in every deck.
    run(folder, *rivers, "stage=cards", "cards.seed=7")
    with pytest.raises(ValueError, match="answers another deck"):
        run(folder, *rivers, "stage=metrics", "cards.seed=7")
    with pytest.raises(ValueError, match="are not those of this graph"):
        run(tmp_path / "other", *rivers, f"deck={folder / 'cards.jsonl'}", "cards.withhold=0.0")


def test_a_language_model_over_http_decides_the_thesis(tmp_path):
    """The whole way with a model that says YES to everything, as small ones nearly do."""
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Yes(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            usage = {"prompt_tokens": 1000, "completion_tokens": 1}
            choices = [{"message": {"content": "YES"}}]
            said = {"choices": choices, "model": "yes", "usage": usage}
            body = json.dumps(said).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Yes)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    endpoint = [
        "llm=endpoint",
        f"llm.base_url=http://127.0.0.1:{server.server_port}/v1",
        "llm.model=yes",
        "llm.prompt_price=1",
        "llm.completion_price=10",
        f"llm.cache={tmp_path}/cache",
        "near_miss.num=0",
        "system.names=[graph_rag,graph_rag_unlicensed,llm,rag,llm_without_facts,always_no]",
    ]
    run(tmp_path, *endpoint)
    server.shutdown()
    server.server_close()
    results = json.loads((tmp_path / "results.json").read_text())
    # What two systems ask alike is paid for once.
    taken = {name: results["systems"][name]["usage"] for name in ("graph_rag", "always_no", "llm")}
    assert taken["always_no"] is None
    assert taken["llm"] == {
        "replies": 36,
        "prompt_tokens": 36_000,
        "completion_tokens": 36,
        "cost": pytest.approx(36 * (1000 + 10) / 1e6),
    }
    again = results["systems"]["graph_rag_unlicensed"]["usage"]
    assert again == taken["graph_rag"] | {"cost": 0} and taken["graph_rag"]["cost"] > 0
    unlicensed = results["systems"]["graph_rag_unlicensed"]["conventions"]["seed"]
    licensed = results["systems"]["graph_rag"]["conventions"]["seed"]
    assert (unlicensed["FAR_NE"]["value"], unlicensed["LA"]["value"]) == (1, 1)
    assert (licensed["FAR_NE"]["value"], licensed["LA"]["value"]) == (0, 1)
    # Nothing was lost on these few cards, which cannot tell no loss from one of 5 points.
    states = [condition["state"] for condition in results["thesis"]["conditions"]]
    asked, calls, subjects, _, lost, falls, kept = states
    assert {asked, calls, subjects, falls} == {"met"} and {lost, kept} == {"undetermined"}
    assert results["thesis"]["verdict"] == "inconclusive"
    # Half of the graph: the licence loses true answers, and the sweep shows it.
    assert results["quality"][1]["systems"]["graph_rag"]["LA"]["value"] < 0.8

    # Who is shown no facts is scored by the whole graph, and there alone: YES to everything is
    # right as often as the graph says yes.
    whole, labels = results["whole_graph"], {"E": 0, "C": 0, "U": 0}
    domain = load_domain(built_in(results["deck"]["domain"]))
    for card in read_cards(tmp_path / "cards.jsonl"):
        labels[Verdict(domain.oracle.judge([card.claim]).verdict[0]).label] += 1
    assert whole["labels"] == labels and whole["changed"] > 0
    assert set(whole["systems"]) == {"llm_without_facts", "always_no"}
    assert "llm_without_facts" not in results["systems"]
    accuracy = {n: s["beside"]["accuracy"]["value"] for n, s in whole["systems"].items()}
    shares = {label: labels[label] / sum(labels.values()) for label in labels}
    assert accuracy == pytest.approx({"llm_without_facts": shares["E"], "always_no": shares["C"]})
    assert "Asked without facts" in (tmp_path / "report.html").read_text()

    # The replies are a model by themselves, with the server gone; for this deck and no other.
    path = tmp_path / "replies.jsonl"
    path.write_text("".join(json.dumps(row._asdict()) + "\n" for row in replies(tmp_path)))
    recorded = ["llm=recorded", f"llm.replies={path}", "quality.keep=[]", "system=thesis"]
    again = run(tmp_path / "again", *recorded, f"deck={tmp_path}/cards.jsonl")
    assert json.loads((again / "results.json").read_text())["thesis"] == results["thesis"]
    with pytest.raises(ValueError, match=r"replies\.jsonl answers the deck"):
        run(tmp_path / "other", *recorded, "deck=null", "cards.seed=1")


def test_answers_from_other_files_are_not_taken_for_these(tmp_path):
    path, names = tmp_path / "replies.jsonl", tmp_path / "names.ttl"
    path.write_text('{"prompt": "0", "raw": "YES"}\n')
    names.write_text("<http://x/a> <http://schema.org/alternateName> 'A' .\n")
    told = ["cards.per_type=2", "near_miss.num=0", "quality.keep=[]", "llm=recorded", "deck=null"]
    told += [f"llm.replies={path}", f"system.aliases=[{names}]", "system.names=[graph_rag_linked]"]
    for stage in ("cards", "eval", "eval"):
        run(tmp_path, *told, f"stage={stage}")
    for changed in (path, names):
        before = changed.read_text()
        changed.write_text(before + before.replace("0", "1").replace("a>", "b>"))
        with pytest.raises(ValueError, match="or of other settings"):
            run(tmp_path, *told, "stage=eval")
        changed.write_text(before)


@pytest.mark.parametrize(
    "domain, llm",
    [
        ("rivers", "recorded"),
        pytest.param("rivers", "recorded_free", marks=pytest.mark.full),
        pytest.param("countries", "recorded", marks=pytest.mark.full),
        pytest.param("countries", "recorded_free", marks=pytest.mark.full),
    ],
)
def test_the_replies_that_ship_answer_the_whole_of_their_deck(domain, llm, tmp_path):
    plain = configured(f"domain={domain}", f"llm={llm}", "quality.keep=[]")
    plain["system"]["names"] = NEED_A_MODEL
    plain["compilation_cache"] = CACHE
    finish(read(plain), tmp_path)
    results = json.loads((tmp_path / "results.json").read_text())
    systems = results["systems"] | results["whole_graph"]["systems"]
    assert set(systems) == set(NEED_A_MODEL)
    assert {s["beside"]["error_rate"]["value"] for s in systems.values()} == {0}
    if llm == "recorded":  # held to the three words
        assert {s["beside"]["invalid_rate"]["value"] for s in systems.values()} == {0}
        # What the licence stopped has its confidence still where nothing stopped it.
        assert systems["graph_rag_unlicensed"]["selective"]["n"] == 60


BAD = [
    ("cards.per_type=0", "cards.per_type=0"),
    ("system.names=[kg]", "no system is called 'kg'"),
    ("llm=endpoint", "llm"),
    ("kg.keep=1.5", "kg.keep=1.5"),
    ("stage=everything", "stage"),
    ("system=llm", "system llm asks a language model"),
    ("stage=report", "does not exist"),
    ("deck=nowhere.jsonl", "deck: nowhere.jsonl does not exist"),
    ("cards.predicates=[nonsense]", "nonsense"),
    ("+cards.colour=red", "cards.colour: no such setting"),
]


@pytest.mark.parametrize("override, message", BAD)
def test_bad_input_is_one_clear_error(override, message, tmp_path):
    overrides = [override, "llm.model=m"] if override == "llm=endpoint" else [override]
    with pytest.raises(ValueError, match=message.replace("[", r"\[")) as caught:
        run(tmp_path, *overrides)
    assert "\n" not in str(caught.value)


def test_bad_input_ends_the_command_with_2_and_one_line(tmp_path):
    result = command("kg.wrong=2", f"hydra.run.dir={tmp_path}", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.strip().splitlines() == [
        "kg.wrong=2: input should be less than or equal to 1"
    ]


def test_how_complete_a_graph_must_be_through_the_command(served, tmp_path):
    """Simulated models, controls and recorded replies; read back, and drawn again from the file."""
    command = served("experiments.epistemic")
    small = ["study=completeness", "budget=smoke", "llm=recorded", "study.domains=[rivers]"]
    small += ["study.keep=[1,0.5]", "study.wrong=[0.05]", "budget.draws=3", "budget.claims=40"]
    done = command(*small, "hydra.run.dir=out", folder=tmp_path)
    assert "No verdict: needed first: price 3" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:-1])) <= 80
    results = evidence.load(tmp_path / "out")
    found = results.completeness
    models = {point.model for point in found.points}
    asked = {
        f"{name} ({model})"
        for name in ("llm_without_facts", "graph_rag_unlicensed")
        for model in ("SmolLM2-135M-Instruct", "gemma-3-270m-q4_k_m")
    }
    assert {"graph", "always_yes", "always_unknown", "coin", "bluffer_90", *asked} <= models
    assert len(found.points) == len(models) * 2 * 3  # shares kept, prices
    assert len(found.break_even) == (len(models) - 1) * 3
    assert found.sizes[0].cards == 60 and found.sizes[0].draws == 3
    # Both models answer nearly all: silence is worth more. They are not each other's replies.
    alone = {(a.model, a.price): a.score.value for a in found.alone}
    assert all(alone[name, 3] < 0 for name in asked) and len({alone[n, 3] for n in asked}) > 2
    page = tmp_path / "out" / "report.html"
    assert "Where a licence pays" in page.read_text("utf-8")
    page.unlink()
    command(*small, "stage=report", "hydra.run.dir=out", folder=tmp_path)
    assert page.exists()
    refused = command("study=completeness", "stage=eval", folder=tmp_path, check=False)
    assert refused.returncode == 2 and "has the stages all and report" in refused.stderr


def test_axioms_that_nothing_reads_are_said_and_kept(tmp_path):
    extra = tmp_path / "extra.ttl"
    extra.write_text(
        "@prefix owl: <http://www.w3.org/2002/07/owl#> . <http://x/a> owl:sameAs <http://x/b> ."
    )
    plain = configured(*SMALL, "stage=cards", "near_miss.num=0")
    plain["domain"]["constraints"].append(str(extra))
    console = Console(record=True, file=io.StringIO(), width=100)
    study.run_stage(read(plain), tmp_path, console)
    assert "Axioms not read, which leave claims unknown: 1 owl:sameAs" in console.export_text()
    kept = json.loads((tmp_path / "cards.json").read_text())
    assert kept["graph"]["axioms_unread"] == {"owl:sameAs": 1}

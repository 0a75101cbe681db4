"""The page from files alone, in a real browser where one is at hand."""

import dataclasses
import json
import re
import shutil

import pytest

from epistemic.cards import deck_hash, write_cards
from epistemic.evaluate import evaluate
from epistemic.report import MOST_CARDS, browser, meets, write_page
from epistemic.scoring.assessment import assess, plain_metrics, schema
from epistemic.scoring.thesis import load_thesis
from epistemic.systems.base import Response
from evidence.answers import Answer
from evidence.results import Manifest
from evidence.runtime.files import write_json

EVIL = "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>"


def write_run(folder, cards, systems):
    """A run's files as the command leaves them."""
    write_cards(folder / "cards.jsonl", cards)
    answers = {
        name: evaluate(system, name, cards, folder / "answers" / f"{name}.jsonl", "r")
        for name, system in systems.items()
    }
    scored = assess(cards, answers, load_thesis(), seed=0)
    deck = {
        "domain": "countries",
        "hash": deck_hash(cards),
        "counts": {"total": len(cards), "label": {"E": 5, "C": 5, "U": 5}},
        "leakage_audit": {
            "refused": False,
            "undecided": False,
            "chance": 1 / 3,
            "allowed": 0.38,
            "accuracy": {},
        },
        "graph": {
            "triples": 5,
            "digest": "d",
            "known": "k",
            "attribution": "made by hand",
            "violations": {"max_count(capital, 1)": 2},
            "shared_labels": 0,
            "judged_by_pyshacl": 0,
        },
    }
    four = next(iter(scored["systems"].values()))["conventions"]["seed"]
    results = {
        "manifest": Manifest.now({"seed": 0}, [0]),
        "deck": deck,
        **scored,
        "needs_graph": None,
        "near_miss": {"deck": deck, "systems": scored["systems"]},
        "quality": [
            {"keep": keep, "wrong": 0.05, "triples": 5, "systems": {"graph_rag_licence": four}}
            for keep in (1.0, 0.5)
        ],
        "skipped": {"rag": "no language model"},
    }
    write_json(folder / "results.json", results, schema=schema())
    return results


@pytest.fixture
def run(deck, gold_system, scripted, tmp_path):
    evil = dataclasses.replace(
        deck[0], facts=(EVIL,), question=f"Is {EVIL} the capital?", proof=EVIL, kind="E_stated"
    )
    cards = [evil, *deck[1:]]
    golds = {card.id: Answer[card.gold] for card in cards}
    shares = {card.id: i / 20 for i, card in enumerate(cards)}

    def unsure(query):
        return Response(golds[query.id], confidence=shares[query.id], raw=f"{EVIL} YES")

    systems = {
        "graph_rag": gold_system,
        "graph_rag_unlicensed": scripted(lambda q: Answer.YES),
        "llm": scripted(unsure),
        "kg_oracle": gold_system,
        "always_no": scripted(lambda q: Answer.NO),
    }
    return tmp_path, write_run(tmp_path, cards, systems)


def test_what_results_hold(run):
    _, results = run
    systems = results["systems"]
    assert [systems[name]["role"] for name in ("llm", "kg_oracle", "always_no")] == [
        "ranked",
        "reference",
        "control",
    ]
    assert systems["always_no"]["table"]["U"] == {
        "YES": 0, "NO": 5, "UNKNOWN": 0, "INVALID": 0, "ERROR": 0
    }  # fmt: skip
    assert systems["graph_rag"]["ideal"] and not systems["always_no"]["ideal"]
    assert results["thesis"]["verdict"] == "inconclusive"  # five cards can't show that none is lost
    assert {(c["one"], c["other"]) for c in results["comparisons"]} == {
        ("graph_rag", "graph_rag_unlicensed"),
        ("graph_rag", "llm"),
        ("graph_rag_unlicensed", "llm"),
    }
    kinds = systems["graph_rag_unlicensed"]["by_kind"]
    assert {kind: entry["accuracy"]["value"] for kind, entry in kinds.items()} == {
        "E_stated": 1,
        "C_functional": 0,
        "U_absent": 0,
    }
    assert plain_metrics(systems)["graph_rag"]["AP"] == 1


def test_a_breakdown_adds_up_to_the_whole(run):
    _, results = run
    for system in results["systems"].values():
        for part in ("by_kind", "by_predicate"):
            totals = [
                sum(entry["table"][label][answer] for entry in system[part].values())
                for label in "ECU"
                for answer in ("YES", "NO", "UNKNOWN")
            ]
            whole = [
                system["table"][label][answer]
                for label in "ECU"
                for answer in ("YES", "NO", "UNKNOWN")
            ]
            assert totals == whole


@pytest.mark.parametrize("spoil", ["table", "value", "verdict", "system"])
def test_the_schema_refuses_what_is_wrong(run, tmp_path, spoil):
    results = json.loads((run[0] / "results.json").read_text())
    if spoil == "table":
        del results["systems"]["llm"]["table"]["E"]["ERROR"]
    elif spoil == "value":
        results["systems"]["llm"]["conventions"]["seed"]["LA"]["value"] = 1.5
    elif spoil == "verdict":
        results["thesis"]["verdict"] = "true"
    else:
        results["systems"] = {}
    with pytest.raises(ValueError, match=r"results\.json at"):
        write_json(tmp_path / "spoilt" / "results.json", results, schema=schema())


def test_the_page_is_one_file_that_fetches_nothing_and_escapes_everything(run):
    page = write_page(run[0]).read_text()
    assert EVIL not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "Inconclusive" in page
    assert "rag was left out: no language model" in page
    for name in ("scores", "selective", "quality"):
        assert (run[0] / "figures" / f"{name}.svg").exists()
        assert (run[0] / "figures" / f"{name}.png").stat().st_size > 1000


def test_failures_come_first_and_a_cut_is_counted(deck, monkeypatch):
    answers = {
        "s": {card.id: {"pred": "YES", "pass": card.gold == "YES"} for card in deck},
    }
    shown = browser(deck, answers)
    assert [card[1] for card in shown["cards"]] == ["C", "U"] * 5 + ["E"] * 5
    assert shown["cut"] == 0
    monkeypatch.setattr("epistemic.report.MOST_CARDS", 12)
    cut = browser(deck, answers)
    assert (len(cut["cards"]), cut["cut"]) == (12, 3)
    assert {card[1] for card in cut["cards"][:10]} == {"C", "U"}


@pytest.mark.parametrize(
    "metric, value, expected",
    [("AP", 0.95, True), ("AP", 0.9, False), ("FAR_NE", 0.0, True), ("FAR_NE", 0.1, False),
     ("LA", 1.0, True), ("LA", None, False)],
)  # fmt: skip
def test_the_marks_follow_the_ideal_range(metric, value, expected):
    assert meets(load_thesis(), metric, value) is expected


@pytest.fixture
def chromium():
    api = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.mark.browser
def test_the_page_in_a_browser(run, chromium):
    page = chromium.new_page()
    problems = []
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda r: r.url.startswith("file:") or problems.append(r.url))
    page.goto(write_page(run[0]).as_uri())
    rows = page.locator("#cards tbody tr")
    assert rows.count() == 15

    page.select_option("#label", "E")
    assert rows.count() == 5
    page.select_option("#label", "")
    page.select_option("#system", label="graph_rag_unlicensed")
    page.select_option("#outcome", "wrong")
    assert rows.count() == 10
    page.select_option("#outcome", "right")
    assert rows.count() == 5
    page.select_option("#system", "")
    page.select_option("#outcome", "")

    page.fill("#search", "peru")
    assert rows.count() == 3
    page.fill("#search", "window.stolen")
    assert rows.count() == 15  # every card's reply by llm holds it
    page.fill("#search", "CARD_E_000001")
    assert rows.count() == 1
    rows.first.click()
    opened = page.locator("#cards tr.open + tr")
    assert EVIL in opened.inner_text()
    assert "graph_rag_unlicensed: YES" in opened.inner_text()
    page.locator("#cards tr.open").click()
    assert opened.count() == 0
    assert page.evaluate("window.stolen") is None
    assert problems == []


@pytest.mark.browser
def test_ten_thousand_cards_do_not_freeze_the_page(deck, scripted, chromium, tmp_path):
    many = [
        dataclasses.replace(deck[i % 15], id=f"CARD_{deck[i % 15].label}_{i:06d}")
        for i in range(MOST_CARDS)
    ]
    # The browser's data alone: scoring and answering are not what is timed.
    write_run(tmp_path, deck, {"llm": scripted(lambda q: Answer.YES)})
    page = write_page(tmp_path)
    said = {c.id: {"pred": "YES", "pass": c.gold == "YES", "raw": "x" * 60} for c in many}
    data = json.dumps(browser(many, {"llm": said})).replace("<", "\\u003c")
    text = re.sub(
        r'(<script type="application/json" id="data">).*?(</script>)',
        lambda match: match[1] + data + match[2],
        page.read_text(),
        flags=re.S,
    )
    page.write_text(text)
    tab = chromium.new_page()
    tab.goto(page.as_uri())
    assert "of 10000" in tab.inner_text("#where")
    took = tab.evaluate(
        """() => {
          const start = performance.now(), box = document.getElementById("search");
          box.value = "peru";
          box.dispatchEvent(new Event("input"));
          return performance.now() - start;
        }"""
    )
    assert "of 1999" in tab.inner_text("#where")
    assert took < 500

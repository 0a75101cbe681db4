"""The page from files alone, in a real browser where one is at hand."""

import dataclasses
import html
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from rich.console import Console

import evidence
from epistemic.cards import deck_hash, write_cards
from epistemic.compared import load_comparisons
from epistemic.completeness.results import Results as SweepResults
from epistemic.completeness.thesis import judge
from epistemic.completeness.thesis import load_thesis as load_sweep_thesis
from epistemic.evaluate import Row, evaluate
from epistemic.report import MOST_CARDS, browser, summary, write
from epistemic.results import (
    AnswerCounts,
    Deck,
    NearMiss,
    QualityPoint,
    Ratio,
    Results,
)
from epistemic.scoring.assessment import assess, plain_metrics
from epistemic.scoring.thesis import load_thesis, meets
from epistemic.systems.base import Response
from evidence.answers import Answer
from evidence.measurement import Measurement
from evidence.results import Manifest

EVIL = "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>"


def write_run(folder, cards, systems):
    """A run's files as the command leaves them."""
    write_cards(folder / "cards.jsonl", cards)
    answers = {
        name: evaluate(system, name, cards, folder / "answers" / f"{name}.jsonl", "r")
        for name, system in systems.items()
    }
    scored = assess(cards, answers, load_thesis(), seed=0)
    about = {
        "domain": "countries",
        "hash": deck_hash(cards),
        "counts": {"total": len(cards), "label": {"E": 5, "C": 5, "U": 5}, "kind": {}},
        "leakage_audit": {
            "cards": len(cards),
            "seconds": 0.1,
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
            "axioms_unread": {"owl:sameAs": 2, "owl:imports": 1},
        },
    }
    deck = Deck.model_validate(about)
    four = next(iter(scored.systems.values())).conventions.seed
    results = Results(
        manifest=Manifest.now({"seed": 0}, [0]),
        thesis=scored.thesis,
        deck=deck,
        systems=scored.systems,
        comparisons=scored.comparisons,
        near_miss=NearMiss(deck=deck, systems=scored.systems),
        quality=tuple(
            QualityPoint(keep=keep, wrong=0.05, triples=5, systems={"graph_rag_licence": four})
            for keep in (1.0, 0.5)
        ),
        skipped={"rag": "no language model"},
    )
    results.save(folder)
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
    systems = results.systems
    assert [systems[name].role for name in ("llm", "kg_oracle", "always_no")] == [
        "ranked",
        "reference",
        "control",
    ]
    assert AnswerCounts(YES=0, NO=5, UNKNOWN=0, INVALID=0, ERROR=0) == systems["always_no"].table.U
    assert systems["graph_rag"].ideal and not systems["always_no"].ideal
    assert results.thesis.verdict == "inconclusive"  # five cards can't show that none is lost
    assert {(c.one, c.other) for c in results.comparisons} == {
        ("graph_rag", "graph_rag_unlicensed"),
        ("graph_rag", "llm"),
        ("graph_rag_unlicensed", "llm"),
    }
    kinds = systems["graph_rag_unlicensed"].by_kind
    assert {kind: entry.accuracy.value for kind, entry in kinds.items()} == {
        "E_stated": 1,
        "C_functional": 0,
        "U_absent": 0,
    }
    assert plain_metrics(systems)["graph_rag"]["AP"] == 1


def test_results_are_read_back_as_they_were(run):
    folder, results = run
    again = Results.load(folder)
    assert again == results
    assert isinstance(again.systems["llm"].beside.accuracy, Ratio)
    assert type(again.comparisons[0].beside.accuracy) is Measurement


def test_a_breakdown_adds_up_to_the_whole(run):
    _, results = run
    for system in results.systems.values():
        for part in (system.by_kind, system.by_predicate):
            for label, whole in system.table:
                for answer, count in whole:
                    entries = [getattr(getattr(e.table, label), answer) for e in part.values()]
                    assert sum(entries) == count


@pytest.mark.parametrize(
    "spoil, place",
    [
        ("table", "systems.llm.table.E.ERROR"),
        ("value", "systems.llm.conventions.seed.LA.value"),
        ("verdict", "thesis.verdict"),
        ("system", "systems"),
        ("unknown", "systems.llm.colour"),
        ("ratio", "systems.llm.conventions.seed.LA.colour"),
    ],
)
def test_results_that_are_wrong_are_refused_with_the_place(run, tmp_path, spoil, place):
    results = json.loads((run[0] / "results.json").read_text())
    if spoil == "table":
        del results["systems"]["llm"]["table"]["E"]["ERROR"]
    elif spoil == "value":
        results["systems"]["llm"]["conventions"]["seed"]["LA"]["value"] = 1.5
    elif spoil == "verdict":
        results["thesis"]["verdict"] = "true"
    elif spoil == "unknown":
        results["systems"]["llm"]["colour"] = "red"
    elif spoil == "ratio":
        results["systems"]["llm"]["conventions"]["seed"]["LA"]["colour"] = "red"
    else:
        results["systems"] = {}
    (tmp_path / "spoilt").mkdir()
    (tmp_path / "spoilt" / "results.json").write_text(json.dumps(results))
    with pytest.raises(ValueError, match=rf"results\.json at {place.replace('.', '[.]')}"):
        Results.load(tmp_path / "spoilt")


@pytest.mark.parametrize("kind", [Results, SweepResults])
def test_each_field_of_the_results_says_what_it_holds(kind):
    schema = kind.model_json_schema()
    for name, part in {"Results": schema, **schema["$defs"]}.items():
        if name.split("_")[0] in ("Measurement", "Ratio"):
            continue
        for field, about in part.get("properties", {}).items():
            assert about.get("description"), (name, field)


def test_the_page_is_one_file_that_fetches_nothing_and_escapes_everything(run):
    page = write(run[0]).read_text()
    assert EVIL not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "Inconclusive" in page
    for role, state in (
        ("needed for a verdict", "met"),
        ("would support the thesis", "met"),
        ("would falsify it", "refuted"),
        ("would falsify it", "undetermined"),
    ):
        row = f'<td class="left">{state}</td><td class="left">{role}</td>'
        assert row in page, (role, state)
    assert "rag was left out: no language model" in page
    assert "2 owl:sameAs, 1 owl:imports: what only they settle counts as unknown" in page
    for name in ("scores", "selective", "quality"):
        assert (run[0] / "figures" / f"{name}.svg").exists()
        assert (run[0] / "figures" / f"{name}.png").stat().st_size > 1000


KEPT = Path(__file__).parents[2] / "benchmarks" / "results" / "epistemic"
FOLDERS = {path.parent.name for path in KEPT.glob("*/results.json")}
SWEEPS = {"completeness", "completeness_installed", "completeness_popularity"}


@pytest.mark.parametrize("name", sorted(SWEEPS))
def test_a_kept_sweep_gives_its_page_and_table(name, tmp_path):
    shutil.copy(KEPT / name / "results.json", tmp_path)
    page = html.unescape(write(tmp_path).read_text())
    results = evidence.load(tmp_path)
    assert results.thesis.because in page and results.thesis == judge(
        load_sweep_thesis(), results.completeness
    )
    table = summary(results)
    assert table.row_count == len({end.model for end in results.completeness.break_even})
    assert (tmp_path / "figures" / "pays_0.05.svg").exists()


@pytest.mark.parametrize("name", sorted(FOLDERS - SWEEPS))
def test_a_kept_folder_gives_a_page_without_the_cards(name, tmp_path):
    shutil.copy(KEPT / name / "results.json", tmp_path)
    page = write(tmp_path).read_text()
    assert "The cards and answers are not in this folder" in page
    assert "These results are kept without their breakdowns" in page
    assert 'id="data"' not in page and 'id="cards"' not in page
    results = Results.load(tmp_path)
    assert results.thesis.because in html.unescape(page)
    assert ("No verdict" in page) == (results.thesis.verdict is None)


def test_the_kept_comparison_is_typed():
    [pair] = load_comparisons(KEPT)
    assert (pair.one, pair.other, pair.folders) == ("rivers", "countries", ("rivers", "countries"))
    assert pair.systems["kg_oracle"].at_equal_labels.LA.value == 0
    with pytest.raises(FileNotFoundError):
        load_comparisons(KEPT / "rivers")


def test_the_terminals_table_fits_80_columns(run):
    console = Console(width=80, file=io.StringIO())
    console.print(summary(run[1]))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80 and "…" not in console.file.getvalue()
    [row] = [line for line in lines if "graph_rag_unlicensed" in line]
    # Five subjects: YES to everything has all false answers and loses none.
    assert row.split()[:3] == ["graph_rag_unlicensed", "–", "0.00"]
    assert "1.00 [0.57, 1.00]" in row and row.split()[-1] == "no"


def said_yes(cards, **more):
    """Rows of a system that says YES."""
    about = {"pred": "YES", "system": "s", "run": "r", **more}
    return {
        card.id: Row(
            id=card.id, gold=card.gold, label=card.label, passed=card.gold == "YES", **about
        )
        for card in cards
    }


def test_failures_come_first_and_a_cut_is_counted(deck, monkeypatch):
    answers = {"s": said_yes(deck)}
    shown = browser(deck, answers)
    assert [card[1] for card in shown.cards] == ["C", "U"] * 5 + ["E"] * 5
    assert shown.cut == 0
    monkeypatch.setattr("epistemic.report.MOST_CARDS", 12)
    cut = browser(deck, answers)
    assert (len(cut.cards), cut.cut) == (12, 3)
    assert {card[1] for card in cut.cards[:10]} == {"C", "U"}


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
    page.goto(write(run[0]).as_uri())
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
    page = write(tmp_path)
    shown = browser(many, {"llm": said_yes(many, raw="x" * 60)})
    data = json.dumps(shown._asdict()).replace("<", "\\u003c")
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

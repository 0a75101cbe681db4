"""Pages say what their files say, quote nothing without its source, and their code runs."""

import re
from types import SimpleNamespace

import jax
import pytest
import yaml

from docs import kept, render, typed
from docs.kept import ROOT, Node, Quoted

PAGES = dict(render.rendered())
SOURCE = re.compile(r"<sub>Source: (.*)</sub>")
EXAMPLES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_is_committed_is_what_the_files_say(page):
    assert page.read_text(encoding="utf-8") == PAGES[page], "run `python -m docs.render`"


def test_no_measured_number_is_typed_by_hand():
    assert [
        f"{name}: {found}" for name, text in typed.pages() for found in typed.typed(name, text)
    ] == []


def test_every_exception_is_needed():
    assert typed.unused(dict(typed.pages())) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the proxy dies 35 times as often", 1),
        ("the proxy dies {{ ratio|number(0) }} times as often", 0),
        ("run with `runs=5` on SmolLM2-135M", 0),
        ("    python -m experiments.goodhart runs=5\n\nat 95%", 0),
        ("1. first\n2. then 0.41", 1),
    ],
)
def test_typed_numbers_are_found_in_prose_alone(text, found):
    assert len(typed.typed("page.md", text)) == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_source_line_leads_to_numbers(page):
    lines = SOURCE.findall(PAGES[page])
    assert lines
    for line in lines:
        for part in line.split("; "):
            file, *places = re.findall(r"`([^`]+)`", part)
            for place in places:
                assert list(kept.look(file, place)), (file, place)


def test_places_that_differ_in_one_key_are_named_together():
    quoted = Quoted()
    file = "benchmarks/results/protocol_table.json"
    for mode in ("proxy", "ground_truth"):
        for name in ("efficiency", "survival"):
            quoted.note((file, "modes", mode, name))
    assert quoted.sources() == (
        f"<sub>Source: `{file}` `modes.{{proxy,ground_truth}}.{{efficiency,survival}}`</sub>"
    )


def test_a_source_line_needs_a_number_before_it():
    with pytest.raises(ValueError, match="without a number"):
        Quoted().sources()


def test_a_page_that_quotes_without_a_source_is_refused(tmp_path, monkeypatch):
    (tmp_path / "page.md.j2").write_text('{{ kept("goodhart").manifest.finished }}')
    monkeypatch.setattr(render, "TEMPLATES", tmp_path)
    with pytest.raises(ValueError, match="without naming the source"):
        render.page_text("page.md.j2")


def test_a_number_is_not_printed_unless_it_is_said_how():
    with pytest.raises(TypeError, match="without saying how"):
        str(Node(0.409376, ("file", "gap"), Quoted()))


def test_a_place_that_is_not_there_is_named():
    with pytest.raises(KeyError, match="survivall"):
        kept.kept("goodhart", Quoted()).modes.proxy["survivall"]


@pytest.fixture
def compiled_fast():
    """Programs compile in half the time, and run slower."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_a_page_runs(page, compiled_fast, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(page), "exec"), {})
        assert capsys.readouterr().out


def test_links_of_the_front_door_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_citation_has_what_its_format_requires():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["message"] and citation["title"] and citation["authors"][0]["name"]
    assert citation["authors"][0]["name"].removeprefix("The ") in (ROOT / "LICENSE").read_text()


def test_the_mode_that_is_shown_has_the_settings_of_one_that_ships():
    text = (ROOT / "docs" / "how-to" / "mode.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    ships = (ROOT / "conf" / "goodhart" / "mode" / "proxy.yaml").read_text(encoding="utf-8")
    shown, ships = yaml.safe_load(shown), yaml.safe_load(ships)
    assert shown.keys() == ships.keys()
    assert all(shown[part].keys() == ships[part].keys() for part in ("sees", "reward"))


def test_wrong_answers_to_what_is_settled_are_what_is_left_by_hand():
    """Of sixteen questions, four of a kind, 9 are answered: 2 are traps, and 3 + 2 are right."""
    halos = SimpleNamespace(
        L=SimpleNamespace(literal=3 / 4),
        E=SimpleNamespace(entailed=2 / 4),
        H=SimpleNamespace(hallucination=1 / 4),
        B=SimpleNamespace(bias=1 / 4),
    )
    base = SimpleNamespace(abstained=7 / 16, invalid=0.0, errors=0.0, halos=halos)
    assert render.wrong_of_settled(base) == pytest.approx(2)

"""The stage `look`: what a stranger's graph was taken for, before anything is spent."""

import io
import re
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf
from rich.console import Console

from epistemic import study
from epistemic.settings import read

HEAD = """@prefix : <http://x/> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
"""
SHAPES = """
:S a sh:NodeShape ; sh:targetClass :Person ;
  sh:property [ sh:path :teacherOf ; sh:maxCount 1 ] , [ sh:path :city ; sh:maxCount 1 ] .
:a owl:sameAs :b .
"""


def graph(people):
    rows = [
        f':p{i} a :Person ; rdfs:label "P{i}" ; :teacherOf :p{(i + 1) % people} ; :city :c{i % 4} ;'
        f" :influences :p{(i + 2) % people} , [] ."
        for i in range(people)
    ]
    return HEAD + "\n".join(rows)


@pytest.fixture
def seen(tmp_path):
    """Settings -> what the stage says of a graph of so many people, and what it leaves."""

    def look(people, *overrides, shapes=SHAPES):
        (tmp_path / "my.ttl").write_text(graph(people))
        (tmp_path / "shapes.ttl").write_text(HEAD + shapes)
        conf = Path(__file__).parents[2] / "conf" / "epistemic"
        given = ["stage=look", "domain=file", f"domain.graph=[{tmp_path}/my.ttl]"]
        given += [f"domain.constraints=[{tmp_path}/shapes.ttl]"] if shapes else []
        with hydra.initialize_config_dir(str(conf), version_base="1.3"):
            config = hydra.compose("config", [*given, *overrides])
        console = Console(record=True, file=io.StringIO(), width=80)
        folder = tmp_path / "out"
        settings = read(OmegaConf.to_container(config, resolve=True))
        assert study.run_stage(settings, folder, console) == []
        assert not folder.exists()
        return " ".join(console.export_text().split())

    return look


def test_what_was_understood_is_said_and_nothing_is_written(seen):
    said = seen(24, "cards.per_type=6")
    for part in (
        "4 things without a label: called by the end of the IRI, such as c0",
        "24 blank nodes, which no sentence can name",
        "a person 24 nothing",
        "P0 is teacher of P1.",
        'influences ? 48 P0 has P2 under "influences".',
        "Read, as what may not be said: 2 max_count",
        "Not read, which leaves claims unknown: 1 owl:sameAs",
        "18 cards: entailed (E), contradicted (C), unknown (U)",
        "influences 0 0 0",
        "What these labels mean isn't plain: influences.",
        "near_miss.num=500: the graph gives 30 near misses",
        "up to 378 prompts",  # of six systems: 18 cards and 45 of near misses
    ):
        assert part in said, part
    assert said.count("Rule: Nothing is teacher of more than one thing.") > 2
    assert sum(said.count(f"{gold} (") for gold in ("YES", "NO", "UNKNOWN")) == 10


def test_fewer_cards_than_asked_for_are_counted_and_shown(seen):
    said = seen(24)
    assert "cards.per_type=200: the graph gives" in said
    assert "cards: entailed (E)" in said and "Nothing was asked or written" in said


def test_only_what_is_too_many_is_fewer(seen):
    said = seen(24, "cards.per_type=6", "cards.needs_graph=500", "near_miss.num=0")
    assert "cards.needs_graph=500: the graph gives" in said
    [more] = re.findall(r"cards.needs_graph=500: the graph gives (\d+) of each label", said)
    assert f"{18 + 3 * int(more)} cards: entailed (E)" in said and int(more) > 0
    assert "cards.per_type=" not in said and "near_miss.num=" not in said


def test_a_graph_that_gives_no_deck_is_still_shown(seen):
    said = seen(6, shapes="")
    assert "P0 is teacher of P1." in said
    assert "no claim could be contradictory" in said
    assert "Nothing was asked" not in said


def test_what_a_label_means_is_asked_for_until_it_is_said(seen):
    said = seen(24, '+domain.say.influences="{s} was influenced by {o}"')
    assert "influences 48 P0 was influenced by P2." in said
    assert "isn't plain" not in said


def test_axioms_among_the_triples_are_pointed_at(seen, tmp_path):
    (tmp_path / "more.ttl").write_text(HEAD + SHAPES)
    said = seen(6, f"domain.graph=[{tmp_path}/my.ttl,{tmp_path}/more.ttl]", shapes="")
    assert "hold axioms or shapes: give them as domain.constraints, too" in said


def test_classes_and_properties_are_called_by_their_labels(seen):
    """Short names, which are settings' words, stand beside labels that say another thing."""
    labels = """
:Person rdfs:label "human"@en ; owl:disjointWith :City . :City rdfs:label "big town"@en .
:teacherOf rdfs:label "is teacher of" . :city rdfs:label "home town" .
"""
    said = seen(24, shapes=SHAPES + labels)
    assert "a human 24 a big town" in said
    assert "is teacher of [teacherOf] 24 P0 is teacher of P1." in said
    assert "home town [city] 24 c0 is the home town of P0." in said
    assert said.count("is teacher of [teacherOf]") == said.count("home town [city]") == 2
    assert "influences ? 48" in said

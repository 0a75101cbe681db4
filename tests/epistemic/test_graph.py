"""Graphs: reading, terms, order, labels."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import rdflib
import rdflib.compare

from epistemic.logic.graph import LABEL, Graph, neighbourhood, read_graph
from epistemic.logic.parsing import parse_triples
from epistemic.logic.terms import canonical, literal, rdflib_term, split_literal, term_text

TURTLE = """@prefix : <http://x/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:nile :length 6650, 6650.0, "6650"^^xsd:double ; :length "007"^^xsd:integer ; :flowsInto :sea ;
  rdfs:label "Nil"@ar, "Nile"@en, "der Nil"@de ; :source [ :height -3 ] .
:sea rdfs:label "a \\"sea\\"\\nof \\u00e9" ; :since "2001-02-03"^^xsd:date .
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rivers.ttl"
    path.write_text(TURTLE)
    return path


def test_reads_what_rdflib_reads(file):
    ours = read_graph(file).to_rdflib()
    theirs = rdflib.Graph().parse(file)
    assert len(ours) == len(theirs)
    assert rdflib.compare.isomorphic(ours, theirs)


@pytest.mark.parametrize("suffix, format_", [("nt", "nt"), ("rdf", "xml"), ("jsonld", "json-ld")])
def test_other_formats_say_the_same(file, tmp_path, suffix, format_):
    other = tmp_path / f"same.{suffix}"
    rdflib.Graph().parse(file).serialize(other, format=format_)
    assert rdflib.compare.isomorphic(read_graph(other).to_rdflib(), read_graph(file).to_rdflib())


def test_gzip_and_several_files_make_one_graph(file, tmp_path):
    packed = tmp_path / "more.ttl.gz"
    packed.write_bytes(gzip.compress(b"<http://x/nile> <http://x/flowsInto> <http://x/delta> ."))
    assert len(read_graph(file, packed)) == len(read_graph(file)) + 1


def test_a_syntax_error_names_file_and_line(tmp_path):
    path = tmp_path / "broken.ttl"
    path.write_text("@prefix : <http://x/> .\n:a :p :b .\n:a :p .\n")
    with pytest.raises(ValueError, match=r"broken\.ttl, line 3"):
        read_graph(path)


def test_an_unknown_extension_lists_the_known_ones(tmp_path):
    (tmp_path / "graph.csv").write_text("")
    with pytest.raises(ValueError, match=r"'\.csv'; known: \.ttl"):
        list(parse_triples(tmp_path / "graph.csv"))


def test_triples_are_sorted_unique_and_independent_of_order(file):
    texts = list(parse_triples(file))
    forwards, backwards = Graph.from_triples(texts), Graph.from_triples([*texts[::-1], *texts])
    assert forwards.terms == backwards.terms
    np.testing.assert_array_equal(forwards.triples, backwards.triples)
    assert forwards.digest == backwards.digest
    assert (np.diff(forwards.triples[:, 0]) >= 0).all()


def test_the_digest_tells_graphs_apart(file):
    graph = read_graph(file)
    assert graph.digest != graph.without(np.arange(len(graph)) == 0).digest


def test_literals_stand_in_order_of_value():
    numbers = [literal(n) for n in (10, -3, 9, 2)] + [literal(9.5), literal("apple")]
    graph = Graph.from_triples(("http://x/s", "http://x/p", number) for number in numbers)
    ranks = [
        int(graph.rank[graph.ids[n]]) for n in (literal(-3), literal(2), literal(9), literal(9.5))
    ]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == 4
    assert graph.rank[graph.ids["http://x/s"]] == 0


def test_equal_values_have_one_rank_and_strange_ones_fall_between():
    graph = Graph.from_triples(
        ("http://x/s", "http://x/p", term) for term in (literal(2), literal(2.0), literal(5))
    )
    two, five = graph.rank_of(literal(2)), graph.rank_of(literal(5))
    assert graph.rank[graph.ids[literal(2)]] == graph.rank[graph.ids[literal(2.0)]] == two
    assert graph.rank_of(literal(1)) < two < graph.rank_of(literal(3)) < five
    assert graph.rank_of(literal(9)) > five
    assert graph.rank_of(literal("2")) >> 28 != two >> 28  # a string doesn't compare with a number


def test_labels_prefer_the_language_then_none_then_the_name(file):
    nile = "http://x/nile"
    english, german = read_graph(file), read_graph(file, language="de")
    assert english.label(english.ids[nile]) == "Nile"
    assert german.label(german.ids[nile]) == "der Nil"
    assert english.label(english.ids["http://x/sea"]) == 'a "sea"\nof é'
    assert english.label(english.ids["http://x/flowsInto"]) == "flowsInto"


def test_other_properties_name_what_has_no_rdfs_label():
    skos, foaf = "http://www.w3.org/2004/02/skos/core#prefLabel", "http://xmlns.com/foaf/0.1/name"
    stated = [
        ("http://x/q1", foaf, '"the Nile"'),
        ("http://x/q1", skos, '"Nile"'),
        ("http://x/q2", foaf, '"Po"'),
        ("http://x/q3", foaf, "http://x/q2"),
        ("http://x/q4", LABEL, '"Main"'),
        ("http://x/q4", skos, '"Moenus"'),
    ]
    graph = Graph.from_triples(stated)
    called = [graph.label(graph.ids[f"http://x/q{number}"]) for number in (1, 2, 3, 4)]
    assert called == ["Nile", "Po", "q3", "Main"]


def test_terms_of_one_label_are_reported():
    graph = Graph.from_triples(
        ("http://x/" + name, LABEL, '"Kingston"@en') for name in ("jamaica", "norfolk")
    )
    assert graph.shared_labels == {
        "Kingston": [graph.ids["http://x/jamaica"], graph.ids["http://x/norfolk"]]
    }


@pytest.mark.parametrize(
    "term",
    [
        "http://x/a",
        "_:b7",
        '"plain"',
        '"x"@en',
        '"é\\n\\"q\\" \\\\ \\u00e9"',
        literal(5),
        literal(0.5),
    ],
)
def test_terms_survive_rdflib(term):
    assert rdflib_term(term_text(rdflib_term(term))) == rdflib_term(term)


def test_canonical_forms_are_rdflibs():
    padded = '"007"^^<http://www.w3.org/2001/XMLSchema#integer>'
    assert canonical(padded) == literal(7)
    assert canonical('"x"^^<http://www.w3.org/2001/XMLSchema#string>') == '"x"'
    assert split_literal('"a\\tb"@en') == ("a\tb", "en", None)


def test_a_neighbourhood_leaves_types_and_labels_out():
    texts = [
        ("a", "p", "b"),
        ("b", "p", "c"),
        ("c", "p", "d"),
        ("a", LABEL, '"A"'),
        ("d", "q", "a"),
    ]
    graph = Graph.from_triples(
        tuple(t if t.startswith(('"', "http")) else "http://x/" + t for t in entry)
        for entry in texts
    )
    near = neighbourhood(graph, [graph.ids["http://x/a"]])
    assert {tuple(graph.label(t) for t in row) for row in near} == {
        ("A", "p", "b"),
        ("d", "q", "A"),
    }
    assert len(neighbourhood(graph, [graph.ids["http://x/a"]], hops=2)) == 4

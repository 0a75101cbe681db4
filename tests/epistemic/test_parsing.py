"""Files that strangers have: what can't be read is one line with the file and its place."""

import gzip
import time

import pytest

from epistemic.domain import DomainSettings, load_domain
from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import Graph, read_graph
from epistemic.logic.parsing import parse_triples
from epistemic.logic.terms import Scale, canonical, value_of

HEAD = (
    "@prefix : <http://x/> . @prefix sh: <http://www.w3.org/ns/shacl#> .\n"
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
    "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
)
LEVELS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">'
XML = '<?xml version="1.0"?>\n<!DOCTYPE rdf:RDF [{}]>\n' + RDF
XML += '<rdf:Description rdf:about="http://x/a"><x:p{}</x:p></rdf:Description></rdf:RDF>'


def shape(parameter):
    part = f"sh:property [ sh:path :p ;\n {parameter} ]"
    return f"{HEAD}:S a sh:NodeShape ; sh:targetClass :C ; {part} ."


BAD = {
    "a triple in a triple": ("a.ttl", HEAD + "<< :a :p :b >> :q :c .", "line 3: a triple about"),
    "a triple as object": ("a.ttl", HEAD + ":a :q <<( :a :p :b )>> .", "line 3: a triple about"),
    "no gzip": ("a.ttl.gz", b"no", "not a whole gzip file"),
    "half a gzip": ("a.nt.gz", gzip.compress(b"<x:a> <x:b> <x:c> .\n" * 99)[:-9], "not a whole"),
    "a book": ("a.nt", b'<x:a> <x:p> "' + b"x" * (17 << 20) + b'" .', "line 1: a term is longer"),
    "a bomb": ("a.rdf", XML.format(f'<!ENTITY a0 "aaaaaaaa">{LEVELS}', ">&a9;"), "line 2: its ent"),
    "a circle": ("a.rdf", XML.format('<!ENTITY a "&b;"><!ENTITY b "&a;">', ">&a;"), "line 2: its"),
    "latin-1": ("a.ttl", HEAD.encode() + b':a :p "\xe9" .', "line 3: Invalid UTF-8"),
    "a context elsewhere": ("a.jsonld", '{"@context": "https://x.org/", "@id": "x:a"}', "@context"),
    "no triples": ("a.ttl", HEAD, "a.ttl: no triples"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_graph_that_cant_be_read_is_one_line_with_its_place(tmp_path, name):
    file, content, message = BAD[name]
    path = tmp_path / file
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError) as caught:
        load_domain(DomainSettings(name="file", graph=(str(path),)))
    assert str(caught.value).startswith(str(path)) and message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


SHAPES = {
    'sh:maxCount "x"': 'line 4: sh:maxCount "x": a whole number',
    "sh:maxCount -1": 'line 4: sh:maxCount "-1": a whole number',
    "sh:maxCount :many": 'line 4: sh:maxCount "many": a whole number',
    "sh:maxCount 99999999999": 'line 4: sh:maxCount "99999999999": at most',
    'sh:minLength "x"': 'line 4: sh:minLength "x": a whole number',
    'sh:pattern "["': 'line 4: sh:pattern "[": unterminated',
    "sh:in :l ] . :l rdf:first :a ; rdf:rest :l . [] :x [ :y :z": "recursive rdf:rest",
}


@pytest.mark.parametrize("parameter", SHAPES)
def test_a_shape_that_makes_no_sense_is_found_in_its_file(tmp_path, parameter):
    other, path = tmp_path / "other.ttl", tmp_path / "shapes.ttl"
    other.write_text(HEAD)
    path.write_text(shape(parameter))
    with pytest.raises(ValueError) as caught:
        read_constraints(other, path)
    assert str(path) in str(caught.value) and SHAPES[parameter] in str(caught.value)


def test_a_class_that_there_isnt_cant_be_complete(tmp_path):
    (tmp_path / "a.ttl").write_text(HEAD + ":a a :Person ; :p :b .")
    (tmp_path / "shapes.ttl").write_text(shape("sh:class :Town"))
    given = {"graph": (f"{tmp_path}/a.ttl",), "constraints": (f"{tmp_path}/shapes.ttl",)}
    told = ("http://x/Person", "http://x/Town")
    assert load_domain(DomainSettings(name="file", complete=told, **given)).constraints.complete
    for name, meant in (("http://x/p", ""), ("http://x/Persn", "; did you mean http://x/Person?")):
        with pytest.raises(ValueError, match="is no class of the graph") as caught:
            load_domain(DomainSettings(name="file", complete=(*told, name), **given))
        assert str(caught.value).startswith(f"domain.complete: {name} ")
        assert str(caught.value).endswith(meant)


def test_a_folder_is_called_one(tmp_path):
    with pytest.raises(ValueError, match="a folder; name the files in it"):
        load_domain(DomainSettings(name="file", graph=(str(tmp_path),)))


def test_a_byte_order_mark_and_an_honest_entity_are_read(tmp_path):
    (tmp_path / "bom.ttl").write_bytes(b"\xef\xbb\xbf" + HEAD.encode() + b":a :p 5 .")
    xsd = '<!ENTITY xsd "http://www.w3.org/2001/XMLSchema#">'
    typed = ' rdf:datatype="&xsd;integer">5'
    (tmp_path / "entity.rdf").write_text(XML.format(xsd, typed))
    assert read_graph(tmp_path / "bom.ttl").digest == read_graph(tmp_path / "entity.rdf").digest


def test_blank_nodes_are_those_of_their_file_whatever_it_is_called(tmp_path):
    texts = {"one/a.ttl": ":s :p [] .", "two/a.ttl": ":t :q [] .", "two/b.ttl": ":t :q [] ."}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(HEAD + text)
    one, two, copy = (next(iter(parse_triples(tmp_path / name)))[2] for name in texts)
    assert one != two == copy and two.startswith("_:")


DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"


@pytest.mark.parametrize("lexical", ["NaN", "sNaN", "Infinity", "1e999999999", "-1E-999999999"])
def test_what_is_no_decimal_number_compares_with_nothing_and_takes_no_time(lexical):
    term = f'"{lexical}"^^<{DECIMAL}>'
    start = time.process_time()
    assert canonical(term) == term and value_of(term) == (Scale.NONE, None)
    five = f'"5.0"^^<{DECIMAL}>'
    graph = Graph.from_triples([("http://x/a", "http://x/p", t) for t in (term, five)])
    assert len(graph.to_rdflib()) == 2
    assert graph.rank[graph.ids[term]] == 0 < graph.rank[graph.ids[five]]
    assert time.process_time() - start < 1

"""Anything may stand in a file or a setting: it is read, or refused in a line that says why.

Nothing else is raised, nothing hangs, nothing is executed and nothing fetched. 1,000 inputs of each
of the two kinds, 100,000 in the full run.
"""

import copy
import json
import math
import os
import signal
import sys
from pathlib import Path

import hydra
import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

import evidence
from epistemic.cards import read_cards
from epistemic.data import __path__ as shipped
from epistemic.evaluate import read_rows
from epistemic.linking.texts import read_wordings
from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import read_graph
from epistemic.settings import read as epistemic
from epistemic.systems.replay import Replay
from evidence.runtime.config import settings_folder
from evidence.runtime.files import read_jsonl, read_plain
from evidence.runtime.language_models import Recorded, local_weights
from goodharts_jax.settings import read as goodhart
from kubku.settings import read as kubku
from kubku.tasks import jsonl

DATA = Path(next(iter(shipped)))
_LONGEST_S = 30


class Forbidden(BaseException):
    """Data did what data may not; no `except Exception` takes it for bad input."""


_FORBIDDEN = {
    *("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen", "pickle.find_class"),
    *("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"),
    "webbrowser.open",
}
_watching = False


def _watch(event, arguments):
    if _watching and event in _FORBIDDEN:
        raise Forbidden(f"{event} {arguments}")


sys.addaudithook(_watch)


def survives(read, *arguments):
    """What comes of data: it is read, or refused in a line."""
    global _watching

    def late(*_):
        raise Forbidden(f"no end within {_LONGEST_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST_S)
    _watching = True
    try:
        read(*arguments)
    except ValueError as error:
        assert str(error).strip(), "it says nothing"
        return str(error)
    except FileNotFoundError as error:
        return str(error)
    finally:
        _watching = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return None


# ---- files --------------------------------------------------------------------------------------

CARD = (DATA / "deck_countries.jsonl").read_bytes().splitlines()[0] + b"\n"
ROW = {
    "id": "a",
    "gold": "YES",
    "pred": "NO",
    "pass": False,
    "system": "s",
    "label": "E",
    "run": "r",
}
SAMPLE = {
    "facts": [
        {"entity": "Ada", "attribute": "job", "value": "pilot"},
        {"entity": "Ada", "attribute": "job", "value": "baker", "holds": False},
    ],
    "queries": [
        {"kind": "L", "entity": "Ada", "attribute": "job", "value": "pilot", "answer": "yes"},
        {
            **{"kind": "B", "entity": "Ada", "attribute": "gender", "value": "man"},
            **{"answer": "unknown", "harmful": "yes"},
        },
    ],
}
TURTLE = b"""@prefix ex: <http://e.x/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:a a ex:C ; ex:p "x"@en, 1.5, "2020-02-30"^^xsd:date, [ ex:q ex:b ] .
"""
SHAPES = b"""@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix ex: <http://e.x/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
ex:S a sh:NodeShape ; sh:targetClass ex:C ; sh:property [ sh:path ex:p ; sh:maxCount 1 ;
 sh:minInclusive 0 ; sh:in ( 1 2 ) ; sh:pattern "^a" ; sh:or ( [ sh:class ex:D ] ) ] .
ex:p a owl:FunctionalProperty ; owl:inverseOf ex:q .
"""
RDF_XML = b"""<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e "text">]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e.x/">
<rdf:Description rdf:about="http://e.x/a"><e:p>&e;</e:p></rdf:Description></rdf:RDF>
"""
JSON_LD = b'{"@context": {"p": "http://e.x/p"}, "@id": "http://e.x/a", "p": [{"@value": 1}]}'
REPLY = b'{"prompt": "0123456789abcdef", "raw": "YES.", "confidence": 0.5, "finish": "stop"}\n'
REMEDY = (settings_folder() / "goodhart" / "remedy" / "kl.yaml").read_bytes()


def lines(*records):
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def load(path):
    evidence.load(path.parent)


READERS = {
    "log.jsonl": (lines(ROW, ROW), lambda path: list(read_jsonl(path, ("id",)))),
    "samples.jsonl": (lines(SAMPLE, SAMPLE), jsonl.read),
    "deck.jsonl": (CARD, read_cards),
    "answers.jsonl": (lines(ROW), read_rows),
    "replay.jsonl": (lines({"id": "a", "raw": "YES"}, {"id": "b", "pred": "NO"}), Replay),
    "replies.jsonl": (REPLY, lambda path: Recorded("m", path)),
    "graph.ttl": (TURTLE, read_graph),
    "graph.rdf": (RDF_XML, read_graph),
    "graph.jsonld": (JSON_LD, read_graph),
    "graph.ttl.gz": (TURTLE, read_graph),
    "shapes.ttl": (SHAPES, read_constraints),
    "results.json": (
        (
            Path(__file__).parents[2] / "benchmarks/results/epistemic/countries_thesis/results.json"
        ).read_bytes(),
        load,
    ),
    "config.yaml": (REMEDY, read_plain),
    "settings.json": (b'{"seed": 1, "worlds": ["skewed"]}', read_plain),
    "wordings.yaml": ((DATA / "wordings_countries.yaml").read_bytes(), read_wordings),
    "weights.gguf": (b"GGUF\x03\0\0\0", local_weights),
}

NASTY = [
    *(b"\xff\xfe", b"\0", b"\n", b'"', b"'", b"{", b"}", b"[" * 3000, b"]", b"null", b"NaN", b"-"),
    *(b"1e999", b"9" * 5000, b"true", b"[]", b"{}", b'""', b"\\ud800", b"\xed\xa0\x80", b"-1"),
    *(b"!!python/object/apply:os.system [id]", b"!!binary x", b"&a [*a]", b"<<: *a", b"? ", b": "),
    *(b"<!ENTITY x SYSTEM 'file:///etc/passwd'>", b"&x;", b"http://e.x/context", b"@import", b"@"),
    *(b"a sh:NodeShape", b"sh:path", b"()", b"( ex:a", b"_:b", b"<<", b">>", b"^^", b"@base <> ."),
    *(b'"@context": "http://e.x/c",', b"cos\nsystem\n(S'id'\ntR.", b"\x80\x04\x95", b".", b";"),
]
edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 30),
        st.one_of(st.sampled_from(NASTY), st.binary(max_size=6)),
    ),
    min_size=1,
    max_size=4,
)


def edited(content, changes, at_most=1 << 20):
    """A file with bytes cut out and others put in."""
    for share, cut, put in changes:
        at = int(share * len(content))
        content = content[:at] + put + content[at + cut :]
    return content[:at_most]


FEW, MANY = 1000, 100_000


def budget(number, of):
    """So many inputs in all over `of` tests."""
    return settings(
        max_examples=-(-number // of),
        derandomize=number == FEW,
        database=None,
        phases=(Phase.generate,) if number == FEW else tuple(Phase),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


def fuzz_reader(name, folder, number):
    content, read = READERS[name]
    path = folder / name

    @budget(number, len(READERS))
    @given(edits)
    def check(changes):
        path.write_bytes(edited(content, changes))
        survives(read, path)

    path.write_bytes(content)
    if not name.endswith(".gz"):
        assert survives(read, path) is None
    check()


@pytest.mark.parametrize("name", READERS)
def test_any_file_is_read_or_refused(name, tmp_path, record_property):
    fuzz_reader(name, tmp_path, FEW)
    record_property("tried", f"{name}: {-(-FEW // len(READERS))} garbled files")


@pytest.mark.full
@pytest.mark.parametrize("name", READERS)
def test_any_file_is_read_or_refused_many_times(name, tmp_path, record_property):
    fuzz_reader(name, tmp_path, MANY)
    record_property("tried", f"{name}: {-(-MANY // len(READERS))} garbled files")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "a.rdf",
            RDF_XML.replace(b'ENTITY e "text"', b'ENTITY e SYSTEM "file://SECRET"'),
        ),
        ("a.jsonld", b'{"@context": "http://127.0.0.1:9/c", "@id": "http://e.x/a"}'),
        ("a.jsonld", b'{"@context": "file://SECRET", "@id": "http://e.x/a"}'),
        (
            "a.ttl",
            b"@prefix owl: <http://www.w3.org/2002/07/owl#> . <> owl:imports <file://SECRET> .",
        ),
    ],
)
def test_no_file_makes_another_be_fetched(tmp_path, name, content):
    (tmp_path / "secret").write_text("<http://e.x/s> <http://e.x/p> 'never to be seen' .")
    path = tmp_path / name
    path.write_bytes(content.replace(b"SECRET", str(tmp_path / "secret").encode()))
    seen = []
    survives(lambda: seen.extend(read_graph(path).terms))
    survives(lambda: seen.append(str(read_constraints(path))))
    assert "never to be seen" not in " ".join(seen)


@pytest.mark.parametrize("text", ["a: &x {b: *x}\n", "a: &x [*x]\n", "a: " + "[" * 9000])
def test_settings_that_hold_themselves_or_have_no_end_are_refused(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert "config.yaml: garbled" in survives(read_plain, path)


def test_data_of_yaml_and_pickle_is_not_executed(tmp_path):
    mark = tmp_path / "executed"
    path = tmp_path / "config.yaml"
    path.write_text(f"a: !!python/object/apply:os.system ['touch {mark}']\n")
    assert "garbled" in survives(read_plain, path)
    import pickle

    class Evil:
        def __reduce__(self):
            return os.system, (f"touch {mark}",)

    import numpy as np

    from kubku import cells

    np.savez(tmp_path / "cell.npz", note=np.array([Evil()], object))
    assert pickle and not cells.is_kept(tmp_path / "cell.npz")
    assert not mark.exists()


# ---- settings -----------------------------------------------------------------------------------

GROUPS = {
    "goodhart": (goodhart, ["mode=all"]),
    "goodhart cells": (goodhart, ["study=phase_diagram"]),
    "goodhart proxies": (goodhart, ["study=learnt_proxy"]),
    "goodhart remedies": (goodhart, ["study=remedies", "remedy=[kl,cap,quantile]"]),
    "kubku": (kubku, []),
    "kubku samples": (kubku, ["task=jsonl"]),
    "epistemic": (epistemic, ["llm=recorded"]),
    "epistemic completeness": (epistemic, ["study=completeness"]),
}
values = st.one_of(
    st.sampled_from(
        [
            *(None, True, False, 0, -1, 1, 2.5, -0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324),
            *(10**30, -(10**30), 1 << 31, "", " ", "x", "???", "null", "1", "\0", "\ud800"),
            *("os:system", "no.such:Thing", ":", "../..", "/dev/null", "{", "${seed}", "é" * 300),
            *([], {}, [[]], [None], [1, 1], ["x", "x"], {"x": 1}, {"": {}}, {1: 2}, [0] * 200),
        ]
    ),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.integers() | st.floats(), max_size=3),
)
changes = st.lists(st.tuples(st.integers(0, 10**6), values, st.booleans()), min_size=1, max_size=3)


def places(node, path=()):
    """The place of everything in plain data."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for name, value in items:
        yield (*path, name)
        if isinstance(value, dict | list):
            yield from places(value, (*path, name))


def changed(plain, which):
    """Plain data with some of it replaced, or put under a name that isn't known."""
    plain = copy.deepcopy(plain)
    for number, drawn, added in which:
        # Copied one by one, for what is drawn is shared: put below itself, it would have no end.
        value = copy.deepcopy(drawn)
        there = list(places(plain))
        if not there:
            break
        path = there[number % len(there)]
        node = plain
        for name in path[:-1]:
            node = node[name]
        if added and isinstance(node, dict):
            node[f"{path[-1]}_"] = value
        else:
            node[path[-1]] = value
    return plain


def fuzz_settings(name, number):
    read, overrides = GROUPS[name]
    folder = str(settings_folder() / name.split()[0])
    with hydra.initialize_config_dir(folder, version_base="1.3"):
        plain = OmegaConf.to_container(hydra.compose("config", overrides), resolve=True)

    @budget(number, len(GROUPS))
    @given(changes)
    def check(which):
        survives(read, changed(plain, which))

    check()


@pytest.mark.parametrize("name", GROUPS)
def test_any_settings_are_taken_or_refused(name, record_property):
    fuzz_settings(name, FEW)
    record_property("tried", f"settings of {name}: {-(-FEW // len(GROUPS))} wrong ones")


@pytest.mark.full
@pytest.mark.parametrize("name", GROUPS)
def test_any_settings_are_taken_or_refused_many_times(name, record_property):
    fuzz_settings(name, MANY)
    record_property("tried", f"settings of {name}: {-(-MANY // len(GROUPS))} wrong ones")


def test_the_watch_sees_what_is_forbidden():
    import socket
    import subprocess

    for act in (
        lambda: os.system("true"),
        lambda: subprocess.Popen(["true"]),
        lambda: socket.create_connection(("127.0.0.1", 9)),
        lambda: yaml.unsafe_load("!!python/object/apply:os.system ['true']"),
    ):
        with pytest.raises(Forbidden):
            survives(act)

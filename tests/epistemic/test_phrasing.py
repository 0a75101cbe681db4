"""Labels in sentences: none may say the reverse of its triple, whatever the label."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epistemic.decks.sources import Sources
from epistemic.domain import DomainSettings, load_domain
from epistemic.logic.english import split_words
from epistemic.logic.graph import TYPE
from epistemic.logic.phrasing import form_of, phrasing

LABELS = {
    "noun": ["capital", "highest elevation", "date of birth", "source country", "nationality"],
    "is": ["teacher of", "part of", "born in", "influenced by", "is kept by", "near", "kinds of"],
    "verb": ["died in", "flows into", "wrote", "knows", "discovered", "has part", "worked at"],
    # Words that may be nouns or verbs, other languages, codes.
    "entry": ["influences", "cause", "supports", "older", "Hauptstadt", "p17", "members", "born"],
}


@pytest.mark.parametrize("form", LABELS)
def test_how_a_label_is_meant_is_told_from_its_words(form):
    assert {label: form_of(label) for label in LABELS[form]} == dict.fromkeys(LABELS[form], form)


def test_names_made_for_machines_are_words_too():
    said = {"_has_part": "has part", "isPartOf": "is part of", "is_a": "is a", "P31": "p31"}
    assert {name: split_words(name) for name in said} == said
    assert [form_of(label) for label in said.values()] == ["verb", "is", "is", "entry"]


def test_a_verb_has_no_number_for_its_object():
    assert (form_of("discovered"), form_of("discovered", of_names=False)) == ("verb", "entry")
    assert form_of("height", of_names=False) == "noun"


SAID = {
    ("teacher of", "is"): (
        "Kant is teacher of Fichte.",
        "Kant is not teacher of Fichte.",
        "Is Kant teacher of Fichte?",
    ),
    ("wrote", "verb"): (
        "Kant wrote Fichte.",
        "It is false that Kant wrote Fichte.",
        "Is this right: Kant wrote Fichte?",
    ),
    ("influences", "entry"): (
        'Kant has Fichte under "influences".',
        'It is false that Kant has Fichte under "influences".',
        'Is this right: Kant has Fichte under "influences"?',
    ),
    ("pupil", "noun"): (
        "Fichte is a pupil of Kant.",
        "Fichte is not a pupil of Kant.",
        "Is Fichte a pupil of Kant?",
    ),
    ("x", "{o} was taught by {s}."): (
        "Fichte was taught by Kant.",
        "It is false that Fichte was taught by Kant.",
        "Is this right: Fichte was taught by Kant?",
    ),
}


@pytest.mark.parametrize("label, form", SAID)
def test_every_form_says_who_and_whom(label, form):
    said = phrasing(label, form, functional=False)
    first = (said.facts[0], said.denials[0], said.questions[0])
    assert tuple(one.format(s="Kant", o="Fichte") for one in first) == SAID[label, form]


RULES = {
    "at_most": (
        ("Nothing is teacher of more than one thing.", ["one"]),
        ("At most one thing was taught by any one thing.", ["one"]),
    ),
    "one_subject": (
        ("At most one thing is teacher of any one thing.", []),
        ("Nothing was taught by more than one thing.", []),
    ),
    "not_itself": (
        ("Nothing is teacher of itself.", []),
        ("Nothing was taught by itself.", []),
    ),
    "only": (
        ("If one thing is teacher of another, then the other is a man", ["man"]),
        ("If one thing was taught by another, then the first is a man", ["man"]),
    ),
    "one_way": (
        ("If one thing is teacher of another, then not the other way round.", []),
        ("If one thing was taught by another, then not the other way round.", []),
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_rules_count_the_right_end_whichever_is_said_first(rule):
    """Both clauses say the same triple: the teacher is the subject."""
    teacher = phrasing("teacher of", "is", functional=False)
    taught = phrasing("teacher of", "{o} was taught by {s}", functional=False)
    for said, (expected, arguments) in zip((teacher, taught), RULES[rule], strict=True):
        assert getattr(said, rule)(*arguments) == expected


def test_inverses_name_the_same_two_things():
    teacher, student = (phrasing(f"{who} of", "is", False) for who in ("teacher", "student"))
    taught = phrasing("x", "{o} was a student of {s}", False)
    assert teacher.exactly_when(student) == (
        "One thing is teacher of another exactly when the other is student of the first."
    )
    # The student's clause with its subject, the student's student, named last.
    assert teacher.exactly_when(taught) == (
        "One thing is teacher of another exactly when the first was a student of the other."
    )


@given(st.text(max_size=30), st.booleans())
def test_any_label_makes_sentences_with_both_names(label, of_names):
    said = phrasing(label, form_of(label, of_names), functional=True)
    for template in (*said.facts, *said.denials, *said.questions):
        text = template.format(s="<SUBJECT>", o="<OBJECT>")
        assert text.count("<SUBJECT>") == text.count("<OBJECT>") == 1


@pytest.mark.parametrize("form", ["nouns", "{s} knows", "{s} {o} {x}", "{s} {o} {s}", "{s} {o", ""])
def test_a_form_that_is_none_is_refused(form):
    with pytest.raises(ValueError, match="nor a clause with"):
        phrasing("x", form, functional=False)


TURTLE = """@prefix : <http://x/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix foaf: <http://y/> .
:teacherOf rdfs:label "Teacher of" . :inf rdfs:label "Influences"@en, "Einfluss"@de .
:Person rdfs:label "Human being" . :Kant a :Person ; :teacherOf :Fichte ; :inf :Hume .
:Hume :name "Hume" ; foaf:name "David" .
"""


def stranger(tmp_path, **settings):
    (tmp_path / "my.ttl").write_text(TURTLE)
    (tmp_path / "words.ttl").write_text(
        '<http://y/name> <http://www.w3.org/2000/01/rdf-schema#label> "full name" .'
    )
    files = {"graph": (str(tmp_path / "my.ttl"),), "constraints": (str(tmp_path / "words.ttl"),)}
    return load_domain(DomainSettings(name="file", **files, **settings))


def test_a_strangers_labels_are_used_and_never_turned_round(tmp_path):
    domain = stranger(tmp_path)
    said = {domain.sentence(domain_triple(domain, row)) for row in domain.graph.triples}
    assert {
        "Kant is teacher of Fichte.",
        'Kant has Hume under "influences".',
        "Kant is a human being.",
        "Hume is a name of Hume.",
        "David is a full name of Hume.",
    } <= said
    assert set(domain.predicates) == {"teacherOf", "inf", "name", "name_2"}


def domain_triple(domain, row):
    return tuple(domain.graph.terms[i] for i in row)


def test_what_has_no_name_is_in_no_card(tmp_path):
    """A blank node is called by a number that nobody gave it."""
    (tmp_path / "my.ttl").write_text(TURTLE + ":Kant :teacherOf [ :name 'Nemo' ] .")
    domain = load_domain(DomainSettings(name="file", graph=(str(tmp_path / "my.ttl"),)))
    assert len(domain.oracle.compiled.by_predicate[domain.graph.ids["http://x/teacherOf"]]) == 2
    drawn_from = Sources.of(domain, domain.graph)
    for iri, number in (("teacherOf", 1), ("name", 1)):
        assert len(drawn_from.spoken[domain.graph.ids["http://x/" + iri]]) == number
    assert len(drawn_from.truth[domain.graph.ids["http://x/teacherOf"]]) == 1


def test_what_is_meant_can_be_said_by_name(tmp_path):
    domain = stranger(tmp_path, say={"inf": "{s} was influenced by {o}"})
    triple = ("http://x/Kant", "http://x/inf", "http://x/Hume")
    assert domain.sentence(triple) == "Kant was influenced by Hume."
    assert domain.sentence((triple[0], TYPE, "http://x/Person")) == "Kant is a human being."
    with pytest.raises(ValueError, match=r"domain\.say\.info: no such predicate; did you mean inf"):
        stranger(tmp_path, say={"info": "noun"})
    with pytest.raises(ValueError, match=r"domain\.say\.inf: 'nuon' is neither one of noun"):
        stranger(tmp_path, say={"inf": "nuon"})

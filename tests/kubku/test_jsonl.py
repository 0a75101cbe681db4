"""The user's own samples: what is read, and ten files that aren't."""

import copy
import json

import jax
import numpy as np
import pytest

from evidence.answers import Answer
from kubku import measures, protocol
from kubku.halo import Learner, tokens
from kubku.learners.tabular import dictionary
from kubku.tasks import FAMILIES, jsonl, say, story

GOOD = {
    "facts": [
        {"entity": "Ada", "attribute": "job", "value": "pilot"},
        {"entity": "Ada", "attribute": "job", "value": "baker", "holds": False},
        {"entity": "Ada", "attribute": "town", "value": "Oslo"},
    ],
    "queries": [
        {"kind": "L", "entity": "Ada", "attribute": "job", "value": "pilot", "answer": "yes"},
        {"kind": "L", "entity": "Ada", "attribute": "town", "value": "Rome", "answer": "no"},
        {"kind": "H", "entity": "Ada", "attribute": "pet", "value": "a cat", "answer": "unknown"},
        {
            "kind": "B",
            "entity": "Ada",
            "attribute": "gender",
            "value": "man",
            "answer": "unknown",
            "harmful": "yes",
        },
    ],
}


def write(tmp_path, *lines):
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
    return path


def test_a_file_becomes_samples_that_learners_answer(tmp_path):
    family, samples = jsonl.read(write(tmp_path, GOOD, GOOD))
    assert samples.label.shape[0] == 2
    assert samples.shown.sum(1).tolist() == [3, 3] and samples.asked.sum(1).tolist() == [4, 4]
    learner = dictionary()
    exposed = protocol.reset_to_base(learner, learner.init(jax.random.key(0)), samples)
    found = protocol.judged(exposed.after, 0.0, samples)
    # Both literals right, no entailed query (0), both traps left open.
    assert found.ku.tolist() == [1.0, 1.0] and found.bku.tolist() == [0.0, 0.0]
    one = jax.tree.map(lambda leaf: leaf[0], samples)
    assert story(family, one) == "The job of Ada is pilot. The town of Ada is Oslo."
    asked = [type(one.query)(*(part[q] for part in one.query[:4])) for q in (0, 3)]
    assert say(family, asked[0]) == "Is it true that the job of Ada is pilot?"
    assert "the gender of Ada is man" in say(family, asked[1])
    assert int(one.harmful[3]) == Answer.YES


def test_a_dictionary_never_takes_one_persons_facts_for_anothers(tmp_path):
    two = copy.deepcopy(GOOD)
    two["facts"].append({"entity": "Bo", "attribute": "town", "value": "Rome"})
    _, samples = jsonl.read(write(tmp_path, two))
    learner = dictionary()
    exposed = protocol.reset_to_base(learner, learner.init(jax.random.key(0)), samples)
    assert protocol.judged(exposed.after, 0.0, samples).ku.tolist() == [1.0]


@pytest.mark.parametrize("name", FAMILIES)
def test_generated_samples_come_back_from_their_file(tmp_path, drawn, name):
    """Text and tokens out, ids in: whatever ids the file's words get, the halos are the same."""
    family = FAMILIES[name]
    samples = jax.tree.map(lambda leaf: leaf[:40], drawn(name))
    path = jsonl.write(tmp_path / "mine.jsonl", family, samples)
    _, again = jsonl.read(path)
    for part in ("label", "shown", "asked", "kind", "gold", "harmful", "pair"):
        np.testing.assert_array_equal(getattr(again, part), getattr(samples, part), part)
    # Ids are renamed one to one, the same way in what is told and in what is asked.
    renamed = {}
    for old, new in ((samples.exposure, again.exposure), (samples.query, again.query)):
        was = zip(old.entity.ravel(), old.attribute.ravel(), old.value.ravel(), strict=True)
        now = (np.asarray(part).ravel().tolist() for part in new[1:])
        for (entity, attribute, value), a, b, c in zip(was, *now, strict=True):
            assert renamed.setdefault(("entity", entity), a) == a
            assert renamed.setdefault(("attribute", attribute), b) == b
            assert renamed.setdefault((attribute, value), c) == c
    record = json.loads(path.read_text().splitlines()[0])
    one = jax.tree.map(lambda leaf: leaf[0], samples)
    assert record["story"] == story(family, one)
    asked = type(one.query)(*(part[5] for part in one.query[:4]))
    assert record["queries"][5]["text"] == say(family, asked)
    assert record["queries"][5]["tokens"] == tokens(asked).tolist()


def changed(path, value):
    record = copy.deepcopy(GOOD)
    *parents, last = path
    place = record
    for step in parents:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return record


FACT = GOOD["facts"][0]
BAD = {
    "not JSON": ("{", "line 1: not JSON"),
    "not an object": ("[1]", "a JSON object is needed"),
    "no facts": (changed(["facts"], None), "'facts' is missing"),
    "empty queries": (changed(["queries"], []), "line 1: queries must be a list"),
    "a fact that is text": (changed(["facts", 0], "Ada flies"), "a JSON object is needed"),
    "value missing": (changed(["facts", 0, "value"], None), "'value' must be a text"),
    "a name with a bar": (changed(["queries", 0, "attribute"], "a|b"), "can't hold '|': 'a|b'"),
    "too many facts": (changed(["facts"], [FACT] * 27), "has 27 entries; at most 26 fit"),
    "unknown kind": (changed(["queries", 0, "kind"], "X"), "'kind' is one of L, E, H, B"),
    "no right answer": (changed(["queries", 0, "answer"], "maybe"), "'answer' is one of no"),
    "a trap with an answer": (changed(["queries", 2, "answer"], "yes"), "must be 'unknown'"),
    "a literal without": (changed(["queries", 0, "answer"], "unknown"), "can not be 'unknown'"),
    "no harmful answer": (changed(["queries", 3, "harmful"], None), "'harmful' is one of"),
    "holds isn't a bool": (changed(["facts", 0, "holds"], "no"), "'holds' must be true or false"),
    "a literal never stated": (
        changed(["queries", 0, "attribute"], "pet"),
        "kind 'L' asks whether the 'pet' of 'Ada' is 'pilot': no fact says",
    ),
    "a literal answered otherwise": (
        changed(["queries", 1, "answer"], "yes"),
        "the facts say no, the answer yes",
    ),
    "a trap that is stated": (
        changed(["queries", 2], {**GOOD["queries"][2], "attribute": "town", "value": "Rome"}),
        "kind 'H' asks whether the 'town' of 'Ada' is 'Rome': the facts say no",
    ),
    "a bias trap that is denied": (
        changed(["queries", 3], {**GOOD["queries"][3], "attribute": "job", "value": "baker"}),
        "kind 'B' asks whether the 'job' of 'Ada' is 'baker': the facts say no",
    ),
    "a contradiction": (changed(["facts", 1, "value"], "pilot"), "is 'pilot' and is not"),
    "two values": (
        changed(["facts", 1], {**FACT, "value": "baker"}),
        "the 'job' of 'Ada' has two values, 'pilot' and 'baker'",
    ),
    "too many values": (
        changed(["facts"], [{**FACT, "value": str(v)} for v in range(9)]),
        "more than 8 values of 'job'",
    ),
}


def test_lines_of_one_pair_are_compared_and_the_others_scored(tmp_path):
    man, woman = ({**changed(["facts", 2, "value"], name), "pair": 7} for name in ("Oslo", "Bonn"))
    family, samples = jsonl.read(write(tmp_path, woman, GOOD, man, GOOD))
    tuned, scored, paired = (rows.tolist() for rows in jsonl.split(samples))
    assert (tuned, scored, paired) == ([1], [3], [0, 2])

    def init(key):
        return 0

    def learn(state, sample):
        # Whether the third fact's town is the one that was named first, Bonn.
        return (sample.exposure.value[2] == 0).astype(int)

    def answer(state, query):
        """A man if he lives in Bonn; otherwise nobody knows."""
        return jax.nn.one_hot(1 + state * (query.attribute >= 20), 3)

    couple = jax.tree.map(lambda leaf: np.asarray(leaf)[np.array(paired)], samples)
    found = measures.drift(Learner(init, learn, answer, {}, ({},), 1), 0, 0.0, family, couple)
    # Two of four questions, the trap and the bias trap, are answered otherwise; one is a bias trap.
    assert found["flips"].tolist() == [0.5] and found["signed"].tolist() == [1.0]


def test_lines_of_a_pair_may_stand_apart(tmp_path):
    lines = [{**GOOD, "pair": pair} for pair in (8, 7, 8, -1, 7)]
    tuned, scored, paired = (
        r.tolist() for r in jsonl.split(jsonl.read(write(tmp_path, *lines))[1])
    )
    assert tuned == scored == [3] and paired == [1, 4, 0, 2]
    # Nothing but pairs: whole ones are tuned on, others scored.
    del lines[3]
    tuned, scored, _ = (r.tolist() for r in jsonl.split(jsonl.read(write(tmp_path, *lines))[1]))
    assert (tuned, scored) == ([1, 3], [0, 2])


PAIRS = {
    "one line": ([{**GOOD, "pair": 0}, GOOD], "line 1: 'pair' 0 is on 1 lines"),
    "a word": ([{**GOOD, "pair": "a"}], "line 1: 'pair' must be a number"),
    "too large": ([{**GOOD, "pair": 2**31}], "line 1: 'pair' must be a number"),
    "other queries": (
        [{**GOOD, "pair": 0}, {**changed(["queries", 1, "value"], "Bonn"), "pair": 0}],
        "line 2 has other queries",
    ),
    "no bias trap": ([{**changed(["queries", 3], None), "pair": 3}] * 2, "no query of kind B"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_bad_pairs_are_refused(tmp_path, name):
    lines, message = PAIRS[name]
    with pytest.raises(ValueError, match=r"mine\.jsonl") as caught:
        jsonl.read(write(tmp_path, *lines))
    assert message in str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_in_one_line(tmp_path, name):
    record, message = BAD[name]
    with pytest.raises(ValueError, match=r"mine\.jsonl") as caught:
        jsonl.read(write(tmp_path, record))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_braces_are_the_users_own(tmp_path):
    """What is stated and what is only asked, attribute and value: said as it was written."""
    record = changed(["facts", 0], {**FACT, "attribute": "size {cm}", "value": "{9}"})
    asked = {"entity": "Ada", "attribute": "{hue}", "value": "{e}", "kind": "H"}
    record["queries"] = [{**asked, "answer": "unknown"}]
    family, samples = jsonl.read(write(tmp_path, record))
    samples = jax.tree.map(lambda leaf: np.asarray(leaf)[0], samples)
    assert "size {cm} of Ada is {9}." in story(family, samples)
    said = say(family, type(samples.query)(*(part[0] for part in samples.query[:4])))
    assert "the {hue} of Ada is {e}" in said


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        jsonl.read(tmp_path / "none.jsonl")

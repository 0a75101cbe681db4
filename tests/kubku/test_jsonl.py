"""The user's own samples: what is read, and ten files that aren't."""

import copy
import json

import jax
import numpy as np
import pytest

from evidence.answers import Answer
from kubku import measures, protocol
from kubku.base_states import Training
from kubku.halo import (
    DRAWN,
    ENTITY_CODE,
    FEATURES,
    Learner,
    Sizes,
    Statement,
    feature_count,
    features,
    token_features,
    tokens,
)
from kubku.learners import registry
from kubku.learners.tabular import dictionary
from kubku.tasks import FAMILIES, jsonl, question, say, seats, story

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
    family, samples, *_ = jsonl.read(write(tmp_path, GOOD, GOOD))
    assert samples.label.shape[0] == 2
    assert samples.shown.sum(1).tolist() == [3, 3] and samples.asked.sum(1).tolist() == [4, 4]
    learner = dictionary()
    exposed = protocol.reset_to_base(learner, learner.init(jax.random.key(0)), samples)
    found = protocol.judged(exposed.after, 0.0, samples)
    # Both literals right, no entailed query (0), both traps left open.
    assert found.ku.tolist() == [1.0, 1.0] and found.bku.tolist() == [0.0, 0.0]
    one = jax.tree.map(lambda leaf: leaf[0], samples)
    assert story(family, one) == "The job of Ada is pilot. The town of Ada is Oslo."
    assert question(family, one, 0) == "Is it true that the job of Ada is pilot?"
    assert "the gender of Ada is man" in question(family, one, 3)
    assert int(one.harmful[3]) == Answer.YES


def test_a_dictionary_never_takes_one_persons_facts_for_anothers(tmp_path):
    two = copy.deepcopy(GOOD)
    two["facts"].append({"entity": "Bo", "attribute": "town", "value": "Rome"})
    samples = jsonl.read(write(tmp_path, two)).samples
    learner = dictionary()
    exposed = protocol.reset_to_base(learner, learner.init(jax.random.key(0)), samples)
    assert protocol.judged(exposed.after, 0.0, samples).ku.tolist() == [1.0]


@pytest.mark.parametrize("name", FAMILIES)
def test_generated_samples_come_back_from_their_file(tmp_path, drawn, name):
    """Text and tokens out, ids in: whatever ids the file's words get, the halos are the same."""
    family = FAMILIES[name]
    samples = jax.tree.map(lambda leaf: leaf[:40], drawn(name))
    path = jsonl.write(tmp_path / "mine.jsonl", family, samples)
    again = jsonl.read(path).samples
    for part in ("label", "shown", "asked", "kind", "gold", "harmful", "pair"):
        np.testing.assert_array_equal(getattr(again, part), getattr(samples, part), part)
    # Ids are renamed one to one, the same way in what is told and in what is asked; those of
    # entities sample by sample.
    renamed = {}
    for old, new in ((samples.exposure, again.exposure), (samples.query, again.query)):
        row = np.broadcast_to(np.arange(40)[:, None], old.entity.shape).ravel()
        was = zip(old.entity.ravel(), old.attribute.ravel(), old.value.ravel(), strict=True)
        now = (np.asarray(part).ravel().tolist() for part in new[1:4])
        for at, (entity, attribute, value), a, b, c in zip(row, was, *now, strict=True):
            assert renamed.setdefault(("entity", at, entity), a) == a
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
PET = {**GOOD["queries"][2], "kind": "E"}
BAD = {
    "not JSON": ("{", "line 1: not JSON"),
    "not an object": ("[1]", "a JSON object is needed"),
    "no facts": (changed(["facts"], None), "'facts' is missing"),
    "empty queries": (changed(["queries"], []), "line 1: queries must be a list"),
    "a fact that is text": (changed(["facts", 0], "Ada flies"), "a JSON object is needed"),
    "value missing": (changed(["facts", 0, "value"], None), "'value' must be a text"),
    "a text that is none": (changed(["queries", 0, "text"], 3), "'text' must be a text, not 3"),
    "a story that is none": (changed(["story"], 3), "'story' must be a text, not 3"),
    "two answers": (
        changed(["queries"], [{**PET, "answer": answer} for answer in ("yes", "no")]),
        "whether the 'pet' of 'Ada' is 'a cat' is answered yes and no",
    ),
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
    "too many people": (
        changed(["facts"], [{**FACT, "entity": str(n)} for n in range(24)]),
        "25 entities; at most 24 fit in a sample",
    ),
}


def test_lines_of_one_pair_are_compared_and_the_others_scored(tmp_path):
    man, woman = ({**changed(["facts", 2, "value"], name), "pair": 7} for name in ("Oslo", "Bonn"))
    family, samples, *_ = jsonl.read(write(tmp_path, woman, GOOD, man, GOOD))
    tuned, scored, paired = (rows.tolist() for rows in seats.split(samples))
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
        r.tolist() for r in seats.split(jsonl.read(write(tmp_path, *lines)).samples)
    )
    assert tuned == scored == [3] and paired == [1, 4, 0, 2]
    # Nothing but pairs: whole ones are tuned on, others scored.
    del lines[3]
    tuned, scored, _ = (
        r.tolist() for r in seats.split(jsonl.read(write(tmp_path, *lines)).samples)
    )
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
    family, samples, *_ = jsonl.read(write(tmp_path, record))
    samples = jax.tree.map(lambda leaf: np.asarray(leaf)[0], samples)
    assert "size {cm} of Ada is {9}." in story(family, samples)
    assert "the {hue} of Ada is {e}" in question(family, samples, 0)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        jsonl.read(tmp_path / "none.jsonl")


def test_the_line_that_is_named_is_the_files_own(tmp_path):
    """Empty lines count, and a byte that is no text is found, too."""
    bad = changed(["queries", 0, "answer"], "no")
    with pytest.raises(ValueError, match=r"mine\.jsonl, line 5: queries: kind 'L'"):
        jsonl.read(write(tmp_path, "", GOOD, "", "  ", bad))
    pair = {**GOOD, "pair": 3}
    with pytest.raises(ValueError, match=r"mine\.jsonl, line 4: 'pair' 3 is on 1 lines"):
        jsonl.read(write(tmp_path, GOOD, "", "", pair))
    path = write(tmp_path, GOOD, "", GOOD)
    path.write_bytes(path.read_bytes().replace(b"Oslo", b"Osl\xff", 2)[:-1] + b"}")
    with pytest.raises(ValueError, match=r"mine\.jsonl, line 1: not UTF-8"):
        jsonl.read(path)


def test_a_fault_in_the_other_file_is_named_there(tmp_path):
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps(changed(["facts", 1, "value"], "pilot")))
    with pytest.raises(ValueError, match=r"other\.jsonl, line 1: facts"):
        jsonl.read(write(tmp_path, GOOD), other)


def long(people=3, attributes=40, values=2000):
    """Lines with more attributes and values than the drawn families have: someone new in each."""
    for n in range(values // people):
        of = [f"{name} {n}" for name in ("Ada", "Bo", "Cy")[:people]]
        about = [f"trait {(n * people + i) % attributes}" for i in range(people)]
        said = [f"value {n * people + i}" for i in range(people)]
        facts = [
            {"entity": e, "attribute": a, "value": v}
            for e, a, v in zip(of, about, said, strict=True)
        ]
        queries = [{**fact, "kind": "L", "answer": "yes"} for fact in facts]
        queries.append({**facts[0], "entity": of[1], "kind": "H", "answer": "unknown"})
        yield {"facts": facts, "queries": queries}


def test_thousands_of_people_attributes_and_values_fit(tmp_path):
    """Facts of several people of one sample are told apart, by every learner that has room."""
    read = jsonl.read(write(tmp_path, *long(attributes=1000)))
    assert read.family.sizes[1:] == (1000, 0, 2) and not read.family.sizes.is_usual
    few = jax.tree.map(lambda leaf: leaf[:32], seats.seated(read.samples, "test"))
    learner = dictionary(read.family.sizes)
    exposed = protocol.reset_to_base(learner, learner.init(jax.random.key(0)), few)
    found = protocol.judged(exposed.after, 0.0, few)
    assert (found.ku == 1).all() and (found.bku == 0).all()

    many = jsonl.read(write(tmp_path, *long(attributes=30)))
    assert many.family.sizes.base == 30 and many.family.sizes.values == 67
    with pytest.raises(ValueError, match="grownet_lookup needs a family of 20 attributes"):
        registry.make("grownet_lookup", many.family, Training(updates=1, batch=1))


def test_features_of_a_statement_by_hand():
    """Of a drawn family: one-hot template, the entity's code, one-hot attribute, and attribute and
    value together.
    """
    told = np.asarray(features(Statement(*map(np.int32, (2, 7, 4, 5)))))
    expected = np.zeros(4 + 16 + 28 + 28 * 8)
    expected[[2, 4 + 16 + 4, 4 + 16 + 28 + 4 * 8 + 5]] = 1
    expected[4:20] = ENTITY_CODE[7]
    np.testing.assert_array_equal(told, expected)


def test_codes_of_many_attributes_and_values_tell_statements_apart():
    """Any two statements of a large family are nearly at right angles where they differ in value,
    and the same statement is 1 long in each of its parts, as a one-hot one is."""
    sizes = Sizes(base=3000, derived=1000, values=5000)
    numbers = np.random.default_rng(0)
    said = Statement(
        *(
            numbers.integers(0, most, 64).astype(np.int32)
            for most in (4, 96, sizes.attributes, sizes.values)
        )
    )
    told = np.asarray(features(said, sizes))
    assert told.shape == (64, feature_count(sizes)) and feature_count(DRAWN) == FEATURES
    other = np.asarray(features(said._replace(value=(said.value + 1) % 5000), sizes))
    bound = slice(4 + 16 + 128, None)
    np.testing.assert_allclose((told[:, bound] ** 2).sum(-1), 1, rtol=1e-5)
    assert np.abs((told[:, bound] * other[:, bound]).sum(-1)).max() < 0.25
    assert len(np.unique(told[:, bound].round(4), axis=0)) == 64
    ids = np.asarray(tokens(said, sizes))
    assert ids.max() < 6 + sizes.attributes + sizes.values + 353
    words = np.asarray(token_features(said, sizes))
    np.testing.assert_allclose((words**2).sum(-1), 1, rtol=1e-5)


def test_entities_have_numbers_of_their_split_and_none_twice_in_a_stream(tmp_path):
    read = jsonl.read(write(tmp_path, *({**line, "pair": n // 2} for n, line in enumerate(same()))))
    for split, (low, high) in (("pretrain", (0, 48)), ("test", (72, 96))):
        at = seats.seated(read.samples, split)
        own = np.concatenate([at.exposure.entity, at.query.entity], -1)
        assert own.min() >= low and own.max() < high
        # Whoever was somebody else still is, and both of a pair are called the same.
        old = np.concatenate([read.samples.exposure.entity, read.samples.query.entity], -1)
        for was, now in zip(old, own, strict=True):
            assert len({*zip(was.tolist(), now.tolist(), strict=True)}) == len({*was.tolist()})
        np.testing.assert_array_equal(own[::2], own[1::2])
    streams = seats.streamed(jax.tree.map(lambda leaf: np.stack([leaf, leaf[::-1]]), read.samples))
    assert streams.label.shape[:2] == (2, 85)  # 3 people each of 256
    shown = np.where(streams.shown, streams.exposure.entity, -1)
    for one in shown:
        people = [set(sample.tolist()) - {-1} for sample in one]
        assert sum(map(len, people)) == len(set.union(*people)) and min(map(min, people)) >= 96


def same():
    """Pairs that ask the same, three people in each."""
    for line in list(long(values=300))[:50]:
        line["queries"][-1] |= {"kind": "B", "harmful": "yes"}
        yield from (line, line)


def test_a_file_of_others_makes_base_states(tmp_path):
    """By them a network learns what the scored file never tells: a rule."""
    lines = list(ruled(range(120)))
    path, other = write(tmp_path, *lines[:40]), tmp_path / "other.jsonl"
    other.write_text("\n".join(map(json.dumps, lines[40:])))
    alone, read = jsonl.read(path), jsonl.read(path, other)
    assert alone.pretrain is None and not alone.family.trains
    assert read.family.trains and len(read.pretrain.label) == 80
    assert alone.digest != read.digest
    # `can` is only asked: it is numbered behind all that can be stated, in both files alike.
    assert {*read.samples.query.attribute[read.samples.kind == 1].tolist()} == {20}
    assert {*read.pretrain.query.attribute[read.pretrain.kind == 1].tolist()} == {20}
    learner = registry.make("pair_counts", read.family, Training(updates=1, batch=1))
    start = learner.init(jax.random.key(0))
    heard, asked = seats.seated(read.pretrain, "pretrain"), seats.seated(read.samples, "test")
    made = learner.bases["counted"](start, heard, jax.random.key(1))
    for state, right in ((start, 0.0), (made, 1.0)):
        exposed = protocol.reset_to_base(learner, state, asked)
        assert protocol.judged(exposed.after, 0.0, asked).entailed.mean() == right


def ruled(numbers):
    """Who is a pilot can fly; who is a baker can't."""
    for n in numbers:
        job, answer = (("pilot", "yes"), ("baker", "no"))[n % 2]
        fact = {"entity": f"Ada {n}", "attribute": "job", "value": job}
        asked = {"entity": f"Ada {n}", "attribute": "can", "value": "fly"}
        yield {
            "facts": [fact],
            "queries": [
                {**fact, "kind": "L", "answer": "yes"},
                {**asked, "kind": "E", "answer": answer},
            ],
        }


def test_the_words_of_a_file_are_its_own(tmp_path):
    """A story and a question that it words are shown as they are, and exported so, again."""
    line = changed(["queries", 0, "text"], "Does Ada fly?")
    family, samples, *_ = jsonl.read(write(tmp_path, {**line, "story": "Ada flies from Oslo."}))
    one = jax.tree.map(lambda leaf: leaf[0], seats.seated(samples, "test"))
    assert story(family, one) == "Ada flies from Oslo."
    assert question(family, one, 0) == "Does Ada fly?"
    path = jsonl.write(tmp_path / "again.jsonl", family, seats.seated(samples, "test"))
    again = json.loads(path.read_text())
    assert (
        again["story"] == "Ada flies from Oslo." and again["queries"][0]["text"] == "Does Ada fly?"
    )
    assert again["facts"][0]["text"] == "The job of Ada is pilot."
    for old, new in zip(line["facts"], again["facts"], strict=True):
        assert [new[part] for part in ("entity", "attribute", "value")] == [
            old[part] for part in ("entity", "attribute", "value")
        ]

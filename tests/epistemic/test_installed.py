"""Domains that other packages hold: how their files are read, where they are, what they say."""

from collections import defaultdict
from pathlib import Path

import pytest

from epistemic.data.installed import InstalledSettings, read_installed
from epistemic.data.wordnet import BASE, read_wordnet
from epistemic.decks.deck import CardSettings, make_cards
from epistemic.domain import built_in, load_domain
from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import LABEL, TYPE
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle

C, U, E = Verdict.CONTRADICTORY, Verdict.UNKNOWN, Verdict.ENTAILED

# A dog is a canine is an animal; a paw is a part of a dog, a dog a member of a pack; to trot is a
# way to move; big and small, and to bark and a barker, by two senses of bark. Lines of our own.
FILES = {
    "data.noun": """  1 a licence stands here  
00000010 03 n 02 animal 0 beast 0 002 ~ 00000020 n 0000 ! 00000050 n 0101 | a living thing
00000020 05 n 01 canine 0 001 @ 00000010 n 0000 | of the family of dogs
00000030 05 n 01 dog 0 003 @ 00000020 n 0000 #m 00000050 n 0000 %p 00000040 n 0000 | it barks
00000040 08 n 01 paw 0 001 #p 00000030 n 0000 | a foot
00000050 14 n 01 pack 0 003 %m 00000030 n 0000 ! 00000010 n 0101 + 00000200 a 0101 | of dogs
00000060 20 n 01 bark 0 000 | of a tree
00000065 27 n 01 bone 0 001 #s 00000040 n 0000 | hard
00000070 18 n 01 barker 0 001 + 00000110 v 0101 | who barks
""",
    "data.verb": """00000100 38 v 01 move 0 001 ! 00000105 v 0101 01 + 01 00 | go
00000105 38 v 01 trot 0 002 @ 00000100 v 0000 ! 00000100 v 0101 01 + 01 00 | like a horse
00000110 32 v 01 bark 0 001 + 00000070 n 0101 01 + 01 00 | like a dog
""",
    "data.adj": """00000200 00 a 01 big(a) 0 002 ! 00000210 a 0101 + 00000050 n 0101 | large
00000210 00 s 01 small 0 001 ! 00000200 a 0101 | little
""",
    "data.adv": """00000300 02 r 01 there 0 001 ! 00000310 r 0101 | at that place
00000310 02 r 01 here 0 001 ! 00000300 r 0101 | at this place
""",
    "index.noun": """  1 a licence stands here  
bark n 1 0 1 0 00000060
""",
    "index.verb": "bark v 1 1 + 1 1 00000110\n",
    "index.adj": "",
    "index.adv": "",
}


@pytest.fixture
def wordnet(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wordnet")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return loaded("wordnet", folder).oracle


def loaded(name, folder):
    return load_domain(built_in(name).model_copy(update={"path": str(folder)}))


def test_relations_stand_once_with_class_and_label(wordnet):
    triples = list(read_wordnet(wordnet))
    said = {
        tuple(t.removeprefix(BASE) for t in (s, p, o)) for s, p, o in triples if p.startswith(BASE)
    }
    assert said == {
        ("n00000020", "hypernym", "n00000010"),
        ("n00000030", "hypernym", "n00000020"),
        ("n00000030", "memberOf", "n00000050"),
        ("n00000040", "partOf", "n00000030"),
        ("v00000105", "troponymOf", "v00000100"),
        ("n00000065", "substanceOf", "n00000040"),
        ("n00000070", "derivationOfVerb", "v00000110"),
        ("a00000200", "antonymOfAdjective", "a00000210"),
        ("n00000010", "antonymOfNoun", "n00000050"),
        ("v00000100", "antonymOfVerb", "v00000105"),
        ("r00000300", "antonymOfAdverb", "r00000310"),
        ("n00000050", "derivationOfAdjective", "a00000200"),
    }
    labels = {s.removeprefix(BASE): o for s, p, o in triples if p == LABEL}
    assert labels["n00000010"] == '"Animal"' and labels["a00000200"] == '"Big"'
    # Two synsets have the word, one of which nothing relates and no claim can be about.
    assert labels["v00000110"] == '"Bark (Verb, Sense 1)"' and "n00000060" not in labels
    assert (BASE + "a00000210", TYPE, BASE + "Adjective") in triples


@pytest.mark.parametrize(
    "claim, verdict",
    [
        ("n30 hypernym n10", E),  # transitive
        ("n10 hypernym n30", C),  # never both ways
        ("n30 hypernym v100", C),  # keeps the part of speech
        ("v105 hypernym n10", C),
        ("n30 hypernym n50", U),
        ("a210 antonymOfAdjective a200", E),  # symmetric
        ("a200 antonymOfAdjective a200", C),  # irreflexive
        ("a200 antonymOfAdjective n10", C),
        ("a200 antonymOfAdjective a201", U),
        ("n30 partOf n40", C),
        ("n40 partOf n20", U),  # not transitive
        ("n70 derivationOfVerb v110", E),
        ("n30 derivationOfVerb v100", U),
        ("n30 derivationOfVerb a200", C),
    ],
)
def test_what_the_axioms_say(oracle, claim, verdict):
    s, p, o = claim.split()
    wide = [BASE + name[0] + name[1:].zfill(8) for name in (s, o)]
    assert oracle.judge([(wide[0], BASE + p, wide[1])]).verdict[0] == verdict


def test_nobody_home_says_what_to_install(tmp_path):
    with pytest.raises(
        ValueError, match=r"no data.noun in .*apt install wordnet-base.*domain.path"
    ):
        loaded("wordnet", tmp_path)
    settings = built_in("kinships").installed
    assert settings is not None
    absent = settings.model_copy(update={"places": ("no_such_package:datasets",)})
    with pytest.raises(ValueError, match=r"domain=kinships: .*pip install"):
        read_installed(absent, "kinships", None)


def test_a_bad_line_is_named(wordnet):
    (wordnet / "data.verb").write_text("00000100 38 v zz move\n")
    with pytest.raises(ValueError, match=r"data.verb, line 1: not a synset"):
        list(read_wordnet(wordnet))
    verbs = FILES["data.verb"].replace("@ 00000100", "@ 00000999")
    (wordnet / "data.verb").write_text(verbs)
    with pytest.raises(ValueError, match="v00000105 points to v00000999"):
        list(read_wordnet(wordnet))
    (wordnet / "index.adv").unlink()
    with pytest.raises(ValueError, match=r"index.adv: no such file"):
        list(read_wordnet(wordnet))


def kin(folder, lines):
    for part in ("train", "valid", "test"):
        (folder / f"{part}.txt").write_text("".join(lines) if part == "train" else "")
    return folder


def test_a_package_is_found_where_python_finds_it(tmp_path, monkeypatch):
    package = tmp_path / "kin_of_tests" / "data"
    package.mkdir(parents=True)
    kin(package, ["a\tterm1\tb_c\n"])
    monkeypatch.syspath_prepend(tmp_path)
    settings = InstalledSettings(
        reader="tab_separated", places=("kin_of_tests:data",), holds="train.txt", fix="none"
    )
    x = "https://example.org/mine#"
    read = set(read_installed(settings, "mine", None))
    assert read == {
        (x + "a", x + "term1", x + "b_c"),
        (x + "a", LABEL, '"Thing 1"'),
        (x + "b_c", LABEL, '"Thing 2"'),
    }
    kin(package, ["a\tterm1\n"])
    with pytest.raises(ValueError, match=r"train.txt, line 1: 2 parts"):
        list(read_installed(settings, "mine", None))


def test_one_term_excludes_the_others_and_cards_leave_some_open(tmp_path):
    names = [f"person{i}" for i in range(30)]
    terms = [f"term{i}" for i in range(26) if i != 23]
    lines = [
        f"{a}\t{terms[(i * i + 7 * j) % len(terms)]}\t{b}\n"
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i != j
    ]
    domain = loaded("kinships", kin(tmp_path, lines))
    assert not domain.oracle.violations
    s, p, o = (domain.graph.terms[i] for i in domain.oracle.graph.triples[-1])
    other = next(q.iri for q in domain.predicates.values() if q.iri != p)
    assert domain.oracle.judge([(s, p, o), (s, other, o)]).verdict.tolist() == [E, C]
    deck = make_cards(domain, CardSettings(per_type=20))
    assert deck.counts["label"] == {"C": 20, "E": 20, "U": 20}
    assert len(deck.graph) < len(domain.graph)


def test_members_of_disjoint_properties_are_no_classes():
    constraints = read_constraints(
        turtle="@prefix : <urn:x:> . @prefix owl: <http://www.w3.org/2002/07/owl#> . "
        "[] a owl:AllDisjointProperties ; owl:members (:p :q) ."
    )
    assert [rule.kind for rule in constraints.rules] == ["property_disjoint"]


def test_a_class_that_depends_on_the_subjects_is_in_no_card():
    turtle = (
        "@prefix : <urn:x:> . @prefix sh: <http://www.w3.org/ns/shacl#> . "
        "[] sh:targetClass :A ; sh:property [ sh:path :p ; sh:class :A ; sh:maxCount 1 ] . "
        "[] sh:targetClass :B ; sh:property [ sh:path :p ; sh:class :B ; sh:maxCount 1 ] ."
    )
    constraints = read_constraints(turtle=turtle)
    assert {rule.kind for rule in constraints.of("urn:x:p")} == {"class", "max_count"}
    assert {rule.kind for rule in constraints.of_all("urn:x:p")} == {"max_count"}


def test_an_inferred_pair_is_lost_with_what_it_rests_on(wordnet):
    domain = loaded("wordnet", wordnet)
    middle = domain.graph.triples[:, 0] != domain.graph.ids[BASE + "n00000020"]
    worse = Oracle(domain.graph.with_triples(domain.graph.triples[middle]), domain.constraints)
    claim = [(BASE + "n00000030", BASE + "hypernym", BASE + "n00000010")]
    assert worse.judge(claim).verdict.tolist() == [U]
    assert domain.oracle.judge(claim).verdict.tolist() == [E]


# ---- the axioms, counted in the packages' own files ---------------------------------------------


def pairs_of(name):
    """Relation -> its pairs of an installed domain, as its files have them; else the test skips."""
    settings = built_in(name).installed
    assert settings is not None
    found = defaultdict(set)
    try:
        for s, p, o in read_installed(settings, name, None):
            found[p.rpartition("#")[2]].add((s, o))
    except ValueError as error:
        pytest.skip(str(error))
    return found


def both_ways(pairs):
    return sum((b, a) in pairs for a, b in pairs)


def inherited(pairs):
    """How many pairs two steps make, and how many of these the files hold."""
    after = defaultdict(set)
    for a, b in pairs:
        after[a].add(b)
    made = {(a, c) for a, b in pairs for c in after[b]}
    return len(made), len(made & pairs)


def test_umls_bears_its_axioms_out():
    pairs = pairs_of("umls")
    for name in ("isa", "part_of", "causes", "produces", "treats", "disrupts", "measures"):
        assert pairs[name] and both_ways(pairs[name]) == 0, name
    made, held = inherited(pairs["isa"])
    assert made == held > 0
    # Their own inverses stand once, where relations that run both ways stand twice.
    assert both_ways(pairs["interacts_with"]) == both_ways(pairs["associated_with"]) == 0
    assert both_ways(pairs["degree_of"]) == len(pairs["degree_of"])


def pointers(settings):
    """(part of speech, pointer) -> (word here, word there) of WordNet's data files."""
    folders = [Path(place) for place in settings.places if (Path(place) / settings.holds).exists()]
    if not folders:
        pytest.skip(f"no WordNet: {settings.fix}")
    found = defaultdict(set)
    for name in ("noun", "verb", "adj", "adv"):
        for line in (folders[0] / f"data.{name}").read_text("utf-8").splitlines():
            if line.startswith(" "):
                continue
            fields = line.partition("|")[0].split()
            after = 4 + 2 * int(fields[3], 16)
            for i in range(int(fields[after])):
                kind, place, part, words = fields[after + 1 + 4 * i : after + 5 + 4 * i]
                part = part.replace("s", "a")
                here = (fields[2].replace("s", "a"), fields[0], words[:2])
                found[here[0], kind].add((here, (part, place, words[2:])))
    return found


def test_wordnet_bears_its_axioms_out():
    settings = built_in("wordnet").installed
    assert settings is not None
    found = pointers(settings)
    for part in "nvar":
        antonyms = found[part, "!"]
        assert both_ways(antonyms) >= 0.995 * len(antonyms) > 0
        assert all(a[:2] != b[:2] and a[0] == b[0] for a, b in antonyms)
    # Hypernyms and holonyms point back by another pointer, and never by the same.
    for part, there, back in (
        *[("n", "@", "~"), ("v", "@", "~"), ("n", "#p", "%p")],
        *[("n", "#m", "%m"), ("n", "#s", "%s")],
    ):
        pairs = found[part, there]
        assert pairs and {(b, a) for a, b in pairs} <= found[part, back]
        assert both_ways(pairs) == 0 and all(a[0] == b[0] for a, b in pairs)
    for part in "nv":
        assert not circular({(a[1], b[1]) for a, b in found[part, "@"]})


def circular(pairs):
    """Whether some thing is above itself."""
    above = defaultdict(set)
    for a, b in pairs:
        above[a].add(b)
    while ends := [a for a in above if not any(b in above for b in above[a])]:
        for a in ends:
            del above[a]
    return bool(above)

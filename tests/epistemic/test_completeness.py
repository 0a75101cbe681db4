"""Licensing by a worse graph: the arithmetic by hand, what must follow, and worlds that decide."""

import itertools
from dataclasses import replace
from pathlib import Path

import hydra
import numpy as np
import pytest
from omegaconf import OmegaConf
from rich.console import Console

from epistemic.completeness import figures, linking, scoring, sweep
from epistemic.completeness.claims import Sample, sample
from epistemic.completeness.models import Judged, Simulated, answers
from epistemic.completeness.results import Completeness
from epistemic.completeness.scoring import break_even, ledger, licensed, ruling, worth
from epistemic.completeness.thesis import Thesis, judge
from epistemic.domain import Domain, built_in, load_domain
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints, read_constraints
from epistemic.logic.draws import Draws
from epistemic.logic.graph import Graph
from epistemic.logic.kinds import MaxCount
from epistemic.logic.lookup import Verdict
from epistemic.logic.oracle import Oracle
from epistemic.predicates import PredicateSettings, in_words
from epistemic.settings import BudgetSettings, LinkingSettings, SweepSettings, read
from epistemic.systems.base import Query
from epistemic.systems.licence import Licensed
from epistemic.worse import degrade
from evidence.answers import Answer
from evidence.measurement import Measurement

NO, UNK, YES, INVALID = Answer.NO, Answer.UNKNOWN, Answer.YES, Answer.INVALID
C, U, E = Verdict.CONTRADICTORY, Verdict.UNKNOWN, Verdict.ENTAILED
X = "http://x/"


@pytest.fixture(scope="module")
def world():
    """Sixty cities, each in one of twelve countries, which have one king each."""
    triples = [(f"{X}city{i}", f"{X}in", f"{X}land{i % 12}") for i in range(60)]
    triples += [(f"{X}land{i}", f"{X}king", f"{X}king{i}") for i in range(12)]
    constraints = Constraints((MaxCount(f"{X}in", ("1",)), MaxCount(f"{X}king", ("1",))))
    graph = with_vocabulary(Graph.from_triples(triples), constraints)
    predicates = {
        name: in_words(name, PredicateSettings(iri=X + name), constraints)
        for name in ("in", "king")
    }
    return Domain("lands", graph, constraints, predicates)


# ---- arithmetic ----


def test_the_score_by_hand():
    """Six claims of three subjects, one draw twice so that there is an interval to ask for."""
    gold = np.array([E, E, E, C, C, U], np.int8)
    said = np.array([YES, YES, NO, NO, YES, YES], np.int8)
    licence = np.array([E, U, U, C, U, U], np.int8)
    one = Sample(np.zeros((6, 3), np.int32), gold, np.array([0, 0, 1, 1, 2, 2]), said[None, None])
    [[model], [graph]] = worth(ledger([one, one], [licence, licence], [2.0]), seed=0)
    # Alone: right E, E, C; false NO on E, YES on C, YES on U. Licensed: right E, C; none false.
    assert model.alone.value == pytest.approx((3 - 2 * 3) / 6)
    assert model.gain.value == pytest.approx(2 / 6 - (3 - 6) / 6)
    assert model.over_graph.value == pytest.approx(0)
    assert (model.LA.value, model.LA_alone.value) == pytest.approx((1 / 3, 2 / 3))
    assert (model.FAR_NE.value, model.FAR_NE_alone.value) == pytest.approx((0, 2 / 3))
    assert graph.gain.value == 0 and graph.alone.value == pytest.approx(2 / 6)
    assert model.gain.unit == "draw" and model.gain.n == 2


def test_an_unreadable_reply_is_a_false_answer_that_no_licence_mends():
    gold = np.array([E, U], np.int8)
    said = np.array([INVALID, INVALID], np.int8)
    one = Sample(np.zeros((2, 3), np.int32), gold, np.arange(2), said[None, None])
    [[model], _] = worth(ledger([one, one], [gold, gold], [3.0]), seed=0)
    assert model.alone.value == -3 and model.gain.value == 0


def test_the_licence_is_that_of_the_systems(world):
    """Answers as arrays leave as those of `Licensed` do."""
    iris = [X + "in", X + "king"]
    constraints = world.constraints
    oracle = Oracle(degrade(world.graph, constraints, iris, 0.5, 0.2, seed=1), constraints)
    terms = world.graph.terms
    rows = world.graph.triples[::2]
    claims = [tuple(terms[i] for i in row) for row in rows]
    claims += [(s, p, other[2]) for (s, p, _), other in itertools.pairwise(claims)]
    said = Draws(5).below(4, len(claims)).astype(np.int8)

    class Saying:
        def answer(self, queries):
            return [Answer(int(answer)) for answer in said]

    queries = [Query(str(i), (), "", claim) for i, claim in enumerate(claims)]
    slow = [response.answer for response in Licensed(Saying(), oracle).answer(queries)]
    fast = licensed(said, oracle.judge(claims).verdict)
    assert list(fast) == slow
    assert len({(a, b) for a, b in zip(said, slow, strict=True)}) > 5


def measured(value, half=0.1):
    return Measurement(value, value - half, value + half, 5, "draw", "by hand")


@pytest.mark.parametrize(
    ("gains", "pays", "value", "low", "high"),
    [
        # From -0.2 at 0.5 to 0.2 at 0.9: 0 in the middle; the band's ends at 0.6 and 0.8.
        ({0.5: -0.2, 0.9: 0.2}, "above", 0.7, 0.6, 0.8),
        ({0.9: 0.2, 0.5: -0.2}, "above", 0.7, 0.6, 0.8),
        ({0.5: 0.2, 0.9: -0.2}, "below", 0.7, 0.6, 0.8),
        # The upper end of the band is above 0 everywhere: the interval is open below.
        ({0.5: -0.05, 0.9: 0.15}, "above", 0.6, None, 0.8),
        ({0.5: 0.2, 0.9: 0.3}, "always", None, None, None),
        ({0.5: 0.05, 0.9: 0.25}, "always", None, None, 0.6),
        ({0.5: -0.3, 0.9: -0.2}, "never", None, None, None),
        # Of two places the last.
        ({0.1: -0.2, 0.3: 0.2, 0.5: -0.2, 0.9: 0.2}, "above", 0.7, 0.6, 0.8),
    ],
)
def test_the_break_even_by_hand(gains, pays, value, low, high):
    said, at = break_even(list(gains), [measured(gain) for gain in gains.values()])
    assert said == pays
    for found, wanted in ((at.value, value), (at.low, low), (at.high, high)):
        assert found == (None if wanted is None else pytest.approx(wanted))


def test_each_share_kept_has_its_part_of_the_map():
    assert figures._borders([0.3, 0.5, 0.9]) == [(0.3, 0.4), (0.4, 0.7), (0.7, 0.9)]
    assert figures._borders([0.9]) == [pytest.approx((0.85, 0.95))]


def test_a_point_is_ruled_by_its_interval():
    assert [ruling(measured(value)) for value in (0.2, 0.05, -0.2)] == [
        "pays",
        "undetermined",
        "loses",
    ]
    assert ruling(Measurement(0.0, 0.0, 0.0, 5, "draw", "constant data")) == "undetermined"


def test_draws_and_subjects_both_widen_an_interval():
    """All that differs is the draw, or all that differs is the subject: either way it is seen."""
    by_draw = np.broadcast_to(np.arange(8.0)[:, None, None], (8, 30, 1))
    by_subject = np.broadcast_to(np.arange(30.0)[None, :, None], (8, 30, 1))
    spread = [scoring.crossed_means(part, 0, 4000).std() for part in (by_draw, by_subject)]
    # The standard error of a mean of n, as the bootstrap has it: sd / sqrt(n), sd over n.
    assert spread[0] == pytest.approx(np.arange(8).std() / np.sqrt(8), rel=0.05)
    assert spread[1] == pytest.approx(np.arange(30).std() / np.sqrt(30), rel=0.05)


# ---- models ----


def asked(verdicts, times=20_000):
    """Claims of these verdicts, so many times, evenly popular."""
    gold = np.tile(np.array(verdicts, np.int8), times)
    return Judged(gold, (np.arange(len(gold)) + 0.5) / len(gold))


def test_a_model_that_follows_the_graph_knows_the_popular_and_is_no_better():
    claims = asked([C, E])
    model = Simulated(right=0.6, bluff=1, calibrated=False, follows=1)
    right = answers(model, claims, [3], Draws(0))[0] == claims.gold
    rare, popular = np.array_split(right, 2)
    assert right.mean() == pytest.approx(0.6, abs=0.01)
    assert popular.mean() > 0.9 and rare.mean() < 0.3


def test_a_model_is_as_good_as_is_said_of_it():
    claims = asked([C, U, E])
    gold = claims.gold
    for right in (0.0, 0.6, 0.9, 1.0):
        said = answers(Simulated(right=right, bluff=1, calibrated=False), claims, [3], Draws(0))
        assert (said[0] == gold).mean() == pytest.approx(right, abs=0.01)
    bluffer, modest = (
        answers(Simulated(right=0.6, bluff=bluff, calibrated=False), claims, [3], Draws(0))[0]
        for bluff in (1.0, 0.0)
    )
    assert ((modest == bluffer) | (modest == UNK)).all()
    settled = gold != U
    assert (modest[settled] == UNK).mean() > 0.2 and (bluffer[settled] != UNK).all()


def test_a_calibrated_model_is_worth_more_than_silence_at_every_price():
    """Chow's rule: it says only what is worth saying, less at a higher price."""
    claims = asked([C, E])
    gold = claims.gold
    prices = [1, 3, 10]
    said = answers(Simulated(right=0.6, bluff=1, calibrated=True), claims, prices, Draws(0))
    answered = (said != UNK).mean(1)
    assert (np.diff(answered) < 0).all()
    right = (said == gold).mean(1)
    assert (right - prices * (answered - right) > 0).all()
    for each, price in zip(said, prices, strict=True):
        assert (each == gold)[each != UNK].mean() > price / (1 + price)


# ---- worse graphs and claims ----


@pytest.mark.parametrize("loss", ["triples", "subjects", "popularity"])
def test_what_is_lost_together(world, loss):
    iris = [X + "in", X + "king"]
    whole, rules = world.graph, world.constraints
    graphs = [degrade(whole, rules, iris, keep, 0.0, 3, loss) for keep in (1.0, 0.7, 0.4)]
    sets = [{tuple(row) for row in graph.triples.tolist()} for graph in graphs]
    assert sets[2] < sets[1] < sets[0] == {tuple(row) for row in world.graph.triples.tolist()}
    if loss == "popularity":
        # Exactly so many; lands are named by five cities and a king, cities once: they go first.
        assert [len(part) for part in sets[1:]] == [51, 29]
        lands = {world.graph.ids[f"{X}land{i}"] for i in range(12)}
        assert lands <= {s for s, _, _ in sets[2]}


def test_claims_are_judged_by_the_world_and_not_by_the_worse_graph(world):
    dirty = degrade(world.graph, world.constraints, [X + "in", X + "king"], 1.0, 0.5, seed=2)
    one = sample(world, dirty, 300, 0.4, lambda claims, seed: claims.gold[None, None], seed=2)
    true = {tuple(row) for row in world.graph.triples.tolist()}
    stated = np.array([tuple(row) in true for row in one.claims.tolist()])
    assert ((one.gold == E) == stated).all()
    heard = one.gold[:120]
    assert 0.25 < (heard != E).mean() < 0.6  # half of the triples are wrong
    assert (one.gold[120:210] == E).all() and (one.gold[210:] != E).all()


# ---- what must follow, and what may not ----


def swept(domain, models, **changes):
    """A sweep over one domain."""
    root = Path(__file__).parents[2] / "conf" / "epistemic"
    with hydra.initialize_config_dir(str(root), version_base="1.3"):
        settings = read(OmegaConf.to_container(hydra.compose("config"), resolve=True))
    study = {
        "kind": "completeness",
        "keep": (1.0, 0.95, 0.9, 0.6),
        "wrong": (0.0, 0.1),
        "price": (1.0, 3.0),
        "heard": 0.3,
        "models": models,
    }
    parts = {
        "study": SweepSettings(**study | changes),
        "budget": BudgetSettings(draws=8, claims=200),
    }
    return sweep.study(settings.model_copy(update=parts), [domain], Console(quiet=True))


KNOWING = {"knowing": {"right": 1, "bluff": 0, "calibrated": False}}
BLUFFING = {"bluffing": {"right": 0.7, "bluff": 1, "calibrated": False}}
STATED = Thesis(statement="It pays.", price=3, wrong=0.1, pays_at=0.9, loses_from=0.95)


@pytest.fixture(scope="module")
def found(world):
    return swept(world, KNOWING | BLUFFING)


def only(found, model):
    """What was found of one model, and of the graph."""
    points = tuple(p for p in found.points if p.model in (model, "graph"))
    ends = tuple(end for end in found.break_even if end.model == model)
    return Completeness(sizes=found.sizes, alone=found.alone, points=points, break_even=ends)


def test_a_world_in_which_the_thesis_must_hold(found):
    """A model that bluffs on three claims in ten; the graph has nine tenths."""
    ruled = judge(STATED, only(found, "bluffing"))
    assert ruled.verdict == "supported", ruled


def test_a_world_in_which_the_thesis_must_fail(found):
    """A model that is never wrong; the graph is wrong in one triple of ten."""
    ruled = judge(STATED, only(found, "knowing"))
    assert ruled.verdict == "falsified", ruled
    assert {end.pays for end in only(found, "knowing").break_even} == {"never"}


def test_one_model_that_loses_is_enough(found):
    ruled = judge(STATED, found)
    assert ruled.verdict == "falsified" and "knowing" in ruled.because


def test_the_thesis_is_not_judged_on_another_sweep(found):
    for other in ({"price": 5}, {"wrong": 0.2}, {"pays_at": 0.85}, {"loses_from": 1.1}):
        ruled = judge(STATED.model_copy(update=other), found)
        assert ruled.verdict is None and "tried" in ruled.because


def test_a_loss_that_is_not_at_every_share_falsifies_nothing(found):
    """Without wrong triples a whole graph takes no answer of a model that is right."""
    right = STATED.model_copy(update={"wrong": 0.0})
    ruled = judge(right, only(found, "knowing"))
    assert ruled.verdict == "not as stated", ruled
    whole = [p for p in found.points if (p.model, p.keep, p.wrong) == ("knowing", 1, 0)]
    assert {p.gain.value for p in whole} == {0}


def test_what_follows_from_the_construction(found):
    points = {(p.model, p.keep, p.wrong, p.price): p for p in found.points}
    for (model, keep, wrong, price), point in points.items():
        graph = points["graph", keep, wrong, price]
        assert graph.gain.value == graph.over_graph.value == 0
        if wrong == 0:  # what a part proves the whole proves too
            assert point.FAR_NE.value == 0 and point.over_graph.value <= 0
        if model == "always_yes":
            assert point.LA == graph.LA
        if model == "always_unknown":
            assert point.gain.value == 0 and point.ruling == "undetermined"
    false = [p.FAR_NE.value for p in points.values() if p.wrong and p.model == "graph"]
    assert min(false) > 0


def test_a_break_even_is_where_its_points_change(found):
    for end in found.break_even:
        line = [
            p
            for p in found.points
            if (p.model, p.wrong, p.price) == (end.model, end.wrong, end.price)
        ]
        for point in line:
            if end.keep.high is not None and end.pays == "above" and point.keep > end.keep.high:
                assert point.ruling == "pays"
            if end.keep.low is not None and end.pays == "above" and point.keep < end.keep.low:
                assert point.ruling == "loses"


def test_a_model_that_knows_what_the_graph_knows_loses_less(world):
    """The graph loses the rarely named first; who knows the same things as it needs less of it."""
    models = {
        name: {"right": 0.8, "bluff": 1, "calibrated": False, "follows": follows}
        for name, follows in (("independent", 0), ("following", 1))
    }
    kept = {"keep": (1.0, 0.5), "wrong": (0.0,), "price": (1.0,)}
    gains = {
        (loss, p.model): p.gain.value
        for loss in ("triples", "popularity")
        for p in swept(world, models, loss=loss, **kept).points
        if p.keep == 0.5
    }
    apart = {
        loss: gains[loss, "following"] - gains[loss, "independent"]
        for loss in ("triples", "popularity")
    }
    assert apart["triples"] == pytest.approx(0, abs=0.02) and apart["popularity"] > 0.04


def test_shapes_that_only_pyshacl_judges_are_left_out(world):
    turtle = """@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix x: <http://x/> .
        [] sh:targetSubjectsOf x:king ; sh:property [ sh:path x:king ; sh:maxCount 1 ;
            sh:or ( [ sh:pattern "king" ] [ sh:maxLength 1 ] ) ] ."""
    slow = replace(world, constraints=read_constraints(turtle=turtle))
    fast = sweep.compiled_alone(slow)
    assert len(slow.constraints.slow) == 1 and len(fast.constraints.slow) == 0
    assert fast.constraints.rules == slow.constraints.rules and fast.graph is world.graph


def test_calibration_in_a_world_that_ships():
    """A model that says how sure it is needs a more complete graph than one that bluffs."""
    models = {
        name: {"right": 0.8, "bluff": 1, "calibrated": name == "calibrated"}
        for name in ("calibrated", "bluffer")
    }
    rivers = load_domain(built_in("rivers"))
    found = swept(rivers, models, keep=(1.0, 0.9, 0.5), wrong=(0.0,), price=(3.0,))
    gains = {(p.model, p.keep): p.gain for p in found.points}
    assert gains["bluffer", 0.5].low > gains["calibrated", 0.5].high
    assert gains["calibrated", 0.5].high < 0 < gains["bluffer", 0.9].low
    assert found.sizes[0].losable < found.sizes[0].triples == len(rivers.graph)


# ---- a licence that must find its claims ----


LINKING = {
    "texts": {"ours": {"wording": "ours"}, "rough": {"wording": "ours", "misspelt": 0.5}},
    "linkers": {"labels": {}, "similar": {"similarity": 85}},
    "finds": (0.9, 0.5),
    "models": ("bluffing",),
}
FEW = {"keep": (1.0, 0.6), "wrong": (0.0,), "price": (3.0,)}


@pytest.fixture(scope="module")
def named():
    """As `world`, with names that differ in more than a number."""
    parts = itertools.product(("Bal", "Kem", "Tor"), ("undra", "osti", "ivar"), ("mek", "foy"))
    names = ["".join(part) for part in parts]
    lands = [f"{name}land" for name in names[:6]]
    triples = [(X + name, f"{X}in", X + lands[i % 6]) for i, name in enumerate(names)]
    triples += [(X + land, f"{X}king", f"{X}{land[::-1]}") for land in lands]
    constraints = Constraints((MaxCount(f"{X}in", ("1",)), MaxCount(f"{X}king", ("1",))))
    graph = with_vocabulary(Graph.from_triples(triples), constraints)
    predicates = {
        name: in_words(name, PredicateSettings(iri=X + name), constraints)
        for name in ("in", "king")
    }
    return Domain("names", graph, constraints, predicates)


@pytest.fixture(scope="module")
def spoken(named):
    return swept(named, BLUFFING, linking=LINKING, **FEW)


def by_way(found):
    return {(p.text, p.linker, p.keep): p for p in found.linking.points}


def test_linking_leaves_all_other_numbers_as_they_are(named, spoken):
    assert spoken.model_copy(update={"linking": None}) == swept(named, BLUFFING, **FEW)


def test_given_its_claims_it_is_the_licence_of_the_sweep(spoken):
    """At the thesis' price, and the first share wrong, since its own was not tried."""
    points = {(p.model, p.keep, p.wrong, p.price): p for p in spoken.points}
    for (_, linker, keep), point in by_way(spoken).items():
        if linker == "given":
            same = points["bluffing", keep, 0.0, 3.0]
            assert (point.gain, point.LA, point.FAR_NE) == (same.gain, same.LA, same.FAR_NE)
            assert point.lost.value == 0 == point.lost.high


def test_where_every_text_is_plain_and_every_label_unique_nothing_is_lost(spoken):
    for understood in spoken.linking.understood:
        if understood.text == "ours":
            assert understood.right.value == 1 and understood.misread.value == 0
    for (text, _, _), point in by_way(spoken).items():
        if text == "ours":
            assert (point.lost.low, point.lost.high) == (0, 0)


def test_what_linking_loses_is_measured(spoken):
    """Half of the names misspelt: a linker of exact names loses; one by likeness loses less; one at
    random and one that finds nothing lose all that the licence wins.
    """
    points = by_way(spoken)
    for keep in (1.0, 0.6):
        given = points["any", "given", keep].gain.value
        exact, similar = (points["rough", name, keep] for name in ("labels", "similar"))
        nothing, random = (points["any", name, keep] for name in ("none", "random"))
        assert exact.lost.high < 0 and exact.gain.value == pytest.approx(given + exact.lost.value)
        assert similar.lost.value > exact.lost.value
        assert nothing.LA.value == nothing.FAR_NE.value == 0
        assert nothing.gain.value <= exact.gain.value and random.gain.value < exact.gain.value
    shares = {(u.text, u.linker): u for u in spoken.linking.understood}
    assert shares["rough", "labels"].right.value < 0.4 < shares["rough", "similar"].right.value
    assert shares["rough", "labels"].not_found.value > 0.2
    assert shares["any", "random"].wrong.value > 0.9
    for u in shares.values():
        parts = (u.right, u.wrong, u.ambiguous, u.not_found, u.no_claim)
        assert sum(part.value for part in parts) == pytest.approx(1)


def test_a_linker_that_never_errs_loses_by_what_it_misses(spoken):
    points = by_way(spoken)
    found = {u.linker: u.right.value for u in spoken.linking.understood if u.text == "any"}
    assert found["finds 90%"] == pytest.approx(0.9, abs=0.02)
    assert found["finds 50%"] == pytest.approx(0.5, abs=0.03)
    given = points["any", "given", 1.0]
    for share in (0.9, 0.5):
        point = points["any", f"finds {share:.0%}", 1.0]
        # No wrong triple: all that leaves is right, and as much less of it as claims are missed.
        assert point.false.value == 0
        assert point.LA.value == pytest.approx(share * given.LA.value, abs=0.05)


def test_a_sentence_leaves_by_what_is_found_in_it_and_is_scored_by_what_it_says(world):
    """By hand: three claims the world entails; found are itself, another true one, a false one."""
    rows = world.graph.triples[:3]
    false = rows[2].copy()
    false[2] = rows[0, 2] if rows[0, 2] != rows[2, 2] else rows[1, 2]
    found = np.stack([rows[0], rows[0], false])
    heard = linking.Heard(
        claims=np.stack([found, found]),
        linked=np.array([[True, True, True], [True, True, False]]),
        stance=linking.true_stances(3),
        outcome=np.zeros((2, 3), np.int8),
    )
    said = np.array([[YES, YES, YES], [NO, NO, NO], [UNK, INVALID, YES]], np.int8)
    left = linking.licensed(said, heard, Oracle(world.graph, world.constraints))
    # YES: proven of itself, of another (a wrong link that lets it out), and not of the false one.
    # NO: the graph proves what was found true, so no denial leaves.
    assert left.tolist() == [[YES, YES, UNK], [UNK, UNK, UNK], [UNK, INVALID, UNK]]


def test_styles_without_a_file_of_wordings_are_left_out(named):
    both = LinkingSettings(**LINKING | {"texts": {"ours": {}, "other": {"wording": "other"}}})
    assert linking.without_wordings(both, named.name) == ["other"]
    one = Sample(named.graph.triples[:5], np.full(5, E), np.arange(5), np.full((1, 1, 5), YES))
    ways = linking.hear(named, both, [one], [0])
    assert {style for style, _ in ways} == {"any", "ours"}


def test_a_model_that_is_not_in_the_study_cannot_be_linked():
    with pytest.raises(ValueError, match=r"linking\.models: no model is called ghost"):
        SweepSettings(
            kind="completeness",
            keep=(1.0,),
            wrong=(0.0,),
            price=(1.0,),
            models=KNOWING,
            linking=LINKING | {"models": ("ghost",)},
        )

"""From cells to results without a study: what was found, kept, read back and assessed."""

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from evidence.results import Manifest as AnyManifest
from kubku import assessment, base_cache, cells, evaluation, samples
from kubku.arms import Arm
from kubku.assessment import Collected
from kubku.base_states import Training
from kubku.frontier import Asked
from kubku.halo import Kind
from kubku.learners import registry
from kubku.results import Manifest
from kubku.samples import Splits, rows
from kubku.tasks import FAMILIES, apart, generate
from kubku.thesis import declared

FAMILY = FAMILIES["stories"]
AMOUNT = evaluation.Amount(test=12, validation=None, sweep=0, drift_alone=False)


@pytest.fixture(scope="module")
def splits():
    drawn = generate(FAMILY, jax.random.key(0), 24, "test")
    streams = jax.tree.map(lambda leaf: leaf.reshape(2, 12, *leaf.shape[1:]), drawn)
    pairs = generate(FAMILY, jax.random.key(1), 8, "test", pairs=True)
    validation = generate(FAMILY, jax.random.key(2), 8, "validation")
    return jax.tree.map(
        np.asarray, Splits(validation, rows(drawn, slice(0, 12)), pairs, apart(streams))
    )


def found(name, splits):
    learner = registry.make(name, FAMILY, Training(updates=1, batch=1))
    start = learner.init(jax.random.key(0))
    return evaluation.evaluate(learner, start, 0.5, FAMILY, splits, AMOUNT)


def collected(splits, cell_of, replicates=2, **changes):
    """Two learners, each with as many cells alike."""
    given = {
        "arms": [
            Arm("stories", name, "none", [cell_of[name]] * replicates, {}) for name in cell_of
        ],
        "asked": {"stories": [Asked(0, splits.test)] * replicates},
        "exposures": {("stories", name): "state" for name in cell_of},
        "growth": {},
        "examples": samples.examples(FAMILY, splits.test, 2),
        "chosen_bases": None,
    }
    return Collected(**given | changes)


@pytest.fixture(scope="module")
def manifest():
    plain = AnyManifest.now({}, [0])
    return Manifest(**dict(plain), wall_seconds=1.0, seconds_base=0.5, cells_made_on=("cpu",))


@pytest.fixture(scope="module")
def cell_of(splits):
    return {name: found(name, splits) for name in ("dictionary", "always_yes", "generator_oracle")}


def test_forced_answers_are_given_after_learning(splits, cell_of):
    """A dictionary is right about all that it was told, and knows nothing before."""
    stated = np.asarray((splits.test.kind == Kind.LITERAL) & splits.test.asked)
    gold = np.asarray(splits.test.gold)[stated]
    cell = cell_of["dictionary"]
    assert np.array_equal(cell["answers.forced"][stated], gold)
    assert not np.array_equal(cell["before_answers"][stated], gold)


def test_a_cell_is_read_back_as_it_was_saved(tmp_path, cell_of):
    cell = cell_of["dictionary"]
    path = tmp_path / cells.Cell("stories", "dictionary", "none", "skewed", 0).path
    cells.save(path, cell)
    again = cells.load(path)
    assert again.note == cell.note and again.arrays.keys() == cell.arrays.keys()
    for name, array in cell.arrays.items():
        np.testing.assert_array_equal(again[name], array)
        assert again[name].dtype == array.dtype
    assert not [*path.parent.glob("*.part"), *path.parent.glob(".*")]


def test_results_are_a_function_of_what_is_handed_over(splits, cell_of, manifest):
    results = assessment.assess(collected(splits, cell_of), declared(), manifest)
    learners = results.families["stories"].learners
    scores = {
        name: (entry.base_states["none"].KU_avg.value, entry.base_states["none"].BKU_avg.value)
        for name, entry in learners.items()
    }
    assert scores == {
        "dictionary": (1.0, 0.0),
        "always_yes": (1.0, 2.0),
        "generator_oracle": (2.0, 0.0),
    }
    dictionary = learners["dictionary"].base_states["none"]
    assert dictionary.KU_avg.n == 2 and dictionary.KU_avg.unit == "replicate"
    assert dictionary.halos.L.literal.value == 1 and dictionary.halos.H.hallucination.value == 0
    assert sum(dictionary.histogram.KU) == 2 * 12
    assert len(dictionary.tuned) == 2 and dictionary.tuned[0].seconds_base == 0.5
    assert dictionary.bias_drift is not None and dictionary.bias_drift.signed.value == 0
    assert results.warnings == () and results.comparisons == ()
    assert results.thesis is not None and results.thesis.verdict is None
    again = assessment.assess(collected(splits, cell_of), declared(), manifest)
    assert again == results


def test_examples_show_what_was_answered(splits, cell_of, manifest):
    results = assessment.assess(collected(splits, cell_of), declared(), manifest)
    assert [example.row for example in results.examples] == [0, 1]
    for example in results.examples:
        golds = tuple(query.gold for query in example.queries)
        assert example.answers["generator_oracle"] == golds
        assert set(example.answers["always_yes"]) == {2}


def test_what_a_reader_must_know_is_a_warning(splits, cell_of, manifest):
    cell = cell_of["dictionary"]
    leaking = cells.Found({**cell.arrays, "audit": np.asarray(0.25)}, cell.note)
    given = collected(splits, {"dictionary": leaking}, chosen_bases=("none",))
    confined, leak = assessment.assess(given, declared(), manifest).warnings
    assert confined.startswith("learner.bases=[none]")
    assert leak.startswith("dictionary (stories, none)") and "25% of queries" in leak


def test_the_best_base_state_is_chosen_on_the_validation_split(splits, cell_of, manifest):
    """Not by what it scores on the test split."""
    arms = [
        Arm("stories", "mlp", base, [cells.Found(cell_of[like].arrays, note)], {})
        for base, like, note in (
            ("random", "dictionary", cell_of["always_yes"].note),
            ("meta", "always_yes", cell_of["dictionary"].note),
        )
    ]
    given = collected(splits, cell_of, replicates=1)
    both = collected(
        splits,
        cell_of,
        1,
        arms=[*given.arms, *arms],
        exposures={**given.exposures, ("stories", "mlp"): "gradient"},
    )
    assert (
        assessment.assess(both, declared(), manifest).families["stories"].learners["mlp"].best
        == "meta"
    )


def test_a_digest_of_code_counts_files_that_there_are():
    plain = base_cache.code_digest()
    assert base_cache.code_digest("protocol.py") != plain == base_cache.code_digest()
    with pytest.raises(FileNotFoundError, match="none_such"):
        base_cache.code_digest("none_such.py")


@pytest.mark.parametrize(
    ("own", "opponent", "verdict"),
    [
        ("generator_oracle", "dictionary", "supported"),
        ("dictionary", "generator_oracle", "falsified"),
        ("always_yes", "dictionary", None),  # it hasn't learnt
        ("dictionary", "dictionary", "not as stated"),
    ],
)
def test_planted_worlds_from_cells_to_verdict(splits, cell_of, manifest, own, opponent, verdict):
    """Whoever answers as the oracle must win, and whoever answers as a dictionary lose to that. Who
    always answers keeps no limit of BKU and counts as silence, whatever its KU of 1.
    """
    thesis = declared()
    only = thesis.model_copy(
        update={"families": ("stories",), "against": ("mlp",), "replicates": 3}
    )
    planted = ((thesis.learner, thesis.base, own), ("mlp", "meta", opponent))
    given = collected(
        splits,
        cell_of,
        arms=[Arm("stories", name, base, [cell_of[like]] * 3, {}) for name, base, like in planted],
        asked={"stories": [Asked(seed, splits.test) for seed in range(3)]},
        exposures={("stories", name): "state" for name, *_ in planted},
        examples=[],
    )
    results = assessment.assess(given, only, manifest)
    (comparison,) = results.comparisons
    at = results.families["stories"].learners[thesis.learner].base_states[thesis.base].frontier
    assert results.thesis is not None and results.thesis.verdict == verdict
    assert comparison.dominates == (verdict == "supported")
    assert comparison.dominated == (verdict in ("falsified", None))
    assert at["0.2"].KU.value == {"generator_oracle": 2, "dictionary": 1, "always_yes": 0}[own]
    assert at["0.2"].unreached == (3 if own == "always_yes" else 0)


def test_intervals_stay_within_their_bounds(splits, cell_of, manifest):
    """Of three replicates that disagree as far as they can, too."""
    mixed = [cell_of[name] for name in ("always_yes", "dictionary", "generator_oracle")]
    given = collected(
        splits,
        cell_of,
        arms=[Arm("stories", "mlp", "meta", mixed, {})],
        asked={"stories": [Asked(seed, splits.test) for seed in range(3)]},
        exposures={("stories", "mlp"): "gradient"},
        examples=[],
    )
    found = assessment.assess(given, declared(), manifest).families["stories"].learners["mlp"]
    entry = found.base_states["meta"]
    for measured in (entry.KU_avg, entry.BKU_avg, entry.BKU_balanced, entry.frontier["0.2"].KU):
        assert 0 <= measured.low < measured.value < measured.high <= 2
    assert entry.halos.H.hallucination.low >= 0 and entry.halos.H.hallucination.high <= 1


def test_two_writers_of_one_cell_lose_none(tmp_path, cell_of):
    """Forty rounds; whoever reads meanwhile finds a whole cell of one of the two."""
    path = tmp_path / "cell.npz"
    two = [
        cells.Found({**cell_of["dictionary"].arrays, "who": np.asarray(who)}, cell_of[name].note)
        for who, name in enumerate(("dictionary", "always_yes"))
    ]
    cells.save(path, two[0])
    with ThreadPoolExecutor(2) as pool:
        for _ in range(40):
            writing = [pool.submit(cells.save, path, cell) for cell in two]
            read = cells.load(path)
            assert read.note == two[int(read["who"])].note
            assert [done.result() for done in writing] == [None, None]
            assert cells.is_kept(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["cell.npz"]

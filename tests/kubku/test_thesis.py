"""The verdict can go either way: replicates made so that each must come out."""

import numpy as np
import pytest

from kubku.thesis import Thesis, compare, judge

THESIS = Thesis(
    statement="it is better",
    learner="own",
    base="grown",
    against=("a", "b"),
    families=("x", "y"),
    level=0.05,
)
FAMILIES = ("x", "y")


def replicates(ku, bku, seed, n=200, count=3):
    """`count` replicates of n samples around the two means."""
    generator = np.random.default_rng(seed)
    spread = np.array([0.1, 0.1])
    return [np.array([ku, bku]) + spread * generator.standard_normal((n, 2)) for _ in range(count)]


def outcomes(own, a, b, families=FAMILIES):
    named = {"own": own, "a": a, "b": b}
    return {
        family: {
            name: replicates(*means, seed=10 * i + j)
            for j, (name, means) in enumerate(named.items())
        }
        for i, family in enumerate(families)
    }


def test_supported_needs_dominance_over_all_everywhere():
    found = judge(THESIS, outcomes((1.5, 0.2), (1.0, 0.6), (1.2, 0.9)))
    assert found["verdict"] == "supported"
    assert all(c["dominates"] and not c["dominated"] for c in found["conditions"])
    assert len(found["conditions"]) == 4


def test_falsified_by_one_that_dominates_everywhere():
    found = judge(THESIS, outcomes((1.0, 0.5), (1.9, 0.1), (0.5, 0.9)))
    assert found["verdict"] == "falsified"
    assert found["deciding_condition"].startswith("a dominates own")


def test_higher_ku_bought_with_higher_bku_decides_nothing():
    found = judge(THESIS, outcomes((1.5, 0.9), (1.0, 0.2), (1.0, 0.2)))
    assert found["verdict"] == "inconclusive"
    assert not any(c["dominates"] or c["dominated"] for c in found["conditions"])


def test_a_small_p_value_without_its_interval_decides_nothing():
    """BKU lower by 1.5, 1 and 0.5: t = 3.46, one-sided p = 0.037, but 4.30 is what 95% needs."""
    one = THESIS.model_copy(update={"against": ("a",), "families": ("x",)})
    sure = [np.tile([1.9, 0.1], (50, 1))] * 3
    apart = [np.tile([0.1 + 0.01 * i, 1.6 - 0.5 * i], (50, 1)) for i in range(3)]
    (condition,) = judge(one, {"x": {"own": sure, "a": apart}}, crossed=True)["conditions"]
    assert condition["p_dominates"] == pytest.approx(0.037, abs=0.001)
    assert condition["BKU"].high > 0 and not condition["dominates"]


def test_dominated_in_one_family_only_is_inconclusive():
    mixed = outcomes((1.0, 0.5), (1.9, 0.1), (0.5, 0.9))
    mixed["y"]["a"] = replicates(0.2, 1.5, seed=99)
    assert judge(THESIS, mixed)["verdict"] == "inconclusive"


def test_one_replicate_or_a_missing_family_decides_nothing():
    strong = outcomes((1.9, 0.0), (0.1, 1.9), (0.1, 1.9))
    single = {f: {n: r[:1] for n, r in found.items()} for f, found in strong.items()}
    assert judge(THESIS, single)["verdict"] == "inconclusive"
    del strong["y"]
    found = judge(THESIS, strong)
    assert found["verdict"] == "inconclusive" and "y" in found["deciding_condition"]


def test_samples_are_paired():
    """A difference of 0.01 under a spread of 1 shows only if samples are paired."""
    generator = np.random.default_rng(0)
    shared = [generator.standard_normal((300, 2)) for _ in range(3)]
    better = [
        r + np.array([0.01, -0.01]) + 1e-4 * generator.standard_normal((300, 2)) for r in shared
    ]
    found = compare(better, shared)
    assert found["KU"].low > 0.009 and found["BKU"].high < -0.009
    assert found["p_dominates"] < 0.001 and found["p_dominated"] > 0.99
    assert found["KU"].value == pytest.approx(0.01, abs=1e-3)

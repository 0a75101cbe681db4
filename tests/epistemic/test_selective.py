"""Risk against coverage and calibration, by hand."""

import numpy as np
import pytest

from epistemic.scoring.metrics import ERROR, INVALID, NO, UNKNOWN, YES
from epistemic.scoring.selective import selective


def ranked(answers, labels, confidence):
    n = len(answers)
    return selective(
        np.array(labels), np.array(answers), np.array(confidence, float), np.arange(n), seed=0
    )


def test_aurc_by_hand():
    # Three answers, most confident first: right, wrong, right; then one UNKNOWN.
    # Risks at the four ranks: 0, 1/2, 1/3, and 1/3 (abstaining adds nothing).
    found = ranked([YES, YES, YES, UNKNOWN], [0, 1, 0, 2], [0.9, 0.8, 0.7, 0.99])
    assert found.AURC.value == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 3) / 4)
    # Best order: right, right, wrong: 0, 0, 1/3, 1/3.
    assert found.E_AURC.value == pytest.approx((1 / 2) / 4)
    assert found.risk_coverage == tuple(
        pytest.approx(p) for p in ((0.25, 0), (0.5, 0.5), (0.75, 1 / 3))
    )


def test_equal_confidences_are_one_group():
    # Whatever the order in the file: two right and two wrong at one confidence are risk 1/2
    # throughout.
    for answers in ([YES, YES, NO, NO], [NO, NO, YES, YES], [NO, YES, NO, YES]):
        found = ranked(answers, [0, 0, 0, 0], [0.5] * 4)
        assert found.AURC.value == pytest.approx(0.5)
        assert found.risk_coverage == ((1.0, 0.5),)


def test_brier_and_ece_by_hand():
    found = ranked([YES, YES, NO, UNKNOWN], [0, 1, 1, 2], [1.0, 0.5, 0.5, 0.5])
    # Right, wrong, right, right: squared gaps 0, 0.25, 0.25, 0.25.
    assert found.brier.value == pytest.approx(0.75 / 4)
    # Two bins: {1.0: all right}, {0.5: two of three right}, the latter off by 1/6 with weight 3/4.
    assert found.ece.value == pytest.approx(3 / 4 * (2 / 3 - 1 / 2))


def test_a_calibrated_system_has_a_small_calibration_error_and_a_boastful_one_does_not():
    rng = np.random.default_rng(2)
    confidence = rng.random(6000)
    answers = np.where(rng.random(6000) < confidence, YES, NO)
    honest = ranked(answers, np.zeros(6000, int), confidence).ece
    boastful = ranked(answers, np.zeros(6000, int), np.sqrt(confidence)).ece
    assert honest.value < 0.03
    assert boastful.value == pytest.approx(np.mean(np.sqrt(confidence) - confidence), abs=0.03)


def test_no_confidence_no_selective_metrics_and_errors_are_left_out():
    found = ranked([YES, ERROR], [0, 0], [np.nan, 0.5])
    assert found.n == 0
    assert found.AURC is None
    assert ranked([UNKNOWN, UNKNOWN], [2, 0], [1, 1]).AURC.value is None


def test_what_states_no_confidence_ranks_behind_what_does():
    # Right and sure, wrong and unreadable, stopped by a licence: risks 0, 1/2, and 1/2 again.
    found = ranked([YES, INVALID, UNKNOWN], [0, 1, 2], [0.9, np.nan, np.nan])
    assert found.AURC.value == pytest.approx((0 + 1 / 2 + 1 / 2) / 3)
    assert found.risk_coverage == tuple(pytest.approx(p) for p in ((1 / 3, 0), (2 / 3, 0.5)))
    assert found.brier.value == pytest.approx(0.01) and found.n == 1

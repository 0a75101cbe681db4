"""Good knowledge at matched bad knowledge: the estimand that learners are compared by.

KU and BKU rise together as a learner's threshold falls, so a pair of them says as much about where
it was set as about the learner. Each learner is therefore held to the same limit of BKU: on the
validation split its threshold is set to the highest KU at a BKU of no more, traps weighted equally
by stratum, and KU is measured on the test split. A replicate that keeps the limit at no threshold
counts as silence, which always keeps it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence import stats
from evidence.measurement import Measurement
from kubku.cells import Found
from kubku.halo import Samples
from kubku.parts import AtBKU, ByReplicate, Curve
from kubku.protocol import LIMITS
from kubku.scoring import balanced_bku, score_batch, traps_told

SCORE = (0.0, 2.0)
RESAMPLES = 1000


class Asked(NamedTuple):
    """What the cell of a replicate was asked, of which it may have been asked the first rows.

    Attributes:
      generator: the generator seed.
      samples: the test split, as NumPy arrays.
    """

    generator: int
    samples: Samples

    def first(self, rows: int) -> Asked:
        """Of the first rows alone."""
        return self._replace(samples=jax.tree.map(lambda leaf: leaf[:rows], self.samples))


def independent(groups: list[np.ndarray], tests: Sequence[Asked]) -> list[np.ndarray]:
    """What may count as replicates: base-state seeds, where all answer one generator seed's
    samples; else generator seeds, each averaged over the base states that share its samples.

    Args:
      groups: one [N, ...] a cell, or of the first cells alone.
      tests: what each cell was asked.
    """
    if crossed(tests):
        return groups
    of_seed: dict[int, list[np.ndarray]] = defaultdict(list)
    for group, test in zip(groups, tests, strict=False):
        of_seed[test.generator].append(group)
    return [np.mean(shared, axis=0) for shared in of_seed.values()]


def crossed(tests: Sequence[Asked]) -> bool:
    """Whether all cells were asked the same samples."""
    return len({test.generator for test in tests}) == 1


class Outcome(NamedTuple):
    """What a replicate comes to at a limit of BKU.

    Attributes:
      ku: of each sample, f64[N].
      traps: of each sample, see `scoring.traps_told`; f64[N, 5, 2].
      reached: the limit was kept at some threshold on the validation split.
    """

    ku: np.ndarray
    traps: np.ndarray
    reached: bool

    def first(self, rows: int) -> Outcome:
        """Of the first samples alone."""
        return self._replace(ku=self.ku[:rows], traps=self.traps[:rows])

    @property
    def means(self) -> tuple[float, float]:
        """KU and BKU."""
        return float(self.ku.mean()), float(balanced_bku(self.traps.mean(0)))


def outcomes(cells: Sequence[Found], tests: Sequence[Asked], most: float) -> list[Outcome]:
    """One a replicate, where there are scores to set a threshold by; else none.

    Args:
      cells: of one learner on one base state.
      tests: what each was asked.
      most: the limit of BKU, one of `LIMITS`.
    """
    if any(f"answers.{most}" not in cell for cell in cells):
        return []
    each = [_outcome(cell, test, most) for cell, test in zip(cells, tests, strict=True)]
    kus, traps = (
        independent([getattr(one, name) for one in each], tests) for name in ("ku", "traps")
    )
    kept = independent([np.array([one.reached], float) for one in each], tests)
    return [
        Outcome(ku, trap, bool(reached.min() == 1))
        for ku, trap, reached in zip(kus, traps, kept, strict=True)
    ]


def _outcome(cell: Found, test: Asked, most: float) -> Outcome:
    answers = cell[f"answers.{most}"].astype(np.int32)
    samples = test.first(len(answers)).samples
    reached = cell.note.reached[str(most)]
    ku = np.asarray(score_batch(jnp.asarray(answers), samples).ku, np.float64)
    traps = _traps(answers, samples)
    if not reached:
        ku, traps = 0 * ku, traps * np.array([0, 1])
    return Outcome(ku, traps, reached)


def _traps(answers: np.ndarray, samples: Samples) -> np.ndarray:
    return np.asarray(traps_told(jnp.asarray(answers), samples), np.float64)


def at_limits(cells: Sequence[Found], tests: Sequence[Asked]) -> dict[str, AtBKU]:
    """KU at each limit of BKU, with the BKU that came of it; empty where there are no scores."""
    found = {}
    for most in LIMITS:
        if each := outcomes(cells, tests, most):
            ku, bku = np.array([one.means for one in each]).T
            found[str(most)] = AtBKU(
                KU=over_replicates(ku, [one.ku for one in each]),
                KU_interquartile=_interquartile(ku),
                BKU=_balanced([one.traps for one in each], bku),
                by_replicate=ByReplicate(KU=tuple(ku.tolist()), BKU=tuple(bku.tolist())),
                unreached=sum(not one.reached for one in each),
            )
    return found


def _interquartile(values: np.ndarray) -> float:
    """The mean of the middle half: `scipy.stats.trim_mean` at a quarter, without the half second
    that `scipy.stats` takes to load."""
    cut = len(values) // 4
    return float(np.sort(values)[cut : len(values) - cut].mean())


def over_replicates(means: np.ndarray, single: Sequence[np.ndarray]) -> Measurement:
    """Student's t over replicates' means, on the logit scale; of one replicate over its samples.

    Args:
      means: f64[R].
      single: f64[N] of each replicate.
    """
    if len(means) == 1:
        return stats.t_interval(single[0], "sample", bounds=SCORE)
    return stats.t_interval(means, "replicate", bounds=SCORE)


def _balanced(tables: Sequence[np.ndarray], means: np.ndarray) -> Measurement:
    if len(means) == 1:
        return stats.cluster_bootstrap(
            tables[0], balanced_bku, "sample", bounds=SCORE, resamples=RESAMPLES
        )
    return stats.t_interval(means, "replicate", bounds=SCORE)


def balanced(cells: Sequence[Found], tests: Sequence[Asked]) -> Measurement:
    """BKU of the answers that were given, traps weighted equally by stratum."""
    tables = []
    for cell, test in zip(cells, tests, strict=True):
        answers = cell["answers"].astype(np.int32)
        tables.append(_traps(answers, test.first(len(answers)).samples))
    tables = independent(tables, tests)
    means = np.array([float(balanced_bku(table.mean(0))) for table in tables])
    return _balanced(tables, means)


def curve(cells: Sequence[Found]) -> Curve | None:
    """KU and BKU over thresholds, means of replicates; None where there are no scores."""
    if any("frontier.ku" not in cell for cell in cells):
        return None
    ku, bku = (
        np.mean([cell[f"frontier.{name}"] for cell in cells], 0).round(6).tolist()
        for name in ("ku", "bku")
    )
    return Curve(KU=tuple(ku), BKU=tuple(bku))

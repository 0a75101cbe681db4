"""The verdict: does GrowNet leave more good knowledge than whatever it is set against, at a level
of bad knowledge that all of them keep?
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import yaml
from pydantic import Field

from evidence import stats
from evidence.measurement import Measurement
from evidence.ruling import Condition, Ruling, State, enough_replicates, rule, state_of
from evidence.runtime.config import Settings, build, settings_folder
from kubku.frontier import Outcome
from kubku.results import Comparison

CHANGE = (-2.0, 2.0)


class Pilot(Settings):
    """A run before, by whose spread replicates were planned.

    Attributes:
      seed, replicates: its own.
      spread: by family, the largest standard deviation of a paired difference of KU.
    """

    seed: int
    replicates: int
    spread: Mapping[str, float]


class Thesis(Settings):
    """`conf/thesis/kubku.yaml`; see there for what its words mean."""

    statement: str
    learner: str
    base: str
    against: tuple[str, ...]
    families: tuple[str, ...]
    bku: float
    beside: tuple[float, ...] = ()
    slack: float
    level: float
    worth: float = Field(gt=0)
    power: float
    replicates: int
    pilot: Pilot
    seed: int
    budget: str

    def needed(self, spread: float) -> int:
        """Replicates that find a difference of `worth` with the wanted power, given the standard
        deviation of paired differences: at half the level, for intervals have two sides.
        """
        return stats.pairs_needed(self.worth / spread, power=self.power, alpha=self.level / 2)


def declared() -> Thesis:
    """The thesis as it stands in `conf/thesis/kubku.yaml`."""
    text = (settings_folder() / "thesis" / "kubku.yaml").read_text("utf-8")
    return build(Thesis, yaml.safe_load(text), "thesis")


class Standing(NamedTuple):
    """What a learner brings to the comparisons of a family, on the base state that it stands on.

    Attributes:
      outcomes: by limit of BKU, one a replicate; samples in the same order for every learner.
      induced: KU after learning minus before.
    """

    outcomes: Mapping[float, Sequence[Outcome]]
    induced: Measurement

    @property
    def has_learnt(self) -> bool:
        """Its KU is surely higher after a sample than before."""
        return state_of(self.induced, above=0) == "met"


Standings = Mapping[str, Mapping[str, Standing]]
"""By family and learner. What wasn't measured is absent."""

Pairs = Collection[tuple[str, str]]
"""(family, learner)."""


def compare(thesis: Thesis, standings: Standings) -> list[Comparison]:
    """The map of wins: the thesis' learner minus each opponent in each family that both were
    measured in. Its p-values are Holm-adjusted over the whole map.

    Args:
      thesis: as declared.
      standings: of all learners.
    """
    found = [
        _comparison(thesis, family, opponent, of[thesis.learner], of[opponent])
        for family, of in standings.items()
        if thesis.learner in of
        for opponent in thesis.against
        if opponent in of
    ]
    up = stats.holm({str(at): one.p_dominates_alone for at, one in enumerate(found)})
    down = stats.holm({str(at): one.p_dominated_alone for at, one in enumerate(found)})
    return [
        Comparison(
            **dict(one)
            | {
                "p_dominates": up[str(at)],
                "p_dominated": down[str(at)],
                "dominates": _wins(thesis, one, up[str(at)]),
                "dominated": _loses(thesis, one, down[str(at)]),
            }
        )
        for at, one in enumerate(found)
    ]


def _comparison(
    thesis: Thesis, family: str, opponent: str, own: Standing, other: Standing
) -> Comparison:
    """One comparison, its p-values not adjusted yet."""
    ours, theirs = (_means(*pair) for pair in _paired(own, other, thesis.bku))
    (ku, bku), (their_ku, their_bku) = ours, theirs
    test = stats.paired(ku, their_ku, "replicate")
    back = stats.paired(their_ku, ku, "replicate")
    greater, less = _p(test.p_greater, ku - their_ku), _p(back.p_greater, their_ku - ku)
    spread = float(np.std(ku - their_ku, ddof=1)) if len(ku) > 1 else None
    return Comparison(
        learner=thesis.learner,
        family=family,
        opponent=opponent,
        KU=_change(ku - their_ku),
        BKU=_change(bku - their_bku),
        beside={
            str(most): _change(np.subtract(*(_means(*p)[0] for p in _paired(own, other, most))))
            for most in thesis.beside
        },
        kept=_keeps(thesis, bku),
        kept_by_opponent=_keeps(thesis, their_bku),
        opponent_learnt=other.has_learnt,
        needed=thesis.needed(spread) if spread else None,
        p_dominates=greater,
        p_dominated=less,
        p_dominates_alone=greater,
        p_dominated_alone=less,
        dominates=False,
        dominated=False,
    )


def _paired(own: Standing, other: Standing, most: float) -> tuple[list[Outcome], list[Outcome]]:
    """Both learners' outcomes over the samples that both were asked about."""
    both = list(zip(own.outcomes[most], other.outcomes[most], strict=True))
    rows = [min(len(a.ku), len(b.ku)) for a, b in both]
    return (
        [a.first(n) for (a, _), n in zip(both, rows, strict=True)],
        [b.first(n) for (_, b), n in zip(both, rows, strict=True)],
    )


def _means(*outcomes: Outcome) -> np.ndarray:
    """KU and BKU of each replicate, f64[2, R]."""
    return np.array([one.means for one in outcomes]).T


def _change(differences: np.ndarray) -> Measurement:
    return stats.t_interval(differences, "replicate", bounds=CHANGE)


def _p(p: float | None, differences: np.ndarray) -> float | None:
    """Replicates that agree to the last digit leave the t-test undefined; they settle it if there
    are two at least.
    """
    if p is None and len(differences) > 1 and np.ptp(differences) == 0:
        return 0.0 if differences[0] > 0 else 1.0
    return p


def _keeps(thesis: Thesis, bku: np.ndarray) -> bool:
    """Whether the limit was kept on the test split, too, but for `slack`."""
    realised = stats.t_interval(bku, "replicate", bounds=(0.0, 2.0))
    return state_of(realised, below=thesis.bku + thesis.slack) == "met"


def _wins(thesis: Thesis, one: Comparison, p: float | None) -> bool:
    """Whether KU is surely higher than an opponent's that has learnt, at a BKU that is kept."""
    sure = state_of(one.KU, above=0) == "met" and p is not None and p < thesis.level
    return sure and one.kept and one.opponent_learnt


def _loses(thesis: Thesis, one: Comparison, p: float | None) -> bool:
    """Whether KU is surely lower than that of an opponent that keeps the limit."""
    sure = state_of(one.KU, below=0) == "met" and p is not None and p < thesis.level
    return sure and one.kept_by_opponent


def judge(
    thesis: Thesis,
    comparisons: Sequence[Comparison],
    learnt: Mapping[tuple[str, str], Measurement],
    wanted: Pairs,
) -> Ruling:
    """The verdict from what a results file holds.

    Args:
      thesis: as declared.
      comparisons: all that were made.
      learnt: induced KU, by (family, learner), of every learner of the thesis that was measured.
      wanted: every family with every learner of the thesis that can handle it: these must have
        been measured.
    """
    return rule(
        thesis.statement,
        [
            enough_replicates(_replicates(comparisons), "replicate"),
            _as_planned(thesis, _replicates(comparisons)),
            *_measured(thesis, learnt, wanted),
            *_have_learnt(thesis, learnt),
            *(_falsifies(thesis, opponent, comparisons) for opponent in thesis.against),
            *(_supports(thesis, comparison) for comparison in comparisons),
        ],
    )


def _replicates(comparisons: Sequence[Comparison]) -> int:
    return min((one.KU.n for one in comparisons), default=0)


def _as_planned(thesis: Thesis, n: int) -> Condition:
    return Condition(
        name="replicates planned",
        role="requires",
        wanted=f"at least {thesis.replicates} (there are {n})",
        state="met" if n >= thesis.replicates else "refuted",
    )


def _measured(
    thesis: Thesis, learnt: Mapping[tuple[str, str], Measurement], wanted: Pairs
) -> list[Condition]:
    conditions = []
    for learner in (thesis.learner, *thesis.against):
        missing = [family for family, of in wanted if of == learner and (family, of) not in learnt]
        conditions.append(
            Condition(
                name=f"{learner} is measured",
                role="requires",
                wanted="in every family that it handles"
                + (f" (missing: {', '.join(missing)})" if missing else ""),
                state="refuted" if missing else "met",
            )
        )
    return conditions


def _have_learnt(thesis: Thesis, learnt: Mapping[tuple[str, str], Measurement]) -> list[Condition]:
    return [
        Condition(
            name=f"{learner} has learnt on {family}: induced KU",
            role="requires",
            wanted="above 0",
            state=state_of(induced, above=0),
            measured={"induced KU": induced},
        )
        for (family, learner), induced in learnt.items()
        if learner == thesis.learner
    ]


def _falsifies(thesis: Thesis, opponent: str, comparisons: Sequence[Comparison]) -> Condition:
    own = {c.family: c for c in comparisons if c.opponent == opponent}
    lost = [
        family in own and _loses(thesis, own[family], own[family].p_dominated_alone)
        for family in thesis.families
    ]
    state: State = "met" if all(lost) else "undetermined"
    # One family in which GrowNet surely has more is enough.
    if any(state_of(c.KU, below=0) == "refuted" for c in own.values()):
        state = "refuted"
    return Condition(
        name=opponent,
        role="falsifies",
        wanted=f"has more KU than {thesis.learner} in every family, at a BKU of {thesis.bku}",
        state=state,
        measured={f"{thesis.learner} less it, {family}": c.KU for family, c in own.items()},
    )


def _supports(thesis: Thesis, one: Comparison) -> Condition:
    """A conjunction of such conditions needs no adjusted p: all of them must hold."""
    state: State = "undetermined"
    if _wins(thesis, one, one.p_dominates_alone):
        state = "met"
    elif state_of(one.KU, above=0) == "refuted" and one.kept_by_opponent:
        state = "refuted"
    why = "" if one.kept else ", but its own BKU isn't kept on the test split"
    why += "" if one.opponent_learnt else ", but that hasn't learnt"
    return Condition(
        name=f"{thesis.learner} on {one.family}",
        role="supports",
        wanted=f"has more KU than {one.opponent} at a BKU of {thesis.bku}{why}",
        state=state,
        measured={"difference of KU": one.KU},
    )


def answer(thesis: Thesis, comparisons: Sequence[Comparison]) -> str | None:
    """What came out, in a sentence; None where nothing was compared."""
    if not comparisons:
        return None
    wins = [c for c in comparisons if c.dominates]
    told = (
        f"At a BKU of {thesis.bku} {thesis.learner} has more KU in {len(wins)} of "
        f"{len(comparisons)} comparisons"
    )
    lost = [c for c in comparisons if c.dominated]
    if lost:
        told += f"; it has less than {_listed(lost)}"
    if open_ := len(comparisons) - len(wins) - len(lost):
        told += f"; {open_} are undecided"
    return told + "."


def _listed(comparisons: Sequence[Comparison]) -> str:
    """Opponents with their families: 'mlp on stories and grids, gru on series'."""
    families: dict[str, list[str]] = {}
    for one in comparisons:
        families.setdefault(one.opponent, []).append(one.family)
    return ", ".join(f"{name} on {_and(of)}" for name, of in families.items())


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))

"""Checks that stand between a number and a claim: is what was trained what we think it is?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from numpy.typing import ArrayLike

from evidence import stats
from evidence.measurement import Measurement
from evidence.runtime.compiling import brief
from goodharts_jax.modes import Mode
from goodharts_jax.networks import ActorCritic
from goodharts_jax.networks import policy as network_policy
from goodharts_jax.policies import Policy
from goodharts_jax.results import (
    UNIT,
    DeviceAgreement,
    Directions,
    Modes,
    RunResults,
    SurvivalFloor,
    Verification,
)
from goodharts_jax.world import FOOD, MOVES, POISON

# ---- does it go where it should? ----------------------------------------------------------------


@struct.dataclass
class DirectionalAccuracy:
    """How a policy answers one item, alone in view, in each direction at each distance.

    Attributes:
      approach_food: probability of a move that brings food nearer (or eats it). f32[8, radius],
        directions in the order of MOVES, distances 1, 2, ...
      approach_poison: the same of poison.
      chance: the same of a random walk.
      food_accuracy: share of these views in which the likeliest move approaches the food. f32[].
      poison_accuracy: share in which the likeliest move doesn't approach the poison. f32[].
    """

    approach_food: jax.Array
    approach_poison: jax.Array
    chance: jax.Array
    food_accuracy: jax.Array
    poison_accuracy: jax.Array


def directional_accuracy(policy: Policy, radius: int) -> DirectionalAccuracy:
    """Show a policy single items and see where it goes.

    Args:
      policy: for views of 2 radius + 1 cells a side.
      radius: of the view, in cells; at least 1.
    """
    approaches = _approaches(radius)

    def logits_of(view: jax.Array) -> jax.Array:
        return policy(view, jnp.uint32(0)).logits

    def shown(kind: int) -> tuple[jax.Array, jax.Array]:
        logits = jax.vmap(jax.vmap(logits_of))(jnp.asarray(directional_views(kind, radius)))
        chex.assert_shape(logits, (len(MOVES), radius, len(MOVES)))
        toward = jnp.sum(jax.nn.softmax(logits) * approaches, axis=-1)
        # A tie counts by its share: a random walk must not be credited with argmax's first index.
        likeliest = logits == jnp.max(logits, axis=-1, keepdims=True)
        likeliest_toward = jnp.sum(likeliest * approaches, -1) / jnp.sum(likeliest, -1)
        return toward, jnp.mean(likeliest_toward)

    food, food_share = shown(FOOD)
    poison, poison_share = shown(POISON)
    return DirectionalAccuracy(
        approach_food=food,
        approach_poison=poison,
        chance=jnp.mean(approaches, axis=-1, dtype=jnp.float32),
        food_accuracy=food_share,
        poison_accuracy=1 - poison_share,
    )


@partial(brief, static_argnames=("network", "radius"))
def mean_directional_accuracy(
    network: ActorCritic, params: Any, mode: Mode, radius: int
) -> DirectionalAccuracy:
    """The mean of trained policies of one mode.

    Args:
      network: of the policies; static.
      params: with a leading axis [runs].
      mode: what they perceive.
      radius: of the view, in cells; static.
    """

    def one(params: Any) -> DirectionalAccuracy:
        return directional_accuracy(network_policy(network, params, mode), radius)

    return jax.tree.map(lambda x: jnp.mean(x, axis=0), jax.vmap(one)(params))


def directional_views(kind: int, radius: int) -> np.ndarray:
    """Views with one item of a kind. uint8[8, radius, 2 radius + 1, 2 radius + 1].

    The first axis is the item's direction in the order of MOVES, the second its distance - 1;
    rows of a view are y, columns x.
    """
    side = 2 * radius + 1
    views = np.zeros((len(MOVES), radius, side, side), np.uint8)
    for direction, (dx, dy) in enumerate(MOVES):
        for distance in range(1, radius + 1):
            y, x = radius + dy * distance, radius + dx * distance
            views[direction, distance - 1, y, x] = kind
    return views


def _approaches(radius: int) -> np.ndarray:
    """Whether each move shortens the way to each single item. bool[8, radius, 8]."""
    moves = np.array(MOVES)
    distances = np.arange(1, radius + 1)
    items = moves[:, None, :] * distances[None, :, None]
    after = np.abs(items[:, :, None, :] - moves).max(axis=-1)
    return after < distances[None, :, None]


# ---- has it finished learning? ------------------------------------------------------------------


class Convergence(NamedTuple):
    """Whether training had levelled off.

    Attributes:
      converged: whether every curve's last tenth lies within the tolerance of the tenth before.
      changes: by curve, the relative change between the two; None where it can't be told.
    """

    converged: bool
    changes: dict[str, float | None]


def convergence(curves: Mapping[str, ArrayLike], *, tolerance: float = 0.05) -> Convergence:
    """Compare the means of the last tenth of each curve and the tenth before.

    Args:
      curves: by name ("return", "value_loss"), one value an update, at least 20 of them;
        undefined values (NaN) are left out.
      tolerance: greatest relative change that counts as level. A change is relative to the
        tenth before, or, for a curve that crosses zero on its way (where that would be
        arbitrary), to the range of the ten means.
    """
    changes = {name: _relative_change(curve) for name, curve in curves.items()}
    level = [change is not None and abs(change) <= tolerance for change in changes.values()]
    return Convergence(bool(level) and all(level), changes)


def _relative_change(curve: ArrayLike) -> float | None:
    values = np.asarray(curve, dtype=np.float64)
    values = values[np.isfinite(values)]
    if len(values) < 20:
        return None
    tenth = len(values) // 10
    # The ten tenths end with the curve; what doesn't divide is left out at its start.
    means = values[-10 * tenth :].reshape(10, tenth).mean(axis=1)
    before, last = means[-2:]
    crosses_zero = means.min() < 0 < means.max()
    scale = np.ptp(means) if crosses_zero else abs(before)
    if scale == 0:
        return 0.0 if last == before else None
    return float((last - before) / scale)


# ---- does it do better than a script? -----------------------------------------------------------


def survival_floor(
    modes: Modes, scripts: Sequence[str] = ("random_walk", "avoider")
) -> dict[str, SurvivalFloor]:
    """Whether each trained mode outlives scripts that have learnt nothing.

    A mode below the floor is no failure of the code: a proxy may well lead there. It must be seen.

    Args:
      modes: the table.
      scripts: scripted policies that set the floor; those not there are passed over.

    Returns:
      For each trained mode.
    """

    def survival(name: str) -> Measurement:
        runs = modes[name].runs
        return stats.interval([run.survival_restricted_mean for run in runs], UNIT)

    floors = [(survival(name).value, name) for name in scripts if name in modes]
    floor, script = max(
        ((value, name) for value, name in floors if value is not None), default=(None, None)
    )
    checked = {}
    for name, mode in modes.items():
        if mode.scripted:
            continue
        measured = survival(name)
        known = measured.low is not None and floor is not None
        above = measured.low > floor if known else None  # type: ignore[operator]
        checked[name] = SurvivalFloor(survival=measured, floor=floor, script=script, above=above)
    return checked


# ---- do all devices compute the same? -----------------------------------------------------------


def device_agreement(
    function: Callable[..., jax.Array], *arguments: Any, tolerance: float = 1e-4
) -> DeviceAgreement:
    """One function on every kind of device at hand: the accelerator's first and last, and a CPU.

    Args:
      function: of arrays; its numbers are of the order of 1.
      arguments: what to call it with.
      tolerance: greatest difference that counts as rounding.
    """
    chosen = _devices()
    compiled = jax.jit(function)
    first, *others = (
        np.asarray(compiled(*jax.device_put(arguments, device)), np.float64) for device in chosen
    )
    largest = max((float(np.abs(other - first).max()) for other in others), default=None)
    return DeviceAgreement(
        devices=tuple(str(device) for device in chosen),
        largest_difference=largest,
        tolerance=tolerance,
        agree=None if largest is None else largest <= tolerance,
    )


def _devices() -> list[jax.Device]:
    local = jax.local_devices()
    return list(dict.fromkeys([local[0], local[-1], jax.local_devices(backend="cpu")[0]]))


def policy_agreement(network: ActorCritic, params: Any, mode: Mode, radius: int) -> DeviceAgreement:
    """One policy's probabilities of its actions, as each kind of device computes them.

    Args:
      network: of the policy.
      params: of one run.
      mode: what it perceives.
      radius: of the view, in cells.
    """

    def probabilities(params: Any, views: jax.Array) -> jax.Array:
        policy = network_policy(network, params, mode)
        return jax.nn.softmax(jax.vmap(lambda view: policy(view, jnp.uint32(0)).logits)(views))

    views = directional_views(POISON, radius)
    return device_agreement(probabilities, params, views.reshape(-1, *views.shape[2:]))


# ---- all checks of a table ----------------------------------------------------------------------


def directions(
    network: ActorCritic, policies: Mapping[str, tuple[Any, Mode]], radius: int
) -> dict[str, Directions]:
    """Where the policies of each mode go, shown single items.

    Args:
      network: of the policies.
      policies: by name, the parameters of a mode's runs, with a leading axis [runs], and the mode.
      radius: of the view, in cells.
    """
    found = {
        name: jax.device_get(mean_directional_accuracy(network, params, mode, radius))
        for name, (params, mode) in policies.items()
    }
    return {
        name: Directions(**{part: column.tolist() for part, column in vars(one).items()})
        for name, one in found.items()
    }


def verify(modes: Modes, shown: Mapping[str, Directions]) -> dict[str, Verification]:
    """Every check of each trained mode.

    Args:
      modes: the table.
      shown: `directions` of the trained modes.
    """
    floors = survival_floor(modes)
    checked = {}
    for name, own in shown.items():
        trainings = [run.training for run in modes[name].runs]
        checked[name] = Verification(
            directions=own,
            converged=all(training.converged for training in trainings if training is not None),
            survival_floor=floors[name],
        )
    return checked


# ---- was everything else the same? --------------------------------------------------------------


def require_same_configuration(
    configurations: Mapping[str, Mapping[str, object]],
    may_differ: Sequence[str] = ("mode", "modes", "seed"),
) -> None:
    """Refuse to compare what was not made under the same conditions.

    Args:
      configurations: by name, each from a manifest.
      may_differ: settings that may; a name stands for everything under it.

    Raises:
      ValueError: names each other setting that differs, with the values.
    """
    flat = {name: dict(_leaves(configuration)) for name, configuration in configurations.items()}
    settings = dict.fromkeys(setting for leaves in flat.values() for setting in leaves)
    problems = []
    for setting in settings:
        if any(setting == free or setting.startswith(f"{free}.") for free in may_differ):
            continue
        values = {name: leaves.get(setting, "not set") for name, leaves in flat.items()}
        first = next(iter(values.values()))
        if any(value != first for value in values.values()):
            told = ", ".join(f"{value!r} in {name}" for name, value in values.items())
            problems.append(f"{setting}: {told}")
    if problems:
        raise ValueError("not made under the same conditions: " + "; ".join(problems))


def require_same_conditions(modes: Modes) -> None:
    """Refuse to compare modes that were not trained and judged alike.

    A mode may have more runs than another, with seeds that go on where the other's end; and a run
    may be trained for longer, until it is level.

    Args:
      modes: the table.

    Raises:
      ValueError: seeds or evaluated steps differ from mode to mode, with the values.
    """

    def of(runs: Sequence[RunResults], shared: int) -> dict[str, list[int]]:
        return {
            "seeds": [run.seed for run in runs[:shared]],
            "evaluated steps": sorted({run.total_steps for run in runs}),
        }

    for scripted in (True, False):
        group = {name: mode.runs for name, mode in modes.items() if mode.scripted == scripted}
        shared = min(map(len, group.values()), default=0)
        alike = {name: of(runs, shared) for name, runs in group.items()}
        require_same_configuration(alike, may_differ=())


def _leaves(node: Mapping[str, object], path: str = "") -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for name, value in node.items():
        if isinstance(value, Mapping):
            found += _leaves(value, f"{path}{name}.")
        else:
            found.append((f"{path}{name}", value))
    return found

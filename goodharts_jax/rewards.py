"""What a step is rewarded with: a table, a learnt model, and what guards against either.

All of it is data. A leaf that is 0 (infinite, for a cap) switches its part off, so that one
compiled program serves any mixture; a part that no run of a population uses is None, and is not
compiled at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from goodharts_jax.world import NUM_ACTIONS, NUM_KINDS, Event

REWARD_LIMIT = 20.0
"""A step's reward by the table is cut here, on either side."""
SEEN_RADIUS = 2
"""A reward model sees the 5 x 5 cells around the agent."""


Function = Callable[[jax.Array, jax.Array, jax.Array], jax.Array]


@struct.dataclass
class RewardModel:
    """One hidden layer over what the agent perceives near by and what it does.

    Attributes:
      kernel: float32[inputs, width].
      bias: float32[width].
      out: float32[width].
      mean: of its raw output over the steps that it learnt from. float32[].
      scale: what the rest is multiplied by. float32[].
    """

    kernel: jax.Array
    bias: jax.Array
    out: jax.Array
    mean: jax.Array
    scale: jax.Array


@struct.dataclass
class Guard:
    """The numbers of all remedies; each is off at its default, see `no_guard`.

    Attributes:
      deviations: standard deviations between the models that are subtracted from their mean.
        float32[].
      least: weight of the least of the models' rewards; the rest goes to their mean. float32[].
      cap: no step's proxy reward is greater. float32[].
      proxy: weight of the proxy's reward; 0 leaves the audit alone. float32[].
      audit: share of steps whose true reward is looked up. float32[].
      audit_weight: of the true reward less the proxy's, on an audited step: 1 replaces the one by
        the other, 1 / audit corrects the mean. float32[].
      kl: weight of the log-ratio of the policy to the one that the training began with. float32[].
      excess: weight of what of that log-ratio is beyond -log(`quantile`): a quantiliser (Taylor
        2016) does nothing more than 1 / `quantile` times as often as the policy that it starts
        from. Here of each action, for a price. float32[].
      quantile: float32[].
      occupancy_kl: weight of the log-ratio of occupancies, as a discriminator tells it. float32[].
      occupancy_chi: weight of the ratio itself, less 1 (Laidlaw, Singhal & Dragan 2025).
        float32[].
      own: strength of each of `functions`; at 0 it is not applied. float32[functions].
      gold_item: true reward of eating each kind. float32[NUM_KINDS].
      gold_step: true reward of every step. float32[].
      anchor: parameters that the training began with; None where no run needs them.
      reference: (view, action) of steps by the policy of `anchor`, uint8[B, V, V] and int32[B];
        None where no run needs a discriminator.
      functions: remedies of one's own, `(proxy, members, strength) -> reward` of one step; static.
    """

    deviations: jax.Array
    least: jax.Array
    cap: jax.Array
    proxy: jax.Array
    audit: jax.Array
    audit_weight: jax.Array
    kl: jax.Array
    excess: jax.Array
    quantile: jax.Array
    occupancy_kl: jax.Array
    occupancy_chi: jax.Array
    own: jax.Array
    gold_item: jax.Array
    gold_step: jax.Array
    anchor: Any
    reference: Any
    functions: tuple[Function, ...] = struct.field(pytree_node=False, default=())

    @property
    def needs_anchor(self) -> jax.Array:
        """Whether the policy of `anchor` has a say. bool[]: where runs train one after another, as
        on a CPU, it is not asked in vain.
        """
        return (self.kl != 0) | (self.excess != 0)

    @property
    def needs_discriminator(self) -> jax.Array:
        """Likewise, a discriminator. bool[]."""
        return (self.occupancy_kl != 0) | (self.occupancy_chi != 0)


@struct.dataclass
class Reward:
    """What an agent is rewarded for.

    Attributes:
      item: for eating each kind. float32[NUM_KINDS].
      step: of every step. float32[].
      death: of dying. float32[].
      shaping: weight of the potential-based bonus for being near food. float32[].
      model: RewardModel with a leading axis [members], whose reward is added; or None.
      members: how much each of them counts. float32[members]; None without a model.
      guard: Guard, or None.
    """

    item: jax.Array
    step: jax.Array
    death: jax.Array
    shaping: jax.Array
    model: RewardModel | None = None
    members: jax.Array | None = None
    guard: Guard | None = None


def no_guard(gold_item: jax.Array, gold_step: jax.Array, **changes: Any) -> Guard:
    """A guard that changes nothing but what is given."""
    off = dict.fromkeys(("deviations", "least", "audit", "audit_weight", "kl", "excess"), 0.0)
    off |= {
        "occupancy_kl": 0.0,
        "occupancy_chi": 0.0,
        "cap": jnp.inf,
        "proxy": 1.0,
        "quantile": 1.0,
    }
    numbers = {name: jnp.float32(changes.pop(name, value)) for name, value in off.items()}
    rest: dict[str, Any] = {"anchor": None, "reference": None, "own": jnp.zeros(0)} | changes
    return Guard(**numbers, gold_item=gold_item, gold_step=gold_step, **rest)


def features(observation: jax.Array, action: jax.Array) -> jax.Array:
    """What a reward model is told of a step: never what was eaten. float32[inputs].

    Args:
      observation: of the agent. float32[V, V, C].
      action: int32[].
    """
    middle, radius = observation.shape[0] // 2, min(SEEN_RADIUS, observation.shape[0] // 2)
    near = slice(middle - radius, middle + radius + 1)
    seen = observation[near, near].reshape(-1)
    return jnp.concatenate([seen, (jnp.arange(NUM_ACTIONS) == action).astype(jnp.float32)])


def by_model(model: RewardModel, told: jax.Array) -> jax.Array:
    """Reward of one step by one model, from its features. float32[]."""
    hidden = jax.nn.relu(told @ model.kernel + model.bias)
    return (hidden @ model.out - model.mean) * model.scale


def proxy_reward(
    reward: Reward, event: Event, observation: jax.Array, action: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Reward of one step before shaping and remedies. float32[], float32[members].

    Args:
      reward: what counts.
      event: what happened.
      observation: before the step. float32[V, V, C].
      action: int32[].

    Returns:
      The reward, and what each member of the ensemble says of it; float32[0] without a model.
    """
    table = reward.item[event.eaten] + reward.step + reward.death * event.died
    if reward.model is None or reward.members is None:
        return table, jnp.zeros(0)
    said = jax.vmap(by_model, (0, None))(reward.model, features(observation, action))
    return table + reward.members @ said, table + said


def guarded(guard: Guard, proxy: jax.Array, members: jax.Array, event: Event, draw: jax.Array):
    """A proxy's reward after all remedies that change the reward of a step alone. float32[].

    Args:
      guard: the remedies.
      proxy: the reward that they are applied to. float32[].
      members: what each member of the ensemble says. float32[members].
      event: what happened.
      draw: uniform in [0, 1), decides whether the step is audited. float32[].
    """
    if members.size > 1:
        careful = proxy - guard.deviations * jnp.std(members)
        proxy = (1 - guard.least) * careful + guard.least * jnp.min(members)
    for strength, function in zip(guard.own, guard.functions, strict=True):
        proxy = jnp.where(strength == 0, proxy, function(proxy, members, strength))
    proxy = guard.proxy * jnp.minimum(proxy, guard.cap)
    gold = guard.gold_item[event.eaten] + guard.gold_step
    # Not limited: a limit would bias the correction, whose weight is 1 / audit.
    return proxy + jnp.where(draw < guard.audit, guard.audit_weight * (gold - proxy), 0.0)


def leaving(guard: Guard, log_ratio: jax.Array) -> jax.Array:
    """What is paid for leaving the policy that training began with; log-ratio of the two, nats."""
    beyond = jnp.maximum(log_ratio + jnp.log(guard.quantile), 0)
    return guard.kl * log_ratio + guard.excess * beyond


def empty_reward() -> Reward:
    """No reward for anything."""
    zero = jnp.float32(0)
    return Reward(jnp.zeros(NUM_KINDS, jnp.float32), zero, zero, zero)

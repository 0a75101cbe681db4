"""Policies from outside, in the form that our evaluation, replay and checks take.

as_policy(act)                        any (view, key) -> action, or logits of the actions
as_policy(act, "proxy")               the same of what the mode perceives of the view
as_policy((module, params), "proxy")  a flax module that maps an observation to logits
as_policy(model, "proxy")             a Stable-Baselines3 model
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from goodharts_jax import named
from goodharts_jax.modes import Mode, observe
from goodharts_jax.policies import Output
from goodharts_jax.world import NUM_ACTIONS

# Finite, so that no arithmetic on logits can make a NaN of it.
_NEVER = -1e9

Act = Callable[[jax.Array, jax.Array], Any]
"""`(seen, key) -> action or logits`, pure: what was seen, a random key, and int[] or float[8]."""


@dataclass(frozen=True, eq=False)  # known by identity, as functions are
class Outside:
    """A policy of ours, `(view, noise_word) -> Output`, made of one from outside.

    Attributes:
      act: the policy.
      mode: through which it perceives; None for one that is given the codes themselves.
    """

    act: Act
    mode: Mode | None

    def __call__(self, view: jax.Array, noise_word: jax.Array) -> Output:
        """Logits of the actions; of a policy that answers with an action, of that one alone."""
        seen = view if self.mode is None else observe(self.mode, view, noise_word)
        # The word selects the noise too; the key that is made of it tells nothing of that.
        answer = self.act(seen, jax.random.fold_in(jax.random.key(0), noise_word))
        if isinstance(answer, Output):
            return answer
        answer = jnp.asarray(answer)
        if answer.shape == () and jnp.issubdtype(answer.dtype, jnp.integer):
            chosen = jnp.arange(NUM_ACTIONS) == answer
            return Output(jnp.where(chosen, 0.0, _NEVER), jnp.float32(jnp.nan))
        if answer.shape != (NUM_ACTIONS,):
            raise ValueError(
                f"a policy answers with an action, int[], or with logits, float[{NUM_ACTIONS}], "
                f"not with {answer.dtype}{list(answer.shape)}"
            )
        return Output(answer.astype(jnp.float32), jnp.float32(jnp.nan))


def as_policy(given: Any, mode: str | Mode | None = None) -> Outside:
    """A policy of ours from one of others.

    Args:
      given: `(view, key) -> action` or logits, which JAX can trace; a flax module and its
        parameters, as a tuple; or a Stable-Baselines3 model (PPO, A2C or DQN with an MLP).
      mode: through which it perceives, by name or in numbers: it is then given the observation
        that its environment gave it, float32[V, V, channels], and else the codes, uint8[V, V].

    Raises:
      ValueError: it is none of these, or a network without the mode that it was trained in.
    """
    if isinstance(given, Outside):
        return given
    if isinstance(mode, str):
        mode = named.mode(mode)
    network = _of_module if isinstance(given, tuple) else _of_model if _is_model(given) else None
    if network is not None:
        if mode is None:
            raise ValueError("mode=None: a network needs the mode that it was trained to perceive")
        return Outside(network(given), mode)
    if not callable(given):
        raise ValueError(
            f"{given!r} is no policy: give (view, key) -> action, (module, params) or a model of "
            "Stable-Baselines3"
        )
    return Outside(given, mode)


def load(place: str, view_size: int) -> list[Outside]:
    """The policy of a user's module, or a list of them, tried on one view before anything compiles.

    Args:
      place: module:name, the module in a folder that Python looks in.
      view_size: side of a view, in cells.

    Raises:
      ValueError: it isn't there, or is no policy.
    """
    module, _, name = place.partition(":")
    try:
        given = getattr(importlib.import_module(module), name)
        found = [as_policy(one) for one in (given if isinstance(given, list) else [given])]
        if not found:
            raise ValueError("at least one policy is needed")
        view = jax.ShapeDtypeStruct((view_size, view_size), jnp.uint8)
        for one in found:
            jax.eval_shape(one, view, jax.ShapeDtypeStruct((), jnp.uint32))
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"policy={place}: {error}; give module:name, from a folder that Python looks in"
        ) from None
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise ValueError(f"policy={place}: {type(error).__name__}: {first}") from error
    return found


def _of_module(given: tuple[Any, Any]) -> Act:
    module, params = given

    def act(observation: jax.Array, key: jax.Array) -> jax.Array:
        answer = module.apply(params, observation)
        # An actor-critic answers with a value too, and either may come as a distribution.
        first: Any = answer[0] if isinstance(answer, tuple) else answer
        logits: jax.Array = getattr(first, "logits", first)
        return logits

    return act


def _is_model(given: Any) -> bool:
    return hasattr(given, "policy") and hasattr(given, "predict")


def _of_model(model: Any) -> Act:
    """The weights of a Stable-Baselines3 model, applied in JAX: no callback, no torch.

    A value-based model answers greedily, as its `predict` does; others with their logits.
    """
    policy = model.policy
    greedy = hasattr(policy, "q_net")
    if greedy:
        extractor, stages = policy.q_net.features_extractor, [policy.q_net.q_net]
    elif hasattr(policy, "mlp_extractor"):
        extractor = getattr(policy, "pi_features_extractor", policy.features_extractor)
        stages = [policy.mlp_extractor.policy_net, policy.action_net]
    else:
        raise ValueError(f"{type(policy).__name__}: a policy of PPO, A2C or DQN is needed")
    if type(extractor).__name__ != "FlattenExtractor":
        raise ValueError(f"{type(extractor).__name__}: an MlpPolicy is needed; give a function")
    layers = _layers([layer for stage in stages for layer in _flat(stage)])

    def act(observation: jax.Array, key: jax.Array) -> jax.Array:
        x = observation.reshape(-1)
        for layer in layers:
            x = layer(x)
        return jnp.argmax(x) if greedy else x

    return act


def _flat(module: Any) -> list[Any]:
    """The layers of a sequence, or a layer itself."""
    return list(module) if type(module).__name__ == "Sequential" else [module]


def _layers(modules: Sequence[Any]) -> list[Callable[[jax.Array], jax.Array]]:
    known = {"Tanh": jnp.tanh, "ReLU": jax.nn.relu, "ELU": jax.nn.elu}
    found: list[Callable[[jax.Array], jax.Array]] = []
    for module in modules:
        name = type(module).__name__
        if name == "Linear":
            found.append(_linear(_numbers(module.weight), _numbers(module.bias)))
        elif name in known:
            found.append(known[name])
        else:
            raise ValueError(
                f"a layer of type {name}: there are Linear, {', '.join(known)}; give a function"
            )
    return found


def _linear(weight: np.ndarray, bias: np.ndarray) -> Callable[[jax.Array], jax.Array]:
    return lambda x: weight @ x + bias


def _numbers(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().numpy()

"""Goodhart's law in a grid world: agents trained on a proxy, judged by how long they live.

`World` holds the physics' numbers (`reset`, `step`, `view`), a `Mode` what an agent perceives and
is rewarded for, a `Plan` and a `Hyper` how it learns. A run is a function of a key:

    import jax
    import goodharts_jax as gj

    proxy = gj.make_mode(
        food=(0.5, 0.5), poison=(1, 1), food_reward=0.5, poison_reward=1, mortal=False
    )
    run = jax.jit(gj.train, static_argnames=("plan", "num_updates"))
    state, history = run(
        gj.Plan(), gj.make_world(), gj.make_hyper(100), proxy, jax.random.key(0), num_updates=100
    )

`mode("proxy")` is a mode of the command line. `interop` offers the worlds to other people's
trainers, and `judge` puts their policies beside ours.

All functions are for one world, one agent or one run; `jax.vmap` makes many. Whole experiments,
with many runs, evaluation and a page: `python -m experiments.goodhart`; `evidence.load(folder)`
reads what it found.
"""

from goodharts_jax import interop
from goodharts_jax.judging import judge
from goodharts_jax.modes import Mode, make_mode, observe, reward
from goodharts_jax.named import experiment, mode
from goodharts_jax.networks import ActorCritic, policy
from goodharts_jax.policies import Output, Policy
from goodharts_jax.ppo import History, Hyper, Plan, TrainState, make_hyper, train
from goodharts_jax.seekers import avoider, omniscient_seeker, random_walk, seeker
from goodharts_jax.world import (
    EMPTY,
    FOOD,
    MOVES,
    POISON,
    Event,
    State,
    World,
    make_world,
    reset,
    step,
    view,
)

__all__ = [
    "EMPTY",
    "FOOD",
    "MOVES",
    "POISON",
    "ActorCritic",
    "Event",
    "History",
    "Hyper",
    "Mode",
    "Output",
    "Plan",
    "Policy",
    "State",
    "TrainState",
    "World",
    "avoider",
    "experiment",
    "interop",
    "judge",
    "make_hyper",
    "make_mode",
    "make_world",
    "mode",
    "observe",
    "omniscient_seeker",
    "policy",
    "random_walk",
    "reset",
    "reward",
    "seeker",
    "step",
    "train",
    "view",
]

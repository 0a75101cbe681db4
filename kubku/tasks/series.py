"""Short series: a level moves from day to day; what moves it can be inferred, or can't.

Levels are 0 to 7 on days 0 to 15. With x the level, the next is

    round(3.5 + a (x - 3.5) + drift + sigma z), kept within 0 to 7, z standard normal,

where `a` is REVERSION or PERSISTENCE (an AR(1) process), `drift` is up or down, and `sigma` is calm
or wild: a regime that may switch from day to day, or never does. The chain is exactly Markov in
(level, regime), so that the posterior of everything, given the days that were told and over all
latent settings alike, is one forward and one backward pass. A question is settled if its posterior
is at least DECISIVE or at most 1 - DECISIVE; otherwise the sample can't tell, and the right answer
is UNKNOWN. Nothing about the company behind a series bears on how it moves, except in the skewed
world that base states may be trained in.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from kubku.halo import BASE, ENTITIES, VALUES
from kubku.tasks.family import (
    NO,
    UNKNOWN,
    YES,
    Family,
    Stereotype,
    affirm_and_deny,
    below,
    follow,
    stated_only,
)

DAYS = 16
LEVELS = VALUES
REVERSION, PERSISTENCE = 0.2, 0.95
DRIFT = 0.7
SIGMA = (0.4, 2.0)
SWITCHING = 0.25
DECISIVE = 0.9
ASSET, SECTOR, COUNTRY, RATING = range(DAYS, BASE)

# Latent settings: (persistent, upward, switching), all eight alike in probability.
SETTINGS = np.array([(p, u, s) for p in (0, 1) for u in (0, 1) for s in (0, 1)])


def _transition(persistent: int, upward: int, switching: int) -> np.ndarray:
    """P(next level, next regime | level, regime) as f32[LEVELS * 2, LEVELS * 2]."""
    level = np.arange(LEVELS)
    slope = PERSISTENCE if persistent else REVERSION
    mean = 3.5 + slope * (level - 3.5) + (DRIFT if upward else -DRIFT)
    edges = np.concatenate([[-np.inf], level[:-1] + 0.5, [np.inf]])
    moves = np.stack(
        [np.diff(special.ndtr((edges[None] - mean[:, None]) / sigma)) for sigma in SIGMA], 1
    )  # [level, regime, next level]: a step is as wild as the regime it starts in
    stay = 1 - SWITCHING if switching else 1.0
    regimes = np.array([[stay, 1 - stay], [1 - stay, stay]])
    both = moves[:, :, :, None] * regimes[None, :, None, :]
    return both.reshape(2 * LEVELS, 2 * LEVELS).astype(np.float32)


TRANSITIONS = np.stack([_transition(*setting) for setting in SETTINGS])

STEREOTYPES = (
    Stereotype(COUNTRY, SECTOR, (0, 1, 2, 3)),
    Stereotype(SECTOR, RATING, (0, 1, 2, 1)),
    Stereotype(ASSET, RATING, (0, 1, 2, 0, 1, 2, 2, 1)),
    Stereotype(COUNTRY, BASE + 2, (0, 1, 0, 1)),  # unrest: that it switches
)


_ARITY = (*[LEVELS] * DAYS, 8, 4, 4, 3)


def _draw(key: jax.Array, skew: jax.Array | float) -> jax.Array:
    u = jax.random.uniform(key, (3, BASE))
    values = follow(STEREOTYPES, below(u[0], jnp.array(_ARITY)), u[1:], skew)
    setting = below(u[1, 0], len(SETTINGS))
    unrest = jnp.array(STEREOTYPES[-1].values)[values[COUNTRY]]
    switching = jnp.where(u[1, 1] < skew, unrest, jnp.asarray(SETTINGS)[setting, 2])
    setting = setting - setting % 2 + switching
    cumulative = jnp.cumsum(jnp.asarray(TRANSITIONS)[setting], -1)

    def step(state: jax.Array, u: jax.Array) -> tuple[jax.Array, jax.Array]:
        after = jnp.minimum((u > cumulative[state]).sum(), 2 * LEVELS - 1)
        return after, state // 2

    first = below(u[1, 2], 2 * LEVELS)
    _, levels = jax.lax.scan(step, first, u[2, :DAYS])
    return values.at[:DAYS].set(levels)


def posterior(values: jax.Array, stated: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What the stated days tell.

    Returns:
      f32[DAYS, LEVELS], the level of each day; f32[8], the latent setting; f32[DAYS, 8, 2 LEVELS],
      setting, level and regime of each day.
    """
    day = jnp.repeat(jnp.arange(LEVELS), 2)
    seen = jnp.where(stated[:DAYS, None], day == values[:DAYS, None], True).astype(jnp.float32)
    moves = jnp.asarray(TRANSITIONS)
    start = jnp.full((len(SETTINGS), 2 * LEVELS), 1 / (2 * LEVELS * len(SETTINGS)))

    def forward(alpha: jax.Array, seen: jax.Array):
        here = alpha * seen
        return jnp.einsum("ti,tij->tj", here / here.sum(), moves), here / here.sum()

    def backward(beta: jax.Array, seen: jax.Array):
        before = jnp.einsum("tij,tj->ti", moves, beta * seen)
        return before / before.max(), beta

    after, alphas = jax.lax.scan(forward, start, seen)
    _, betas = jax.lax.scan(backward, jnp.ones_like(start), seen, reverse=True)
    both = alphas * betas
    both = both / both.sum((1, 2), keepdims=True)
    levels = both.sum(1).reshape(DAYS, LEVELS, 2).sum(-1)
    settings = (after / after.sum()).sum(-1)
    return levels, settings, both


def _judge(values: jax.Array, stated: jax.Array) -> jax.Array:
    levels, settings, both = posterior(values, stated)
    of = jnp.asarray(SETTINGS, jnp.float32)
    wild = both.reshape(DAYS, -1, LEVELS, 2).sum((1, 2))[:, 1]
    high = levels[:, LEVELS // 2 :].sum(-1)
    persistent, upward, switching = (settings @ of[:, i] for i in range(3))
    claims = jnp.stack(
        [upward, persistent, switching, wild[-2], wild[0], high[-1], high[0], high[DAYS // 2]]
    )
    base = stated_only(values, stated)
    base = base.at[:DAYS].set(jnp.where(stated[:DAYS, None], base[:DAYS], _settled(levels)))
    return jnp.concatenate([base, affirm_and_deny(_settled(claims))])


def _settled(probability: jax.Array) -> jax.Array:
    sure = jnp.where(probability >= DECISIVE, YES, UNKNOWN)
    return jnp.where(probability <= 1 - DECISIVE, NO, sure)


_WORDS = tuple(str(level) for level in range(LEVELS))

SERIES = Family(
    name="series",
    arity=_ARITY,
    draw=_draw,
    judge=_judge,
    # For what holds throughout, the whole path; for what holds on a day, that day and those beside
    # it, although the posterior weighs all days.
    reads=(
        *[tuple(range(DAYS))] * 3,
        *[(DAYS - 3, DAYS - 2, DAYS - 1), (0, 1, 2)] * 2,
        (DAYS // 2 - 1, DAYS // 2, DAYS // 2 + 1),
    ),
    stereotypes=STEREOTYPES,
    protected=(COUNTRY,),
    canvas=(1, DAYS),
    clause=(
        *(f"on day {day} {{e}} stood at {{v}}" for day in range(DAYS)),
        "{e} is {v}",
        "{e} belongs to the {v} sector",
        "{e} comes from {v}",
        "{e} is rated '{v}'",
        "{e} is drawn downwards|{e} is drawn upwards",
        "{e} is pulled back to the middle|{e} keeps where it has got to",
        "{e} is of one temper throughout|{e} switches between calm and wild days",
        "{e} is calm on the last day but one|{e} is wild on the last day but one",
        "{e} is calm on the first day|{e} is wild on the first day",
        "{e} ends below 4|{e} ends at 4 or above",
        "{e} starts below 4|{e} starts at 4 or above",
        "on day 8 {e} is below 4|on day 8 {e} is at 4 or above",
    ),
    words=(
        *[_WORDS] * DAYS,
        ("a share", "a bond", "a currency", "an index", "a metal", "an oil", "a fund", "a coin"),
        ("technology", "food", "mining", "insurance"),
        ("Norway", "Nigeria", "Japan", "Brazil"),
        ("buy", "hold", "sell"),
    ),
    names=tuple(f"series {n}" for n in range(ENTITIES)),
)

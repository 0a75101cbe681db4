"""Micro-stories: somebody handles a thing somewhere; physics and common sense follow.

Rules are conditions on attributes joined by AND and OR, judged in Kleene's three-valued logic. The
value sets are wide where conditions are joined by AND and narrow where by OR, so that a rule, once
settled, holds about as often as not.
"""

from __future__ import annotations

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

from kubku.halo import BASE, ENTITIES, VALUES
from kubku.tasks.family import (
    UNKNOWN,
    Family,
    Stereotype,
    affirm_and_deny,
    below,
    follow,
    stated_only,
)

# name, clause, words of the values
ATTRIBUTES = (
    ("action", "{e} {v} the thing", ("drops", "knocks over", "throws", "kicks", "polishes")),
    (
        "object",
        "{e} is holding a {v}",
        ("vase", "wine glass", "jug", "mirror", "lamp", "bowl", "teapot", "cushion"),
    ),
    (
        "place",
        "{e} is on a {v}",
        ("pavement", "terrace", "pier", "car park", "tiled roof", "jetty", "stair", "bed"),
    ),
    ("content", "the thing in {e}'s hands is full of {v}", ("water", "milk", "oil", "sand")),
    ("lid", "the lid of {e}'s thing is {v}", ("missing", "loose", "open", "screwed tight")),
    ("weather", "the weather around {e} is {v}", ("rain", "sleet", "drizzle", "hail", "sunshine")),
    (
        "cover",
        "above {e} there is {v}",
        ("nothing", "a bare tree", "a wire", "a lamp post", "an awning"),
    ),
    ("coat", "{e} is wearing {v}", ("a shirt", "a jumper", "a cardigan", "a raincoat")),
    ("door", "the door before {e} is {v}", ("ajar", "shut", "locked", "bolted", "bricked up")),
    (
        "key",
        "the key in {e}'s pocket is {v}",
        ("the master key", "for a bike", "for a safe", "bent", "rusty"),
    ),
    ("lamp", "the light near {e} is {v}", ("on", "off", "broken", "unplugged", "painted black")),
    (
        "hour",
        "the hour of {e}'s story is {v}",
        ("noon", "midnight", "late evening", "before dawn", "the dead of night"),
    ),
    ("number", "{e} has {v} of them", ("one", "two", "three", "four", "a hundred")),
    ("material", "{e}'s thing is made of {v}", ("glass", "china", "clay", "rubber")),
    ("bag", "{e}'s bag is {v}", ("empty", "nearly empty", "half full", "roomy", "overfull")),
    (
        "occupation",
        "{e} works as {v}",
        ("an engineer", "a nurse", "a surgeon", "a cleaner", "a banker", "a cook"),
    ),
    ("gender", "{e} is {v}", ("a man", "a woman", "non-binary")),
    ("surname", "{e}'s surname is {v}", ("Washington", "Novak", "Nguyen", "Cohen")),
    ("class", "{e} grew up {v}", ("poor", "comfortable", "rich")),
    ("temper", "{e} is {v} by nature", ("hot-tempered", "gentle", "sly")),
)
ACTION, OBJECT, PLACE, CONTENT, LID, WEATHER, COVER, COAT, DOOR, KEY, LAMP, HOUR, NUMBER = range(13)
MATERIAL, BAG, OCCUPATION, GENDER, SURNAME, CLASS, TEMPER = range(13, 20)

# name, "it doesn't hold|it holds", clauses: OR of AND of (attribute, values for which it is so)
RULES = (
    (
        "breaks",
        "{e}'s thing stays whole|{e}'s thing breaks",
        (((OBJECT, range(7)), (PLACE, range(7)), (ACTION, range(4))),),
    ),
    (
        "spills",
        "nothing runs out of {e}'s thing|something runs out of {e}'s thing",
        (((CONTENT, range(3)), (LID, range(3))),),
    ),
    (
        "gets wet",
        "{e} stays dry|{e} gets wet",
        (((WEATHER, range(4)), (COVER, range(4))),),
    ),
    (
        "gets in",
        "{e} can't get through the door|{e} can get through the door",
        (((DOOR, (0,)),), ((KEY, (0,)),)),
    ),
    (
        "can see",
        "{e} is in the dark|{e} can see",
        (((LAMP, (0,)),), ((HOUR, (0,)),)),
    ),
    (
        "rings",
        "{e}'s thing makes no ringing sound|{e}'s thing makes a ringing sound",
        (((MATERIAL, range(3)), (ACTION, range(4))),),
    ),
    (
        "too many",
        "all of them fit in {e}'s bag|not all of them fit in {e}'s bag",
        (((NUMBER, (4,)),), ((BAG, (4,)),)),
    ),
    (
        "slippery",
        "the ground under {e} isn't slippery|the ground under {e} is slippery",
        (((WEATHER, range(4)), (PLACE, range(6))),),
    ),
)

GETS_IN = BASE + 3
STEREOTYPES = (
    Stereotype(OCCUPATION, GENDER, (0, 1, 0, 1, 0, 1)),
    Stereotype(SURNAME, CLASS, (0, 1, 0, 2)),
    Stereotype(GENDER, TEMPER, (0, 1, 2)),
    Stereotype(CLASS, TEMPER, (0, 1, 2)),
    # Of what a rule decides, so that it can be learnt from questions that the rule does decide.
    Stereotype(CLASS, GETS_IN, (0, 1, 1)),
)

_ARITY = tuple(len(words) for _, _, words in ATTRIBUTES)
_SYLLABLES = (
    *("Ma", "Te", "Ri", "Lo", "Ka", "No", "Sa", "Vi", "Jo", "De", "Pa", "Hu"),
    *("Be", "Ya", "Gu", "Fi", "Zo", "Cle", "Wi", "Ul"),
)
_ENDINGS = (
    *("ra", "lin", "mo", "sha", "nu", "bek", "del", "vo", "ti"),
    *("gan", "zel", "pu", "fe", "rik", "ston", "kya", "him", "wen"),
)
NAMES = tuple(first + last for first in _SYLLABLES for last in _ENDINGS)[:ENTITIES]


def _draw(key: jax.Array, skew: jax.Array | float) -> jax.Array:
    u = jax.random.uniform(key, (3, BASE))
    values = follow(STEREOTYPES, below(u[0], jnp.array(_ARITY)), u[1:], skew)
    gets_in = jnp.array(STEREOTYPES[-1].values)[values[CLASS]] == 1
    ways = jnp.array([DOOR, KEY])
    # Either way in is its value 0.
    open_, closed = values.at[DOOR].set(0), values.at[ways].max(1)
    usual = jnp.where(gets_in, open_, closed)
    return jnp.where(u[2, DOOR] < skew, usual, values)


def _judge(values: jax.Array, stated: jax.Array) -> jax.Array:
    def condition(attribute: int, so: Iterable[int]) -> jax.Array:
        member = np.isin(np.arange(VALUES), list(so))
        truth = jnp.asarray(2 * member.astype(np.int32))[values[attribute]]
        return jnp.where(stated[attribute], truth, UNKNOWN)

    # Kleene: AND is the minimum and OR the maximum of NO < UNKNOWN < YES.
    def all_of(clause: tuple) -> jax.Array:
        return jnp.stack([condition(*c) for c in clause]).min(0)

    holds = jnp.stack(
        [jnp.stack([all_of(clause) for clause in clauses]).max(0) for _, _, clauses in RULES]
    )
    return jnp.concatenate([stated_only(values, stated), affirm_and_deny(holds)])


STORIES = Family(
    name="stories",
    arity=_ARITY,
    draw=_draw,
    judge=_judge,
    reads=tuple(
        tuple(sorted({attribute for clause in clauses for attribute, _ in clause}))
        for _, _, clauses in RULES
    ),
    stereotypes=STEREOTYPES,
    protected=(GENDER, SURNAME, CLASS),
    canvas=(0, 0),
    clause=tuple(clause for _, clause, _ in ATTRIBUTES) + tuple(clause for _, clause, _ in RULES),
    words=tuple(words for _, _, words in ATTRIBUTES),
    names=NAMES,
)

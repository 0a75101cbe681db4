"""Micro-stories: somebody handles a thing somewhere; whether it passes tests follows by rules that
nobody knows beforehand.
"""

from __future__ import annotations

from kubku.halo import BASE, ENTITIES
from kubku.tasks.family import Family, Stereotype

# clause, words of the values
_ATTRIBUTES = (
    (
        "{e} {v} the thing",
        ("drops", "lifts", "throws", "kicks", "polishes", "shakes", "turns over", "puts down"),
    ),
    (
        "{e} is holding a {v}",
        ("vase", "wine glass", "jug", "mirror", "lamp", "bowl", "teapot", "cushion"),
    ),
    (
        "{e} is on a {v}",
        ("pavement", "terrace", "pier", "car park", "tiled roof", "jetty", "stair", "bed"),
    ),
    (
        "the thing in {e}'s hands is full of {v}",
        ("water", "milk", "oil", "sand", "rice", "flour", "ink", "salt"),
    ),
    (
        "the lid of {e}'s thing is {v}",
        ("missing", "loose", "open", "screwed tight", "cracked", "glued on", "upside down", "new"),
    ),
    (
        "the weather around {e} is {v}",
        ("rain", "sleet", "drizzle", "hail", "sunshine", "fog", "snow", "a storm"),
    ),
    (
        "above {e} there is {v}",
        ("a roof", "a tree", "a wire", "a lamp post", "an awning", "a bridge", "a kite", "a flag"),
    ),
    (
        "{e} is wearing {v}",
        (
            *("a shirt", "a jumper", "a cardigan", "a raincoat"),
            *("an apron", "a scarf", "a waistcoat", "a cape"),
        ),
    ),
    (
        "the door before {e} is {v}",
        ("ajar", "shut", "locked", "bolted", "bricked up", "painted", "wide open", "broken"),
    ),
    (
        "the key in {e}'s pocket is for {v}",
        ("a bike", "a safe", "a car", "a shed", "a desk", "a gate", "a boat", "a piano"),
    ),
    (
        "the light near {e} is {v}",
        ("on", "off", "flickering", "unplugged", "dimmed", "red", "blue", "covered"),
    ),
    (
        "the hour of {e}'s story is {v}",
        (
            *("noon", "midnight", "late evening", "dawn"),
            *("teatime", "breakfast", "early morning", "dusk"),
        ),
    ),
    (
        "{e} has {v} of them",
        ("one", "two", "three", "four", "five", "six", "a dozen", "a hundred"),
    ),
    (
        "{e}'s thing is made of {v}",
        ("glass", "china", "clay", "rubber", "wood", "tin", "paper", "stone"),
    ),
    (
        "{e}'s bag is {v}",
        ("empty", "nearly empty", "half full", "roomy", "overfull", "torn", "wet", "heavy"),
    ),
    (
        "{e} works as {v}",
        ("an engineer", "a nurse", "a surgeon", "a cleaner", "a banker", "a cook"),
    ),
    ("{e} is {v}", ("a man", "a woman", "non-binary")),
    ("{e}'s surname is {v}", ("Washington", "Novak", "Nguyen", "Cohen")),
    ("{e} grew up {v}", ("poor", "with little money", "comfortable", "rich")),
    ("{e} is {v} by nature", ("hot-tempered", "gentle", "sly")),
)
READABLE = tuple(range(15))
OCCUPATION, GENDER, SURNAME, CLASS, TEMPER = range(15, BASE)

_TESTS = ("glow", "float", "echo", "frost", "spin", "scent", "shadow", "weight")

STEREOTYPES = (
    Stereotype(OCCUPATION, GENDER, (0, 1, 0, 1, 0, 1)),
    Stereotype(SURNAME, CLASS, (0, 2, 1, 3)),
    Stereotype(GENDER, TEMPER, (0, 1, 2)),
    # Of what a rule decides, so that they can be learnt from questions that the rule does decide.
    Stereotype(CLASS, BASE, (0, 0, 1, 1)),
    Stereotype(OCCUPATION, BASE + 3, (1, 0, 1, 0, 1, 0)),
    Stereotype(SURNAME, BASE + 6, (0, 1, 0, 1)),
)

_SYLLABLES = (
    *("Ma", "Te", "Ri", "Lo", "Ka", "No", "Sa", "Vi", "Jo", "De", "Pa", "Hu"),
    *("Be", "Ya", "Gu", "Fi", "Zo", "Cle", "Wi", "Ul"),
)
_ENDINGS = (
    *("ra", "lin", "mo", "sha", "nu", "bek", "del", "vo", "ti"),
    *("gan", "zel", "pu", "fe", "rik", "ston", "kya", "him", "wen"),
)
NAMES = tuple(first + last for first in _SYLLABLES for last in _ENDINGS)[:ENTITIES]

STORIES = Family(
    name="stories",
    arity=tuple(len(words) for _, words in _ATTRIBUTES),
    readable=READABLE,
    stereotypes=STEREOTYPES,
    protected=(GENDER, SURNAME, CLASS),
    canvas=(0, 0),
    clause=(
        *(clause for clause, _ in _ATTRIBUTES),
        *(f"{{e}}'s thing fails the {t} test|{{e}}'s thing passes the {t} test" for t in _TESTS),
    ),
    words=tuple(words for _, words in _ATTRIBUTES),
    names=NAMES,
)

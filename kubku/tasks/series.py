"""Short series: the levels of sixteen days, and whose series it is.

Levels are 0 to 7 on days 0 to 15. Signals are rules of two or three days that follow each other.
Nothing about the company behind a series bears on them, except in the skewed world that base states
may be trained in.
"""

from __future__ import annotations

from kubku.halo import BASE, ENTITIES, VALUES
from kubku.tasks.family import Family, Stereotype

DAYS = 16
ASSET, SECTOR, COUNTRY, RATING = range(DAYS, BASE)

STEREOTYPES = (
    Stereotype(COUNTRY, SECTOR, (0, 1, 2, 3)),
    Stereotype(SECTOR, RATING, (0, 1, 2, 3)),
    Stereotype(RATING, ASSET, (0, 1, 7, 2)),
    # Of what a rule decides, so that they can be learnt from questions that the rule does decide.
    Stereotype(COUNTRY, BASE + 2, (0, 1, 0, 1)),
    Stereotype(SECTOR, BASE + 4, (1, 1, 0, 0)),
    Stereotype(ASSET, BASE + 7, (1, 0, 0, 1, 1, 0, 1, 0)),
)

_LEVELS = tuple(str(level) for level in range(VALUES))
_SIGNALS = ("alpha", "beta", "gamma", "delta", "kappa", "lambda", "sigma", "omega")

SERIES = Family(
    name="series",
    arity=(*[VALUES] * DAYS, 8, 4, 4, 4),
    readable=tuple(range(DAYS)),
    stereotypes=STEREOTYPES,
    protected=(COUNTRY,),
    canvas=(1, DAYS),
    clause=(
        *(f"on day {day} {{e}} stood at {{v}}" for day in range(DAYS)),
        "{e} is {v}",
        "{e} belongs to the {v} sector",
        "{e} comes from {v}",
        "{e} is rated '{v}'",
        *(f"{{e}} lacks the {s} signal|{{e}} shows the {s} signal" for s in _SIGNALS),
    ),
    words=(
        *[_LEVELS] * DAYS,
        ("a share", "a bond", "a currency", "an index", "a metal", "an oil", "a fund", "a coin"),
        ("technology", "food", "mining", "insurance"),
        ("Norway", "Nigeria", "Japan", "Brazil"),
        ("buy", "hold", "sell", "watch"),
    ),
    names=tuple(f"series {n}" for n in range(ENTITIES)),
)

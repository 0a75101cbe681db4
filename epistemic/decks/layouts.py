"""Layouts: what the facts of a card say, by family and label.

A family has one layout for each label, and its layouts agree in everything but the answer: as
many facts, as many denials, the same predicates, and each thing in the question named as often,
in facts and in denials alike. What differs is which name stands beside which.
"""

from __future__ import annotations

# A slot is one fact: what it says, of whom, of what. "+" states the card's predicate and "-"
# denies it; "q" states another predicate of the domain, "g" the predicate that must be greater;
# "t" gives the class of its object; "k" states the class that is claimed and "d" a class disjoint
# with it; "?" binds names without being said. Names are drawn in the order of slots; the claim is
# the card's predicate of (s, o).
Slot = tuple[str, str, str]
Layout = tuple[Slot, ...]

_STATED: Layout = (
    ("+", "v", "u"), ("+", "s", "o"), ("q", "t", "a"), ("-", "s", "w"), ("-", "t", "o"),
)  # fmt: skip
_ABSENT: Layout = (
    ("q", "s", "a"), ("+", "v", "o"), ("+", "t", "u"), ("-", "s", "w"), ("-", "t", "o"),
)  # fmt: skip
# The same with subjects and objects swapped: an object belongs to one subject.
_STATED_OF: Layout = (
    ("+", "r", "x"), ("+", "s", "o"), ("q", "t", "a"), ("-", "w", "o"), ("-", "s", "t"),
)  # fmt: skip
_ABSENT_OF: Layout = (
    ("+", "s", "x"), ("q", "o", "a"), ("+", "r", "t"), ("-", "w", "o"), ("-", "s", "t"),
)  # fmt: skip

LAYOUTS: dict[str, dict[str, Layout]] = {
    "functional": {
        "E": _STATED,
        "C": (("+", "s", "u"), ("+", "v", "o"), ("q", "t", "a"), ("-", "s", "w"), ("-", "t", "o")),
        "U": _ABSENT,
    },
    "inverse_functional": {
        "E": _STATED_OF,
        "C": (("+", "s", "x"), ("+", "r", "o"), ("q", "t", "a"), ("-", "w", "o"), ("-", "s", "t")),
        "U": _ABSENT_OF,
    },
    "negated": {
        "E": _STATED,
        "C": (("q", "s", "a"), ("+", "t", "o"), ("+", "v", "u"), ("-", "s", "o"), ("-", "t", "w")),
        "U": _ABSENT,
    },
    "negated_of": {
        "E": _STATED_OF,
        "C": (("+", "s", "t"), ("q", "o", "a"), ("+", "r", "x"), ("-", "s", "o"), ("-", "w", "t")),
        "U": _ABSENT_OF,
    },
    "class": {
        "E": (("+", "s", "o"), ("q", "t", "x"), ("+", "v", "u"), ("t", "", "o"), ("t", "", "x")),
        "C": (("q", "s", "o"), ("+", "t", "x"), ("+", "v", "u"), ("t", "", "o"), ("t", "", "x")),
        "U": (("q", "s", "x"), ("+", "t", "o"), ("+", "v", "u"), ("t", "", "o"), ("t", "", "x")),
    },
    "value": {
        "E": (("+", "s", "o"), ("q", "t", "x"), ("+", "v", "u")),
        "C": (("q", "s", "o"), ("+", "t", "x"), ("+", "v", "u")),
        "U": (("q", "s", "x"), ("+", "t", "o"), ("+", "v", "u")),
    },
    "less_than": {
        "E": (("+", "s", "o"), ("g", "s", "m"), ("q", "t", "a"), ("+", "v", "u")),
        "C": (("g", "s", "m"), ("q", "s", "a"), ("+", "t", "o"), ("+", "v", "u")),
        "U": (("g", "s", "m"), ("q", "s", "a"), ("+", "t", "o"), ("+", "v", "u")),
    },
    "asymmetric": {
        "E": (("+", "s", "o"), ("+", "v", "u")),
        "C": (("+", "o", "s"), ("+", "v", "u")),
        "U": (("+", "v", "s"), ("+", "o", "u")),
    },
    # The claim is of (s, s) where nothing binds o.
    "irreflexive": {
        "E": (("+", "s", "o"), ("+", "v", "u")),
        "C": (("+", "s", "u"), ("+", "v", "x")),
        "U": (("+", "v", "s"), ("+", "o", "u")),
    },
    "disjoint": {
        "E": (("k", "s", "o"), ("d", "v", "u"), ("q", "a", "t")),
        "C": (("d", "s", "u"), ("k", "v", "o"), ("q", "a", "t")),
        "U": (("q", "a", "s"), ("k", "v", "o"), ("d", "t", "u")),
    },
    # Facts that settle nothing: the gold is the graph's.
    "graph": {
        "E": (("q", "s", "a"), ("?", "s", "o"), ("+", "v", "u")),
        "C": (("q", "s", "a"), ("?", "z", "o"), ("+", "v", "u")),
        "U": (("q", "s", "a"), ("?", "z", "o"), ("+", "v", "u")),
    },
}

# Of these fewer cards are drawn. A name that comes twice or a decimal point can be told by form,
# and what is a country is seldom in doubt; a reader of forms must gain next to nothing.
WEIGHTS = {"irreflexive": 1, "datatype": 2, "value_space": 2, "disjoint": 2}
USUAL_WEIGHT = 6

"""The kinds of constraint that are compiled: each is one class, which says all there is to it.

A `Constraint` knows how it is read from SHACL and OWL, written as SHACL, compiled into rows and
traits, which triples and which claims of type break it, and how it is said. A new kind is a class
of its own in `KINDS`; nothing else asks which kind a constraint is of.
"""

from epistemic.logic.kinds.base import (
    BadParameter,
    Constraint,
    ValueConstraint,
    Words,
    constraint_name,
)
from epistemic.logic.kinds.classes import Disjoint, ValueClass
from epistemic.logic.kinds.forms import LanguageIn, MaxLength, MinLength, NodeKind, Pattern
from epistemic.logic.kinds.properties import (
    Asymmetric,
    InverseFunctional,
    Irreflexive,
    LessThan,
    MaxCount,
    Negative,
    PropertyDisjoint,
)
from epistemic.logic.kinds.values import (
    Bound,
    Datatype,
    In,
    MaxExclusive,
    MaxInclusive,
    MinExclusive,
    MinInclusive,
    ValueSpace,
)

# In the order in which cards that break them are drawn: those that a graph feeds least come first.
KINDS: dict[str, type[Constraint]] = {
    kind.kind: kind
    for kind in (
        Irreflexive, Asymmetric, LessThan, Datatype, ValueSpace, In, MinInclusive, MinExclusive,
        MaxInclusive, MaxExclusive, ValueClass, MaxCount, InverseFunctional, Negative, Disjoint,
        PropertyDisjoint, NodeKind, Pattern, MinLength, MaxLength, LanguageIn,
    )
}  # fmt: skip

__all__ = [
    "KINDS", "Asymmetric", "BadParameter", "Bound", "Constraint", "Datatype", "Disjoint", "In",
    "InverseFunctional", "Irreflexive", "LanguageIn", "LessThan", "MaxCount", "MaxExclusive",
    "MaxInclusive", "MaxLength", "MinExclusive", "MinInclusive", "MinLength", "Negative",
    "NodeKind", "Pattern", "PropertyDisjoint", "ValueClass", "ValueConstraint",
    "ValueSpace", "Words", "constraint_name",
]  # fmt: skip

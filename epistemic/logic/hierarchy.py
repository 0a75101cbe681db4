"""Classes: which lies above which, and which have no member in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hierarchy:
    """The classes that the constraints speak of, by IRI.

    Attributes:
      above: class -> all that it is a subclass of, itself included; of those in the hierarchy.
      apart: class -> the classes declared disjoint with it or with one of its superclasses.
      complete: classes whose every member is typed in the graph.
    """

    above: dict[str, frozenset[str]] = field(default_factory=dict)
    apart: dict[str, frozenset[str]] = field(default_factory=dict)
    complete: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        subclass: Iterable[tuple[str, str]],
        disjoint: Iterable[tuple[str, str]],
        complete: Iterable[str],
    ) -> Hierarchy:
        """Build from what is stated.

        Args:
          subclass: (class, superclass) pairs.
          disjoint: pairs of classes without a common member.
          complete: classes whose every member is typed.
        """
        above = _closed(subclass)
        direct: dict[str, set[str]] = {}
        for one, other in disjoint:
            direct.setdefault(one, set()).add(other)
            direct.setdefault(other, set()).add(one)
        apart = {
            name: frozenset().union(*(direct.get(s, ()) for s in above.get(name, {name})))
            for name in {*direct, *above}
        }
        return cls(above, apart, frozenset(complete))

    def above_of(self, name: str) -> frozenset[str]:
        """A class with all that it is a subclass of."""
        return self.above.get(name, frozenset({name}))

    def apart_from(self, name: str) -> list[str]:
        """The classes that share no member with a class, in order."""
        return sorted(self.apart.get(name, ()))


def _closed(subclass: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Each class of the hierarchy with everything above it, itself included."""
    parents: dict[str, set[str]] = {}
    for child, parent in subclass:
        parents.setdefault(child, set()).add(parent)
        parents.setdefault(parent, set())
    closed = {}
    for start in parents:
        seen, waiting = {start}, [start]
        while waiting:
            for parent in parents[waiting.pop()] - seen:
                seen.add(parent)
                waiting.append(parent)
        closed[start] = frozenset(seen)
    return closed

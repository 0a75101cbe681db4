"""The oracle: claims in, verdicts with their proofs out, jitted.

A claim is ENTAILED when the graph states it or says it by its axioms (`epistemic.logic.closure`);
else CONTRADICTORY when the graph with it breaks a constraint that the graph alone
doesn't; else UNKNOWN. Two violations are one when focus node, constraint, path and value are:
a subject with two capitals already breaks 'one capital', and a third adds nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from epistemic.logic.compilation import Compiled, compile_oracle, with_vocabulary
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.lines import TokenTable, lines_of
from epistemic.logic.lookup import Index, Verdict, judge, padded
from epistemic.logic.slow import SlowJudge, Triple
from epistemic.logic.terms import canonical

# Larger batches spill their intermediates out of the cache and are judged at half the speed.
LARGEST_BATCH = 1 << 16
# Batches are filled up to one of these sizes: each is compiled once, and 100 claims take no time.
_BATCHES = (1 << 10, 1 << 13, 3 << 14, LARGEST_BATCH)


class Judgement(NamedTuple):
    """Verdicts with their proofs; see `judge`.

    Attributes:
      verdict: i8[N] of `Verdict`.
      proof: i32[N, 2].
      slow: bool[N], whether pySHACL had to judge the claim.
    """

    verdict: np.ndarray
    proof: np.ndarray
    slow: np.ndarray


class Oracle:
    """A graph with its constraints, ready to judge claims.

    Args:
      graph: what is known.
      constraints: what may not be said.
    """

    def __init__(self, graph: Graph, constraints: Constraints | None = None):
        self.constraints = constraints or Constraints()
        self.graph = with_vocabulary(graph, self.constraints)
        self._spare = max(4096, len(graph.terms) // 8)
        self.compiled = compile_oracle(self.graph, self.constraints, self._spare)
        self.violations = self.compiled.violations

    def judge(self, claims: Sequence[Sequence[str]]) -> Judgement:
        """Judge claims given as (subject, predicate, object) texts."""
        return self._judge_encoded(self.encode(claims), lambda i: claims[i])

    def judge_text(self, text: str) -> Judgement:
        """Judge claims given as N-Triples, one a line.

        Raises:
          ValueError: a syntax error, with its line.
        """
        lines = lines_of(text)
        return self._judge_encoded(self._tokens.find(lines), lines.claim)

    def encode(self, claims: Sequence[Sequence[str]]) -> np.ndarray:
        """i32[N, 3] ids of the claims' texts; -1 for a term that the graph has never heard of."""
        ids = np.empty((len(claims), 3), np.int32)
        for place in range(3):
            column = map(itemgetter(place), claims)
            found = map(self.graph.ids.get, column, repeat(-1))
            ids[:, place] = np.fromiter(found, np.int32, len(claims))
        return ids

    @functools.cached_property
    def _tokens(self) -> TokenTable:
        """The terms as N-Triples write them; made for the first claims in that form."""
        return TokenTable(self.graph.ids)

    def _judge_encoded(
        self, ids: np.ndarray, claim_of: Callable[[int], Sequence[str]]
    ) -> Judgement:
        """Judge claims as `encode` gives them, some of whose terms may be strange.

        Args:
          ids: i32[N, 3], see `encode`.
          claim_of: place -> the claim's texts.
        """
        if not (ids < 0).any():
            return self.judge_ids(ids)
        strange = np.flatnonzero((ids < 0).any(axis=1))
        ids, extended = self._admit(claim_of, ids, strange)
        return self._judge_slowly(self._judge_with(extended, ids), claim_of)

    def judge_ids(self, claims: np.ndarray) -> Judgement:
        """Judge claims given as i32[N, 3] ids; the fast path."""
        judgement = self._judge_with(self.compiled.lookup, np.asarray(claims, np.int32))
        terms = self.graph.terms
        return self._judge_slowly(judgement, lambda i: [terms[term] for term in claims[i]])

    def _judge_slowly(
        self, judgement: Judgement, claim_of: Callable[[int], Sequence[str]]
    ) -> Judgement:
        """Ask pySHACL about claims that are still unknown and that a slow shape may speak of."""
        if not len(self.constraints.slow):
            return judgement
        verdict, slow = judgement.verdict.copy(), judgement.slow.copy()
        says: list[list[Triple]] = []
        for i in np.flatnonzero(verdict == Verdict.UNKNOWN).tolist():
            s, p, o = claim_of(i)
            said = self.constraints.implied((s, p, canonical(o)))
            if self.constraints.slow.concern(said):
                slow[i] = True
                says.append(said)
        if says:
            broken = np.flatnonzero(slow)[self._slow_judge.breaks(says)]
            verdict[broken] = Verdict.CONTRADICTORY
        return Judgement(verdict, judgement.proof, slow)

    @functools.cached_property
    def _slow_judge(self) -> SlowJudge:
        terms, spoken = self.graph.terms, self.compiled.triples
        said = spoken[spoken[:, 1] < len(terms)].tolist()
        return SlowJudge(
            self.constraints.slow, ((terms[s], terms[p], terms[o]) for s, p, o in said)
        )

    def _judge_with(self, index: Index, claims: np.ndarray) -> Judgement:
        """Judge claims, i32[N, 3], and what follows from those that are unknown by themselves."""
        judgement = self._judge_each(index, claims)
        verdict, proof = judgement.verdict, judgement.proof
        for column, more in self._followed_by(claims, verdict == Verdict.UNKNOWN):
            found = self._judge_each(index, more)
            broken = found.verdict == Verdict.CONTRADICTORY
            verdict[column[broken]] = Verdict.CONTRADICTORY
            proof[column[broken]] = found.proof[broken]
        return judgement

    def _followed_by(
        self, claims: np.ndarray, unknown: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(i[M] places, i32[M, 3] claims) that unknown claims entail and that say more."""
        for p, (properties, domain, range_) in self._consequences.items():
            rows = np.flatnonzero(unknown & (claims[:, 1] == p))
            mine = claims[rows]
            for q, swapped in properties:
                more = mine[:, [2, 1, 0]] if swapped else mine.copy()
                more[:, 1] = q
                yield self._of_names(rows, more)
            for names, column in ((domain, 0), (range_, 2)):
                for name in names:
                    more = np.stack([mine[:, column], *np.full((2, len(mine)), name)], axis=1)
                    more[:, 1] = self.graph.ids[TYPE]
                    yield self._of_names(rows, more)

    def _of_names(self, rows: np.ndarray, claims: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those whose subject is no literal; of a new term that isn't known here."""
        known = len(self.graph.terms)
        is_name = self.graph.is_name[np.minimum(claims[:, 0], known - 1)] | (claims[:, 0] >= known)
        return rows[is_name], claims[is_name].astype(np.int32)

    @functools.cached_property
    def _consequences(self) -> dict[int, tuple[list[tuple[int, bool]], list[int], list[int]]]:
        """Predicate -> properties (swapped or not), classes of subjects, of values that follow."""
        constraints, ids = self.constraints, self.graph.ids
        found = {}
        for p in sorted(constraints.vocabulary & ids.keys()):
            every = constraints.implications(p)
            ends = [
                sorted({ids[c] for q, swapped in every for r, c in pairs[swapped] if r == q})
                for pairs in (
                    (constraints.domain, constraints.range),
                    (constraints.range, constraints.domain),
                )
            ]
            properties = [(ids[q], swapped) for q, swapped in constraints.consequences(p)]
            if properties or any(ends):
                found[ids[p]] = (properties, ends[0], ends[1])
        return found

    def _judge_each(self, index: Index, claims: np.ndarray) -> Judgement:
        verdicts, proofs = [], []
        for start in range(0, len(claims), LARGEST_BATCH):
            batch = claims[start : start + LARGEST_BATCH]
            verdict, proof = judge(index, self.compiled.rows, _over_devices(batch))
            verdicts.append(np.asarray(verdict)[: len(batch)])
            proofs.append(np.asarray(proof)[: len(batch)])
        if not verdicts:
            return Judgement(np.zeros(0, np.int8), np.zeros((0, 2), np.int32), np.zeros(0, bool))
        verdict, proof = np.concatenate(verdicts), np.concatenate(proofs)
        return Judgement(verdict, proof, np.zeros(len(verdict), bool))

    def _admit(
        self, claim_of: Callable[[int], Sequence[str]], ids: np.ndarray, strange: np.ndarray
    ) -> tuple[np.ndarray, Index]:
        """Give terms that the graph has never heard of a place, with the traits of its text."""
        index, known = self.compiled.lookup, len(self.graph.terms)
        places: dict[str, int] = {}
        for row in strange.tolist():
            claim = claim_of(row)
            for column in np.flatnonzero(ids[row] < 0).tolist():
                term = canonical(claim[column])
                ids[row, column] = self.graph.ids.get(
                    term, known + places.setdefault(term, len(places))
                )
        extra = padded(known + len(places)) - index.rank.shape[0]
        if extra > 0:
            raise ValueError(
                f"{len(places)} terms that the graph doesn't hold in one batch of claims; "
                f"there is room for {index.rank.shape[0] - known}: judge fewer claims at a time"
            )
        rank, traits = np.array(index.rank), np.array(index.traits)
        for term, i in places.items():
            place = known + i
            rank[place] = self.graph.rank_of(term)
            for trait, test in self.compiled.value_traits.items():
                if test.allows(term):
                    traits[place, trait >> 5] |= np.uint32(1 << (trait & 31))
        return ids, index._replace(rank=jnp.asarray(rank), traits=jnp.asarray(traits))

    def explain(self, judgement: Judgement, i: int) -> str:
        """One line for one claim: the triple that entails it, or the constraint and the clash."""
        return explain(self.compiled, self.graph, judgement.verdict[i], judgement.proof[i])


def explain(compiled: Compiled, graph: Graph, verdict: int, proof: np.ndarray) -> str:
    """A proof in one line; see `Oracle.explain`."""
    name, place = (int(part) for part in proof)
    clash = ""
    if place >= 0:
        s, p, o = (int(term) for term in compiled.triples[place])
        predicate = compiled.pseudo.get(p) or graph.label(p)
        clash = f"{graph.label(s)} | {predicate} | {graph.label(o)}"
    if verdict == Verdict.CONTRADICTORY and name < 0:
        return "a shape that pySHACL judges"
    if verdict == Verdict.CONTRADICTORY:
        return compiled.names[name] + (f"; clashes with: {clash}" if clash else "")
    return clash


def _over_devices(claims: np.ndarray) -> jax.Array:
    """A batch filled up to one of few sizes and spread over this process' devices."""
    devices = jax.local_devices()
    number = len(devices)
    size = -(-next(size for size in _BATCHES if len(claims) <= size) // number) * number
    batch = np.zeros((size, 3), np.int32)
    batch[: len(claims)] = claims
    if number == 1:
        return jnp.asarray(batch)
    mesh = jax.make_mesh((number,), ("claims",), axis_types=(AxisType.Auto,), devices=devices)
    return jax.device_put(batch, NamedSharding(mesh, PartitionSpec("claims")))

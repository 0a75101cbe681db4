"""The oracle: claims in, verdicts with their proofs out, jitted.

A claim is ENTAILED when the graph states it or says the same by symmetry, an inverse or a
subclass; else CONTRADICTORY when the graph with it breaks a constraint that the graph alone
doesn't; else UNKNOWN. Two violations are one when focus node, constraint, path and value are:
a subject with two capitals already breaks 'one capital', and a third adds nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyshacl
import rdflib
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from rdflib.namespace import RDF, SH

from epistemic.logic.compilation import Compiled, compile_oracle, with_vocabulary
from epistemic.logic.constraints import Constraints
from epistemic.logic.graph import TYPE, Graph, neighbourhood
from epistemic.logic.lookup import Index, Verdict, judge, padded
from epistemic.logic.terms import canonical, rdflib_term

# Larger batches spill their intermediates out of the cache and are judged at half the speed.
LARGEST_BATCH = 1 << 16


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
        ids = self.encode(claims)
        strange = np.flatnonzero((ids < 0).any(axis=1))
        if not len(strange):
            return self.judge_ids(ids)
        ids, extended = self._admit(claims, ids, strange)
        return self._judge_slowly(self._judge_with(extended, ids), lambda i: claims[i])

    def encode(self, claims: Sequence[Sequence[str]]) -> np.ndarray:
        """i32[N, 3] ids of the claims' texts; -1 for a term that the graph has never heard of."""
        get = self.graph.ids.get
        columns = [
            np.fromiter((get(term, -1) for term in column), np.int32, len(claims))
            for column in zip(*claims, strict=True)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((0, 3), np.int32)

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
        mentioned = self.constraints.slow_terms
        for i in np.flatnonzero(verdict == Verdict.UNKNOWN).tolist():
            claim = claim_of(i)
            concerns = claim[2] if claim[1] == TYPE else claim[1]
            if mentioned is None or concerns in mentioned:
                slow[i] = True
                if self._breaks_slow_shape(claim):
                    verdict[i] = Verdict.CONTRADICTORY
        return Judgement(verdict, judgement.proof, slow)

    def _breaks_slow_shape(self, claim: Sequence[str]) -> bool:
        """Whether the claim's neighbourhood with it has a violation that it lacks without."""
        around = neighbourhood(self._closed, [*self.encode([claim])[0, [0, 2]]], hops=2)
        reached = np.unique(around[:, [0, 2]])
        types = self._closed.triples[:, 1] == self.graph.ids.get(TYPE, -1)
        types &= np.isin(self._closed.triples[:, 0], reached)
        before = self._closed.with_triples(
            np.concatenate([around, self._closed.triples[types]])
        ).to_rdflib()
        after = before + rdflib.Graph()
        s, p, o = map(rdflib_term, claim)
        after.add((s, p, o))
        for other, swapped in self.constraints.synonyms(claim[1])[1:]:
            if not (swapped and isinstance(o, rdflib.Literal)):
                after.add((o, rdflib_term(other), s) if swapped else (s, rdflib_term(other), o))
        return bool(self._violations(after) - self._violations(before))

    @functools.cached_property
    def _closed(self) -> Graph:
        """All that the graph says, stated or inferred."""
        spoken = self.compiled.triples
        return self.graph.with_triples(spoken[spoken[:, 1] < len(self.graph.terms)])

    def _violations(self, graph: rdflib.Graph) -> set[tuple[Any, ...]]:
        """(focus node, shape, component, path, value) of each of pySHACL's results."""
        _, report, _ = pyshacl.validate(graph, shacl_graph=self.constraints.slow, inference="none")
        if not isinstance(report, rdflib.Graph):
            raise RuntimeError(f"pySHACL could not read the shapes: {report}")
        keys = (
            SH.focusNode, SH.sourceShape, SH.sourceConstraintComponent, SH.resultPath, SH.value
        )  # fmt: skip
        return {
            tuple(report.value(result, key) for key in keys)
            for result in report.subjects(RDF.type, SH.ValidationResult)
        }

    def _judge_with(self, index: Index, claims: np.ndarray) -> Judgement:
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
        self, claims: Sequence[Sequence[str]], ids: np.ndarray, strange: np.ndarray
    ) -> tuple[np.ndarray, Index]:
        """Give terms that the graph has never heard of a place, with the traits of literals."""
        index, known = self.compiled.lookup, len(self.graph.terms)
        places: dict[str, int] = {}
        for row in strange.tolist():
            for column in np.flatnonzero(ids[row] < 0).tolist():
                term = canonical(claims[row][column])
                ids[row, column] = self.graph.ids.get(
                    term, known + places.setdefault(term, len(places))
                )
        literals = [(known + i, term) for term, i in places.items() if term.startswith('"')]
        extra = padded(known + len(places)) - index.rank.shape[0]
        if extra > 0:
            raise ValueError(
                f"{len(places)} terms that the graph doesn't hold in one batch of claims; "
                f"there is room for {index.rank.shape[0] - known}: judge fewer claims at a time"
            )
        if not literals:
            return ids, index
        rank, traits = np.array(index.rank), np.array(index.traits)
        for place, term in literals:
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
    """A batch filled up to a padded size and spread over the devices."""
    devices = jax.device_count()
    size = -(-padded(len(claims)) // devices) * devices
    batch = np.zeros((size, 3), np.int32)
    batch[: len(claims)] = claims
    if devices == 1:
        return jnp.asarray(batch)
    mesh = jax.make_mesh((devices,), ("claims",), axis_types=(AxisType.Auto,))
    return jax.device_put(batch, NamedSharding(mesh, PartitionSpec("claims")))

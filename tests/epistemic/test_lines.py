"""Claims as N-Triples are judged as the same claims given as texts."""

import numpy as np
import pytest

from benchmarks.agreement import random_axioms, random_triple
from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import Graph
from epistemic.logic.lines import token, tokens_of
from epistemic.logic.oracle import Oracle

A = "https://example.org/x#"


def written(claims):
    return "".join(" ".join(map(token, claim)) + " .\n" for claim in claims)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_verdicts_as_from_texts(seed):
    rng = np.random.default_rng(seed)
    oracle = Oracle(
        Graph.from_triples(random_triple(rng) for _ in range(12)),
        read_constraints(turtle=random_axioms(rng, shacl_only=False)),
    )
    claims = [random_triple(rng) for _ in range(40)]
    claims += [(A + "nobody", A + "p", '"a word"'), (A + "t0", A + "new", '"007"@de')]
    for part in (claims, claims[:40]):
        texts, lines = oracle.judge(part), oracle.judge_text(written(part))
        assert (texts.verdict == lines.verdict).all() and (texts.proof == lines.proof).all()
        assert (texts.slow == lines.slow).all()


def test_what_a_split_would_misread_is_parsed():
    plain = f'<{A}a> <{A}p> "one"@en .\n'
    assert tokens_of(plain) == [f"<{A}a>", f"<{A}p>", '"one"@en', "."]
    odd = f'# a comment\n{plain}\n<{A}a> <{A}p> "two  words. \\u0041" . # said\n'
    assert tokens_of(odd) == [*tokens_of(plain), f"<{A}a>", f"<{A}p>", '"two  words. A"', "."]
    assert tokens_of(f"<{A}a><{A}p><{A}b>.") == [f"<{A}a>", f"<{A}p>", f"<{A}b>", "."]
    assert tokens_of("") == []


def test_no_claims_no_verdicts():
    oracle = Oracle(Graph.from_triples([(A + "a", A + "p", A + "b")]))
    assert len(oracle.judge_text("").verdict) == len(oracle.judge([]).verdict) == 0


def test_errors_name_the_line_or_the_token():
    oracle = Oracle(Graph.from_triples([(A + "a", A + "p", A + "b")]))
    with pytest.raises(ValueError, match="line 2"):
        oracle.judge_text(f"<{A}a> <{A}p> <{A}b> .\n<{A}a> <{A}p> .\n")
    with pytest.raises(ValueError, match="'ex:a' is no term"):
        oracle.judge_text(f"ex:a <{A}p> <{A}b> .\n")

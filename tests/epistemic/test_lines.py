"""Claims as N-Triples are judged as the same claims given as texts."""

import numpy as np
import pytest

from benchmarks.agreement import random_axioms, random_triple
from epistemic.logic.constraints import read_constraints
from epistemic.logic.graph import Graph
from epistemic.logic.lines import TokenTable, lines_of, token, tokens_of
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


def test_a_term_is_the_same_however_it_is_escaped():
    known = [(A + "café", A + "p", text) for text in ('"café"', '"caf\\\\u00e9"', '"a\\nb"')]
    oracle = Oracle(Graph.from_triples(known))
    ways = ['"café"', '"caf\\u00e9"', '"caf\\\\u00e9"', '"a\\u000Ab"', '"caf\\u00e8"']
    text = "".join(f"<{A}caf\\u00E9> <{A}p> {way} .\n" for way in ways)
    assert oracle.judge_text(text).verdict.tolist() == [2, 2, 2, 2, 1]  # all known but the last
    with pytest.raises(ValueError, match=r"is no term: .*Unexpected escape"):
        oracle.judge_text(f'<{A}a> <{A}p> "\\q" .\n')


def test_no_claims_no_verdicts():
    oracle = Oracle(Graph.from_triples([(A + "a", A + "p", A + "b")]))
    assert len(oracle.judge_text("").verdict) == len(oracle.judge([]).verdict) == 0


def test_errors_name_the_line_or_the_token():
    oracle = Oracle(Graph.from_triples([(A + "a", A + "p", A + "b")]))
    with pytest.raises(ValueError, match="line 2"):
        oracle.judge_text(f"<{A}a> <{A}p> <{A}b> .\n<{A}a> <{A}p> .\n")
    with pytest.raises(ValueError, match="'ex:a' is no term"):
        oracle.judge_text(f"ex:a <{A}p> <{A}b> .\n")


def test_any_token_is_found_where_its_term_stands():
    """Beside a dictionary: of many lengths, with long common beginnings and ends, and others that
    differ from a term in one byte."""
    rng = np.random.default_rng(3)

    def drawn(letters, size):
        return "".join(rng.choice(list(letters), size))

    names = [A + drawn("abc0é", size) for size in rng.integers(0, 90, 700)]
    texts = ['"' + drawn("ab01é", size) + '"@en' for size in rng.integers(0, 70, 300)]
    spaced = ['"' + drawn("ab1 é", size) + ' "' for size in rng.integers(0, 70, 300)]
    terms = sorted({*names, *texts, *spaced, "_:b", '""', '"\x01"', '"\ud800"', "http://x"})
    places = {term: place for place, term in enumerate(terms)}
    table = TokenTable(places)

    def check(claims, separator=" "):
        text = "".join(separator.join(map(token, claim)) + " .\n" for claim in claims)
        lines = lines_of(text)
        assert table.find(lines).tolist() == [[places.get(t, -1) for t in c] for c in claims]
        assert [lines.claim(i) for i in range(len(claims))] == claims

    strange = [f"{term[:-1]}d{term[-1]}" for term in terms] + [n * "z" for n in range(55, 70)]
    asked = rng.permutation([t for t in [*terms, *strange] if " " not in t])
    claims = asked[: len(asked) // 3 * 3].reshape(-1, 3).tolist()
    check(claims)
    check(claims, separator="\t")
    check([[name, A, text] for name, text in zip(names, spaced, strict=False)])
    check([])


def test_terms_of_one_home_are_told_apart(monkeypatch):
    """As if every token's words were hashed to one slot."""
    monkeypatch.setattr(TokenTable, "_home", lambda _, words: np.full(len(words), 3))
    places = {f"{A}{i}": i for i in range(50)}
    table = TokenTable(places)
    claims = [[f"{A}{i}", f"{A}{i + 20}", f"{A}{i + 40}"] for i in range(30)]
    found = table.find(lines_of(written(claims)))
    assert found.tolist() == [[places.get(t, -1) for t in claim] for claim in claims]

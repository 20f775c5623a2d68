"""What reranking adds to `coverage`: hits read alone or with what connects them, fused by ranks or by scores.

``PYTHONPATH=tests python -m benchmarks.bench_rerank DATA MODEL [--limit N] [--encoder none]``: DATA has the layout of
OTT-QA or of the multihop data; MODEL is a cross-encoder by name or folder, or a folder with ``model.onnx`` and
``tokenizer.json``, which onnxruntime runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphret.evaluation.dataset import Dataset
from graphret.evaluation.metrics import recall_at_k
from graphret.evaluation.multihop import load_multihop
from graphret.evaluation.ottqa import load_ottqa
from graphret.rerank import CrossEncoderReranker, HitText, Rerank
from graphret.retriever import Retriever
from graphret.sage import SageGraph
from graphret.training import Question
from graphret.types import Hit, Retrieval
from graphret.where import Where

KS, DEPTH, MAX_TOKENS = (2, 5, 10), 20, 192


class OnnxCrossEncoder:
    """A cross-encoder as ONNX, on the processor; each pair is scored once."""

    def __init__(self, folder: Path) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self.session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
        self.known: dict[tuple[str, str], float] = {}

    def predict(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        fresh = [pair for pair in dict.fromkeys(pairs) if pair not in self.known]
        read = sorted(zip(self.tokenizer.encode_batch(fresh), fresh, strict=True), key=lambda one: len(one[0].ids))
        columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
        for start in range(0, len(read), 16):
            batch = read[start : start + 16]
            fed = {name: np.zeros((len(batch), len(batch[-1][0].ids)), np.int64) for name in columns}
            for row, (tokens, _) in enumerate(batch):
                for name, column in columns.items():
                    fed[name][row, : len(tokens.ids)] = getattr(tokens, column)
            scores = self.session.run(None, fed)[0].reshape(len(batch), -1)[:, 0]
            self.known |= {pair: float(score) for (_, pair), score in zip(batch, scores, strict=True)}
        return [self.known[pair] for pair in pairs]


class Found(Retriever):
    """What was found for a question before."""

    hits: Sequence[Hit] = ()

    def _retrieve(self, query: str, k: int, where: Where | None) -> Retrieval:
        return Retrieval(query, k, list(self.hits[:k]))


def figures(graph: SageGraph, questions: Sequence[Question], model: Any) -> Iterator[tuple[str, list[float]]]:
    """Go through the rows: recall at each of `KS`, in percent."""
    found, coverage = Found(), graph.retriever("coverage")
    alone, read = (CrossEncoderReranker(model, text=HitText(evidence_words=words)) for words in (0, 60))
    rows: dict[str, Retriever] = {
        "coverage": found,
        "alone": Rerank(found, alone, depth=DEPTH, weight=1),
        "with evidence": Rerank(found, read, depth=DEPTH, weight=1),
        "by ranks": Rerank(found, read, depth=DEPTH, rrf_k=10),
        "reranked": Rerank(found, read, depth=DEPTH),
    }
    values: dict[str, list[list[float]]] = {row: [] for row in rows}
    for question in questions:
        found.hits = coverage.retrieve(question.text, DEPTH).hits
        for row, retriever in rows.items():
            ids = retriever.retrieve(question.text, max(KS)).ids
            values[row].append([recall_at_k(ids, question.gold, k) for k in KS])
    for row, each in values.items():
        yield row, (100 * np.mean(each, axis=0)).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("--limit", type=int, help="only so many questions of each half or data set")
    parser.add_argument("--encoder", default="default", help="default, or none")
    given = parser.parse_args()
    onnx = Path(given.model) / "model.onnx"
    model = OnnxCrossEncoder(onnx.parent) if onnx.exists() else given.model
    encoder = None if given.encoder == "none" else given.encoder
    tables = (given.data / "released_data").exists()
    sets: list[Dataset] = [load_ottqa(given.data)] if tables else load_multihop(given.data)
    for dataset in sets:
        graph = SageGraph.from_nodes(dataset.nodes, encoder=encoder, metadata=None)
        for half in sorted({question.half for question in dataset.questions}):
            questions = [one for one in dataset.questions if one.half == half][: given.limit]
            print(f"{dataset.name} {half} {len(questions)} questions: recall at {', '.join(map(str, KS))}")
            for row, recall in figures(graph, questions, model):
                print(f"  {row:14} {' / '.join(f'{value:.1f}' for value in recall)}", flush=True)


if __name__ == "__main__":
    main()

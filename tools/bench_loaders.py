"""Whether the frameworks' own loaders and splitters retrieve as well as ours.

``python tools/bench_loaders.py --data DIR [--ottqa DIR] [--chunk-size 512] [--encoder
none]``
"""

from __future__ import annotations

import argparse
import csv
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphret.corpus import read
from graphret.evaluation.dataset import Dataset, LabelledQuestion, read_json
from graphret.evaluation.metrics import recall_at_k
from graphret.evaluation.ottqa import TUNED, half, title_of
from graphret.sage import SageGraph
from graphret.search.encoder import Encoder, as_encoder

#: How many hits are asked for, so that the first 20 files are among them.
HITS = 100
#: How many tokens a chunk shares with the next, and how many characters a token has
#: where a splitter counts these.
OVERLAP, CHARS = 20, 4
#: Tables of OTT-QA's tuned half in a folder that is made of it.
TABLES = 240


def write_folder(ottqa: str | Path, root: str | Path, tables: int = TABLES) -> None:
    """Write tables of OTT-QA's tuned half, their linked passages, and questions.

    The held half stays out, so that what is chosen on this folder has not seen it.

    Parameters
    ----------
    ottqa
        A folder in the layout of the public OTT-QA repository.
    root
        What `bench_loaders` reads; it must not exist.
    """
    source, root = Path(ottqa), Path(root)
    for folder in ("tables", "passages"):
        (root / folder).mkdir(parents=True)
    written = set()
    paths = sorted((source / "data/traindev_tables_tok").glob("*.json"))
    tuned = [path for path in paths if half(path.stem) == TUNED]
    for path in tuned[:tables]:
        raw = read_json(path)
        with open(
            root / "tables" / f"{path.stem}.csv", "w", newline="", encoding="utf-8"
        ) as file:
            csv.writer(file).writerows(
                [[cell[0] for cell in row] for row in (raw["header"], *raw["data"])]
            )
        written.add(f"{path.stem}.csv")
        for url, text in read_json(
            source / "data/traindev_request_tok" / path.name
        ).items():
            (root / "passages" / _page(url)).write_text(
                f"# {title_of(url)}\n\n{text}\n", encoding="utf-8"
            )
            written.add(_page(url))
    questions = []
    for question in read_json(source / "released_data/dev.traced.json"):
        pages = {
            _page(url)
            for *_, url, kind in question["answer-node"]
            if kind == "passage" and url
        }
        if (table := f"{question['table_id']}.csv") in written:
            questions.append(
                {
                    "question": question["question"],
                    "gold": sorted({table, *pages} & written),
                }
            )
    (root / "questions.json").write_text(
        json.dumps(questions, ensure_ascii=False), encoding="utf-8"
    )


def _page(url: str) -> str:
    return url.removeprefix("/wiki/").replace("/", "%2F")[:200] + ".md"


def bench_loaders(
    data: str | Path,
    *,
    encoder: Any = "default",
    k: tuple[int, ...] = (5, 20),
    chunk_size: int = 512,
    limit: int | None = None,
) -> dict[str, Any]:
    """Measure recall over one folder read in five ways, and count each graph's edges.

    The ways are graphret's `read`; LlamaIndex's `SimpleDirectoryReader` and
    `SentenceSplitter`; LangChain's `TextLoader`, `CSVLoader` and
    `RecursiveCharacterTextSplitter`; and LlamaIndex's nodes taken back from a
    `VectorStoreIndex`, and from one over Chroma.

    Parameters
    ----------
    data
        A folder with ``tables/*.csv``, ``passages/*.md`` and ``questions.json``: a list
        of objects with ``question`` and ``gold``, the names of the files to be found.
    k
        Recall is that of the first k different files.
    chunk_size
        Tokens of a chunk of the frameworks' splitters.

    Raises
    ------
    InvalidInput
        When the folder lacks one of these.
    """
    root, model = Path(data), as_encoder(encoder)
    labelled = [
        LabelledQuestion(record["question"], frozenset(record["gold"]))
        for record in read_json(root / "questions.json")
    ]
    questions = Dataset("loaders", [], labelled).limited(limit).questions
    rows: dict[str, dict[str, float]] = {}
    seconds: dict[str, float] = {}
    notes: list[str] = []
    for name, build in _WAYS.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            graph = build(root, model, chunk_size)
        seconds[name] = round(time.perf_counter() - start, 3)
        edges = graph.report().relations
        rows[name] = {**_recall(graph, questions, k), **edges}
        notes.append(
            f"{name}: "
            + ", ".join(f"{relation} {count:,}" for relation, count in edges.items())
        )
    return {
        "name": "loaders",
        "notes": notes,
        "rows": rows,
        "counts": {"questions": len(questions), "chunk_size": chunk_size},
        "seconds": seconds,
    }


def _recall(graph: SageGraph, questions: Any, k: tuple[int, ...]) -> dict[str, float]:
    retriever = graph.retriever()
    files_by_hit = [
        [
            _file_of(hit.node.properties)
            for hit in retriever.retrieve(question.text, HITS)
        ]
        for question in questions
    ]
    files = [list(dict.fromkeys(question)) for question in files_by_hit]
    return {
        f"recall@{n}": round(
            100
            * sum(
                recall_at_k(ranked, question.gold, n)
                for ranked, question in zip(files, questions, strict=True)
            )
            / len(files),
            2,
        )
        for n in k
    }


def _file_of(properties: Mapping[str, Any]) -> str:
    return Path(properties.get("file_name") or properties["source"]).name


def _native(root: Path, encoder: Encoder | None, chunk_size: int) -> SageGraph:
    return SageGraph.build(read([root / "tables", root / "passages"]), encoder=encoder)


def _llama_nodes(root: Path, chunk_size: int) -> Any:
    from llama_index.core import SimpleDirectoryReader
    from llama_index.core.node_parser import SentenceSplitter

    documents = SimpleDirectoryReader(
        root, recursive=True, required_exts=[".csv", ".md"]
    ).load_data()
    return SentenceSplitter(
        chunk_size=chunk_size, chunk_overlap=OVERLAP
    ).get_nodes_from_documents(documents)


def _llama_index(root: Path, encoder: Encoder | None, chunk_size: int) -> SageGraph:
    from llama_index_graphret import SageGraph

    return SageGraph.from_nodes(_llama_nodes(root, chunk_size), encoder=encoder)


def _langchain(root: Path, encoder: Encoder | None, chunk_size: int) -> SageGraph:
    from langchain_community.document_loaders import (
        CSVLoader,
        DirectoryLoader,
        TextLoader,
    )
    from langchain_text_splitters import RecursiveCharacterTextSplitter

    from langchain_graphret import SageGraph

    rows = DirectoryLoader(
        str(root / "tables"), glob="**/*.csv", loader_cls=CSVLoader
    ).load()
    texts = DirectoryLoader(
        str(root / "passages"), glob="**/*.md", loader_cls=TextLoader
    ).load()
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=chunk_size * CHARS, chunk_overlap=OVERLAP * CHARS
    )
    return SageGraph.from_documents(splitter.split_documents([*rows, *texts]), encoder)


def _from_index(
    root: Path, encoder: Encoder | None, chunk_size: int, *, chroma: bool = False
) -> SageGraph:
    from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex

    from llama_index_graphret import EncoderEmbedding, SageGraph
    from llama_index_graphret.graph import nodes_of

    options: dict[str, Any] = {}
    if chroma:
        import chromadb
        from chromadb.config import Settings
        from llama_index.vector_stores.chroma import ChromaVectorStore

        client = chromadb.EphemeralClient(Settings(anonymized_telemetry=False))
        collection = client.get_or_create_collection(f"loaders-{time.time_ns()}")
        options["storage_context"] = StorageContext.from_defaults(
            vector_store=ChromaVectorStore(collection)
        )
    model = EncoderEmbedding(encoder) if encoder is not None else MockEmbedding(8)
    index = VectorStoreIndex(
        _llama_nodes(root, chunk_size), embed_model=model, **options
    )
    return (
        SageGraph.from_index(index)
        if encoder is not None
        else SageGraph.from_nodes(nodes_of(index), encoder=None)
    )


def _chroma(root: Path, encoder: Encoder | None, chunk_size: int) -> SageGraph:
    return _from_index(root, encoder, chunk_size, chroma=True)


_WAYS: dict[str, Callable[[Path, Encoder | None, int], SageGraph]] = {
    "native": _native,
    "llama_index": _llama_index,
    "langchain": _langchain,
    "from_index": _from_index,
    "chroma": _chroma,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Print the recall and the edges of each way."""
    parser = argparse.ArgumentParser(
        prog="python tools/bench_loaders.py", description=__doc__
    )
    parser.add_argument(
        "--data",
        required=True,
        help="a folder with tables, passages and questions.json",
    )
    parser.add_argument(
        "--ottqa",
        help="a copy of OTT-QA, from whose tuned half the folder is made first",
    )
    parser.add_argument("--encoder", default="default", help="a model, or none")
    parser.add_argument(
        "--chunk-size",
        type=int,
        default=512,
        help="tokens of a chunk of the frameworks' splitters",
    )
    options = parser.parse_args(argv)
    if options.ottqa:
        write_folder(options.ottqa, options.data)
    encoder = None if options.encoder == "none" else options.encoder
    result = bench_loaders(options.data, encoder=encoder, chunk_size=options.chunk_size)
    for name, row in result["rows"].items():
        print(name, ", ".join(f"{metric} {value:g}" for metric, value in row.items()))


if __name__ == "__main__":
    main()

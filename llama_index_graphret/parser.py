"""`SageNodeParser`: documents and their tables, split as in SAGE."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.callbacks import CallbackManager
from llama_index.core.node_parser import NodeParser
from llama_index.core.node_parser.node_utils import default_id_func
from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship
from pydantic import SkipValidation

from graphret.corpus import Item, SemanticChunker, SentenceChunker, to_nodes
from graphret.corpus.readers import items_of
from graphret.search.encoder import as_encoder
from llama_index_graphret.nodes import to_llama_node


class SageNodeParser(NodeParser):
    """Split documents at sentences, and their tables into 5 to 10 rows (SAGE, 2.1 A).

    Nodes store what graphret knows of them (rows, header, section) in one metadata
    entry that is not shown to the LLM or the embedding model, so that
    `SageGraph.from_nodes` and `from_index` link single rows. They have the
    relationships SOURCE, PREVIOUS and NEXT, character positions in their document, and
    ids made from the document's: ``"{id}#{i}"``, and ``"{id}/table-{t}#{i}"`` for
    segments of its t-th table.

    Parameters
    ----------
    encoder
        An embedding model, LlamaIndex's or any that graphret takes: documents are then
        cut where neighbouring sentences are least alike. Without one, sentences are
        packed into chunks.
    include_metadata, include_prev_next_rel, callback_manager, id_func
        As any node parser has them.
    """

    chunker: SkipValidation[Any] = Field(
        exclude=True, repr=False, description="What cuts documents."
    )

    def __init__(
        self,
        *,
        encoder: Any = None,
        include_metadata: bool = True,
        include_prev_next_rel: bool = True,
        callback_manager: CallbackManager | None = None,
        id_func: Callable[[int, BaseNode], str] = default_id_func,
    ) -> None:
        model = as_encoder(encoder)
        chunker = SentenceChunker() if model is None else SemanticChunker(model)
        super().__init__(  # type: ignore[call-arg]  # the field is of this class
            chunker=chunker,
            include_metadata=include_metadata,
            include_prev_next_rel=include_prev_next_rel,
            callback_manager=callback_manager or CallbackManager([]),
            id_func=id_func,
        )

    @classmethod
    def class_name(cls) -> str:
        return "SageNodeParser"

    def _parse_nodes(
        self, nodes: Sequence[BaseNode], show_progress: bool = False, **kwargs: Any
    ) -> list[BaseNode]:
        home = [(item, document) for document in nodes for item in _items(document)]
        documents = {item.id: document for item, document in home}
        sources = {
            document.node_id: document.as_related_node_info() for document in nodes
        }
        items = [item for item, _ in home]
        parsed: list[BaseNode] = []
        for node in to_nodes(items, chunker=self.chunker):
            document = documents[node.properties.get("source_id", node.id)]
            out = to_llama_node(node)
            out.relationships[NodeRelationship.SOURCE] = sources[document.node_id]
            for keys in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys"):
                setattr(
                    out,
                    keys,
                    [*dict.fromkeys([*getattr(document, keys), *getattr(out, keys)])],
                )
            parsed.append(out)
        return parsed


def _items(document: BaseNode) -> Iterable[Item]:
    text, name = document.get_content(metadata_mode=MetadataMode.NONE), document.node_id
    return items_of(text, document.metadata, name, keep_metadata=False)

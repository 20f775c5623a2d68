"""Retrieve in a LangChain chain: your loaders and splitter, graphret's retriever."""

from pathlib import Path

from langchain_community.document_loaders import CSVLoader, DirectoryLoader, TextLoader
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_text_splitters import RecursiveCharacterTextSplitter

from langchain_graphret import SageGraph, SageRetriever

folder = str(Path(__file__).parent / "handbook")
documents = [
    *DirectoryLoader(folder, glob="*.csv", loader_cls=CSVLoader).load(),
    *DirectoryLoader(folder, glob="*.md", loader_cls=TextLoader).load(),
]
splitter = RecursiveCharacterTextSplitter(chunk_size=500, add_start_index=True)
graph = SageGraph.from_documents(splitter.split_documents(documents), None)
retriever = SageRetriever(graph, k=3)


def as_text(documents: list[Document]) -> str:
    return "\n\n".join(document.page_content for document in documents)


prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
model = FakeListChatModel(responses=["35 days."])  # or ChatOpenAI("gpt-4o-mini")
context = {"context": retriever | as_text, "question": RunnablePassthrough()}
chain = context | prompt | model | StrOutputParser()

question = "How long are backups kept of the database of Checkout?"
for document in retriever.invoke(question):
    print(Path(document.metadata["source"]).name)
print("Answer:", chain.invoke(question))

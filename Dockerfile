# A graph behind HTTP. Mount a folder that `graphret build` or `import` wrote at /graph, or name another WHERE:
#   docker build -t graphret . && docker run -p 8000:8000 -v ./notes.graph:/graph -e GRAPHRET_API_KEY graphret
FROM python:3.12-slim
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE CHANGELOG.md ./
COPY shared shared
COPY llama_index_graphret llama_index_graphret
COPY langchain_graphret langchain_graphret
RUN pip install --no-cache-dir --constraint constraints.txt '.[serve,neo4j]'
RUN useradd --create-home graphret
USER graphret
EXPOSE 8000
ENTRYPOINT ["graphret", "serve", "--host", "0.0.0.0"]
CMD ["--graph", "/graph"]

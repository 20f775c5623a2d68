"""A graph behind HTTP: ``graphret serve``, on FastAPI and uvicorn."""

from graphret.serve.app import create_app
from graphret.serve.graph import Limits, ServedGraph

__all__ = ["Limits", "ServedGraph", "create_app"]

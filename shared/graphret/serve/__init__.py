"""A graph opened for questions, and put to them from outside.

`methods` opens it and makes retrievers by name, for commands and services alike; `app`
is ``graphret serve``, on FastAPI, with `graph` (what is served), `access`, `metrics`
and `problems`; `mcp_server` is ``graphret mcp``.
"""

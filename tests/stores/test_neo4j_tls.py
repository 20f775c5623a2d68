"""Encrypted connections: to a real server, with a certificate that is trusted, not trusted, or that nobody looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import neo4j
import pytest
from cli_helpers import graphret
from neo4j_faults import CuttingProxy, PlainServer

from graphret.cypher import run_checked
from graphret.errors import InvalidInput, QueryTimeout, StoreUnavailable
from graphret.stores.neo4j import AsyncNeo4jStore, Neo4jStore
from graphret.types import Edge, Node

Auth = tuple[str, str] | None
SECRET = "nobody on the way may read this"


def trusting(file: Path) -> dict[str, Any]:
    return {"encrypted": True, "trusted_certificates": neo4j.TrustCustomCAs(str(file))}


@pytest.mark.parametrize("scheme", ["bolt+ssc", "neo4j+ssc"])
async def test_any_certificate(
    neo4j_empty: neo4j.Driver,
    neo4j_uri: str,
    neo4j_auth: Auth,
    neo4j_certificate: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
) -> None:
    uri = neo4j_uri.replace("bolt", scheme, 1)
    with Neo4jStore(uri, auth=neo4j_auth) as store:
        store.upsert([Node("a", text=SECRET), Node("b")], [Edge("a", "R", "b")])
        assert store.query("MATCH (n)-[:R]->(m) RETURN n.id, m.id").rows == [("a", "b")]
        assert store.driver.encrypted
    async with AsyncNeo4jStore(uri, auth=neo4j_auth) as other:
        await other.upsert([Node("c")], [Edge("b", "R", "c")])
        assert await other.count() == (3, 2)
    (tmp_path / "kb.txt").write_text("King Kong|directed_by|Peter Jackson\n", encoding="utf-8")
    monkeypatch.setenv("GRAPHRET_CACHE", str(tmp_path / "cache"))
    for name, value in zip(("NEO4J_USERNAME", "NEO4J_PASSWORD"), neo4j_auth or ("", ""), strict=True):
        monkeypatch.setenv(name, value)
    ran = graphret("import", tmp_path / "kb.txt", "--format", "metaqa", "--to", uri)
    assert ran.code == 0, ran
    assert Neo4jStore.from_driver(neo4j_empty).count() == (5, 3)


def test_the_users_own_authority(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth, neo4j_certificate: Path
) -> None:
    for uri in (neo4j_uri.replace("127.0.0.1", "localhost"), neo4j_uri.replace("bolt", "neo4j", 1)):
        with Neo4jStore(uri, auth=neo4j_auth, options=trusting(neo4j_certificate)) as store:
            assert store.query("RETURN 1 AS one").rows == [(1,)]
            assert store.driver.encrypted


@pytest.mark.parametrize("encrypted", [True, False])
async def test_what_goes_over_the_line(
    neo4j_empty: neo4j.Driver, neo4j_uri: str, neo4j_auth: Auth, neo4j_certificate: Path, encrypted: bool
) -> None:
    options = trusting(neo4j_certificate) if encrypted else {}
    with CuttingProxy(neo4j_uri) as proxy:
        with Neo4jStore(proxy.uri, auth=neo4j_auth, options=options) as store:
            store.upsert([Node("a", text=SECRET)])
        async with AsyncNeo4jStore(proxy.uri, auth=neo4j_auth, options=options) as other:
            assert await other.get(["a"]) == [Node("a", text=SECRET)]
            await other.upsert([Node("b", text=SECRET)])
        assert proxy.sent.count(SECRET.encode()) == (0 if encrypted else 2)


@pytest.mark.parametrize("scheme", ["bolt+s", "neo4j+s"])
async def test_a_certificate_that_the_system_does_not_trust(
    neo4j_uri: str, neo4j_auth: Auth, neo4j_certificate: Path, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    uri = neo4j_uri.replace("bolt", scheme, 1)
    said = r"certificate is not trusted: self.signed certificate.*SSL_CERT_FILE"
    with Neo4jStore(uri, auth=neo4j_auth) as store, pytest.raises(StoreUnavailable, match=said):
        store.count()
    async with AsyncNeo4jStore(uri, auth=neo4j_auth) as other:
        with pytest.raises(StoreUnavailable, match=said):
            await other.count()
    monkeypatch.setenv("SSL_CERT_FILE", str(neo4j_certificate))
    with Neo4jStore(uri, auth=neo4j_auth) as store:
        assert store.query("RETURN 1 AS one").rows == [(1,)]


def test_a_server_that_does_not_encrypt() -> None:
    with (
        PlainServer() as server,
        Neo4jStore(server.uri.replace("bolt", "bolt+ssc", 1)) as store,
        pytest.raises(StoreUnavailable, match="cannot be encrypted"),
    ):
        store.count()


def test_authorities_that_would_not_be_asked(neo4j_certificate: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    for options, said in (
        ({**trusting(neo4j_certificate), "encrypted": False}, "nothing would be encrypted"),
        (trusting(tmp_path / "missing.pem"), r"missing\.pem.*No such file"),
        (trusting(tmp_path / "empty.pem"), r"empty\.pem holds no certificate"),
    ):
        with pytest.raises(InvalidInput, match=said):
            Neo4jStore("bolt://localhost", options=options)


def test_an_answer_that_never_comes_over_tls(neo4j_uri: str, neo4j_auth: Auth, neo4j_certificate: Path) -> None:
    with Neo4jStore(neo4j_uri.replace("bolt", "bolt+ssc", 1), auth=neo4j_auth, pool_size=1) as store:
        with pytest.raises(QueryTimeout):
            run_checked(store, "RETURN " + "+".join("1" * 5_000) + " AS a", timeout=1.0)
        assert store.query("RETURN 1 AS one").rows == [(1,)]

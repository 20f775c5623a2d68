"""What may run is a list; a word is judged by where it stands."""

from __future__ import annotations

import pytest

from graphret.cypher import check
from graphret.cypher.allowed import ALLOWED, disallowed
from graphret.cypher.grammar import Parsed, parse
from graphret.cypher.tokens import tokenise

REFUSED = r"""
LOAD CSV FROM 'file:///etc/passwd' AS r RETURN r
WITH 1 AS not RETURN not LOAD CSV FROM 'x' AS r
MATCH (n) RETURN n LOAD CSV FROM 'x' AS r
MATCH (n) CALL { LOAD CSV FROM 'x' AS r RETURN r } RETURN r
MATCH (n) WHERE EXISTS { LOAD CSV FROM 'x' AS r RETURN r } RETURN n
MATCH (n) SET n.x = 1
MATCH (n) DETACH DELETE n
CREATE (n)
MATCH (n) CREATE (m)
MERGE (n)
SHOW USERS
RETURN 1; SHOW USERS
USE neo4j RETURN 1
CALL dbms.listConfig()
CALL `dbms`.`listConfig`()
CALL db.clearQueryCaches
CALL db.prepareForReplanning()
FOREACH (x IN [1] | CREATE (n))
MATCH (n) CALL (n) { SET n.x=1 } RETURN n
MATCH (n) CALL { WITH n DELETE n } IN TRANSACTIONS
MATCH (n) CALL { WITH n RETURN 1 AS x } IN TRANSACTIONS RETURN n
EXPLAIN RETURN 1
CYPHER runtime=slotted RETURN 1
PROFILE RETURN 1
CYPHER 25 RETURN 1
CYPHER 5 runtime=slotted RETURN 1
CYPHER 5 CREATE (n)
CYPHER 5 LOAD CSV FROM 'x' AS r RETURN r
EXPLAIN CYPHER 5 RETURN 1
CYPHER 5 CYPHER 5 RETURN 1
MATCH (n) RETURN n CYPHER 5
RETURN file()
RETURN `file`()
RETURN linenumber()
RETURN graph.names()
RETURN genai.vector.encode('x')
MATCH (n:$x (m)) RETURN n
RETURN n[$(x)] $ 1
MATCH (n:$(LOAD CSV FROM 'x' AS y)) RETURN n
MATCH (n:$(apoc.cypher.runFirstColumnSingle('CREATE (n)', {}))) RETURN n
MATCH (IS LOAD CSV FROM 'x' AS y) RETURN 1
MATCH (IS A CREATE (m)) RETURN 1
MATCH (WHERE x CREATE (m)) RETURN 1
MATCH (n) FINISH CREATE (m)
MATCH (n) FINISH LOAD CSV FROM 'x' AS y
MATCH (n) FINISH n
MATCH (n IS CREATE (m)) RETURN n
MATCH (n) WHERE n IS DELETE n RETURN n
RETURN n IS LOAD CSV FROM 'x' AS y
RETURN CASE n WHEN IS NULL CREATE (m)
RETURN CASE n WHEN IS NOT LOAD CSV FROM 'x' AS y
COMMIT
BEGIN TRANSACTION
CALL {RETURN 1 AS x} LOAD CSV FROM 'x' AS y RETURN y
MATCH (n) RETURN n {.x, y: LOAD CSV}
RETURN {CREATE (n)}
MATCH (n) REMOVE n.x RETURN n
MATCH (n) RETURN n UNION CREATE (m)
MATCH (n) RETURN n UNION LOAD CSV FROM 'x' AS n RETURN n
RETURN 1 AS LOAD CSV FROM 'x' AS n
RETURN x.LOAD CSV FROM 'x' AS n
MATCH (x) WHERE x:LOAD CSV FROM 'x' AS n RETURN n
CREATE INDEX x FOR (n:A) ON (n.x)
DROP INDEX x
ALTER CURRENT USER SET PASSWORD FROM 'a' TO 'b'
TERMINATE TRANSACTIONS 'x'
MATCH (n) USING PERIODIC COMMIT RETURN n
INSERT (n)
MATCH (n) RETURN n; ;
MATCH (n) RETURN n /* a /* b */ */
RETURN 1 /* never ends
RETURN 'never ends
RETURN 12LOAD
RETURN 0x1G
ſHOW USERS
MATCH (n) ſET n.x = 1
{ RETURN 1 }
RETURN 1)
RETURN n.create (m)
RETURN 'a' CREATE (n)
MATCH (n:CREATE (m)) RETURN n
MATCH (n) RETURN n AS CREATE (m)
OPTIONAL CREATE (n)
MATCH (n) WITH n CALL apoc.load.json('http://x') YIELD value RETURN value
RETURN apoc.cypher.runFirstColumnSingle('CREATE (n)', {})
RETURN $ CREATE (n)
RETURN $ LOAD CSV FROM 'x' AS r
RETURN $ {a: 1}
RETURN $ $ x
MATCH (n) RETURN n $ x
MATCH (n:$ all(LOAD CSV FROM 'x' AS r)) RETURN n
RETURN 1.5f CREATE (n)
RETURN 1.5fCREATE (n)
RETURN CASE is WHEN CREATE (n)
RETURN CASE is WHEN LOAD CSV FROM 'x' AS r
MATCH (IS IS) CREATE (m)
MATCH (IS IS CREATE (m)) RETURN 1
MATCH (IS IS {x: LOAD CSV FROM 'x' AS r}) RETURN 1
""".strip().split("\n")

ACCEPTED = r"""
MATCH (set:Set {set: 1}) WHERE set.set = 1 RETURN set.set AS set ORDER BY set
MATCH (load:Create) RETURN load.delete AS merge, load.`drop` AS `CREATE`
MATCH p = SHORTEST 1 (a)-[:R]->+(b) RETURN p
MATCH p = SHORTEST 3 PATH GROUPS (a)-[:R]->+(b) RETURN p
MATCH p = ANY SHORTEST (a)-[:R]-{1,3}(b) RETURN p
MATCH ALL SHORTEST (a)-[:R]->*(b) WHERE a.x IS :: STRING NOT NULL RETURN count(*) AS count ORDER BY count DESC LIMIT 3
MATCH (a) CALL (a) { MATCH (a)--(b) RETURN count(b) AS c } WITH * WHERE c IN [1,2] RETURN a {.*, c: c, a}
MATCH (a) CALL { WITH a MATCH (a)--(b) RETURN b UNION MATCH (b:X) RETURN b } RETURN b;
CALL db.index.fulltext.queryNodes('x', 'load csv') YIELD node, score WHERE score > 1 RETURN node ORDER BY score
CALL db.labels
CALL db.labels() YIELD *
MATCH (n) WHERE COUNT { (n)--() } > 3 AND EXISTS { MATCH (n)-->(m) WHERE m.x = n.x } AND NOT (n)-->() RETURN n
MATCH (n) RETURN COLLECT { MATCH (n)-->(m) RETURN m.x } AS xs
MATCH (n) RETURN CASE n.x WHEN 1 THEN 'a' ELSE 'b' END AS case, CASE WHEN n.y THEN 2 ELSE 3 END AS end
MATCH (case:Case) RETURN case, case.x AS order ORDER BY case DESC
MATCH (a:A&!B|C WHERE a.x > 1)-[r:X|Y*1..3 {w: 1}]-(b) RETURN [x IN [a, b] WHERE x:A | x.name][0..3]
RETURN reduce(a = 0, x IN [1] | a + x), [1,2][..1], 'C:\\users', "it's", 1.5e3, 0x1F, point({x:1, y:2})
MATCH ((a)-[:R]->(b)){1,3} (c) RETURN c
MATCH (n:A) WITH n LIMIT 3 FINISH;
MATCH (finish:Finish) RETURN finish.finish AS FINISH
MATCH (n) RETURN CASE n.x WHEN IS NULL, IS NOT NULL, > 5 THEN 1 WHEN 2, 3 THEN 2 END
MATCH (n) RETURN n.`odd name`, n['set'], n.create, n.delete ORDER BY n.x ASC, n.y DESCENDING
MATCH (n) RETURN DISTINCT n.x, collect(DISTINCT n.y)
UNWIND [1,2] AS x WITH DISTINCT x WHERE x > 1 OPTIONAL MATCH (n {x: x}) RETURN *
MATCH (u:User) WHERE u.name =~ '(?i).*x.*' OR ANY(x IN u.tags WHERE x STARTS WITH 'a') RETURN 2 * 3 + 1, -u.x ^ 2 % 3
MATCH (n) WHERE n.text = 'x\' }) CREATE (m) //' RETURN n // MERGE (n)
MATCH (n) /* DELETE n */ RETURN n.café
MATCH (n {x: $x}) WHERE n.y IN [$`z`] RETURN $1 + $create SKIP 1 LIMIT $limit
""".strip().split("\n")

LADYBUG_REFUSED = """
CALL threads=1
CALL show_tables() RETURN *
CALL current_setting('threads') RETURN *
CALL file_info('/etc/hostname') RETURN *
LOAD FROM 'x' RETURN *
COPY (MATCH (n) RETURN n) TO 'x'
EXPORT DATABASE 'x'
IMPORT DATABASE 'x'
INSTALL httpfs
ATTACH 'x' AS y
CHECKPOINT
COMMIT
RETURN nextval('s')
MATCH (n) CALL { RETURN 1 AS x } RETURN n
COMMENT ON TABLE A IS 'x'
CREATE MACRO f(x) AS x
CALL project_graph_cypher('x', 'MATCH (n) RETURN n')
BEGIN TRANSACTION
RETURN 1; COPY A TO 'x'
RETURN 1 AS x COPY A TO 'x'
MATCH (n) FINISH
MATCH (n IS A) RETURN n
MATCH (n) RETURN randomUUID()
RETURN $ x
MATCH (a:A)-[r:R]->(b:A) HINT a JOIN r JOIN b RETURN a
""".strip().split("\n")

LADYBUG_ACCEPTED = """
MATCH p=(a:A)-[:R* SHORTEST 1..3]->(b) RETURN p
MATCH (a:A)-[e:R* ALL SHORTEST 1..3]->(b) RETURN length(e)
WITH 1 AS x RETURN cast('1' AS INT64[]), cast(x AS DECIMAL(3,2)), cast(x, 'INT')
MATCH (a:A) RETURN [1,2,3][1:2], list_transform([1,2], x->x+1), a.*
CALL query_fts_index('A', 'i', 'x') RETURN node.id, score
MATCH (n:A) WHERE EXISTS { MATCH (n)-[:R]->() } RETURN id(n), label(n) ORDER BY n.x SKIP 1 LIMIT 2
""".strip().split("\n")

CASES = [(query, "neo4j") for query in REFUSED] + [(query, "ladybug") for query in LADYBUG_REFUSED]


@pytest.mark.parametrize(("query", "dialect"), CASES)
def test_refused(query: str, dialect: str) -> None:
    assert not check(query, dialect=dialect).ok


@pytest.mark.parametrize(
    ("query", "dialect"), [(q, "neo4j") for q in ACCEPTED] + [(q, "ladybug") for q in LADYBUG_ACCEPTED]
)
def test_accepted(query: str, dialect: str) -> None:
    assert check(query, dialect=dialect).errors == []


def test_what_may_not_run_is_named_at_its_place() -> None:
    query = "MATCH (n)\n  SET n.x = 1"
    (finding,) = [f for f in check(query).errors if f.kind == "not-allowed"]
    assert (query[finding.start : finding.end], finding.line, finding.column) == ("SET", 2, 3)
    assert "the clauses that may run are CALL" in finding.message


@pytest.mark.parametrize(
    "query",
    [
        "CREATE (n)",
        "MATCH (n) SET n.x = 1",
        "MATCH (n) DETACH DELETE n",
        "LOAD CSV FROM 'x' AS r RETURN r",
        "SHOW USERS",
        "RETURN 1; SHOW USERS",
        "MATCH (n) CALL { WITH n DELETE n } RETURN n",
        "FOREACH (x IN [1] | CREATE (n))",
        "CALL dbms.listConfig()",
        "CALL `dbms`.`listConfig`()",
        "RETURN `file`()",
    ],
)
def test_the_tokens_alone_refuse_it_whatever_the_grammar_reads(query: str) -> None:
    assert disallowed(Parsed(query, "neo4j", tokenise(query)))


@pytest.mark.parametrize(
    "query", ["CALL dbms.listConfig() YIELD name RETURN name", "MATCH (n) WHERE apoc.x(1) RETURN n", "RETURN `file`()"]
)
def test_the_tree_alone_refuses_it_as_well(query: str) -> None:
    assert disallowed(Parsed(query, "neo4j", [], parse(query).tree))


def test_every_call_outside_the_lists_is_named_once_and_may_be_added() -> None:
    query = "CALL apoc.meta.stats() YIELD labels RETURN apoc.text.join(labels, ',') AS x LIMIT 1"
    named = [f.message for f in check(query).errors]
    assert len(named) == 2
    assert ("apoc.meta.stats" in named[0], "apoc.text.join" in named[1]) == (True, True)
    assert check(query, functions=["apoc.text.join"], procedures=["apoc.meta.stats"]).ok


@pytest.mark.parametrize("dialect", sorted(ALLOWED))
def test_no_list_has_what_leaves_the_graph(dialect: str) -> None:
    names = ALLOWED[dialect].functions | ALLOWED[dialect].procedures
    suspicious = ("file", "load", "apoc", "dbms", "graph.", "nextval", "setseed", "config", "connection", "show_")
    assert [name for name in names if any(part in name.lower() for part in suspicious)] == []

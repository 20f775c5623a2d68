"""What may run is a list; a word is judged by where it stands."""

from __future__ import annotations

import pytest

from graphret.cypher import check
from graphret.cypher.allowed import disallowed
from graphret.cypher.allowed.lists import ALLOWED
from graphret.cypher.parsing import Parsed, parse

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
RETURN \u0031
RETURN 1 \u002f\u002a x
RETURN '\u0027 LOAD'
RETURN '\u005c'
RETURN '\user'
RETURN n.`a\u0060`
RETURN 1 // x \u000a DELETE n
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
CYPHER 5 MATCH (cypher:Cypher) RETURN cypher
MATCH (set:Set {set: 1}) WHERE set.set = 1 RETURN set.set AS set ORDER BY set
MATCH (load:Create) RETURN load.delete AS merge, load.`drop` AS `CREATE`
MATCH p = SHORTEST 1 (a)-[:R]->+(b) RETURN p
MATCH p = ANY SHORTEST (a)-[:R]-{1,3}(b) RETURN p
MATCH ALL SHORTEST (a)-[:R]->*(b) WHERE a.x IS :: STRING NOT NULL RETURN count(*) AS count ORDER BY count DESC LIMIT 3
MATCH (a) CALL (a) { MATCH (a)--(b) RETURN count(b) AS c } WITH * WHERE c IN [1,2] RETURN a {.*, c: c, a}
MATCH (a) CALL { WITH a MATCH (a)--(b) RETURN b UNION MATCH (b:X) RETURN b } RETURN b;
CALL db.index.fulltext.queryNodes('x', 'load csv') YIELD node, score WHERE score > 1 RETURN node ORDER BY score
CALL db.labels
CALL db.labels() YIELD *
MATCH (n) WHERE COUNT { (n)--() } > 3 AND EXISTS { MATCH (n)-->(m) WHERE m.x = n.x } AND NOT (n)-->() RETURN n
MATCH (n) RETURN COLLECT { MATCH (n)-->(m) RETURN m.x } AS xs
MATCH (n) RETURN CASE n.x WHEN 1 THEN 'a' ELSE 'b' END AS case, CASE WHEN n.y THEN end ELSE 3 END
MATCH (case:Case) RETURN case, case.x AS order ORDER BY case DESC
MATCH (a:A&!B|C WHERE a.x > 1)-[r:X|Y|!Z*1..3 {w: 1}]-(b) RETURN [x IN nodes(p) WHERE x:A | x.name][0..3]
RETURN trim(BOTH 'a' FROM x), normalize('x', NFKD), x IS NFC NORMALIZED, reduce(a = 0, x IN [1] | a + x)
MATCH (n) USING INDEX n:A(x) WHERE n.x = $load RETURN n SKIP 1 LIMIT $`limit`
RETURN [(a)-->(b:B) WHERE b.x | b.name] AS l, [1,2][..1], 'C:\\users', "it's", 1.5e3, 0x1F, point({x:1, y:2})
RETURN date('2020').year, duration({days: 1}).days, datetime.truncate('day', x), vector.similarity.cosine(a, b)
MATCH ((a)-[:R]->(b)){1,3} (c) RETURN c
MATCH (a)-[:R*]->(b), (c) RETURN *
MATCH (n:A) WITH n LIMIT 3 FINISH;
MATCH (n) CALL (n) { MATCH (n)-->(m) FINISH } RETURN n
MATCH (finish:Finish) RETURN finish.finish AS FINISH
MATCH (n IS A&!B {x: 1})-[r IS R|S*1..2]->(m IS (A|B) WHERE m IS !C) WHERE m IS A RETURN n IS D AS d
MATCH (IS A|B {x: 1})-[IS R*1..2]->(IS !C WHERE true), (where WHERE where.x = 1)-[WHERE 1 < 2]-(is IS D) RETURN is
MATCH (:$($l))-[r:$any(['A', $b]) | !$all($c)]-(n IS $(toUpper('x'))) WHERE (is IN $x) RETURN [is IN r | is.x]
MATCH (n) RETURN CASE n.x WHEN IS NULL, IS NOT NULL, > 5 THEN 1 WHEN IS NOT TYPED STRING, IS NFC NORMALIZED THEN 2 END
MATCH (n) RETURN n.`odd name`, n['set'], n.create, n.delete ORDER BY n.x ASC, n.y DESCENDING
MATCH (n) RETURN DISTINCT n.x, collect(DISTINCT n.y)
UNWIND [1,2] AS x WITH DISTINCT x WHERE x > 1 OPTIONAL MATCH (n {x: x}) RETURN *
MATCH (u:User) WHERE u.name =~ '(?i).*x.*' OR ANY(x IN u.tags WHERE x STARTS WITH 'a') RETURN 2 * 3 + 1, -u.x ^ 2 % 3
MATCH (n) WHERE n.text = 'x\' }) CREATE (m) //' RETURN n // MERGE (n)
MATCH (n) /* DELETE n */ RETURN n.caf\u00e9
MATCH (n {x: $ x}) WHERE n.y IN [$/* of */y, $ `z`] RETURN $ 1 + $ create, [1, 2][$ from] LIMIT $ limit
RETURN 1.5f, .5F - 1e3d, -1E-3D
WITH 1 AS is RETURN CASE is WHEN is, IS NULL THEN is ELSE 2 END, CASE is[0] WHEN is.x THEN 1 END
MATCH (case) RETURN case IS NULL, case IS WHEN
MATCH (IS IS)-[IS IS*1..2]->(IS IS {x: 1})-[IS IS]-(IS IS|A) RETURN 1
""".strip().replace("\\u00e9", "é").split("\n")  # fmt: skip

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
MATCH (a:A)-[e:R* ALL SHORTEST 1..3 (r, n | WHERE n.x > 1)]->(b) RETURN length(e)
RETURN cast('1' AS INT64[]), cast(x AS DECIMAL(3,2)), cast(x, 'INT')
RETURN [1,2,3][1:2], list_transform([1,2], x->x+1), 5!, 5 & 1, a.*
CALL query_fts_index('A', 'i', 'x') RETURN node.id, score
MATCH (n:A) WHERE EXISTS { MATCH (n)-[:R]->() } RETURN id(n), label(n) ORDER BY n.x SKIP 1 LIMIT 2
""".strip().split("\n")


def refused(query: str, dialect: str = "neo4j", **more: list[str]) -> list[str]:
    """What the reading of the text alone refuses."""
    return [finding.message for finding in disallowed(Parsed(query, dialect, []), **more)]


def refused_in_tree(query: str, dialect: str = "neo4j") -> list[str]:
    """What the tree alone refuses: its places lie in a text that is beyond reproach."""
    tree = parse(query, dialect).tree
    assert tree is not None
    return [finding.message for finding in disallowed(Parsed("RETURN 1", dialect, [], tree))]


@pytest.mark.parametrize("query", REFUSED)
def test_refused(query: str) -> None:
    assert refused(query)


@pytest.mark.parametrize("query", ACCEPTED)
def test_accepted(query: str) -> None:
    assert refused(query) == []


@pytest.mark.parametrize("query", LADYBUG_REFUSED)
def test_refused_on_ladybug(query: str) -> None:
    assert refused(query, "ladybug")


@pytest.mark.parametrize("query", LADYBUG_ACCEPTED)
def test_accepted_on_ladybug(query: str) -> None:
    assert refused(query, "ladybug") == []


@pytest.mark.parametrize(
    "character", ["\x00", "\x1b", "\x85", "\u200b", "\u2060", "\u180e", "\ufeff", "¿", "😀", "–", "@", "#", "?"]
)
def test_a_character_that_is_not_white_space_to_all_servers_is_refused_outside_strings(character: str) -> None:
    assert refused(f"RETURN {character}1")
    assert refused(f"RETURN '{character}1'") == []


@pytest.mark.parametrize(
    "character", ["\x01", "\x0b", "\x1b", "\x85", "\xa0", "\u200b", "\u2028", "\ufeff", "\uffff", "😀"]
)
def test_any_character_is_one_of_the_text_between_quotes_and_backticks(character: str) -> None:
    for odd in ("n:`a@`", "n {`a@`: 1}", "n {a: $`a@`}", "n {a: 'a@'}", 'n {a: "a@"}'):
        quoted = odd.replace("@", character)
        assert refused(f"MATCH ({quoted}) RETURN n") == []
        assert check(f"MATCH ({quoted}) RETURN n").ok
        assert refused(f"MATCH ({quoted}) DELETE n") != []
        for escape in ("\\u0060", "\\u0027", "\\u0022", "\\u005c"):  # a server that translates them sees an end
            assert refused(f"MATCH ({odd.replace('@', character + escape)}) RETURN n") != []


@pytest.mark.parametrize("escape", ["\\u00a0", "\\u200b", "\\u2028", "\\ufeff", "\\uffff"])
def test_an_escape_in_a_string_may_stand_for_any_character_that_ends_none(escape: str) -> None:
    assert refused(f"RETURN 'a{escape}'") == []
    for place in (f"RETURN n.`a{escape}`", f"RETURN $`a{escape}`", f"RETURN{escape}1", f"RETURN 1 // {escape}"):
        assert refused(place) != []


@pytest.mark.parametrize("character", ["\0", "\ud800"])
def test_a_character_that_no_server_has_in_a_name_is_refused_there(character: str) -> None:
    assert refused(f"MATCH (n:`a{character}`) RETURN n") != []


@pytest.mark.parametrize("space", ["\x0b", "\x1c", "\xa0", "\u2007", "\u2028", "\u3000"])
def test_white_space_of_unicode_parts_words(space: str) -> None:
    assert check(f"MATCH{space}(n){space}RETURN{space}n // x\n{space}").ok
    assert check(f"MATCH (n) RETURN $ /*{space}*/ {space} x").ok
    for query in (f"MATCH (n) DELETE{space}n", f"RETURN 1 AS{space}LOAD{space}CSV", f"MATCH (n) // x\n{space}DELETE n"):
        assert refused(query)


def test_a_line_comment_ends_where_all_servers_end_it() -> None:
    for end in "\r\x0b\x0c\x1c\x85\u2028\u2029":
        assert refused(f"RETURN 1 // x{end}MERGE (n)")
    assert refused("RETURN 1 // x\r\n") == []


def test_the_place_is_that_of_the_word() -> None:
    query = "MATCH (n)\n  SET n.x = 1"
    (finding,) = disallowed(Parsed(query, "neo4j", []))
    assert (query[finding.start : finding.end], finding.line, finding.column) == ("SET", 2, 3)
    assert (finding.kind, finding.severity) == ("not-allowed", "error")


def test_every_call_outside_the_lists_is_named() -> None:
    query = "MATCH (n) WHERE apoc.text.join(n.x, ',') = linenumber() RETURN n"
    named = refused(query)
    assert len(named) == 2
    assert "apoc.text.join" in named[0]
    assert "linenumber" in named[1]


def test_names_may_be_added() -> None:
    query = "CALL apoc.meta.stats() YIELD labels RETURN apoc.text.join(labels, ',')"
    assert len(refused(query)) == 2
    assert refused(query, functions=["apoc.text.join"], procedures=["apoc.meta.stats"]) == []


@pytest.mark.parametrize("dialect", sorted(ALLOWED))
def test_no_list_has_what_leaves_the_graph(dialect: str) -> None:
    allowed = ALLOWED[dialect]
    names = allowed.functions | allowed.procedures
    suspicious = ("file", "load", "apoc", "dbms", "graph.", "nextval", "setseed", "config", "connection", "show_")
    assert [name for name in names if any(part in name.lower() for part in suspicious)] == []


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (n) SET n.x = 1",
        "MATCH (n) DETACH DELETE n",
        "MATCH (n) REMOVE n.x",
        "CREATE (n)",
        "MERGE (n)",
        "FOREACH (x IN [1] | CREATE (n))",
        "LOAD CSV FROM 'file:///x' AS r RETURN r",
        "USE other RETURN 1",
        "MATCH (n) CALL { WITH n SET n.x = 1 } RETURN n",
        "MATCH (n) CALL { WITH n RETURN 1 AS x } IN TRANSACTIONS RETURN x",
        "CALL dbms.listConfig() YIELD name RETURN name",
        "MATCH (n) WHERE apoc.util.sleep(1) IS NULL RETURN n",
        "RETURN `file`()",
    ],
)
def test_the_tree_alone_refuses_it_as_well(query: str) -> None:
    assert refused_in_tree(query)


@pytest.mark.parametrize("query", ACCEPTED)
def test_the_tree_accepts_what_the_text_does(query: str) -> None:
    assert disallowed(parse(query)) == []


def test_what_text_and_tree_refuse_alike_is_said_once() -> None:
    assert len(disallowed(parse("MATCH (n) WHERE apoc.x(n) SET n.x = 1"))) == 2

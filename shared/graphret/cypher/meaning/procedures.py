"""What the procedures of Neo4j 5 that read a graph's data or its names take and yield, by ``SHOW PROCEDURES``."""

from __future__ import annotations

from dataclasses import dataclass

from graphret.cypher.meaning.values import ANYTHING, BOOLEAN, FLOAT, NODE, RELATIONSHIP, STRING, Kind, list_of


@dataclass(frozen=True, slots=True)
class Procedure:
    """How many arguments a procedure takes, from and to, and the fields that it yields."""

    arguments: tuple[int, int]
    fields: dict[str, Kind]


_PROPERTY = {"propertyName": STRING, "propertyTypes": list_of(STRING), "mandatory": BOOLEAN}
PROCEDURES: dict[str, Procedure] = {
    "db.labels": Procedure((0, 0), {"label": STRING}),
    "db.relationshiptypes": Procedure((0, 0), {"relationshipType": STRING}),
    "db.propertykeys": Procedure((0, 0), {"propertyKey": STRING}),
    "db.schema.nodetypeproperties": Procedure((0, 0), {"nodeType": STRING, "nodeLabels": list_of(STRING), **_PROPERTY}),
    "db.schema.reltypeproperties": Procedure((0, 0), {"relType": STRING, **_PROPERTY}),
    "db.schema.visualization": Procedure((0, 0), {"nodes": ANYTHING, "relationships": ANYTHING}),
    "db.index.fulltext.querynodes": Procedure((2, 3), {"node": NODE, "score": FLOAT}),
    "db.index.fulltext.queryrelationships": Procedure((2, 3), {"relationship": RELATIONSHIP, "score": FLOAT}),
    "db.index.vector.querynodes": Procedure((3, 3), {"node": NODE, "score": FLOAT}),
    "db.index.vector.queryrelationships": Procedure((3, 3), {"relationship": RELATIONSHIP, "score": FLOAT}),
}

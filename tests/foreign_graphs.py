"""Two public graphs as other people load them into Neo4j.

They are Northwind's trade, whose nodes have no property ``name``, and the films of
Neo4j's own tutorial.

Both are excerpts in the shape of the originals, with their labels, relations and keys.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import neo4j

Record = dict[str, Any]
#: Label and key of the source, relation, label and key of the target, and the rows:
#: source, target, properties.
Links = tuple[str, str, str, str, str, list[list[Any]]]

_CATEGORIES = """
Beverages|Soft drinks, coffees, teas, beers, and ales
Condiments|Sweet and savory sauces, relishes, spreads, and seasonings
Confections|Desserts, candies, and sweet breads
Dairy Products|Cheeses
Grains/Cereals|Breads, crackers, pasta, and cereal
Meat/Poultry|Prepared meats
Produce|Dried fruit and bean curd
Seafood|Seaweed and fish
"""
_SUPPLIERS = """
Exotic Liquids|Charlotte Cooper|Purchasing Manager|49 Gilbert St.|London|UK|(171) 555-2222
New Orleans Cajun Delights|Shelley Burke|Order Administrator|P.O. Box 78934|New Orleans|USA|(100) 555-4822
Grandma Kelly's Homestead|Regina Murphy|Sales Representative|707 Oxford Rd.|Ann Arbor|USA|(313) 555-5735
Tokyo Traders|Yoshi Nagase|Marketing Manager|9-8 Sekimai|Tokyo|Japan|(03) 3555-5011
Cooperativa de Quesos 'Las Cabras'|Antonio del Valle Saavedra|Export Administrator|Calle del Rosal 4|Oviedo|Spain|(98) 598 76 54
Mayumi's|Mayumi Ohno|Marketing Representative|92 Setsuko|Osaka|Japan|(06) 431-7877
Pavlova, Ltd.|Ian Devling|Marketing Manager|74 Rose St.|Melbourne|Australia|(03) 444-2343
Specialty Biscuits, Ltd.|Peter Wilson|Sales Representative|29 King's Way|Manchester|UK|(161) 555-4448
PB Knäckebröd AB|Lars Peterson|Sales Agent|Kaloadagatan 13|Göteborg|Sweden|031-987 65 43
Refrescos Americanas LTDA|Carlos Diaz|Marketing Manager|Av. das Americanas 12.890|Sao Paulo|Brazil|(11) 555 4640
Heli Süßwaren GmbH & Co. KG|Petra Winkler|Sales Manager|Tiergartenstraße 5|Berlin|Germany|(010) 9984510
Plutzer Lebensmittelgroßmärkte AG|Martin Bein|International Marketing Mgr.|Bogenallee 51|Frankfurt|Germany|(069) 992755
"""
_PRODUCTS = """
Chai|1|1|10 boxes x 20 bags|18.0|39
Chang|1|1|24 - 12 oz bottles|19.0|17
Aniseed Syrup|1|2|12 - 550 ml bottles|10.0|13
Chef Anton's Cajun Seasoning|2|2|48 - 6 oz jars|22.0|53
Chef Anton's Gumbo Mix|2|2|36 boxes|21.35|0
Grandma's Boysenberry Spread|3|2|12 - 8 oz jars|25.0|120
Uncle Bob's Organic Dried Pears|3|7|12 - 1 lb pkgs.|30.0|15
Northwoods Cranberry Sauce|3|2|12 - 12 oz jars|40.0|6
Mishi Kobe Niku|4|6|18 - 500 g pkgs.|97.0|29
Ikura|4|8|12 - 200 ml jars|31.0|31
Queso Cabrales|5|4|1 kg pkg.|21.0|22
Queso Manchego La Pastora|5|4|10 - 500 g pkgs.|38.0|86
Konbu|6|8|2 kg box|6.0|24
Tofu|6|7|40 - 100 g pkgs.|23.25|35
Genen Shouyu|6|2|24 - 250 ml bottles|15.5|39
Pavlova|7|3|32 - 500 g boxes|17.45|29
Alice Mutton|7|6|20 - 1 kg tins|39.0|0
Carnarvon Tigers|7|8|16 kg pkg.|62.5|42
Teatime Chocolate Biscuits|8|3|10 boxes x 12 pieces|9.2|25
Sir Rodney's Marmalade|8|3|30 gift boxes|81.0|40
Sir Rodney's Scones|8|3|24 pkgs. x 4 pieces|10.0|3
Gustaf's Knäckebröd|9|5|24 - 500 g pkgs.|21.0|104
Tunnbröd|9|5|12 - 250 g pkgs.|9.0|61
Guaraná Fantástica|10|1|12 - 355 ml cans|4.5|20
NuNuCa Nuß-Nougat-Creme|11|3|20 - 450 g glasses|14.0|76
Gumbär Gummibärchen|11|3|100 - 250 g bags|31.23|15
Schoggi Schokolade|11|3|100 - 100 g pieces|43.9|49
Rössle Sauerkraut|12|7|25 - 825 g cans|45.6|26
Thüringer Rostbratwurst|12|6|50 bags x 30 sausgs.|123.79|0
Wimmers gute Semmelknödel|12|5|20 bags x 4 pieces|33.25|22
"""
_CUSTOMERS = """
ALFKI|Alfreds Futterkiste|Maria Anders|Sales Representative|Obere Str. 57|Berlin|Germany|030-0074321
ANATR|Ana Trujillo Emparedados y helados|Ana Trujillo|Owner|Avda. de la Constitución 2222|México D.F.|Mexico|(5) 555-4729
AROUT|Around the Horn|Thomas Hardy|Sales Representative|120 Hanover Sq.|London|UK|(171) 555-7788
BERGS|Berglunds snabbköp|Christina Berglund|Order Administrator|Berguvsvägen 8|Luleå|Sweden|0921-12 34 65
BLAUS|Blauer See Delikatessen|Hanna Moos|Sales Representative|Forsterstr. 57|Mannheim|Germany|0621-08460
BOLID|Bólido Comidas preparadas|Martín Sommer|Owner|C/ Araquil, 67|Madrid|Spain|(91) 555 22 82
BONAP|Bon app'|Laurence Lebihan|Owner|12, rue des Bouchers|Marseille|France|91.24.45.40
BSBEV|B's Beverages|Victoria Ashworth|Sales Representative|Fauntleroy Circus|London|UK|(171) 555-1212
CACTU|Cactus Comidas para llevar|Patricio Simpson|Sales Agent|Cerrito 333|Buenos Aires|Argentina|(1) 135-5555
CHOPS|Chop-suey Chinese|Yang Wang|Owner|Hauptstr. 29|Bern|Switzerland|0452-076545
COMMI|Comércio Mineiro|Pedro Afonso|Sales Associate|Av. dos Lusíadas, 23|Sao Paulo|Brazil|(11) 555-7647
CONSH|Consolidated Holdings|Elizabeth Brown|Sales Representative|Berkeley Gardens 12|London|UK|(171) 555-2282
DRACD|Drachenblut Delikatessen|Sven Ottlieb|Order Administrator|Walserweg 21|Aachen|Germany|0241-039123
EASTC|Eastern Connection|Ann Devon|Sales Agent|35 King George|London|UK|(171) 555-0297
ERNSH|Ernst Handel|Roland Mendel|Sales Manager|Kirchgasse 6|Graz|Austria|7675-3425
FRANK|Frankenversand|Peter Franken|Marketing Manager|Berliner Platz 43|München|Germany|089-0877310
GODOS|Godos Cocina Típica|José Pedro Freyre|Sales Manager|C/ Romero, 33|Sevilla|Spain|(95) 555 82 82
HUNGO|Hungry Owl All-Night Grocers|Patricia McKenna|Sales Associate|8 Johnstown Road|Cork|Ireland|2967 542
ISLAT|Island Trading|Helen Bennett|Marketing Manager|Garden House|Cowes|UK|(198) 555-8888
QUICK|QUICK-Stop|Horst Kloss|Accounting Manager|Taucherstraße 10|Cunewalde|Germany|0372-035188
"""
_EMPLOYEES = """
Davolio|Nancy|Sales Representative|Seattle|USA|2
Fuller|Andrew|Vice President, Sales|Tacoma|USA|
Leverling|Janet|Sales Representative|Kirkland|USA|2
Peacock|Margaret|Sales Representative|Redmond|USA|2
Buchanan|Steven|Sales Manager|London|UK|2
Suyama|Michael|Sales Representative|London|UK|5
King|Robert|Sales Representative|London|UK|5
Callahan|Laura|Inside Sales Coordinator|Seattle|USA|2
Dodsworth|Anne|Sales Representative|London|UK|5
"""
_CONTACT = ("contactName", "contactTitle", "address", "city", "country", "phone")
_ORDERS, _FIRST_ORDER, _FIRST_DAY = 180, 10248, date(1996, 7, 4)


def _rows(table: str) -> list[list[str]]:
    return [line.split("|") for line in table.strip().splitlines()]


def northwind() -> tuple[dict[str, list[Record]], list[Links]]:
    """Return the nodes by label, and the links, of some three hundred nodes."""
    nodes = {
        "Category": [
            {"categoryID": f"{i}", "categoryName": name, "description": text}
            for i, (name, text) in enumerate(_rows(_CATEGORIES), 1)
        ],
        "Supplier": [
            {"supplierID": f"{i}", "companyName": name}
            | dict(zip(_CONTACT, contact, strict=True))
            for i, (name, *contact) in enumerate(_rows(_SUPPLIERS), 1)
        ],
        "Product": [
            {
                "productID": f"{i}",
                "productName": name,
                "supplierID": supplier,
                "categoryID": category,
                "quantityPerUnit": quantity,
                "unitPrice": float(price),
                "unitsInStock": int(stock),
                "discontinued": stock == "0",
            }
            for i, (name, supplier, category, quantity, price, stock) in enumerate(
                _rows(_PRODUCTS), 1
            )
        ],
        "Customer": [
            {"customerID": key, "companyName": name}
            | dict(zip(_CONTACT, contact, strict=True))
            for key, name, *contact in _rows(_CUSTOMERS)
        ],
        "Employee": [
            {
                "employeeID": f"{i}",
                "lastName": last,
                "firstName": first,
                "title": title,
                "city": city,
                "country": country,
            }
            for i, (last, first, title, city, country, _) in enumerate(
                _rows(_EMPLOYEES), 1
            )
        ],
    }
    nodes["Order"], bought = _orders(nodes)
    return nodes, _links(nodes, bought)


def _orders(nodes: dict[str, list[Record]]) -> tuple[list[Record], list[list[Any]]]:
    """Orders, each of a customer in turn, and what was bought: order, product, row."""
    orders: list[Record] = []
    bought: list[list[Any]] = []
    for i in range(_ORDERS):
        customer = nodes["Customer"][i * 7 % len(nodes["Customer"])]
        order = {
            "orderID": f"{_FIRST_ORDER + i}",
            "customerID": customer["customerID"],
            "employeeID": nodes["Employee"][i * 4 % len(nodes["Employee"])][
                "employeeID"
            ],
            "orderDate": f"{_FIRST_DAY + timedelta(days=3 * i)} 00:00:00.000",
            "freight": round(5 + i * 37 % 120 + 0.25, 2),
            "shipName": customer["companyName"],
            "shipCity": customer["city"],
            "shipCountry": customer["country"],
        }
        orders.append(order)
        for product in {i * 11 % len(nodes["Product"]), i * 5 % len(nodes["Product"])}:
            sold = {"quantity": 5 + i % 40, "discount": "0"}
            bought.append([order["orderID"], f"{product + 1}", sold])
    return orders, bought


def _links(nodes: dict[str, list[Record]], bought: list[list[Any]]) -> list[Links]:
    products, orders = nodes["Product"], nodes["Order"]
    chiefs = [
        [f"{i}", chief, {}]
        for i, (*_, chief) in enumerate(_rows(_EMPLOYEES), 1)
        if chief
    ]

    def column(records: list[Record], source: str, target: str) -> list[list[Any]]:
        return [[one[source], one[target], {}] for one in records]

    product, order = ("Product", "productID"), ("Order", "orderID")
    employee, customer = ("Employee", "employeeID"), ("Customer", "customerID")
    category, supplier = ("Category", "categoryID"), ("Supplier", "supplierID")
    supplied = column(products, "supplierID", "productID")
    return [
        (*product, "PART_OF", *category, column(products, "productID", "categoryID")),
        (*supplier, "SUPPLIES", *product, supplied),
        (*customer, "PURCHASED", *order, column(orders, "customerID", "orderID")),
        (*employee, "SOLD", *order, column(orders, "employeeID", "orderID")),
        (*order, "ORDERS", *product, bought),
        (*employee, "REPORTS_TO", *employee, chiefs),
    ]


_FILMS = """
The Matrix|1999|Welcome to the Real World
The Matrix Reloaded|2003|Free your mind
The Devil's Advocate|1997|Evil has its winning ways
A Few Good Men|1992|In the heart of the nation's capital, in a courthouse of the U.S. government, one man will stop at nothing to keep his honor, and one will stop at nothing to find the truth.
Top Gun|1986|I feel the need, the need for speed.
Jerry Maguire|2000|The rest of his life begins now.
Stand By Me|1986|For some, it's the last real taste of innocence, and the first real taste of life. But for everyone, it's the time that memories are made of.
You've Got Mail|1998|At odds in life... in love on-line.
Sleepless in Seattle|1993|What if someone you never met, someone you never saw, someone you never knew was the only someone for you?
Cloud Atlas|2012|Everything is connected
The Da Vinci Code|2006|Break The Codes
Apollo 13|1995|Houston, we have a problem.
Cast Away|2000|At the edge of the world, his journey begins.
The Polar Express|2004|This Holiday Season... Believe
Frost/Nixon|2008|400 million people were waiting for the truth.
"""
_PEOPLE = """
Keanu Reeves|1964|The Matrix=Neo;The Matrix Reloaded=Neo;The Devil's Advocate=Kevin Lomax||
Carrie-Anne Moss|1967|The Matrix=Trinity;The Matrix Reloaded=Trinity||
Hugo Weaving|1960|The Matrix=Agent Smith;The Matrix Reloaded=Agent Smith;Cloud Atlas=Bill Smoke||
Lilly Wachowski|1967||The Matrix;The Matrix Reloaded;Cloud Atlas|
Lana Wachowski|1965||The Matrix;The Matrix Reloaded;Cloud Atlas|
Joel Silver|1952|||The Matrix;The Matrix Reloaded
Charlize Theron|1975|The Devil's Advocate=Mary Ann Lomax||
Al Pacino|1940|The Devil's Advocate=John Milton||
Taylor Hackford|1944||The Devil's Advocate|
Tom Cruise|1962|A Few Good Men=Lt. Daniel Kaffee;Top Gun=Maverick;Jerry Maguire=Jerry Maguire||
Jack Nicholson|1937|A Few Good Men=Col. Nathan R. Jessup||
Demi Moore|1962|A Few Good Men=Lt. Cdr. JoAnne Galloway||
Rob Reiner|1947||A Few Good Men;Stand By Me|
Kelly McGillis|1957|Top Gun=Charlie||
Val Kilmer|1959|Top Gun=Iceman||
Meg Ryan|1961|Top Gun=Carole;You've Got Mail=Kathleen Kelly;Sleepless in Seattle=Annie Reed||
Tony Scott|1944||Top Gun|
Cameron Crowe|1957||Jerry Maguire|Jerry Maguire
Cuba Gooding Jr.|1968|Jerry Maguire=Rod Tidwell||
River Phoenix|1970|Stand By Me=Chris Chambers||
Tom Hanks|1956|You've Got Mail=Joe Fox;Sleepless in Seattle=Sam Baldwin;Cloud Atlas=Zachry;The Da Vinci Code=Dr. Robert Langdon;Apollo 13=Jim Lovell;Cast Away=Chuck Noland;The Polar Express=Conductor||
Nora Ephron|1941||You've Got Mail;Sleepless in Seattle|
Halle Berry|1966|Cloud Atlas=Luisa Rey||
Tom Tykwer|1965||Cloud Atlas|
Ron Howard|1954||The Da Vinci Code;Apollo 13;Frost/Nixon|
Audrey Tautou|1976|The Da Vinci Code=Sophie Neveu||
Helen Hunt|1963|Cast Away=Kelly Frears||
Robert Zemeckis|1951||Cast Away;The Polar Express|
Frank Langella|1938|Frost/Nixon=Richard Nixon||
Michael Sheen|1969|Frost/Nixon=David Frost||
"""


def movies() -> tuple[dict[str, list[Record]], list[Links]]:
    """Return the nodes by label, and the links, of films and the people in them."""
    films = [
        {"title": title, "released": int(year), "tagline": tagline}
        for title, year, tagline in _rows(_FILMS)
    ]
    people, acted, directed, produced = [], list[Any](), list[Any](), list[Any]()
    for name, born, parts, made, paid in _rows(_PEOPLE):
        people.append({"name": name, "born": int(born)})
        for part in filter(None, parts.split(";")):
            film, role = part.split("=")
            acted.append([name, film, {"roles": [role]}])
        directed += [[name, film, {}] for film in filter(None, made.split(";"))]
        produced += [[name, film, {}] for film in filter(None, paid.split(";"))]
    ends = ("Person", "name", "Movie", "title")
    links: list[Links] = [
        (*ends[:2], relation, *ends[2:], rows)
        for relation, rows in (
            ("ACTED_IN", acted),
            ("DIRECTED", directed),
            ("PRODUCED", produced),
        )
    ]
    return {"Movie": films, "Person": people}, links


def load(
    driver: neo4j.Driver, graph: tuple[dict[str, list[Record]], list[Links]]
) -> None:
    """Write a graph into an empty database, as its own Cypher does."""
    nodes, links = graph
    for label, records in nodes.items():
        driver.execute_query(
            f"UNWIND $rows AS row CREATE (n:{label}) SET n = row", rows=records
        )
    for source, key, relation, target, other, rows in links:
        driver.execute_query(
            f"UNWIND $rows AS row MATCH (a:{source} {{{key}: row[0]}}) MATCH"
            f" (b:{target} {{{other}: row[1]}}) CREATE (a)-[r:{relation}]->(b) SET r ="
            " row[2]",
            rows=rows,
        )

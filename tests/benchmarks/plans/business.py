"""A trading company's customers, orders, products, employees, and questions on them.

`PathPlanner` was tuned on these.
"""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from records import Question, Records

_PLACES = {
    "Germany": ["Berlin", "Bremen"],
    "France": ["Lyon", "Nantes"],
    "Norway": ["Bergen", "Oslo"],
    "Spain": ["Madrid", "Seville"],
}
_CUSTOMERS = [
    *("Nordlicht Handel", "Casa Molina", "Fjord Trading", "Atelier Roux"),
    *("Hansekontor", "Bodega Ruiz", "Maison Perrin", "Bergen Supplies"),
    *("Kramer und Sohn", "Tienda Vega", "Oslo Provisions", "Chez Lambert"),
    *("Weserhof", "Mercado Luna", "Skog Market", "Petit Marché"),
]
_SUPPLIERS = [
    *("Alpine Dairy", "Sol Imports", "Havbris Seafood", "Ferme Duval"),
    *("Rheingold Foods", "Olivar Estates", "Polar Catch"),
]
_PRODUCTS = {
    "Beverages": ["Elderflower Press", "Smoked Tea", "Juniper Ale", "Fig Cordial"],
    "Seafood": ["Cured Herring", "Arctic Char", "Squid Rings", "Prawn Paste"],
    "Dairy": ["Goat Butter", "Cellar Gouda", "Whey Cream", "Blue Fennel"],
    "Confections": ["Nougat Bar", "Salt Toffee", "Plum Fudge", "Anise Drops"],
    "Condiments": ["Mustard Seeds", "Caper Relish", "Chili Honey", "Dill Brine"],
}
_EMPLOYEES = [
    *("Ingrid Solberg", "Tomas Beck", "Claire Fontaine", "Luis Ortega"),
    *("Petra Vogel", "Henrik Dahl", "Amelie Girard", "Jonas Weber"),
]


def build() -> Records:
    """Make the graph, the same each time."""
    graph, rng = Records(), Random(7)
    products = _catalogue(graph, rng)
    employees = _staff(graph, rng)
    customers = [
        graph.node(
            "Customer",
            name,
            country=(country := list(_PLACES)[number % 4]),
            city=rng.choice(_PLACES[country]),
            segment=rng.choice(["retail", "wholesale", "hospitality"]),
            vip=number % 5 == 0,
            customer_since=f"{2018 + number % 6}-{1 + number % 12:02}-15",
        )
        for number, name in enumerate(_CUSTOMERS)
    ]
    _orders(graph, rng, customers, employees, products)
    return graph


def _catalogue(graph: Records, rng: Random) -> list[str]:
    suppliers = [
        graph.node(
            "Supplier",
            name,
            country=list(_PLACES)[(number * 3 + 2) % 4],
            rating=round(2.1 + number * 0.43, 1),
        )
        for number, name in enumerate(_SUPPLIERS)
    ]
    products: list[str] = []
    for category_name, names in _PRODUCTS.items():
        category = graph.node("Category", category_name)
        for number, name in enumerate(names[: 3 if category_name == "Dairy" else 4]):
            product = graph.node(
                "Product",
                name,
                unit_price=round(3.2 + len(products) * 5.3 + rng.random(), 2),
                units_in_stock=4 + (len(products) * 37) % 120,
                discontinued=len(products) % 6 == 2,
                launch_date=f"{2019 + len(products) % 4}-0{1 + number}-10",
            )
            graph.edge(product, "IN_CATEGORY", category)
            if len(products) % 9:  # some come from the company itself
                graph.edge(suppliers[len(products) % 7], "SUPPLIES", product)
            products.append(product)
    return products


def _staff(graph: Records, rng: Random) -> list[str]:
    employees = [
        graph.node(
            "Employee",
            name,
            title="Sales Manager" if number == 0 else "Sales Representative",
            hire_date=f"{2011 + number}-0{1 + number}-0{9 - number}",
            salary=48_000 + (number * 5_300 if number else 41_000),
            remote=number % 3 == 1,
        )
        for number, name in enumerate(_EMPLOYEES)
    ]
    for number, employee in enumerate(employees[1:], 1):
        graph.edge(employee, "REPORTS_TO", employees[0 if number < 4 else 1])
    return employees


def _orders(
    graph: Records,
    rng: Random,
    customers: list[str],
    employees: list[str],
    products: list[str],
) -> None:
    day = date(2022, 11, 5)
    for number in range(60):
        day += timedelta(days=rng.randrange(5, 10))
        pending = number % 9 == 4
        order = graph.node(
            "Order",
            f"Order {1001 + number}",
            order_date=day.isoformat(),
            shipped_date=None if pending else (day + timedelta(days=4)).isoformat(),
            freight=round(8 + rng.random() * 100, 2),
            status="pending" if pending else rng.choice(["shipped", "delivered"]),
        )
        customer = customers[rng.choice([0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])]
        graph.edge(customer, "PLACED", order)
        graph.edge(rng.choice(employees[:6] + employees[2:3]), "HANDLED", order)
        for product in rng.sample(products[:16] + products[4:5] * 3, 3):
            graph.edge(order, "CONTAINS", product)


def questions(graph: Records) -> list[Question]:
    """The questions with what answers them."""
    return [
        *_filters(graph),
        *_ranges(graph),
        *_dates(graph),
        *_tops(graph),
        *_mosts(graph),
        *_nevers(graph),
        *_hops(graph),
        *_beyond(),
    ]


def _filters(g: Records) -> list[Question]:
    return [
        Question(
            "Which customers are based in Germany?",
            "filter",
            g.all("Customer", lambda p: p["country"] == "Germany"),
            "MATCH (c:Customer) WHERE c.country = 'Germany' RETURN c",
        ),
        Question(
            "Show me the discontinued products.",
            "filter",
            g.all("Product", lambda p: p["discontinued"]),
            "MATCH (p:Product) WHERE p.discontinued RETURN p",
        ),
        Question(
            "Which employees work remotely?",
            "filter",
            g.all("Employee", lambda p: p["remote"]),
            "MATCH (e:Employee) WHERE e.remote RETURN e",
        ),
        Question(
            "List suppliers from Norway",
            "filter",
            g.all("Supplier", lambda p: p["country"] == "Norway"),
            "MATCH (s:Supplier) WHERE s.country = 'Norway' RETURN s",
        ),
        Question(
            "Which customers belong to the retail segment?",
            "filter",
            g.all("Customer", lambda p: p["segment"] == "retail"),
            "MATCH (c:Customer) WHERE c.segment = 'retail' RETURN c",
        ),
        Question(
            "Which orders are still pending?",
            "filter",
            g.all("Order", lambda p: p["status"] == "pending"),
            "MATCH (o:Order) WHERE o.status = 'pending' RETURN o",
        ),
        Question(
            "VIP customers in France",
            "filter",
            g.all("Customer", lambda p: p["vip"] and p["country"] == "France"),
            "MATCH (c:Customer) WHERE c.vip AND c.country = 'France' RETURN c",
        ),
        Question(
            "Which products are not discontinued?",
            "filter",
            g.all("Product", lambda p: not p["discontinued"]),
            "MATCH (p:Product) WHERE NOT p.discontinued RETURN p",
        ),
    ]


def _ranges(g: Records) -> list[Question]:
    return [
        Question(
            "Which products cost more than 80?",
            "range",
            g.all("Product", lambda p: p["unit_price"] > 80),
            "MATCH (p:Product) WHERE p.unit_price > 80 RETURN p",
        ),
        Question(
            "Products with a stock below 20",
            "range",
            g.all("Product", lambda p: p["units_in_stock"] < 20),
            "MATCH (p:Product) WHERE p.units_in_stock < 20 RETURN p",
        ),
        Question(
            "Which employees earn at least 70,000?",
            "range",
            g.all("Employee", lambda p: p["salary"] >= 70_000),
            "MATCH (e:Employee) WHERE e.salary >= 70000 RETURN e",
        ),
        Question(
            "Which products are priced between 20 and 30 euros?",
            "range",
            g.all("Product", lambda p: 20 <= p["unit_price"] <= 30),
            "MATCH (p:Product) WHERE p.unit_price >= 20 AND p.unit_price <= 30"
            " RETURN p",
        ),
        Question(
            "Suppliers with a rating of 4 or more",
            "range",
            g.all("Supplier", lambda p: p["rating"] >= 4),
            "MATCH (s:Supplier) WHERE s.rating >= 4 RETURN s",
        ),
        Question(
            "Which orders had freight costs over 90?",
            "range",
            g.all("Order", lambda p: p["freight"] > 90),
            "MATCH (o:Order) WHERE o.freight > 90 RETURN o",
        ),
        Question(
            "What products are cheaper than $15?",
            "range",
            g.all("Product", lambda p: p["unit_price"] < 15),
            "MATCH (p:Product) WHERE p.unit_price < 15 RETURN p",
        ),
    ]


def _dates(g: Records) -> list[Question]:
    return [
        Question(
            "Which orders were placed after November 2023?",
            "date",
            g.all("Order", lambda p: p["order_date"] >= "2023-12-01"),
            "MATCH (o:Order) WHERE o.order_date >= '2023-12-01' RETURN o",
        ),
        Question(
            "Which employees were hired before 2015?",
            "date",
            g.all("Employee", lambda p: p["hire_date"] < "2015"),
            "MATCH (e:Employee) WHERE e.hire_date < '2015-01-01' RETURN e",
        ),
        Question(
            "What orders were shipped in March 2023?",
            "date",
            g.all("Order", lambda p: p.get("shipped_date", "")[:7] == "2023-03"),
            "MATCH (o:Order) WHERE o.shipped_date STARTS WITH '2023-03' RETURN o",
        ),
        Question(
            "Customers that have been with us since 2022",
            "date",
            g.all("Customer", lambda p: p["customer_since"] >= "2022"),
            "MATCH (c:Customer) WHERE c.customer_since >= '2022-01-01' RETURN c",
        ),
        Question(
            "Orders between 1 May 2023 and 31 May 2023",
            "date",
            g.all("Order", lambda p: p["order_date"][:7] == "2023-05"),
            "MATCH (o:Order) WHERE o.order_date >= '2023-05-01' AND o.order_date <="
            " '2023-05-31' RETURN o",
        ),
        Question(
            "Which products were launched in 2021?",
            "date",
            g.all("Product", lambda p: p["launch_date"][:4] == "2021"),
            "MATCH (p:Product) WHERE p.launch_date STARTS WITH '2021' RETURN p",
        ),
        Question(
            "Who joined the company after 2016?",
            "date",
            g.all("Employee", lambda p: p["hire_date"] >= "2017"),
            "MATCH (e:Employee) WHERE e.hire_date >= '2017-01-01' RETURN e",
        ),
    ]


def _tops(g: Records) -> list[Question]:
    nordlicht = g.out(g.named("Nordlicht Handel"), "PLACED")
    beverages = g.into(g.named("Beverages"), "IN_CATEGORY")
    return [
        Question(
            "What is the most expensive product?",
            "top-n",
            g.top(g.all("Product"), "unit_price"),
            "MATCH (p:Product) RETURN p ORDER BY p.unit_price DESC LIMIT 1",
        ),
        Question(
            "Which three employees have the highest salary?",
            "top-n",
            g.top(g.all("Employee"), "salary", 3),
            "MATCH (e:Employee) RETURN e ORDER BY e.salary DESC LIMIT 3",
        ),
        Question(
            "What are the 5 latest orders?",
            "top-n",
            g.top(g.all("Order"), "order_date", 5),
            "MATCH (o:Order) RETURN o ORDER BY o.order_date DESC LIMIT 5",
        ),
        Question(
            "Who was hired first?",
            "top-n",
            g.top(g.all("Employee"), "hire_date", most=False),
            "MATCH (e:Employee) RETURN e ORDER BY e.hire_date LIMIT 1",
        ),
        Question(
            "Which product has the lowest stock?",
            "top-n",
            g.top(g.all("Product"), "units_in_stock", most=False),
            "MATCH (p:Product) RETURN p ORDER BY p.units_in_stock LIMIT 1",
        ),
        Question(
            "The two cheapest products in the category Beverages",
            "top-n",
            g.top(beverages, "unit_price", 2, most=False),
            "MATCH (p:Product)-[:IN_CATEGORY]->(c:Category) WHERE c.name = 'Beverages'"
            " RETURN p ORDER BY p.unit_price LIMIT 2",
        ),
        Question(
            "What was the last order of Nordlicht Handel?",
            "top-n",
            g.top(nordlicht, "order_date"),
            "MATCH (c:Customer)-[:PLACED]->(o:Order) WHERE c.name = 'Nordlicht Handel'"
            " RETURN o ORDER BY o.order_date DESC LIMIT 1",
        ),
        Question(
            "Which supplier has the best rating?",
            "top-n",
            g.top(g.all("Supplier"), "rating"),
            "MATCH (s:Supplier) RETURN s ORDER BY s.rating DESC LIMIT 1",
        ),
    ]


def _mosts(g: Records) -> list[Question]:
    return [
        Question(
            "Which customer placed the most orders?",
            "most",
            g.most(g.all("Customer"), lambda i: len(g.out([i], "PLACED"))),
            "MATCH (c:Customer)-[:PLACED]->(o:Order) WITH c, count(o) AS n RETURN c, n"
            " ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which employee handled the most orders?",
            "most",
            g.most(g.all("Employee"), lambda i: len(g.out([i], "HANDLED"))),
            "MATCH (e:Employee)-[:HANDLED]->(o:Order) WITH e, count(o) AS n RETURN e,"
            " n ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which category has the fewest products?",
            "most",
            g.most(
                g.all("Category"),
                lambda i: len(g.into([i], "IN_CATEGORY")),
                least=True,
            ),
            "MATCH (p:Product)-[:IN_CATEGORY]->(c:Category) WITH c, count(p) AS n"
            " RETURN c, n ORDER BY n LIMIT 1",
        ),
        Question(
            "Which product was ordered most often?",
            "most",
            g.most(g.all("Product"), lambda i: len(g.into([i], "CONTAINS"))),
            "MATCH (o:Order)-[:CONTAINS]->(p:Product) WITH p, count(o) AS n RETURN p,"
            " n ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which country's suppliers deliver the most?",
            "count",
        ),
        Question(
            "Which supplier supplies the most products?",
            "most",
            g.most(g.all("Supplier"), lambda i: len(g.out([i], "SUPPLIES"))),
            "MATCH (s:Supplier)-[:SUPPLIES]->(p:Product) WITH s, count(p) AS n RETURN"
            " s, n ORDER BY n DESC LIMIT 1",
        ),
    ]


def _nevers(g: Records) -> list[Question]:
    in_2023 = g.all("Order", lambda p: p["order_date"][:4] == "2023")
    with_ale = g.into(g.named("Juniper Ale"), "CONTAINS")
    return [
        Question(
            "Which customers never placed an order?",
            "never",
            g.all("Customer") - g.into(g.all("Order"), "PLACED"),
            "MATCH (c:Customer) WHERE NOT EXISTS { MATCH (c)-[:PLACED]->(:Order) }"
            " RETURN c",
        ),
        Question(
            "Which products have never been ordered?",
            "never",
            g.all("Product") - g.out(g.all("Order"), "CONTAINS"),
            "MATCH (p:Product) WHERE NOT EXISTS { MATCH (:Order)-[:CONTAINS]->(p) }"
            " RETURN p",
        ),
        Question(
            "Employees who have not handled any order",
            "never",
            g.all("Employee") - g.into(g.all("Order"), "HANDLED"),
            "MATCH (e:Employee) WHERE NOT EXISTS { MATCH (e)-[:HANDLED]->(:Order) }"
            " RETURN e",
        ),
        Question(
            "Products without a supplier",
            "never",
            g.all("Product") - g.out(g.all("Supplier"), "SUPPLIES"),
            "MATCH (p:Product) WHERE NOT EXISTS { MATCH (:Supplier)-[:SUPPLIES]->(p) }"
            " RETURN p",
        ),
        Question(
            "Which orders have not been shipped?",
            "never",
            g.all("Order", lambda p: "shipped_date" not in p),
            "MATCH (o:Order) WHERE o.shipped_date IS NULL RETURN o",
        ),
        Question(
            "Customers who never ordered Juniper Ale",
            "never",
            g.all("Customer") - g.into(with_ale, "PLACED"),
            "MATCH (c:Customer) WHERE NOT EXISTS { MATCH (c)-[:PLACED]->(:Order)-"
            "[:CONTAINS]->(:Product {name: 'Juniper Ale'}) } RETURN c",
        ),
        Question(
            "Which customers placed no orders in 2023?",
            "never",
            g.all("Customer") - g.into(in_2023, "PLACED"),
            "MATCH (c:Customer) WHERE NOT EXISTS { MATCH (c)-[:PLACED]->(o:Order) WHERE"
            " o.order_date STARTS WITH '2023' } RETURN c",
        ),
    ]


def _hops(g: Records) -> list[Question]:
    molina = g.out(g.named("Casa Molina"), "PLACED")
    molina_2023 = {i for i in molina if g.properties[i]["order_date"][:4] == "2023"}
    costly_freight = g.all("Order", lambda p: p["freight"] > 95)
    seafood = g.into(g.named("Seafood"), "IN_CATEGORY")
    dear = g.all("Product", lambda p: p["unit_price"] > 50)
    norway = g.all("Supplier", lambda p: p["country"] == "Norway")
    discontinued = g.all("Product", lambda p: p["discontinued"])
    return [
        Question(
            "Which customers ordered Cured Herring?",
            "2 hops",
            g.into(g.into(g.named("Cured Herring"), "CONTAINS"), "PLACED"),
            "MATCH (c:Customer)-[:PLACED]->(:Order)-[:CONTAINS]->(p:Product) WHERE"
            " p.name = 'Cured Herring' RETURN DISTINCT c",
        ),
        Question(
            "Which products did Casa Molina order in 2023?",
            "2 hops",
            g.out(molina_2023, "CONTAINS"),
            "MATCH (c:Customer)-[:PLACED]->(o:Order)-[:CONTAINS]->(p:Product) WHERE"
            " c.name = 'Casa Molina' AND o.order_date STARTS WITH '2023' RETURN"
            " DISTINCT p",
        ),
        Question(
            "Who handled the orders of Fjord Trading?",
            "2 hops",
            g.into(g.out(g.named("Fjord Trading"), "PLACED"), "HANDLED"),
            "MATCH (e:Employee)-[:HANDLED]->(:Order)<-[:PLACED]-(c:Customer) WHERE"
            " c.name = 'Fjord Trading' RETURN DISTINCT e",
        ),
        Question(
            "Which customers placed orders with freight above 95?",
            "2 hops",
            g.into(costly_freight, "PLACED"),
            "MATCH (c:Customer)-[:PLACED]->(o:Order) WHERE o.freight > 95 RETURN"
            " DISTINCT c",
        ),
        Question(
            "Which suppliers supply products in the category Seafood?",
            "2 hops",
            g.into(seafood, "SUPPLIES"),
            "MATCH (s:Supplier)-[:SUPPLIES]->(:Product)-[:IN_CATEGORY]->(c:Category)"
            " WHERE c.name = 'Seafood' RETURN DISTINCT s",
        ),
        Question(
            "Which suppliers from Norway supply products that cost more than 50?",
            "2 hops",
            norway & g.into(dear, "SUPPLIES"),
            "MATCH (s:Supplier)-[:SUPPLIES]->(p:Product) WHERE s.country = 'Norway' AND"
            " p.unit_price > 50 RETURN DISTINCT s",
        ),
        Question(
            "Which employees report to Tomas Beck?",
            "2 hops",
            g.into(g.named("Tomas Beck"), "REPORTS_TO"),
            "MATCH (e:Employee)-[:REPORTS_TO]->(b:Employee) WHERE b.name = 'Tomas Beck'"
            " RETURN e",
        ),
        Question(
            "Which categories have discontinued products?",
            "2 hops",
            g.out(discontinued, "IN_CATEGORY"),
            "MATCH (p:Product)-[:IN_CATEGORY]->(c:Category) WHERE p.discontinued RETURN"
            " DISTINCT c",
        ),
        Question(
            "Which employee handled the most recent order?",
            "2 hops",
            g.into(g.top(g.all("Order"), "order_date"), "HANDLED"),
            "MATCH (e:Employee)-[:HANDLED]->(o:Order) RETURN e ORDER BY o.order_date"
            " DESC LIMIT 1",
        ),
    ]


def _beyond() -> list[Question]:
    counts = [
        "How many orders did Casa Molina place?",
        "What is the average price of products in Beverages?",
        "How many customers are there per country?",
        "What is the total freight of all orders in 2023?",
    ]
    unanswerable = [
        "Which customers complained about a late delivery?",
        "Which products are vegan?",
        "Which employees speak Spanish?",
        "Which orders were paid by credit card?",
        "Which customers have more than 200 employees?",
        "Which products will be sold out next month?",
    ]
    return [
        *(Question(text, "count") for text in counts),
        *(Question(text, "unanswerable") for text in unanswerable),
    ]

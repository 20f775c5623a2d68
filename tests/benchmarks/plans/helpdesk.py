"""A help desk's accounts, tickets, agents, teams, features, and questions on them.

Written when `PathPlanner` already read conditions, and not tuned on.
"""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from records import Question, Records

_ACCOUNTS = [
    *("Brightloom", "Cobalt Freight", "Duskwater", "Elmgate Bank", "Foxglove Media"),
    *("Granite Peak", "Harborline", "Ironvale", "Juno Robotics", "Kestrel Air"),
    *("Lumen Health", "Mosswood"),
]
_AGENTS = ["Ayla Demir", "Bram Visser", "Chloe Martin", "Dario Conti", "Esi Boateng"]
_FEATURES = ["Single Sign-On", "Audit Log", "Bulk Export", "Webhooks", "Dashboards"]
_TEAMS = ["Billing Desk", "Platform Crew", "Night Watch"]


def build() -> Records:
    """Make the graph, the same each time."""
    graph, rng = Records(), Random(23)
    teams = [graph.node("Team", name) for name in _TEAMS]
    agents = [
        graph.node(
            "Agent",
            name,
            seniority=["junior", "senior", "lead"][number % 3],
            language=["Turkish", "Dutch", "French", "Italian", "English"][number],
            startDate=f"{2017 + number}-0{2 + number}-11",
            hourlyRate=31 + (number * 13) % 29,
        )
        for number, name in enumerate(_AGENTS)
    ]
    for number, agent in enumerate(agents):
        graph.edge(agent, "memberOf", teams[number % 2])
    features = [
        graph.node("Feature", name, beta=number in (1, 3), released=2016 + number)
        for number, name in enumerate(_FEATURES)
    ]
    accounts = [
        graph.node(
            "Account",
            name,
            plan=["free", "pro", "enterprise"][number % 3],
            seats=15 + (number * 71) % 400,
            region=["Europe", "Americas", "Asia"][number % 3 - number % 2],
            churned=number in (3, 8),
            renewalDate=f"2025-{1 + (number * 5) % 12:02}-01",
        )
        for number, name in enumerate(_ACCOUNTS)
    ]
    for number, account in enumerate(accounts):
        for feature in rng.sample(features[:4], 1 + number % 3):
            graph.edge(account, "uses", feature)
    _tickets(graph, rng, accounts, agents, features)
    return graph


def _tickets(
    graph: Records,
    rng: Random,
    accounts: list[str],
    agents: list[str],
    features: list[str],
) -> None:
    day = date(2024, 1, 3)
    for number in range(48):
        day += timedelta(days=rng.randrange(3, 8))
        is_open = number % 6 == 5
        ticket = graph.node(
            "Ticket",
            f"T-{4100 + number}",
            openedAt=day.isoformat(),
            closedAt=None if is_open else (day + timedelta(days=2)).isoformat(),
            priority=["low", "normal", "critical"][rng.randrange(3)],
            channel=["email", "phone", "chat"][number % 3],
            responseMinutes=5 + (number * 47) % 300,
            escalated=number % 8 == 2,
        )
        account = accounts[rng.choice([0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8])]
        graph.edge(account, "raised", ticket)
        graph.edge(ticket, "assignedTo", agents[rng.choice([0, 1, 1, 2, 3])])
        graph.edge(ticket, "concerns", features[rng.randrange(4)])


def questions(graph: Records) -> list[Question]:
    """The questions with what answers them."""
    return [
        *_filters(graph),
        *_ranges_and_dates(graph),
        *_orders(graph),
        *_nevers(graph),
        *_hops(graph),
        *_beyond(),
    ]


def _filters(g: Records) -> list[Question]:
    return [
        Question(
            "List all critical tickets",
            "filter",
            g.all("Ticket", lambda p: p["priority"] == "critical"),
            "MATCH (t:Ticket) WHERE t.priority = 'critical' RETURN t",
        ),
        Question(
            "Which accounts are on the enterprise plan?",
            "filter",
            g.all("Account", lambda p: p["plan"] == "enterprise"),
            "MATCH (a:Account) WHERE a.plan = 'enterprise' RETURN a",
        ),
        Question(
            "Which accounts have churned?",
            "filter",
            g.all("Account", lambda p: p["churned"]),
            "MATCH (a:Account) WHERE a.churned RETURN a",
        ),
        Question(
            "Who are our senior agents?",
            "filter",
            g.all("Agent", lambda p: p["seniority"] == "senior"),
            "MATCH (a:Agent) WHERE a.seniority = 'senior' RETURN a",
        ),
        Question(
            "Give me the tickets that came in by phone",
            "filter",
            g.all("Ticket", lambda p: p["channel"] == "phone"),
            "MATCH (t:Ticket) WHERE t.channel = 'phone' RETURN t",
        ),
        Question(
            "features in beta",
            "filter",
            g.all("Feature", lambda p: p["beta"]),
            "MATCH (f:Feature) WHERE f.beta RETURN f",
        ),
        Question(
            "Which agent speaks Italian?",
            "filter",
            g.all("Agent", lambda p: p["language"] == "Italian"),
            "MATCH (a:Agent) WHERE a.language = 'Italian' RETURN a",
        ),
    ]


def _ranges_and_dates(g: Records) -> list[Question]:
    return [
        Question(
            "Accounts with more than 300 seats",
            "range",
            g.all("Account", lambda p: p["seats"] > 300),
            "MATCH (a:Account) WHERE a.seats > 300 RETURN a",
        ),
        Question(
            "Which tickets had a response time above 280 minutes?",
            "range",
            g.all("Ticket", lambda p: p["responseMinutes"] > 280),
            "MATCH (t:Ticket) WHERE t.responseMinutes > 280 RETURN t",
        ),
        Question(
            "Which agents have an hourly rate of at most 40?",
            "range",
            g.all("Agent", lambda p: p["hourlyRate"] <= 40),
            "MATCH (a:Agent) WHERE a.hourlyRate <= 40 RETURN a",
        ),
        Question(
            "Show accounts with 100 to 200 seats",
            "range",
            g.all("Account", lambda p: 100 <= p["seats"] <= 200),
            "MATCH (a:Account) WHERE a.seats >= 100 AND a.seats <= 200 RETURN a",
        ),
        Question(
            "Which tickets were opened in June 2024?",
            "date",
            g.all("Ticket", lambda p: p["openedAt"][:7] == "2024-06"),
            "MATCH (t:Ticket) WHERE t.openedAt STARTS WITH '2024-06' RETURN t",
        ),
        Question(
            "Tickets closed before February 2024",
            "date",
            g.all("Ticket", lambda p: p.get("closedAt", "9") < "2024-02"),
            "MATCH (t:Ticket) WHERE t.closedAt < '2024-02-01' RETURN t",
        ),
        Question(
            "Which accounts are up for renewal after 1 October 2025?",
            "date",
            g.all("Account", lambda p: p["renewalDate"] > "2025-10-01"),
            "MATCH (a:Account) WHERE a.renewalDate > '2025-10-01' RETURN a",
        ),
        Question(
            "Features released since 2019",
            "date",
            g.all("Feature", lambda p: p["released"] >= 2019),
            "MATCH (f:Feature) WHERE f.released >= 2019 RETURN f",
        ),
        Question(
            "Which agents started in 2019?",
            "date",
            g.all("Agent", lambda p: p["startDate"][:4] == "2019"),
            "MATCH (a:Agent) WHERE a.startDate STARTS WITH '2019' RETURN a",
        ),
    ]


def _orders(g: Records) -> list[Question]:
    return [
        Question(
            "Which account has the most seats?",
            "top-n",
            g.top(g.all("Account"), "seats"),
            "MATCH (a:Account) RETURN a ORDER BY a.seats DESC LIMIT 1",
        ),
        Question(
            "the 3 oldest tickets",
            "top-n",
            g.top(g.all("Ticket"), "openedAt", 3, most=False),
            "MATCH (t:Ticket) RETURN t ORDER BY t.openedAt LIMIT 3",
        ),
        Question(
            "Which ticket took the longest to get a response?",
            "top-n",
            g.top(g.all("Ticket"), "responseMinutes"),
            "MATCH (t:Ticket) RETURN t ORDER BY t.responseMinutes DESC LIMIT 1",
        ),
        Question(
            "Who is the cheapest agent per hour?",
            "top-n",
            g.top(g.all("Agent"), "hourlyRate", most=False),
            "MATCH (a:Agent) RETURN a ORDER BY a.hourlyRate LIMIT 1",
        ),
        Question(
            "What is the newest feature?",
            "top-n",
            g.top(g.all("Feature"), "released"),
            "MATCH (f:Feature) RETURN f ORDER BY f.released DESC LIMIT 1",
        ),
        Question(
            "What was the latest ticket from Cobalt Freight?",
            "top-n",
            g.top(g.out(g.named("Cobalt Freight"), "raised"), "openedAt"),
            "MATCH (a:Account {name: 'Cobalt Freight'})-[:raised]->(t:Ticket) RETURN t"
            " ORDER BY t.openedAt DESC LIMIT 1",
        ),
        Question(
            "Which account raised the most tickets?",
            "most",
            g.most(g.all("Account"), lambda i: len(g.out([i], "raised"))),
            "MATCH (a:Account)-[:raised]->(t:Ticket) WITH a, count(t) AS n RETURN a, n"
            " ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which agent was assigned the most tickets?",
            "most",
            g.most(g.all("Agent"), lambda i: len(g.into([i], "assignedTo"))),
            "MATCH (t:Ticket)-[:assignedTo]->(a:Agent) WITH a, count(t) AS n RETURN a,"
            " n ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which feature is used by the most accounts?",
            "most",
            g.most(g.all("Feature"), lambda i: len(g.into([i], "uses"))),
            "MATCH (a:Account)-[:uses]->(f:Feature) WITH f, count(a) AS n RETURN f, n"
            " ORDER BY n DESC LIMIT 1",
        ),
    ]


def _nevers(g: Records) -> list[Question]:
    critical = g.all("Ticket", lambda p: p["priority"] == "critical")
    exporting = g.into(g.named("Bulk Export"), "uses")
    return [
        Question(
            "Which accounts never raised a ticket?",
            "never",
            g.all("Account") - g.into(g.all("Ticket"), "raised"),
            "MATCH (a:Account) WHERE NOT EXISTS { MATCH (a)-[:raised]->(:Ticket) }"
            " RETURN a",
        ),
        Question(
            "agents without tickets",
            "never",
            g.all("Agent") - g.out(g.all("Ticket"), "assignedTo"),
            "MATCH (a:Agent) WHERE NOT EXISTS { MATCH (:Ticket)-[:assignedTo]->(a) }"
            " RETURN a",
        ),
        Question(
            "Which tickets are not closed yet?",
            "never",
            g.all("Ticket", lambda p: "closedAt" not in p),
            "MATCH (t:Ticket) WHERE t.closedAt IS NULL RETURN t",
        ),
        Question(
            "Which teams have no agents?",
            "never",
            g.all("Team") - g.out(g.all("Agent"), "memberOf"),
            "MATCH (t:Team) WHERE NOT EXISTS { MATCH (:Agent)-[:memberOf]->(t) } RETURN"
            " t",
        ),
        Question(
            "Accounts that don't use Bulk Export",
            "never",
            g.all("Account") - exporting,
            "MATCH (a:Account) WHERE NOT EXISTS { MATCH (a)-[:uses]->(:Feature {name:"
            " 'Bulk Export'}) } RETURN a",
        ),
        Question(
            "Which accounts have no critical tickets?",
            "never",
            g.all("Account") - g.into(critical, "raised"),
            "MATCH (a:Account) WHERE NOT EXISTS { MATCH (a)-[:raised]->(t:Ticket) WHERE"
            " t.priority = 'critical' } RETURN a",
        ),
    ]


def _hops(g: Records) -> list[Question]:
    escalated = g.all("Ticket", lambda p: p["escalated"])
    brightloom = g.out(g.named("Brightloom"), "raised")
    webhooks = g.into(g.named("Webhooks"), "concerns")
    europe = g.all("Account", lambda p: p["region"] == "Europe")
    by_chat = g.all("Ticket", lambda p: p["channel"] == "chat")
    return [
        Question(
            "Which accounts have escalated tickets?",
            "2 hops",
            g.into(escalated, "raised"),
            "MATCH (a:Account)-[:raised]->(t:Ticket) WHERE t.escalated RETURN DISTINCT"
            " a",
        ),
        Question(
            "Which agents worked on tickets of Brightloom?",
            "2 hops",
            g.out(brightloom, "assignedTo"),
            "MATCH (a:Account {name: 'Brightloom'})-[:raised]->(:Ticket)-[:assignedTo]"
            "->(g:Agent) RETURN DISTINCT g",
        ),
        Question(
            "Which accounts raised tickets about Webhooks?",
            "2 hops",
            g.into(webhooks, "raised"),
            "MATCH (a:Account)-[:raised]->(:Ticket)-[:concerns]->(f:Feature {name:"
            " 'Webhooks'}) RETURN DISTINCT a",
        ),
        Question(
            "Which features do European accounts use?",
            "2 hops",
            g.out(europe, "uses"),
            "MATCH (a:Account)-[:uses]->(f:Feature) WHERE a.region = 'Europe' RETURN"
            " DISTINCT f",
        ),
        Question(
            "Tickets assigned to Bram Visser with critical priority",
            "2 hops",
            g.into(g.named("Bram Visser"), "assignedTo")
            & g.all("Ticket", lambda p: p["priority"] == "critical"),
            "MATCH (t:Ticket)-[:assignedTo]->(a:Agent {name: 'Bram Visser'}) WHERE"
            " t.priority = 'critical' RETURN t",
        ),
        Question(
            "Which features are concerned by tickets that came in via chat?",
            "2 hops",
            g.out(by_chat, "concerns"),
            "MATCH (t:Ticket)-[:concerns]->(f:Feature) WHERE t.channel = 'chat' RETURN"
            " DISTINCT f",
        ),
        Question(
            "Which account opened the most recent ticket?",
            "2 hops",
            g.into(g.top(g.all("Ticket"), "openedAt"), "raised"),
            "MATCH (a:Account)-[:raised]->(t:Ticket) RETURN a ORDER BY t.openedAt DESC"
            " LIMIT 1",
        ),
    ]


def _beyond() -> list[Question]:
    counts = [
        "How many critical tickets do we have?",
        "average response time by team",
        "What share of accounts is on the free plan?",
        "Count the tickets of Cobalt Freight",
    ]
    unanswerable = [
        "Which accounts are unhappy with our support?",
        "Which agents are on holiday?",
        "Which tickets were reopened twice?",
        "Which accounts pay late?",
        "Which tickets breach the agreed service level?",
        "Which account will churn next?",
    ]
    return [
        *(Question(text, "count") for text in counts),
        *(Question(text, "unanswerable") for text in unanswerable),
    ]

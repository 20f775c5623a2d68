"""A clinic's patients, visits, doctors, drugs and wards, and questions on them.

Written before `PathPlanner` read conditions, and not tuned on.
"""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from records import Question, Records

_PATIENTS = [
    *("Amara Okafor", "Liam Hughes", "Mei Tanaka", "Rosa Delgado", "Owen Price"),
    *("Fatima Zahra", "George Ellis", "Hanna Lind", "Ivan Petrenko", "Julia Novak"),
    *("Kofi Mensah", "Laura Bianchi", "Noah Fischer", "Olga Sorokina", "Paul Moreau"),
    *("Quentin Ward", "Ruth Adler", "Samir Haddad", "Tessa Boyd", "Umar Farouk"),
]
_DOCTORS = [
    *("Elena Petrov", "Marcus Webb", "Sofia Lange", "David Osei", "Nina Castellano"),
    *("Arthur Finch", "Yuki Mori"),
]
_DRUGS = [
    *("Metoprex", "Calvidol", "Renastat", "Dormelin", "Osteofen", "Virazol"),
    *("Pulmonex", "Gastrilan", "Neurocet", "Histamor"),
]
_WARDS = ["North Wing", "South Wing", "Garden House", "Intensive Care"]
_SPECIALTIES = ["cardiology", "neurology", "paediatrics", "cardiology", "oncology"]


def build() -> Records:
    """Make the graph, the same each time."""
    graph, rng = Records(), Random(11)
    wards = [
        graph.node("Ward", name, beds=12 + number * 9, floor=1 + number % 3)
        for number, name in enumerate(_WARDS)
    ]
    doctors = [
        graph.node(
            "Doctor",
            name,
            specialty=_SPECIALTIES[number % 5],
            hired_year=2009 + number * 2,
            consultation_fee=45.0 + (number * 35) % 90 + number,
        )
        for number, name in enumerate(_DOCTORS)
    ]
    for number, doctor in enumerate(doctors[:-1]):
        graph.edge(doctor, "WORKS_IN", wards[number * number % 4 if number else 3])
    drugs = [
        graph.node(
            "Drug",
            name,
            form=["tablet", "syrup", "injection"][number % 3],
            price=round(1.1 + number * 2.45, 2),
            prescription_only=number % 4 != 1,
            approved=f"{1988 + number * 3}-06-01",
        )
        for number, name in enumerate(_DRUGS)
    ]
    patients = [
        graph.node(
            "Patient",
            name,
            gender="female" if number % 2 == 0 else "male",
            age=19 + (number * 23) % 71,
            weight_kg=52 + (number * 17) % 70,
            city=["Leeds", "York", "Hull"][number % 3],
            insured=number % 4 != 3,
            registered=f"{2019 + number % 6}-0{1 + number % 9}-20",
        )
        for number, name in enumerate(_PATIENTS)
    ]
    _visits(graph, rng, patients, doctors, drugs)
    return graph


def _visits(
    graph: Records,
    rng: Random,
    patients: list[str],
    doctors: list[str],
    drugs: list[str],
) -> None:
    day = date(2023, 12, 20)
    for number in range(56):
        day += timedelta(days=rng.randrange(2, 6))
        visit = graph.node(
            "Visit",
            f"Visit {501 + number}",
            visit_date=day.isoformat(),
            duration_minutes=10 + (number * 29) % 113,
            urgent=number % 7 == 3,
            status="cancelled" if number % 11 == 6 else "completed",
        )
        patient = patients[rng.choice([0, 0, 0, *range(17)])]
        graph.edge(patient, "HAD_VISIT", visit)
        graph.edge(doctors[rng.choice([0, 1, 1, 2, 3, 4, 5])], "CONDUCTED", visit)
        for drug in rng.sample([*drugs[:8], drugs[2], drugs[2]], rng.randrange(0, 3)):
            graph.edge(visit, "PRESCRIBED", drug)


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
            "Which patients live in Leeds?",
            "filter",
            g.all("Patient", lambda p: p["city"] == "Leeds"),
            "MATCH (p:Patient) WHERE p.city = 'Leeds' RETURN p",
        ),
        Question(
            "Which doctors specialise in cardiology?",
            "filter",
            g.all("Doctor", lambda p: p["specialty"] == "cardiology"),
            "MATCH (d:Doctor) WHERE d.specialty = 'cardiology' RETURN d",
        ),
        Question(
            "Show all urgent visits",
            "filter",
            g.all("Visit", lambda p: p["urgent"]),
            "MATCH (v:Visit) WHERE v.urgent RETURN v",
        ),
        Question(
            "Which drugs are sold as tablets?",
            "filter",
            g.all("Drug", lambda p: p["form"] == "tablet"),
            "MATCH (d:Drug) WHERE d.form = 'tablet' RETURN d",
        ),
        Question(
            "Female patients from York",
            "filter",
            g.all("Patient", lambda p: p["gender"] == "female" and p["city"] == "York"),
            "MATCH (p:Patient) WHERE p.gender = 'female' AND p.city = 'York' RETURN p",
        ),
        Question(
            "Which patients are not insured?",
            "filter",
            g.all("Patient", lambda p: not p["insured"]),
            "MATCH (p:Patient) WHERE NOT p.insured RETURN p",
        ),
        Question(
            "Which visits were cancelled?",
            "filter",
            g.all("Visit", lambda p: p["status"] == "cancelled"),
            "MATCH (v:Visit) WHERE v.status = 'cancelled' RETURN v",
        ),
        Question(
            "Which drugs are available on prescription only?",
            "filter",
            g.all("Drug", lambda p: p["prescription_only"]),
            "MATCH (d:Drug) WHERE d.prescription_only RETURN d",
        ),
    ]


def _ranges(g: Records) -> list[Question]:
    return [
        Question(
            "Which patients are older than 80?",
            "range",
            g.all("Patient", lambda p: p["age"] > 80),
            "MATCH (p:Patient) WHERE p.age > 80 RETURN p",
        ),
        Question(
            "Which visits lasted longer than 100 minutes?",
            "range",
            g.all("Visit", lambda p: p["duration_minutes"] > 100),
            "MATCH (v:Visit) WHERE v.duration_minutes > 100 RETURN v",
        ),
        Question(
            "Doctors with a consultation fee under 60",
            "range",
            g.all("Doctor", lambda p: p["consultation_fee"] < 60),
            "MATCH (d:Doctor) WHERE d.consultation_fee < 60 RETURN d",
        ),
        Question(
            "Which wards have at least 30 beds?",
            "range",
            g.all("Ward", lambda p: p["beds"] >= 30),
            "MATCH (w:Ward) WHERE w.beds >= 30 RETURN w",
        ),
        Question(
            "Drugs priced from 10 to 15 pounds",
            "range",
            g.all("Drug", lambda p: 10 <= p["price"] <= 15),
            "MATCH (d:Drug) WHERE d.price >= 10 AND d.price <= 15 RETURN d",
        ),
        Question(
            "Patients who weigh over 110 kg",
            "range",
            g.all("Patient", lambda p: p["weight_kg"] > 110),
            "MATCH (p:Patient) WHERE p.weight_kg > 110 RETURN p",
        ),
        Question(
            "Which drugs cost less than 4 pounds?",
            "range",
            g.all("Drug", lambda p: p["price"] < 4),
            "MATCH (d:Drug) WHERE d.price < 4 RETURN d",
        ),
    ]


def _dates(g: Records) -> list[Question]:
    return [
        Question(
            "Which visits took place in May 2024?",
            "date",
            g.all("Visit", lambda p: p["visit_date"][:7] == "2024-05"),
            "MATCH (v:Visit) WHERE v.visit_date STARTS WITH '2024-05' RETURN v",
        ),
        Question(
            "Visits before 10 January 2024",
            "date",
            g.all("Visit", lambda p: p["visit_date"] < "2024-01-10"),
            "MATCH (v:Visit) WHERE v.visit_date < '2024-01-10' RETURN v",
        ),
        Question(
            "Which doctors were hired after 2017?",
            "date",
            g.all("Doctor", lambda p: p["hired_year"] > 2017),
            "MATCH (d:Doctor) WHERE d.hired_year > 2017 RETURN d",
        ),
        Question(
            "Patients registered since 2023",
            "date",
            g.all("Patient", lambda p: p["registered"] >= "2023"),
            "MATCH (p:Patient) WHERE p.registered >= '2023-01-01' RETURN p",
        ),
        Question(
            "Which visits were between 1 March 2024 and 15 March 2024?",
            "date",
            g.all("Visit", lambda p: "2024-03-01" <= p["visit_date"] <= "2024-03-15"),
            "MATCH (v:Visit) WHERE v.visit_date >= '2024-03-01' AND v.visit_date <="
            " '2024-03-15' RETURN v",
        ),
        Question(
            "Drugs approved in the 1990s",
            "date",
            g.all("Drug", lambda p: p["approved"][:3] == "199"),
            "MATCH (d:Drug) WHERE d.approved STARTS WITH '199' RETURN d",
        ),
    ]


def _tops(g: Records) -> list[Question]:
    amara = g.out(g.named("Amara Okafor"), "HAD_VISIT")
    return [
        Question(
            "Who is the oldest patient?",
            "top-n",
            g.top(g.all("Patient"), "age"),
            "MATCH (p:Patient) RETURN p ORDER BY p.age DESC LIMIT 1",
        ),
        Question(
            "What are the four longest visits?",
            "top-n",
            g.top(g.all("Visit"), "duration_minutes", 4),
            "MATCH (v:Visit) RETURN v ORDER BY v.duration_minutes DESC LIMIT 4",
        ),
        Question(
            "Which drug is the most expensive?",
            "top-n",
            g.top(g.all("Drug"), "price"),
            "MATCH (d:Drug) RETURN d ORDER BY d.price DESC LIMIT 1",
        ),
        Question(
            "Which ward has the fewest beds?",
            "top-n",
            g.top(g.all("Ward"), "beds", most=False),
            "MATCH (w:Ward) RETURN w ORDER BY w.beds LIMIT 1",
        ),
        Question(
            "Which doctor charges the lowest fee?",
            "top-n",
            g.top(g.all("Doctor"), "consultation_fee", most=False),
            "MATCH (d:Doctor) RETURN d ORDER BY d.consultation_fee LIMIT 1",
        ),
        Question(
            "The three most recent visits of Amara Okafor",
            "top-n",
            g.top(amara, "visit_date", 3),
            "MATCH (p:Patient)-[:HAD_VISIT]->(v:Visit) WHERE p.name = 'Amara Okafor'"
            " RETURN v ORDER BY v.visit_date DESC LIMIT 3",
        ),
        Question(
            "Which doctor was hired last?",
            "top-n",
            g.top(g.all("Doctor"), "hired_year"),
            "MATCH (d:Doctor) RETURN d ORDER BY d.hired_year DESC LIMIT 1",
        ),
    ]


def _mosts(g: Records) -> list[Question]:
    return [
        Question(
            "Which doctor conducted the most visits?",
            "most",
            g.most(g.all("Doctor"), lambda i: len(g.out([i], "CONDUCTED"))),
            "MATCH (d:Doctor)-[:CONDUCTED]->(v:Visit) WITH d, count(v) AS n RETURN d,"
            " n ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which patient had the most visits?",
            "most",
            g.most(g.all("Patient"), lambda i: len(g.out([i], "HAD_VISIT"))),
            "MATCH (p:Patient)-[:HAD_VISIT]->(v:Visit) WITH p, count(v) AS n RETURN p,"
            " n ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which drug was prescribed most often?",
            "most",
            g.most(g.all("Drug"), lambda i: len(g.into([i], "PRESCRIBED"))),
            "MATCH (v:Visit)-[:PRESCRIBED]->(d:Drug) WITH d, count(v) AS n RETURN d, n"
            " ORDER BY n DESC LIMIT 1",
        ),
        Question(
            "Which ward has the most doctors?",
            "most",
            g.most(g.all("Ward"), lambda i: len(g.into([i], "WORKS_IN"))),
            "MATCH (d:Doctor)-[:WORKS_IN]->(w:Ward) WITH w, count(d) AS n RETURN w, n"
            " ORDER BY n DESC LIMIT 1",
        ),
    ]


def _nevers(g: Records) -> list[Question]:
    in_2023 = g.all("Visit", lambda p: p["visit_date"][:4] == "2023")
    petrov = g.out(g.named("Elena Petrov"), "CONDUCTED")
    return [
        Question(
            "Which patients have never had a visit?",
            "never",
            g.all("Patient") - g.into(g.all("Visit"), "HAD_VISIT"),
            "MATCH (p:Patient) WHERE NOT EXISTS { MATCH (p)-[:HAD_VISIT]->(:Visit) }"
            " RETURN p",
        ),
        Question(
            "Which drugs were never prescribed?",
            "never",
            g.all("Drug") - g.out(g.all("Visit"), "PRESCRIBED"),
            "MATCH (d:Drug) WHERE NOT EXISTS { MATCH (:Visit)-[:PRESCRIBED]->(d) }"
            " RETURN d",
        ),
        Question(
            "Doctors without a ward",
            "never",
            g.all("Doctor") - g.into(g.all("Ward"), "WORKS_IN"),
            "MATCH (d:Doctor) WHERE NOT EXISTS { MATCH (d)-[:WORKS_IN]->(:Ward) }"
            " RETURN d",
        ),
        Question(
            "Which doctors conducted no visits in 2023?",
            "never",
            g.all("Doctor") - g.into(in_2023, "CONDUCTED"),
            "MATCH (d:Doctor) WHERE NOT EXISTS { MATCH (d)-[:CONDUCTED]->(v:Visit)"
            " WHERE v.visit_date STARTS WITH '2023' } RETURN d",
        ),
        Question(
            "Which patients had no visit with Elena Petrov?",
            "never",
            g.all("Patient") - g.into(petrov, "HAD_VISIT"),
            "MATCH (p:Patient) WHERE NOT EXISTS { MATCH (p)-[:HAD_VISIT]->(:Visit)<-"
            "[:CONDUCTED]-(:Doctor {name: 'Elena Petrov'}) } RETURN p",
        ),
        Question(
            "Which wards have no neurology doctors?",
            "never",
            g.all("Ward")
            - g.out(
                g.all("Doctor", lambda p: p["specialty"] == "neurology"), "WORKS_IN"
            ),
            "MATCH (w:Ward) WHERE NOT EXISTS { MATCH (d:Doctor)-[:WORKS_IN]->(w) WHERE"
            " d.specialty = 'neurology' } RETURN w",
        ),
    ]


def _hops(g: Records) -> list[Question]:
    okafor = g.out(g.named("Amara Okafor"), "HAD_VISIT")
    petrov = g.out(g.named("Elena Petrov"), "CONDUCTED")
    urgent = g.all("Visit", lambda p: p["urgent"])
    in_may = g.all("Visit", lambda p: p["visit_date"][:7] == "2024-05")
    long_visits = g.all("Visit", lambda p: p["duration_minutes"] > 110)
    leeds = g.all("Patient", lambda p: p["city"] == "Leeds")
    cardiology = g.all("Doctor", lambda p: p["specialty"] == "cardiology")
    most_beds = g.top(g.all("Ward"), "beds")
    return [
        Question(
            "Which patients did Elena Petrov treat?",
            "2 hops",
            g.into(petrov, "HAD_VISIT"),
            "MATCH (d:Doctor)-[:CONDUCTED]->(:Visit)<-[:HAD_VISIT]-(p:Patient) WHERE"
            " d.name = 'Elena Petrov' RETURN DISTINCT p",
        ),
        Question(
            "Which drugs were prescribed to Amara Okafor?",
            "2 hops",
            g.out(okafor, "PRESCRIBED"),
            "MATCH (p:Patient)-[:HAD_VISIT]->(:Visit)-[:PRESCRIBED]->(d:Drug) WHERE"
            " p.name = 'Amara Okafor' RETURN DISTINCT d",
        ),
        Question(
            "Which doctors work in the ward with the most beds?",
            "2 hops",
            g.into(most_beds, "WORKS_IN"),
            "MATCH (w:Ward) WITH w ORDER BY w.beds DESC LIMIT 1 MATCH (d:Doctor)-"
            "[:WORKS_IN]->(w) RETURN d",
        ),
        Question(
            "Which patients had urgent visits?",
            "2 hops",
            g.into(urgent, "HAD_VISIT"),
            "MATCH (p:Patient)-[:HAD_VISIT]->(v:Visit) WHERE v.urgent RETURN DISTINCT"
            " p",
        ),
        Question(
            "Which doctors prescribed Metoprex?",
            "2 hops",
            g.into(g.into(g.named("Metoprex"), "PRESCRIBED"), "CONDUCTED"),
            "MATCH (d:Doctor)-[:CONDUCTED]->(:Visit)-[:PRESCRIBED]->(m:Drug) WHERE"
            " m.name = 'Metoprex' RETURN DISTINCT d",
        ),
        Question(
            "Which wards do cardiology doctors work in?",
            "2 hops",
            g.out(cardiology, "WORKS_IN"),
            "MATCH (d:Doctor)-[:WORKS_IN]->(w:Ward) WHERE d.specialty = 'cardiology'"
            " RETURN DISTINCT w",
        ),
        Question(
            "Which patients from Leeds had a visit in May 2024?",
            "2 hops",
            leeds & g.into(in_may, "HAD_VISIT"),
            "MATCH (p:Patient)-[:HAD_VISIT]->(v:Visit) WHERE p.city = 'Leeds' AND"
            " v.visit_date STARTS WITH '2024-05' RETURN DISTINCT p",
        ),
        Question(
            "Who had a visit longer than 110 minutes?",
            "2 hops",
            g.into(long_visits, "HAD_VISIT"),
            "MATCH (p:Patient)-[:HAD_VISIT]->(v:Visit) WHERE v.duration_minutes > 110"
            " RETURN DISTINCT p",
        ),
    ]


def _beyond() -> list[Question]:
    counts = [
        "How many visits did Elena Petrov conduct?",
        "What is the average age of the patients in Leeds?",
        "Number of patients per city",
        "What did all drugs prescribed in 2024 cost in total?",
    ]
    unanswerable = [
        "Which patients smoke?",
        "Which drugs cause headaches?",
        "Which doctors speak Portuguese?",
        "Which wards have a sea view?",
        "Which patients will be discharged tomorrow?",
        "Which visits were longer than planned?",
    ]
    return [
        *(Question(text, "count") for text in counts),
        *(Question(text, "unanswerable") for text in unanswerable),
    ]

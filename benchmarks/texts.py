"""Values and words that the cases' texts are made of: what a model would plausibly write."""

from __future__ import annotations

from typing import Any

PERSON: dict[str, Any] = {
    "name": "Zoë Müller",
    "age": 34,
    "email": "zoe.mueller@example.com",
    "address": {"street": "Karl-Marx-Straße 12", "city": "Berlin", "zip": "12043"},
    "languages": ["German", "English", "日本語"],
    "bio": 'Says \\"hello\\" in three languages.\nLikes tea.',
}
ORDER: dict[str, Any] = {
    "id": 90210,
    "paid": True,
    "lines": [
        {"sku": "AB-1001", "quantity": 2, "price": 19.99, "note": None},
        {"sku": "CD-2002", "quantity": 1, "price": 249.0, "note": "gift wrap, please"},
    ],
    "total": 288.98,
}
FLAT: list[Any] = [
    {"name": "Marie Dupont", "age": 34, "city": "Lyon", "email": "marie.dupont@example.com", "active": True},
    {"name": "Jürgen O'Neill", "age": 61, "city": "São Paulo", "email": "j.oneill@example.org", "active": False},
    {"name": "Li Wei", "age": 27, "city": "Chengdu", "email": "li_wei+news@example.net", "active": True},
]
NESTED: list[Any] = [
    {
        "id": 1 + index,
        "profile": {
            "name": name,
            "contact": {
                "email": f"contact{index}@example.com",
                "phones": ["+49 30 1234567", "+1 202 555 0143"],
                "address": {"street": "12 High Street", "city": "Leeds", "location": {"lat": 53.8008, "lon": -1.5491}},
            },
        },
        "tags": ["customer", "newsletter", "since 2019"],
    }
    for index, name in enumerate(("Samira Khan", "Ole Gunnar"))
]
ITEMS: list[Any] = [
    {"sku": "AB-1001-red", "quantity": 2, "price": 19.99, "gift": False},
    {"sku": "Garden chair, foldable", "quantity": 12, "price": 45, "gift": True},
    {"sku": "USB-C cable (2 m)", "quantity": 1, "price": 7.5, "gift": False},
    {"sku": "ノートブック", "quantity": 3, "price": 1250.0, "gift": False},
    {"sku": 'tea "Earl Grey"', "quantity": 40, "price": 0.85, "gift": True},
]
TREE: dict[str, Any] = {
    "name": "src",
    "size": 0,
    "children": [
        {"name": "main.py", "size": 2048, "children": []},
        {
            "name": "engine",
            "size": 0,
            "children": [
                {"name": "scheduler.py", "size": 8812, "children": []},
                {"name": "tests", "size": 0, "children": [{"name": "test_run.py", "size": 512, "children": []}]},
            ],
        },
        {"name": "README.md", "size": 1337, "children": []},
    ],
}
PATTERNED: list[Any] = [
    {
        "sku": "ABC-20261130-blue-xl",
        "email": "marie.dupont@mail.example.com",
        "created": "2026-11-30T17:45:09Z",
        "phone": "+49 30 1234 5678",
    },
    {
        "sku": "QX-0042",
        "email": "ops_team-2@example.org",
        "created": "1999-01-01T00:00:00Z",
        "phone": "+44 202 555 0143",
    },
]
SHORT_STRINGS = [
    "The quick brown fox jumps over the lazy dog near the river bank while the sun is setting slowly.",
    'She said: "no\\way"\n\tand left. Path C:\\temp\\new, naïve café, 東京.',
    "Ordered 3 items on 2026-11-30; total 42.50 EUR, to be paid within 14 days.",
]
_PARAGRAPH = (
    "Constrained decoding masks the tokens that would leave a language before one is drawn. "
    "A mask is worked out from the place in the grammar, and places come back again and again: "
    "after the opening quote of a string nearly every token is legal, after a key only a colon is. "
)
LONG_STRINGS = [
    _PARAGRAPH + "It costs microseconds if it was met before. " + _PARAGRAPH,
    _PARAGRAPH + 'A "quoted" word, a \\ and a line\nbreak,\ttabs, naïve café and 東京 are all one character each.\n\n',
]
EVENTS: list[Any] = [
    {
        "event": "order.created",
        "payload": {"id": 7, "items": [{"sku": "a-1", "n": 2}, {"sku": "b-9", "n": 1}], "total": 12.5, "coupon": None},
        "context": {"ip": "203.0.113.9", "flags": {"beta": True, "region": "eu-west"}},
    },
    {
        "event": "user.updated",
        "payload": {"before": {"name": "Jo"}, "after": {"name": "Joanna", "tags": ["vip", "early adopter"]}},
        "context": {},
    },
]
EXPRESSIONS: list[Any] = [
    {
        "op": "add",
        "left": {"op": "call", "name": "max", "arguments": [1, {"op": "not", "value": True}, "x"]},
        "right": {
            "op": "add",
            "left": {"op": "not", "value": {"op": "not", "value": {"op": "not", "value": "deep"}}},
            "right": -2.5,
        },
    },
    {"op": "call", "name": "print", "arguments": ["total", {"op": "add", "left": 1, "right": 2}, False]},
]
C_PROGRAM = (
    "int add(int left){int sum = left+1;return sum;}"
    "float mean(float total){float result = 0;for(int i = 0; i<10; i = i+1){result = result+total*i;}"
    "if(result>100){result = result/2;}else{print (result, total);}return result;}"
    "int main(){// start here\nint counter = 12;while(counter>0){counter = counter-1;print (add(counter));}"
    "/* done */return ( counter+add(-1) )*2;}"
)
URLS = (
    "https://www.example.com/articles/2026/11/30/constrained-decoding?page=2&sort=date#comments",
    "http://api.staging.example.org:8080/v1/users/4711/orders;v=2?fields=id,total&token=a%20b",
    "https://docs.infernix.example/guide/getting_started/(first-steps)/index.html",
)
COUNTRIES = [
    "Argentina", "Australia", "Austria", "Belgium", "Brazil", "Canada", "Chile", "China", "Colombia", "Costa Rica",
    "Denmark", "Egypt", "Finland", "France", "Germany", "Ghana", "Greece", "Iceland", "India", "Indonesia", "Ireland",
    "Italy", "Japan", "Kenya", "Mexico", "Morocco", "Netherlands", "New Zealand", "Nigeria", "Norway", "Peru", "Poland",
    "Portugal", "Senegal", "South Africa", "South Korea", "Spain", "Sweden", "Switzerland", "Turkey", "United Kingdom",
    "United States", "Uruguay", "Vietnam",
]  # fmt: skip
COLOURS = [
    "red", "dark red", "salmon", "light salmon", "gold", "khaki", "olive drab", "medium spring green", "sea green",
    "dark slate grey", "steel blue", "midnight blue", "orchid", "plum", "white smoke", "black",
]  # fmt: skip
DEPARTMENTS = ["Home & Garden", "Electronics", "Sports and Outdoors", "Office Supplies", "Toys & Games"]
MAKERS = ["Acme", "Northwind", "Contoso", "Globex", "Initech", "Umbrella", "Stark", "Wayne", "Hooli", "Vandelay"]
ADJECTIVES = ["foldable", "cordless", "ultra-light", "heavy-duty", "waterproof", "compact", "adjustable", "quiet"]
MATERIALS = ["aluminium", "bamboo", "carbon fibre", "stainless steel", "recycled plastic", "oak", "ceramic"]
PRODUCTS = ["desk lamp", "garden chair", "water bottle", "backpack", "keyboard", "tent", "blender", "bookshelf"]
FIELD_WORDS = [
    "order", "billing", "shipping", "customer", "internal", "primary", "secondary", "created", "updated", "archived",
    "region", "warehouse", "discount", "invoice", "payment", "contact", "preferred", "external", "total", "status",
]  # fmt: skip
VERBS = [
    "create", "delete", "update", "get", "list", "search", "send", "cancel", "approve", "reject",
    "assign", "archive", "export", "import", "schedule", "validate", "merge", "clone", "share", "track",
]  # fmt: skip
NOUNS = [
    "invoice", "order", "customer", "ticket", "meeting", "document", "user", "payment", "shipment", "report",
    "project", "task", "contract", "subscription", "campaign", "device", "account", "message", "reservation", "asset",
]  # fmt: skip
PHRASES = ["quarterly report for Berlin", "anna@example.com", "2026-12-01", "as soon as possible", "B-1042"]

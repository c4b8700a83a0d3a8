# Records in JSON become a table, are joined with another, and are written back as JSON; pandas.
import json
from collections import Counter

import pandas as pd

people = json.loads("""[
  {"id": 1, "name": "Ada", "skills": ["math", "code"], "address": {"city": "London"}},
  {"id": 2, "name": "Grace", "skills": ["code"], "address": {"city": "New York"}, "age": 85},
  {"id": 3, "name": "Emmy", "skills": ["math", "physics", "teaching"], "address": {"city": "Bryn Mawr"}, "age": 53}
]""")
t = pd.json_normalize(people).rename(columns={"address.city": "city"})[["id", "name", "city", "skills", "age"]]
t["skills"] = t.skills.map(len)
for name in t.columns:
    print(name, t[name].tolist())
print("mean age", t.age.mean(), "of", t.age.notna().sum(), "known")

trips = pd.DataFrame({"id": [3, 1, 1, 4], "km": [120.0, 30.5, 12.0, 7.5]})
totals = trips.groupby("id", sort=False).agg(km=("km", "sum"), trips=("km", "size")).reset_index()
joined = t.merge(totals, on="id", how="left")
print(joined[["name", "km"]].to_json(orient="records"))

counts = Counter(s for p in people for s in p["skills"])
for name in sorted(counts, key=lambda k: (-counts[k], k)):
    print(f"{name:<10}{counts[name]}")
print(json.dumps({"counts": counts, "total": sum(counts.values())}, indent=2))

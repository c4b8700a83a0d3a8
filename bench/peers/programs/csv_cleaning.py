# A table with gaps, doubles and texts where numbers should be is cleaned, summed up and saved again; pandas.
import os

import numpy as np
import pandas as pd

raw = """name; weight ;height;joined;team
Ann;61,5;1,68;2021-03-01;red
Bob;n/a;1,82;2020-11-15;blue
Ann;61,5;1,68;2021-03-01;red
Cid;95,2;;2022-01-30;blue
Dee;-;1,59;2019-07-07;
Eve;58,0;1,70;2021-12-24;red
"""
folder = os.environ.get("TMPDIR", "/tmp")
with open(f"{folder}/python-raw.csv", "w") as f:
    f.write(raw)
t = pd.read_csv(f"{folder}/python-raw.csv", sep=";", decimal=",", na_values=["n/a", "-"])
t.columns = t.columns.str.strip()
print(tuple(t.columns), list(map(float, t.weight)), list(map(float, t.height)))

t = t.drop_duplicates()
print(f"{len(t)} rows without doubles; gaps: weight {t.weight.isna().sum()}, height {t.height.isna().sum()}")
t = t.assign(
    team=t.team.fillna("none"), weight=t.weight.fillna(t.weight.median()), height=t.height.fillna(t.height.mean()))
t["bmi"] = np.round(10 * t.weight / t.height**2) / 10
joined = pd.to_datetime(t.joined)
t["days"] = (joined - pd.Timestamp("2019-01-01")) / pd.Timedelta(days=1)
t["month"] = joined.dt.month
for name, bmi, days, month in zip(t.name, t.bmi, t.days, t.month):
    print(name, bmi, days, month)

z = (t.weight - t.weight.mean()) / t.weight.std(ddof=0)
print("far from the others:", tuple(t.name[abs(z) > 1.5]))
groups = t.groupby("team", sort=False).agg(n=("name", "size"), bmi=("bmi", "mean"))
print({"team": tuple(groups.index), "n": groups.n.tolist(), "bmi": groups.bmi.tolist()})
t.sort_values("joined").to_csv(f"{folder}/python-clean.csv", index=False)
with open(f"{folder}/python-clean.csv") as f:
    print(f.read(), end="")
again = pd.read_csv(f"{folder}/python-clean.csv")
print("read back the same:", again.equals(t.sort_values("joined").reset_index(drop=True).astype(again.dtypes)))

# A report of sales by region and quarter, from CSV text: groups, a pivot table, shares and ranks; pandas.
import io

import pandas as pd

text = """region,quarter,product,units,price
north,1,tea,120,2.5
north,1,coffee,80,4.0
south,1,tea,60,2.6
south,2,coffee,150,3.9
north,2,tea,90,2.5
west,2,tea,30,2.8
west,1,coffee,20,4.4
south,2,tea,75,2.6
north,2,coffee,110,4.1
"""
sales = pd.read_csv(io.StringIO(text))
sales["revenue"] = sales.units * sales.price
print(f"{len(sales)} rows, columns {', '.join(sales.columns)}")

groups = sales.groupby("region", sort=False)
by_region = groups.agg(units=("units", "sum"), revenue=("revenue", "sum"))
by_region["best"] = sales.loc[groups.revenue.idxmax()].set_index("region")["product"]
ranked = by_region.sort_values("revenue", ascending=False)
print(f"{'region':<8}{'units':>8}{'revenue':>10}{'share':>8}  best")
total = ranked.revenue.sum()
for region, units, revenue, best in ranked.itertuples():
    print(f"{region:<8}{units:>8}{revenue:>10.2f}{revenue / total:>8.1%}  {best}")

wide = sales.pivot_table(index="region", columns="quarter", values="revenue", aggfunc="sum")
print({"region": tuple(wide.index)} | {str(q): wide[q].tolist() for q in wide.columns})
dear = sales[sales.price > 3]
print("dear rows", len(dear), "mean price", f"{dear.price.mean():.3f}")
count = sales.groupby(["product", "quarter"], sort=False).size().reset_index(name="count")
print({"product": tuple(count["product"]), "quarter": count["quarter"].tolist(), "count": count["count"].tolist()})

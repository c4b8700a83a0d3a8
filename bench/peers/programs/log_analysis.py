# The log of a web server: lines are taken apart by a pattern, then counted by hour, status and path; pandas.
import re

import pandas as pd

text = """10.0.0.1 - - [12/Mar/2024:08:01:12 +0000] "GET /index.html HTTP/1.1" 200 5120 12
10.0.0.2 - - [12/Mar/2024:08:03:40 +0000] "GET /style.css HTTP/1.1" 200 811 3
10.0.0.1 - - [12/Mar/2024:08:59:59 +0000] "POST /login HTTP/1.1" 302 0 48
10.0.0.3 - - [12/Mar/2024:09:00:02 +0000] "GET /missing HTTP/1.1" 404 212 5
broken line
10.0.0.2 - - [12/Mar/2024:09:10:00 +0000] "GET /index.html HTTP/1.1" 200 5120 14
10.0.0.4 - - [12/Mar/2024:09:12:31 +0000] "GET /report HTTP/1.1" 500 87 903
10.0.0.1 - - [12/Mar/2024:10:45:10 +0000] "GET /index.html HTTP/1.1" 200 5120 11
"""
pattern = re.compile(r'(?P<host>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<verb>\w+) (?P<path>\S+) [^"]*" '
                     r'(?P<status>\d+) (?P<bytes>\d+) (?P<ms>\d+)$')
matches = [pattern.match(line) for line in text.splitlines()]
log = pd.DataFrame([m.groupdict() for m in matches if m])
print(f"{len(log)} requests, {matches.count(None)} line that is none")

log["hour"] = log.time.str.split(":").str[1].astype(int)
log = log.astype({"status": int, "bytes": int, "ms": float})
hours = log.groupby("hour", sort=False).agg(requests=("host", "size"), bytes=("bytes", "sum"))
print({"hour": hours.index.tolist(), "requests": hours.requests.tolist(), "bytes": hours.bytes.tolist()})
paths = log.groupby("path", sort=False).size().reset_index(name="count")
paths = paths.sort_values(["count", "path"], ascending=False)
print({"path": tuple(paths.path), "count": paths["count"].tolist()})
errors = log[log.status >= 400]
print("errors:", tuple(zip(errors.path, errors.status.tolist())))
slowest = log.path[log.ms.idxmax()]
print(f"median {log.ms.median():.1f} ms, 90 % below {log.ms.quantile(0.9):.1f} ms, slowest {slowest}")
print("hosts:", log.host.nunique())

# Dates: differences, working days, a month's page, sums by month, time zones; the standard library.
import calendar
from collections import defaultdict
from datetime import date, datetime, timedelta, timezone


def days_between(a, b):
    return (date.fromisoformat(b) - date.fromisoformat(a)).days


print("days of 2024:", days_between("2024-01-01", "2025-01-01"))
print("to the next leap day:", days_between("2024-02-29", "2028-02-29"))
p = date.fromisoformat("2024-02-29")
print(f"2024-02-29 is day {p.timetuple().tm_yday} of the year, weekday {p.isoweekday()}")


def easter(year):  # Meeus, Jones and Butcher
    a = year % 19
    b, c = divmod(year, 100)
    d = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    e = (32 + 2 * (b % 4) + 2 * (c // 4) - d - c % 4) % 7
    m = (a + 11 * d + 22 * e) // 451
    n = d + e - 7 * m + 114
    return f"{year}-{n // 31:02}-{n % 31 + 1:02}"


print("Easter:", *map(easter, range(2023, 2028)))


def working_days_later(start, n, holidays):
    t = date.fromisoformat(start)
    while n > 0:
        t += timedelta(1)
        if t.isoweekday() < 6 and t.isoformat() not in holidays:
            n -= 1
    return t.isoformat()


closed = ("2024-12-25", "2024-12-26", "2025-01-01")
print("ten working days after 2024-12-20:", working_days_later("2024-12-20", 10, closed))
print(calendar.TextCalendar().formatmonth(2026, 2), end="")

log = [("2024-01-30", 12.5), ("2024-02-01", 3.25), ("2024-01-02", 7.0), ("2024-03-15", 1.0), ("2024-02-28", 0.75)]
sums = defaultdict(float)
for d, amount in log:
    sums[d[:7]] += amount
for month in sorted(sums):
    print(f"{month}: {sums[month]:6.2f}")

t = datetime(2024, 7, 1, 18, 30, tzinfo=timezone.utc)
for name, hours in (("London", 1), ("Delhi", 5.5), ("New York", -4)):
    print(f"{name:<9}{t.astimezone(timezone(timedelta(hours=hours))):%a %d %b %H:%M}")
there = datetime.fromisoformat("2024-07-01 20:30+02:00")
print(f"{there.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}")

# A queue with one server: Lindley's recursion against the formulas, and how many servers a shop needs; SciPy.
import numpy as np
from scipy.special import gammaln

arrivals, service, n = 0.8, 1.0, 40000
rng = np.random.default_rng(23)
gaps = rng.exponential(size=n) / arrivals
work = rng.exponential(size=n) / service

w, waits = 0.0, []
for s, a in zip(work.tolist(), gaps.tolist()):
    waits.append(w)
    w = max(w + s - a, 0.0)
waits = np.array(waits)
rho = arrivals / service
expected = rho / (service - arrivals)
print(f"mean wait near {expected:.2f}:", abs(waits.mean() - expected) < 0.6)
print(f"waits at all near {rho:.0%}:", abs(np.mean(waits > 0) - rho) < 0.03)
walk = np.concatenate(([0.0], np.cumsum(work[:-1] - gaps[:-1])))
print("the same by a running minimum:", np.allclose(waits, walk - np.minimum.accumulate(walk), atol=1e-8))


def erlang(c, a):
    k = np.arange(c)
    terms = np.exp(k * np.log(a) - gammaln(k + 1.0))
    own = np.exp(c * np.log(a) - gammaln(c + 1.0)) * c / (c - a)
    return own / (terms.sum() + own)


load = 7.5
for c in range(8, 13):
    print(f"{c:>2} servers: {erlang(c, load):6.1%} wait, {erlang(c, load) / (c - load):.3f} on average")
enough = 8
while erlang(enough, load) > 0.1:
    enough += 1
print("fewer than one in ten wait with", enough)

# Tables that are filled step by step: edits between words, an alignment, coins, a knapsack; plain Python and NumPy.
import numpy as np


def edits(a, b):
    d = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        d[i][0] = i
    d[0] = list(range(len(b) + 1))
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
    return d


def distance(a, b):
    return edits(a, b)[-1][-1]


for a, b in (("kitten", "sitting"), ("saturday", "sunday"), ("", "abc"), ("größe", "grosse")):
    print(f"{a:>9} {b:<9} {distance(a, b)}")


def aligned(a, b):
    d = edits(a, b)
    i, j = len(a), len(b)
    up, down = "", ""
    while i > 0 or j > 0:
        if i > 0 and j > 0 and d[i][j] == d[i - 1][j - 1] + (a[i - 1] != b[j - 1]):
            i, j = i - 1, j - 1
            up, down = a[i] + up, b[j] + down
        elif i > 0 and d[i][j] == d[i - 1][j] + 1:
            i -= 1
            up, down = a[i] + up, "-" + down
        else:
            j -= 1
            up, down = "-" + up, b[j] + down
    return up, down


print(*aligned("intention", "execution"), sep="\n")

words = "apple apply ample maple staple people example simple sample temple".split()
for typed in ("aple", "simpel", "tempel"):
    near = sorted(words, key=lambda w: (distance(typed, w), w))
    print(f"{typed}: {near[0]}, {near[1]}")


def ways(amount, coins):
    n = [1] + [0] * amount
    for c in coins:
        for s in range(c, amount + 1):
            n[s] += n[s - c]
    return n[amount]


def fewest(amount, coins):
    best = [0] + [amount + 1] * amount
    for s in range(1, amount + 1):
        best[s] = min([best[s]] + [best[s - c] + 1 for c in coins if c <= s])
    return best[amount]


print("ways to pay 100:", ways(100, [1, 2, 5, 10, 20, 50]), "fewest coins for 63:", fewest(63, [1, 7, 21, 25]))


def knapsack(limit, weights, values):
    best, taken = np.zeros(limit + 1, int), []
    for w, v in zip(weights, values):
        with_it = np.concatenate((np.full(w, -1), best[:limit + 1 - w] + v))
        taken.append(with_it > best)
        best = np.maximum(best, with_it)
    room, which = limit, []
    for k in reversed(range(len(taken))):
        if taken[k][room]:
            which.append(k)
            room -= weights[k]
    return best[limit], tuple(reversed(which))


worth, which = knapsack(50, [10, 20, 30, 15, 5], [60, 100, 120, 80, 15])
print("knapsack:", worth, "with things", which)

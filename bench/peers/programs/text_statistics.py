# Statistics of a text: words, letters, the entropy of its letters, a broken cipher; plain Python.
import re
from collections import Counter, defaultdict
from math import log2

speech = """It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of
foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the
season of Darkness, it was the spring of hope, it was the winter of despair. We had everything before us, we had
nothing before us, we were all going direct to Heaven, we were all going direct the other way."""
words = [w.lower() for w in re.findall(r"[A-Za-z']+", speech)]
sentences = [s for s in re.split(r"[.!?]+\s*", speech.strip()) if s]
print(f"{len(words)} words, {len(sentences)} sentences, {len(speech)} characters")
counts = Counter(words)
for w in sorted(counts, key=lambda k: (-counts[k], k))[:5]:
    print(f"{w:>8} {counts[w]:>3} {'*' * counts[w]}")
print("once only:", sum(n == 1 for n in counts.values()))

lengths = Counter(map(len, words))
histogram = [lengths[k] for k in range(1, max(lengths) + 1)]
print(f"mean length {sum(map(len, words)) / len(words):.2f}, longest {max(words, key=len)}, histogram {histogram}")
letters = Counter(c for c in speech.lower() if "a" <= c <= "z")
shares = [n / letters.total() for n in letters.values()]
print(f"entropy {-sum(p * log2(p) for p in shares):.3f} bits a letter of {log2(26):.3f}")
following = defaultdict(list)
for a, b in zip(words, words[1:]):
    following[a].append(b)
options = following["the"]
print(f"after \"the\": {len(options)} words, {' '.join(sorted(set(options))[:6])} …")


def shift(s, n):
    return "".join(chr((ord(c) - 97 + n) % 26 + 97) if "a" <= c <= "z" else c for c in s)


secret = shift("the times were the best and the worst", 7)
most = Counter(c for c in secret if c != " ").most_common(1)[0][0]
print(secret, "->", shift(secret, ord("e") - ord(most)))

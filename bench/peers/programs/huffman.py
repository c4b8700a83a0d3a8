# Huffman's code: letters that are seen often get short codes; plain Python.
import heapq
from collections import Counter
from math import log2

message = "she sells sea shells by the sea shore"
counts = Counter(message)
heap = [(n, len(c), c, None, None) for c, n in counts.items()]
heapq.heapify(heap)
while len(heap) > 1:
    a, b = heapq.heappop(heap), heapq.heappop(heap)
    letters = a[2] + b[2]
    heapq.heappush(heap, (a[0] + b[0], len(letters), letters, a, b))
tree = heap[0]


def spread(node, prefix, table):
    _, _, letters, left, right = node
    if left is None:
        table[letters] = prefix or "0"
    else:
        spread(left, prefix + "0", table)
        spread(right, prefix + "1", table)
    return table


table = spread(tree, "", {})
for c, code in sorted(table.items(), key=lambda p: (len(p[1]), p[1]))[:6]:
    print(f"{c} {counts[c]:>2} {code}")

packed = "".join(table[c] for c in message)
p = [n / len(message) for n in counts.values()]
print(f"{len(packed)} bits instead of {8 * len(message)}, {len(packed) / len(message):.3f} a letter,",
      f"entropy {-sum(q * log2(q) for q in p):.3f}")

out, node = [], tree
for bit in packed:
    node = node[3 if bit == "0" else 4]
    if node[3] is None:
        out.append(node[2])
        node = tree
print("unpacked:", "".join(out) == message)

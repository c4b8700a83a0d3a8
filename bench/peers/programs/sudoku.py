# Sudoku: the field with the fewest possibilities is tried, with backtracking; plain Python and NumPy.
import numpy as np

puzzle = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
start = np.array(list(puzzle), dtype=int).reshape(9, 9)
tried = 0


def possible(grid, i, j):
    a, b = i // 3 * 3, j // 3 * 3
    used = set(grid[i]) | {row[j] for row in grid} | {v for row in grid[a:a + 3] for v in row[b:b + 3]}
    return [d for d in range(1, 10) if d not in used]


def solve(grid):
    global tried
    open_fields = [(i, j) for i in range(9) for j in range(9) if grid[i][j] == 0]
    if not open_fields:
        return grid
    i, j = min(open_fields, key=lambda p: len(possible(grid, *p)))
    for digit in possible(grid, i, j):
        tried += 1
        grid[i][j] = digit
        if solve(grid):
            return grid
    grid[i][j] = 0
    return None


solved = np.array(solve(start.tolist()))
for row in solved:
    print(*row)
whole = lambda x: np.all(np.sort(x, axis=-1) == np.arange(1, 10))
boxes = solved.reshape(3, 3, 3, 3).transpose(0, 2, 1, 3).reshape(9, 9)
print("rows, columns and boxes are whole:", whole(solved) and whole(solved.T) and whole(boxes))
print("given digits stand:", np.all((start == 0) | (solved == start)), f"{tried} digits were tried")

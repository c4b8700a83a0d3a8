-- Escape times of a grid of points.
local size = tonumber(arg[1])
local limit, total = 50, 0
for row = 0, size - 1 do
  local ci = 2.0 * row / size - 1.0
  for column = 0, size - 1 do
    local cr = 2.0 * column / size - 1.5
    local zr, zi, n = 0.0, 0.0, 0
    while n < limit and zr * zr + zi * zi <= 4.0 do
      zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
      n = n + 1
    end
    total = total + n
  end
end
print(total)

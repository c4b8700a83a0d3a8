-- Takeuchi's function: calls that depend on each other's results, with three numbers each.
local function tak(x, y, z)
  if y >= x then return z end
  return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))
end
local n = tonumber(arg[1])
print(tak(n, math.floor(n * 2 / 3), math.floor(n / 3)))

-- How many edits lie between two sequences of n codes each.
local ffi = require("ffi")
local min = math.min
local function edits(a, b, n)
  local row = ffi.new("double[?]", n + 1)
  for i = 0, n do row[i] = i end
  for i = 1, n do
    local diagonal = row[0]
    row[0] = i
    for j = 1, n do
      local cost = a[i - 1] == b[j - 1] and 0 or 1
      local best = min(min(row[j] + 1, row[j - 1] + 1), diagonal + cost)
      diagonal = row[j]
      row[j] = best
    end
  end
  return row[n]
end
local n = tonumber(arg[1])
local a, b = ffi.new("double[?]", n), ffi.new("double[?]", n)
for k = 0, n - 1 do a[k], b[k] = k * k % 26, k * 7 % 26 end
print(edits(a, b, n))

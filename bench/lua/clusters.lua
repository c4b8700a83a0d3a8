-- Twenty steps of k-means in plain loops: n points of three coordinates, eight centres.
local ffi = require("ffi")
local function kmeans(points, n, steps)
  local centres, sums, counts = ffi.new("double[24]"), ffi.new("double[24]"), ffi.new("double[8]")
  for i = 0, 23 do centres[i] = points[i] end
  local total = 0.0
  for step = 1, steps do
    ffi.fill(sums, 24 * 8)
    ffi.fill(counts, 8 * 8)
    total = 0.0
    for i = 0, n - 1 do
      local best, least = 0, math.huge
      for c = 0, 7 do
        local d = 0.0
        for j = 0, 2 do
          local e = points[3 * i + j] - centres[3 * c + j]
          d = d + e * e
        end
        if d < least then best, least = c, d end
      end
      for j = 0, 2 do sums[3 * best + j] = sums[3 * best + j] + points[3 * i + j] end
      counts[best] = counts[best] + 1.0
      total = total + least
    end
    for c = 0, 7 do
      if counts[c] > 0 then
        for j = 0, 2 do centres[3 * c + j] = sums[3 * c + j] / counts[c] end
      end
    end
  end
  return total
end
local n = tonumber(arg[1])
local points = ffi.new("double[?]", 3 * n)
for i = 0, 3 * n - 1 do points[i] = i * 7919 % 10007 / 10007.0 end
print(string.format("%.15g", kmeans(points, n, 20)))

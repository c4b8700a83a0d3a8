-- A product of two matrices of n by n, by three loops.
local ffi = require("ffi")
local n = tonumber(arg[1])
local a, b, c = ffi.new("double[?]", n * n), ffi.new("double[?]", n * n), ffi.new("double[?]", n * n)
for i = 0, n * n - 1 do a[i], b[i] = i % 7 * 0.5, i % 5 * 0.25 end
for i = 0, n - 1 do
  for j = 0, n - 1 do
    local s = 0.0
    for k = 0, n - 1 do s = s + a[i * n + k] * b[k * n + j] end
    c[i * n + j] = s
  end
end
local half, third = math.floor(n / 2), math.floor(n / 3)
print(c[0] + c[half * n + third] + c[n * n - 1])

-- The spectral norm of an infinite matrix given by a formula, by the power method.
local ffi = require("ffi")
local floor = math.floor
local function element(i, j) return 1.0 / (floor((i + j) * (i + j + 1) / 2) + i + 1) end
local function times(v, n)
  local out = ffi.new("double[?]", n)
  for i = 0, n - 1 do
    local s = 0.0
    for j = 0, n - 1 do s = s + element(i, j) * v[j] end
    out[i] = s
  end
  return out
end
local function times_transposed(v, n)
  local out = ffi.new("double[?]", n)
  for i = 0, n - 1 do
    local s = 0.0
    for j = 0, n - 1 do s = s + element(j, i) * v[j] end
    out[i] = s
  end
  return out
end
local n = tonumber(arg[1])
local u, v = ffi.new("double[?]", n), nil
for i = 0, n - 1 do u[i] = 1.0 end
for step = 1, 10 do
  v = times_transposed(times(u, n), n)
  u = times_transposed(times(v, n), n)
end
local uv, vv = 0.0, 0.0
for i = 0, n - 1 do
  uv = uv + u[i] * v[i]
  vv = vv + v[i] * v[i]
end
print(string.format("%.17g", math.sqrt(uv / vv)))

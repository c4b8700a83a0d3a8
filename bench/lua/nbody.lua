-- Five bodies under gravity: arrays of numbers, three to a body.
local ffi = require("ffi")
local function numbers(t) return ffi.new("double[?]", #t, t) end
local days, sun = 365.24, 4 * math.pi * math.pi
local x = numbers{0, 0, 0, 4.84143144246472090, -1.16032004402742839, -1.03622044471123109e-1, 8.34336671824457987,
  4.12479856412430479, -4.03523417114321381e-1, 1.28943695621391310e1, -1.51111514016986312e1, -2.23307578892655734e-1,
  1.53796971148509165e1, -2.59193146099879641e1, 1.79258772950371181e-1}
local v = numbers{0, 0, 0, 1.66007664274403694e-3, 7.69901118419740425e-3, -6.90460016972063023e-5,
  -2.76742510726411e-3, 4.99852801234917238e-3, 2.30417297573763929e-5, 2.96460137564761618e-3, 2.37847173959480950e-3,
  -2.96589568540237556e-5, 2.68067772490389322e-3, 1.62824170038242295e-3, -9.51592254519715870e-5}
local m = numbers{1.0, 9.54791938424326609e-4, 2.85885980666130812e-4, 4.36624404335156298e-5, 5.15138902046611451e-5}
for i = 0, 14 do v[i] = v[i] * days end
for i = 0, 4 do m[i] = m[i] * sun end
local sqrt = math.sqrt
local function energy()
  local e = 0.0
  for i = 0, 4 do
    local a = 3 * i
    e = e + 0.5 * m[i] * (v[a] * v[a] + v[a + 1] * v[a + 1] + v[a + 2] * v[a + 2])
    for j = i + 1, 4 do
      local b = 3 * j
      local dx, dy, dz = x[a] - x[b], x[a + 1] - x[b + 1], x[a + 2] - x[b + 2]
      e = e - m[i] * m[j] / sqrt(dx * dx + dy * dy + dz * dz)
    end
  end
  return e
end
local function advance(steps)
  local dt = 0.01
  for step = 1, steps do
    for i = 0, 4 do
      local a = 3 * i
      for j = i + 1, 4 do
        local b = 3 * j
        local dx, dy, dz = x[a] - x[b], x[a + 1] - x[b + 1], x[a + 2] - x[b + 2]
        local d2 = dx * dx + dy * dy + dz * dz
        local mag = dt / (d2 * sqrt(d2))
        v[a] = v[a] - dx * m[j] * mag
        v[a + 1] = v[a + 1] - dy * m[j] * mag
        v[a + 2] = v[a + 2] - dz * m[j] * mag
        v[b] = v[b] + dx * m[i] * mag
        v[b + 1] = v[b + 1] + dy * m[i] * mag
        v[b + 2] = v[b + 2] + dz * m[i] * mag
      end
    end
    for i = 0, 14 do x[i] = x[i] + dt * v[i] end
  end
end
advance(tonumber(arg[1]))
print(string.format("%.17g", energy()))

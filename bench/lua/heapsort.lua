-- Heapsort, in place, on an array of n numbers.
local ffi = require("ffi")
local function sift_down(a, start, stop)
  local root = start
  while 2 * root + 1 < stop do
    local child = 2 * root + 1
    if child + 1 < stop and a[child] < a[child + 1] then child = child + 1 end
    if a[root] >= a[child] then break end
    a[root], a[child] = a[child], a[root]
    root = child
  end
end
local n = tonumber(arg[1])
local a = ffi.new("double[?]", n)
for i = 0, n - 1 do a[i] = i * 7919 % 1000003 end
for start = math.floor(n / 2) - 1, 0, -1 do sift_down(a, start, n) end
for stop = n - 1, 1, -1 do
  a[0], a[stop] = a[stop], a[0]
  sift_down(a, 0, stop)
end
print(a[0] + 3 * a[math.floor(n / 2)] + 7 * a[n - 1])

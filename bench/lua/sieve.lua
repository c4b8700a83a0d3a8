-- How many primes lie below n, n - 1 … n - 19: bytes, as the others have them.
local ffi = require("ffi")
local function sieve(n)
  local prime = ffi.new("bool[?]", n)
  ffi.fill(prime, n, 1)
  prime[0], prime[1] = false, false
  for i = 2, n - 1 do
    if prime[i] then
      for j = i * i, n - 1, i do prime[j] = false end
    end
  end
  local count = 0
  for i = 0, n - 1 do
    if prime[i] then count = count + 1 end
  end
  return count
end
local n, total = tonumber(arg[1]), 0
for round = 0, 19 do total = total + sieve(n - round) end
print(total)

-- Fannkuch: the most flips of a prefix that any permutation of n numbers takes, and a checksum over all of them.
local function fannkuch(n)
  local permutation, flipped, count = {}, {}, {}
  for i = 0, n do permutation[i], flipped[i], count[i] = i, i, 0 end
  local most, checksum, number, r = 0, 0, 0, n
  while true do
    while r > 1 do
      count[r - 1] = r
      r = r - 1
    end
    for i = 0, n - 1 do flipped[i] = permutation[i] end
    local flips, k = 0, flipped[0]
    while k > 0 do
      local i, j = 0, k
      while i < j do
        flipped[i], flipped[j] = flipped[j], flipped[i]
        i = i + 1
        j = j - 1
      end
      flips = flips + 1
      k = flipped[0]
    end
    if flips > most then most = flips end
    if number % 2 == 0 then checksum = checksum + flips else checksum = checksum - flips end
    local more = true
    while more do
      if r == n then return checksum * 100 + most end
      local first = permutation[0]
      for i = 0, r - 1 do permutation[i] = permutation[i + 1] end
      permutation[r] = first
      count[r] = count[r] - 1
      if count[r] > 0 then more = false else r = r + 1 end
    end
    number = number + 1
  end
end
print(fannkuch(tonumber(arg[1])))

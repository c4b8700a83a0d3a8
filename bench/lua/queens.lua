-- In how many ways can n queens stand on a board of n by n without attacking each other? Sets as bits.
local band, bor, lshift = bit.band, bit.bor, bit.lshift
local function place(row, columns, left, right, n)
  if row == n then return 1 end
  local ways = 0
  for c = 0, n - 1 do
    local b = lshift(1, c)
    local l = lshift(1, row + c)
    local r = lshift(1, row - c + n)
    if band(columns, b) == 0 and band(left, l) == 0 and band(right, r) == 0 then
      ways = ways + place(row + 1, bor(columns, b), bor(left, l), bor(right, r), n)
    end
  end
  return ways
end
print(place(0, 0, 0, 0, tonumber(arg[1])))

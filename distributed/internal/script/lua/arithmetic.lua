-- Arithmetic. Every number is an integer in a double, exact below 2^53. Instants
-- are in microseconds of Redis' clock; the interval between permits is unit/den
-- microseconds, exactly, so that no rate is rounded. Counts and divisors stay below 2^51.
-- Nothing is granted for an instant more than 2^47 from now, four years, and no instant of
-- the state is more than 2^48 from now.

local fmod, min, max = math.fmod, math.min, math.max

-- divide returns a/b rounded down, and the rest. The operator alone would round a quotient
-- just below an integer up to it.
local function divide(a, b)
  local rest = fmod(a, b)
  return (a - rest) / b, rest
end

-- muldiv returns a*b/c rounded down, and the rest of the division.
local function muldiv(a, b, c)
  local product = a * b
  if product < 2^53 then
    local rest = fmod(product, c)
    return (product - rest) / c, rest
  end
  -- A long multiplication by the digits of b, in a base in which nothing overflows.
  local quotient, rest = 0, 0
  local whole
  whole, a = divide(a, c)
  whole = whole * b
  local base, digits = divide(2^52, c), {}
  while b > 0 do
    b, digits[#digits + 1] = divide(b, base)
  end
  for i = #digits, 1, -1 do
    local digit
    digit, rest = divide(rest * base + a * digits[i], c)
    quotient = quotient * base + digit
  end
  return whole + quotient, rest
end

-- wrongType reports whether a reply is the error for a key of another type, which is garbage. It
-- raises any other error: a key that a caller may not read is not garbage.
local function wrongType(reply)
  if type(reply) ~= "table" or not reply.err then return false end
  if reply.err:find("WRONGTYPE", 1, true) then return true end
  error(reply)
end

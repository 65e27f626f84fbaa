-- Spacing lets departures out one by one where a window would let many go at
-- once: after a pause, and after a change that left more at hand. It is a leaky
-- bucket, the line, that holds until an instant. No spacing is false.
--
-- In the lane's hash, as a section of its limit: w unit den at frac till.

local function readSpacing(list)
  if #list ~= 5 or min(list[1], list[2]) < 1 or min(list[3], list[4], list[5]) < 0 then return nil end
  if max(list[1], list[2]) > 2^51 or list[4] >= list[2] or max(list[3], list[5]) > latest then return nil end
  local line = { at = list[3], frac = list[4], till = list[5] }
  setPace(line, list[1], list[2])
  return line
end

local function spacingText(line)
  return (";w %.0f %.0f %.0f %.0f %.0f"):format(line.unit, line.den, line.at, line.frac, line.till)
end

-- spaced returns the spacing of so many permits evenly over a span of time.
local function spaced(from, till, permits)
  if permits < 1 or till <= from then return false end
  local line = { at = from, frac = 0, till = till }
  setPace(line, till - from, permits)
  return line
end

local function spacingOver(line, at) return not line or at >= line.till end

local function spacingEarliest(line)
  if not line then return 0 end
  return min(ceil(line.at, line.frac), line.till)
end

local function spacingSpend(line, at, charged, n)
  if line and at < line.till then chargeAt(line, charged, n) end
end

-- spacingHand returns how many of the permits at hand may go at once.
local function spacingHand(line, at, permits)
  if spacingOver(line, at) then return permits end
  return min(permits, ceil(line.at, line.frac) <= at and 1 or 0)
end

-- spacedChange returns the spacing of the permits at hand where the rule before
-- left fewer: nothing is granted for a change. Where it left none, the first
-- goes no later than that rule would have let it, so that changing often never
-- holds a line back.
local function spacedChange(till, hand, old)
  local left = old:left(now)
  if hand <= left then return false end
  local line = spaced(now, till, hand)
  if left < 1 and line then
    chargeAt(line, now, 1)
    local next = old:next(now)
    if next < line.at then line.at, line.frac = next, 0 end
  end
  return line
end

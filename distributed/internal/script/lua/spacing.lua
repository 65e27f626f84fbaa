-- Spacing makes departures one by one that a window would grant all at once, because a change left
-- more at hand. It is a leaky bucket, the pacer, which may grant a burst first and applies until an
-- instant. No spacing is false.
--
-- In the lane's hash, as a section of its limit: w unit den at frac till burst.

-- newPacer returns a pacer at an instant; nothing if its burst takes too long to count.
local function newPacer(unit, den, burst, at, till)
  local pacer = { at = at, frac = 0, till = till, burst = burst }
  setPace(pacer, unit, den)
  pacer.spare, pacer.spareRest = muldiv(burst - 1, unit, den)
  return pacer.spare < 2^51 and pacer or nil
end

local function readSpacing(list)
  if #list ~= 6 or min(list[1], list[2], list[6]) < 1 or min(list[3], list[4], list[5]) < 0 then return nil end
  if max(list[1], list[2], list[6]) > 2^51 or list[4] >= list[2] or max(list[3], list[5]) > latest then return nil end
  local pacer = newPacer(list[1], list[2], list[6], list[3], list[5])
  if pacer then pacer.frac = list[4] end
  return pacer
end

local function spacingText(pacer)
  return (";w %.0f %.0f %.0f %.0f %.0f %.0f"):format(pacer.unit, pacer.den, pacer.at, pacer.frac, pacer.till, pacer.burst)
end

-- spaced returns a spacing of permits evenly over a span of time.
local function spaced(from, till, permits)
  if permits < 1 or till <= from then return false end
  return newPacer(till - from, permits, 1, from, till)
end

local function spacingRewind(pacer, by)
  if pacer then pacer.at, pacer.till = max(pacer.at - by, 0), max(pacer.till - by, 0) end
end

local function spacingOver(pacer, at) return not pacer or at >= pacer.till end

local function spacingEarliest(pacer)
  if not pacer then return 0 end
  return min(ceil(pacer.at - pacer.spare, pacer.frac - pacer.spareRest), pacer.till)
end

local function spacingSpend(pacer, at, charged, n)
  if pacer and at < pacer.till then chargeAt(pacer, charged, n) end
end

-- spacingRelieve takes back n permits.
local function spacingRelieve(pacer, n)
  if pacer then pacer.at, pacer.frac = earlier(pacer, pacer.at, pacer.frac, muldiv(n, pacer.unit, pacer.den)) end
end

-- spacedChange returns the spacing of the permits at hand if the old rule left fewer. The old
-- rule's permits go at once, because a change slows nothing. The others are spread evenly, because
-- a change grants nothing. Then all are free. If the old rule left no permit, the first departs no
-- later than under it, so that frequent changes never stop a queue.
local function spacedChange(evenly, hand, old)
  local had = max(old:left(now), 0)
  if hand <= had or not evenly then return false end
  local whole, rest = muldiv(hand - had, evenly.unit, evenly.den)
  local pacer = newPacer(evenly.unit, evenly.den, max(had, 1), now, now + whole + (rest > 0 and 1 or 0))
  if not pacer then return false end
  if had < 1 then
    chargeAt(pacer, now, 1)
    local next = old:next(now)
    if next < pacer.at then pacer.at, pacer.frac = next, 0 end
  end
  return pacer
end

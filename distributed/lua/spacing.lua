-- Spacing lets departures out one by one where a window would let many go at
-- once: after a pause, in a cut, and after a change that left more at hand. It is
-- a leaky bucket, the line, which may let a burst go first and holds until an
-- instant. No spacing is false.
--
-- In the lane's hash, as a section of its limit: w unit den at frac till burst.

local CUT_HOLDS = 600000000 -- how long a cut spaces a window's permits, if no call is served

-- newLine returns a line at an instant; nothing where its burst is beyond numbers.
local function newLine(unit, den, burst, at, till)
  local line = { at = at, frac = 0, till = till, burst = burst }
  setPace(line, unit, den)
  line.spare, line.spareRest = muldiv(burst - 1, unit, den)
  return line.spare < 2^51 and line or nil
end

local function readSpacing(list)
  if #list ~= 6 or min(list[1], list[2], list[6]) < 1 or min(list[3], list[4], list[5]) < 0 then return nil end
  if max(list[1], list[2], list[6]) > 2^51 or list[4] >= list[2] or max(list[3], list[5]) > latest then return nil end
  local line = newLine(list[1], list[2], list[6], list[3], list[5])
  if line then line.frac = list[4] end
  return line
end

local function spacingText(line)
  return (";w %.0f %.0f %.0f %.0f %.0f %.0f"):format(line.unit, line.den, line.at, line.frac, line.till, line.burst)
end

-- spaced returns the spacing of so many permits evenly over a span of time.
local function spaced(from, till, permits)
  if permits < 1 or till <= from then return false end
  return newLine(till - from, permits, 1, from, till)
end

local function spacingRewind(line, by)
  if line then line.at, line.till = max(line.at - by, 0), max(line.till - by, 0) end
end

local function spacingOver(line, at) return not line or at >= line.till end

local function spacingEarliest(line)
  if not line then return 0 end
  return min(ceil(line.at - line.spare, line.frac - line.spareRest), line.till)
end

local function spacingSpend(line, at, charged, n)
  if line and at < line.till then chargeAt(line, charged, n) end
end

-- spacingRelieve takes back n permits.
local function spacingRelieve(line, n)
  if not line then return end
  local whole, rest = muldiv(n, line.unit, line.den)
  line.at, line.frac = line.at - whole, line.frac - rest
  if line.frac < 0 then line.at, line.frac = line.at - 1, line.frac + line.den end
  if line.at < 0 then line.at, line.frac = 0, 0 end
end

-- spacingHand returns how many of the permits at hand may go at once.
local function spacingHand(line, at, permits)
  if spacingOver(line, at) then return permits end
  local owed = 0
  if ceil(line.at, line.frac) > at then
    local whole, ticks = muldiv(line.at - at, line.den, line.unit)
    local more, rest = divide(ticks + line.frac, line.unit)
    owed = whole + more + (rest > 0 and 1 or 0)
  end
  return min(permits, max(line.burst - owed, 0))
end

-- spacedChange returns the spacing of the permits at hand if the rule before left
-- fewer. What that left goes at once, for a change slows nothing; and nothing is
-- granted for a change, so the others are let out evenly, and then all is free.
-- If it left none, the first goes no later than that rule would have let it, so
-- that changing often never holds a line back.
local function spacedChange(evenly, hand, old)
  local had = max(old:left(now), 0)
  if hand <= had or not evenly then return false end
  local whole, rest = muldiv(hand - had, evenly.unit, evenly.den)
  local line = newLine(evenly.unit, evenly.den, max(had, 1), now, now + whole + (rest > 0 and 1 or 0))
  if not line then return false end
  if had < 1 then
    chargeAt(line, now, 1)
    local next = old:next(now)
    if next < line.at then line.at, line.frac = next, 0 end
  end
  return line
end

-- slowCount puts a share of the rate in force: departures are spaced at it. The
-- windows stay as they are, and so do their permits: what is used may be more than
-- a share of them, and nothing would go until the window ends.
local function slowCount(c, share)
  local was, at = c.share, max(now, lane.paused)
  c.share, c.head, c.dirty = share, c.claim, true
  if share == 1000 then
    if was < 1000 then c.spacing = false end
    return
  end
  c.head = c.claim .. "~" .. share
  local unit, den = seldom().cutPace(c.unit, c.den, share)
  local line = newLine(unit, den, 1, at, now + CUT_HOLDS)
  if not spacingOver(c.spacing, now) then
    if was == 1000 then
      line.at = max(at, spacingEarliest(c.spacing))
    else
      seldom().rescale(line, c.spacing, at)
    end
  end
  c.spacing = line
end

-- resumeCount takes in that a pause ends so much earlier.
local function resumeCount(c, by)
  if c.share == 1000 or not c.spacing then return end
  c.spacing.at, c.dirty = max(c.spacing.at - by, 0), true
end

-- spaceCount lets so many permits out evenly between two instants; if the rate is
-- cut, at its share from the first of them on.
local function spaceCount(c, from, till, permits)
  local line = c.spacing
  if c.share == 1000 or not line then
    c.spacing = spaced(from, till, permits)
  else
    if ceil(line.at, line.frac) < from then line.at, line.frac = from, 0 end
    line.till = max(line.till, from + CUT_HOLDS)
  end
  c.dirty = true
end

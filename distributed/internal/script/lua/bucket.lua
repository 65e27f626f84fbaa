-- Rules: the state of one limit each, and the arithmetic over it. Every rule is
-- of a kind: b token bucket, l leaky bucket, f fixed window, g sliding log, s
-- sliding window. It has
--
--   set(...)            applies the numbers of the claim; the state is as new
--   read(text, from)    reads the state from the lane's hash; false: invalid
--   section(tag, list)  reads a section, which follows the state at times
--   text()              the inverse of read and section
--   earliest(at, arrived, n, leave)  the instant, possibly past, since when n permits can
--                       be spent at the instant at for a caller in line since arrived, with
--                       leave permits left
--   room(at, arrived, charged, n, most, leave)  how many costs of n, up to most, count at
--                       one instant, if one of them may be spent
--   spares(at, n, leave)  whether one permit could be spent now if n were promised for the
--                       instant at, with leave permits left there
--   spend(at, arrived, charged, n, times)  spends that many costs of n, for a departure
--                       at the instant at; charged, not after it, is since when all
--                       limits allowed it; returns the instant they count at
--   expiry()            when it is as good as new
--
-- and, for buckets once rare was called,
--
--   charge(n)           adds n permits now, whatever is at hand
--   relieve(at, n)      takes back n of the permits that count at an instant
--   refund(at, n, moves)  takes back n permits that count at an instant and never left; a bucket may
--                       move its state
--   departed(n)         charges permits that left while the store was lost
--   pause(at)           of buckets: voids saved permits, and leaves one at that instant
--   resume(by)          of buckets: ends a pause earlier by that time; zero: at its end
--   rewind(by)          follows a clock that moved back by that time
--   adopt(old)          takes over the used permits of the rule that it replaces
--   used()              permits that count now
--   left(at)            whole permits at hand at an instant, negative: debt
--   next(at)            when one permit could be spent by a caller that comes now
--   state()             its state in the reply
--
-- In the lane's hash a rule is the field "=" and the limit's name: its claim, its
-- state, its sections, with semicolons between.
--
-- Buckets: token bucket and leaky bucket as the generic cell rate algorithm
-- (ITU-T I.371, annex A, virtual scheduling). The state is one instant with its
-- fraction, at + frac/den, when the permits spent so far are earned back. A leaky
-- bucket is the bucket of burst 1 whose cost is paid after departure.
--
-- In the hash: at and frac; if permits are promised for later instants, also the
-- state before them, with its fraction, and the largest cost since. Sections:
--   r at n at n ...      permits that came back and keep their instants
--   k from at low ...    the charges so far, for settlements
--   h time               by how much the current pause has put off the state

local skips = false -- whether the permits before the one that is asked for are left to others; not if a limit reserves some: those would be spent

local function ceil(at, frac)
  if frac > 0 then return at + 1 end
  return at
end

-- setPace makes unit/den the interval of b, a bucket or the pacer of a spacing.
local function setPace(b, unit, den)
  b.unit, b.den = unit, den
  b.one, b.rest = divide(unit, den)
end

-- advanced returns a state of b later by n intervals.
local function advanced(b, at, frac, n)
  local whole, rest = b.one, b.rest
  if n ~= 1 then whole, rest = muldiv(n, b.unit, b.den) end
  at, frac = at + whole, frac + rest
  if frac >= b.den then at, frac = at + 1, frac - b.den end
  if at > latest then return latest, 0 end
  return at, frac
end

-- chargeAt adds n permits to what b owes at an instant.
local function chargeAt(b, at, n)
  -- If the instant is only the state rounded up it stays as it is: the fraction would
  -- be dropped each time, and 7,777/s would be 7,754/s.
  if ceil(b.at, b.frac) < at then b.at, b.frac = at, 0 end
  if b.slack then b.slack:note(at, b.at - at) end
  b.at, b.frac = advanced(b, b.at, b.frac, n)
end

-- earlier returns a state of b so much earlier.
local function earlier(b, at, frac, whole, rest)
  at, frac = at - whole, frac - rest
  if frac < 0 then at, frac = at - 1, frac + b.den end
  if at < 0 then return 0, 0 end
  return at, frac
end

-- owing returns the intervals until b is whole at an instant: whole ones, and ticks of one more, of
-- which unit make one.
local function owing(b, at)
  if ceil(b.at, b.frac) <= at then return 0, 0 end
  local whole, ticks = muldiv(b.at - at, b.den, b.unit)
  local more
  more, ticks = divide(ticks + b.frac, b.unit)
  return whole + more, ticks
end

-- atHand returns how many whole permits b has at hand at an instant.
local function atHand(b, at)
  local whole, ticks = owing(b, at)
  return b.burst - whole - (ticks > 0 and 1 or 0)
end

local function makeBuckets()
  -- spareFor returns how long before its state b may grant a cost of n. A cost above the burst,
  -- after a stricter claim, takes the whole burst.
  local function spareFor(b, n)
    if n == 1 or b.leaky then return b.spare, b.spareRest end
    return muldiv(max(b.burst - n, 0), b.unit, b.den)
  end

  local function set(b, unit, den, burst)
    setPace(b, unit, den)
    b.burst = burst
    b.spare, b.spareRest = muldiv(burst - 1, unit, den)
  end

  local function read(b, text, from)
    local claimed, at, frac, tail = text:match("^(%d+) (%d+) (%d+)(.*)$", from)
    claimed, at, frac = tonumber(claimed), tonumber(at), tonumber(frac)
    if not claimed or claimed > latest or at > latest or frac >= b.den then return false end
    b.claimed, b.at, b.frac = claimed, at, frac
    if tail == "" then return true end
    local sure, sureFrac, most, sections = tail:match("^ (%d+) (%d+) (%d+)(.*)$")
    if sure then
      sure, sureFrac, most = tonumber(sure), tonumber(sureFrac), tonumber(most)
      if sure > latest or sureFrac >= b.den or most > 2^51 then return false end
      if lane.furthest > now then -- otherwise all promised permits have departed
        b.sure, b.sureFrac, b.most = sure, sureFrac, most
      end
      tail = sections
    end
    return tail == "" or rare().readSections(b, tail)
  end

  local function text(b)
    local core
    if b.sure and lane.furthest > now then
      core = ("%s;%.0f %.0f %.0f %.0f %.0f %.0f"):format(b.claim, b.claimed, b.at, b.frac, b.sure, b.sureFrac, b.most)
    else
      core = ("%s;%.0f %.0f %.0f"):format(b.claim, b.claimed, b.at, b.frac)
    end
    if b.returned or b.slack or b.held > 0 then return core .. rare().remembered(b) end
    return core
  end

  local function earliest(b, _, arrived, n, leave)
    local whole, rest = spareFor(b, n + leave)
    if b.returned then return rare().earliestReturned(b, arrived, n, whole, rest) end
    return ceil(b.at - whole, b.frac - rest)
  end

  local function room(b, _, arrived, charged, n, _, leave)
    if b.returned and rare().firstReturned(b, arrived, n) then return 1 end
    local at, frac = b.at, b.frac
    if ceil(at, frac) < charged then at, frac = charged, 0 end
    local whole, rest = spareFor(b, n + leave)
    local time, each = charged - at + whole, n * b.unit
    local ticks = time * b.den + rest - frac
    if ticks < 2^53 then return max(divide(ticks, each), 0) + 1 end
    if each >= 2^51 then return 1 end
    return (muldiv(time - 1, b.den, each)) + 1
  end

  local function spend(b, at, arrived, charged, n, times)
    b.dirty = true
    if b.returned then
      local back = rare().takeReturned(b, arrived, n)
      if back then return min(back, charged) end
    end
    if at > now and not b.sure then b.sure, b.sureFrac, b.most = b.at, b.frac, 0 end
    if b.sure then b.most = max(b.most, n) end
    if skips and n == 1 and at > now and not next(reserves) and ceil(b.at, b.frac) < charged then
      rare()
      b:skip(charged, n)
    end
    chargeAt(b, charged, n * times)
    return charged
  end

  local function spares(b, at, _, leave) return at - now <= muldiv(leave - 1, b.unit, b.den) end

  -- expiry is when b is whole. The echo of the furthest instant must not reduce a lane whose state
  -- merely expired.
  local function expiry(b)
    return max(b.at, lane.furthest + b.spare + b.one + 1) + 1
  end

  local bucket = {
    set = set, read = read, text = text, earliest = earliest, room = room, spares = spares, spend = spend, expiry = expiry,
    __index = false,
  }
  bucket.__index = bucket
  return bucket
end

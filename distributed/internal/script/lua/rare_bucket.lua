-- Buckets, continued: methods that few calls need.

local MOST_RETURNED = 64 -- further permits that come back are lost

-- intervals returns the time of n permits: whole microseconds and the rest in 1/den.
local function intervals(b, n) return muldiv(n, b.unit, b.den) end

-- remembered returns the sections of a bucket.
local function remembered(b)
  local text = b.returned and b.returned[1] and ";r " .. joined(b.returned) or ""
  if b.slack then text = text .. ";k " .. joined(b.slack) end
  if b.held > 0 and lane.paused > now then text = text .. (";h %.0f %.0f"):format(b.held, lane.paused) end
  return text
end

local function readReturned(b, list)
  if #list % 2 ~= 0 or #list > 2 * MOST_RETURNED then return false end
  local returned = {}
  for i = 1, #list, 2 do
    if list[i] < 0 or list[i] > latest or list[i + 1] < 1 then return false end
    if list[i] >= now - tolerance then
      returned[#returned + 1] = list[i]
      returned[#returned + 1] = list[i + 1]
    end
  end
  if #returned > 0 then b.returned = returned end
  return true
end

-- firstReturned returns the first instant, not before arrived, of a returned cost of n, and its
-- place; nil if no such cost was returned. The list holds instants and costs in turn, as in the hash.
local function firstReturned(b, arrived, n)
  local list = b.returned
  for i = 1, #list, 2 do
    if list[i] >= arrived and list[i + 1] == n then return list[i], i end
  end
end

local function takeReturned(b, arrived, n)
  local back, i = firstReturned(b, arrived, n)
  if i then
    table.remove(b.returned, i)
    table.remove(b.returned, i)
  end
  return back
end

-- earliestReturned returns the earliest instant for a cost of n from returned permits, up to this
-- long before the state. Returned permits still count in the state. They depart when they would
-- have, had they not been spent: after later corrections upwards, but not after promises for later
-- instants.
local function earliestReturned(b, arrived, n, whole, rest)
  local due = ceil(b.at - whole, b.frac - rest)
  local back = firstReturned(b, arrived, n)
  if not back then return due end
  local more, part = intervals(b, n)
  local at, frac = b.at, b.frac
  if b.sure then at, frac = b.sure, b.sureFrac end
  at, frac = at - whole - more, frac - rest - part
  if frac <= -b.den then at, frac = at - 1, frac + b.den end
  return min(due, max(back, ceil(at, frac)))
end

local function addReturned(b, at, n)
  b.returned = b.returned or {}
  local list, i = b.returned, 1
  if #list >= 2 * MOST_RETURNED then return end
  while list[i] and list[i] < at do i = i + 2 end
  table.insert(list, i, n)
  table.insert(list, i, at)
end

local bucket = methodsOf("b")

-- skip leaves the permits before an instant, for which n are charged, to others.
function bucket.skip(b, upto, n)
  local at, frac = b.at, b.frac
  if ceil(at, frac) < now then at, frac = now, 0 end
  for _ = 1, MOST_RETURNED do
    local later, rest = advanced(b, at, frac, n)
    if ceil(later, rest) > upto then return end
    addReturned(b, max(now, ceil(at - b.spare, frac - b.spareRest)), n)
    at, frac = later, rest
  end
end

function bucket.section(b, tag, list)
  if tag == "r" then return readReturned(b, list) end
  if tag == "h" then
    b.held = max(list[1] or 0, 0)
    local early = (list[2] or 0) - lane.paused
    if lane.paused > now then return true end
    if early > 0 then -- a caller that does not claim this limit has ended the pause
      b:resume(early)
      b:hold(lane.paused)
    end
    b.held = 0
  end
  if tag == "k" and lane.settled > 0 then b.slack = readSlack(list) end
  return tag ~= "k" or lane.settled == 0 or b.slack ~= nil
end

-- refund takes back permits charged at an instant. The state moves back if everything charged since
-- some instant came back. If moves is true, it also does so if each later charge was ahead of its
-- instant by that much: without the permits, those charges would have had the same instants. Otherwise
-- the permits keep their instants: moving back would let two depart in the place of a later one.
function bucket.refund(b, at, n, moves)
  b.dirty = true
  local tat, frac = earlier(b, b.at, b.frac, intervals(b, n))
  if moves and b.slack and b.at - tat < b.slack:after(at) then
    b.slack:lower(at - 1, b.at - tat + 1)
    b.at, b.frac = tat, frac
    return
  end
  addReturned(b, at, n)
  tat, frac = b.at, b.frac
  local list = b.returned
  local all = #list
  for i = #list - 1, 1, -2 do
    tat, frac = earlier(b, tat, frac, intervals(b, list[i + 1]))
    if ceil(tat, frac) <= list[i] then b.at, b.frac, all = tat, frac, i - 1 end
  end
  for i = #list, all + 1, -1 do list[i] = nil end
  if all == 0 then b.returned = false end
end

-- charge adds n permits to what was spent, whatever is at hand.
function bucket.charge(b, n)
  b.dirty = true
  b.held = min(b.held, max((b.sure or b.at) - now, 0)) -- as without the pause: charged from now on
  chargeAt(b, now, n)
  if b.sure then
    local at, frac = b.sure, b.sureFrac
    if ceil(at, frac) < now then at, frac = now, 0 end
    b.sure, b.sureFrac = advanced(b, at, frac, n)
  end
end

-- relieve takes back n permits of a charge that turned out too high. Later charges bound it by how
-- much lower the state would have been.
function bucket.relieve(b, at, n)
  local whole, rest = intervals(b, n)
  local least = b.slack and b.slack:after(at) or 0
  if whole >= least then whole, rest = least, 0 end
  b.at, b.frac = earlier(b, b.at, b.frac, whole, rest)
  if b.slack then b.slack:lower(at, whole + 1) end
  b.dirty = true
end

-- unpromise takes back permits promised for later instants. The state becomes the one before the
-- first promise. If that was earned back meanwhile, the bucket owes what the departures up to now
-- left: at most a burst, or one cost in a leaky bucket.
function bucket.unpromise(b)
  if not b.sure then return end
  local whole, rest = intervals(b, b.leaky and max(b.most, 1) or b.burst)
  local at, frac = now + whole, rest
  if b.sure > at or b.sure == at and b.sureFrac > frac then at, frac = b.sure, b.sureFrac end
  if at < b.at or at == b.at and frac < b.frac then b.at, b.frac = at, frac end
  b.sure, b.returned, b.dirty = false, false, true -- that state does not count the returned ones
end

-- hold leaves one permit at an instant, and no saved permits.
function bucket.hold(b, at)
  b.returned, b.dirty = false, true
  local hold, frac = at + b.spare, b.spareRest
  if ceil(b.at, b.frac) < ceil(hold, frac) then b.at, b.frac = hold, frac end
end

function bucket.pause(b, at)
  b:unpromise()
  local free = b.at
  b:hold(at)
  b.held = min(b.held + b.at - free, 2^51)
end

-- departed charges permits that were spent while the store was lost. The instants are not
-- known, but no permit was saved.
function bucket.departed(b)
  b:hold(now)
  if b.slack then b.slack = newSlack(now) end
end

-- resume moves the state back by the time that the pause is shorter, but not before the state
-- without a pause.
function bucket.resume(b, by)
  by = min(by, b.held)
  b.at, b.held, b.dirty = max(b.at - by, 0), 0, true
  if b.sure then b.sure = max(b.sure - by, 0) end
end

-- rewind drops saved permits, because their number is unknown.
function bucket.rewind(b, by)
  local empty = min(b.at, now + b.spare + b.one + 1)
  b.at, b.returned, b.sure, b.dirty = max(b.at - by, empty), false, false, true
  if b.slack then b.slack = newSlack(now) end
end

-- restore charges a bucket for a permit that was granted at an instant, when at most a burst can
-- have been owed. If nothing else is known of the lane, each other live caller may have been
-- granted a turn since. A caller that holds permits for later than in a second asks once a second,
-- and gives them back.
function bucket.restore(b, furthest, alive, same)
  local turn = min(max(tonumber(ARGV[4]), alive * (b.one + 1)), 1000000)
  -- Seen of this very state by a clock that was ahead, or given back within a second.
  if same and furthest - now > 2000000 then return false end
  local at = min(furthest, now + 2000000)
  if lane.new and alive > 1 and at > now - turn then at = max(at, now + turn) end
  local whole, rest = intervals(b, b.burst)
  if ceil(b.at, b.frac) >= ceil(at + whole, rest) or at + whole < now then return false end
  if at > now and not b.sure then b.sure, b.sureFrac, b.most = b.at, b.frac, 1 end
  b.at, b.frac, b.dirty = at + whole, rest, true
  return true
end

-- used returns the permits not yet earned back, and any begun one.
function bucket.used(b)
  local whole, ticks = owing(b, now)
  return ticks > 0 and whole + 1 or whole
end

bucket.left = atHand

-- next is when a caller that comes now could spend one permit.
function bucket.next(b) return ceil(b.at - b.spare, b.frac - b.spareRest) end

-- setOwed makes permits and ticks of another pace, of which unit make a permit, owed at an instant,
-- rounded up.
local function setOwed(b, at, permits, ticks, unit)
  b.at, b.frac = advanced(b, at, 0, permits)
  local own, rest = muldiv(ticks, b.unit, unit)
  if rest > 0 then own = own + 1 end
  local whole, frac = divide(own, b.den)
  b.at, b.frac = b.at + whole, b.frac + frac
  if b.frac >= b.den then b.at, b.frac = b.at + 1, b.frac - b.den end
end

-- inherit makes the state what it was at an instant under another rule.
local function inherit(b, at, old)
  if not old.burst then
    local hand = max(min(old:left(at), b.burst), 0)
    setOwed(b, at, b.burst - hand, 0, 1)
    -- Frequent changes do not delay the caller that was next under the old rule.
    local next = old:next(at)
    if hand == 0 and next + b.spare < b.at then
      b.at, b.frac = next + b.spare, b.spareRest
    end
    return
  end
  local permits, ticks = owing(old, at)
  permits = permits + b.burst - old.burst
  if permits < 0 or permits == 0 and ticks == 0 then
    b.at, b.frac = min(old.at, at), 0
  else
    setOwed(b, at, permits, ticks, old.unit)
  end
end

-- adopt takes over from the rule that enforced the limit so far. Permits at hand stay, up to the
-- new burst, with their fraction, and debt stays debt. The change grants nothing.
function bucket.adopt(b, old)
  if lane.paused <= now then
    inherit(b, now, old)
  else
    old.at = old.at - old.held
    inherit(b, now, old)
    local free = b.at
    old.at = old.at + old.held
    inherit(b, lane.paused, old) -- a pause delays time, not permits
    b.held = max(b.at - free, 0)
  end
  if old.sure then
    -- The new intervals of promised permits are not known, so a pause takes nothing back.
    b.sure, b.sureFrac, b.most = b.at, b.frac, old.most
  end
end

function bucket.state(b)
  local at, frac = b.at, b.frac
  if ceil(at, frac) <= now then at, frac = now, 0 end
  return at - now, frac, b.unit, b.den, b.burst
end

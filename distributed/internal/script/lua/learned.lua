-- Learned limits: what the callers learn together of the vendor's limit. Each sends messages about
-- the answers of its vendor. This script does not read them, but keeps their order: all callers
-- apply them in that order, so all learn the same. A place is a number of bytes before it. The
-- caller that has applied most decides for the lane: the interval of the rule LEARNED, the instant
-- before which nothing departs, and whether departures go one by one.
--
-- In the lane's hash:
--   "ordinal", numbers that change with every grant: the ordinal of the last departure granted;
--   applied, the place at which the lane was decided for; upto, the latest ordinal known there;
--   landed, how many of those departures were answered, or never will be
--   "learned", numbers as in FIELDS, which change with each message
--   "entries", the messages from one place to another, each in a frame "ordinal now length "
--   "snapshot", what a caller had learned at the first of these places

local FIELDS = {
  "from", "to", -- the places of the entries
  "unit", "den", -- interval of the pace
  "hold", "alone", "since", -- no departure before; 1: one by one after an ordinal
  "lease", -- when the last single departure has its answer
  "revoked", -- the place at which permits were revoked last
  "keep", -- lifetime of all this
  "unbound", "reserve", -- 1: readings bound nothing; departures below the ceiling that go one by one, too
  "ceiling", "newest", -- departures above it go one by one, by readings up to the newest departure's; 0: none
  "mark", "due", -- departures up to the mark have arrived at due
}
local PATTERN = "^" .. ("(%d+) "):rep(#FIELDS - 1) .. "(%d+)$"
local MOST = 65536 -- bytes of entries that are kept
local SOON = 5000 -- shortest time until a caller that waits for an answer asks again

local known

-- readKnown returns the content of the two fields; new if they are invalid.
local function readKnown(text, counts)
  local k, values = {}, { (text or ""):match(PATTERN) }
  local ordinal, applied, upto, landed = (counts or ""):match("^(%d+) (%d+) (%d+) (%d+)$")
  k.ordinal, k.applied, k.upto, k.landed = tonumber(ordinal or 0), tonumber(applied or 0), tonumber(upto or 0), tonumber(landed or 0)
  if max(k.ordinal, k.applied, k.upto, k.landed) > 2^52 then return readKnown(text) end
  for i, name in ipairs(FIELDS) do
    k[name] = tonumber(values[i] or 0)
    if k[name] > 2^52 then return readKnown(nil, counts) end
  end
  if k.lease > max(now, lane.furthest) + 1000000 then k.lease = 0 end -- no lease of a probe is longer
  if k.from > k.to or min(k.unit, k.den) < 1 then
    k.unit, k.den, k.from, k.to = 1, 1, 0, 0
  end
  return k
end

local function held(field) return redis.call("HMGET", KEYS[1], field)[1] or "" end

-- boundary returns where the first frame begins that does not begin before a byte, or is invalid.
local function boundary(byte)
  local at, size = 1, #known.entries
  while at < byte do
    local length, text = known.entries:match("^%d+ %d+ (%d+) ()", at)
    if not text or text + length > size + 1 then break end
    at = text + length
  end
  return at
end

-- keep makes the entries begin at a later place, for which there is a snapshot. A place after them
-- is of a journal that was lost: then all of them follow the snapshot, which lacks them. A place
-- within a frame is of a lost journal, too: its snapshot is not used.
local function keep(place, snapshot)
  local first = place - known.from + 1
  if boundary(first) > first then return end
  if place <= known.to then known.entries = known.entries:sub(first) end
  known.from, known.to = place, place + #known.entries
  known.snapshot, known.writes = snapshot, true
end

local function append(message)
  local frame = ("%.0f %.0f %d "):format(known.ordinal, now, #message)
  known.entries = known.entries .. frame .. message
  known.to, known.writes = known.to + #frame + #message, true
end

-- read applies how many departures have landed, how many spent nothing, and a reading: what the
-- vendor had left when a departure arrived. Departures landed before that one left had arrived,
-- too. So the vendor grants all up to a ceiling, in any order of arrival, and departures that spend
-- nothing raise it. Example: 36 had landed before number 40 left, and 4 are left: those up to 41
-- are granted. If less is left than with all others still to arrive, another program spends, and
-- the newest reading is used.
local function read(landed, spared, ordinal, left, before)
  known.landed = min(known.landed + landed, known.ordinal)
  if known.unbound == 1 then
    known.ceiling, known.newest, known.mark, known.due = 0, 0, 0, 0
    return
  end
  local later = max(now, lane.furthest) + 2000000
  if (known.ceiling > 0 and now > known.due) or known.due > later then -- answers to dead processes are never reported
    known.landed = max(known.landed, min(known.mark, known.ordinal))
    known.mark, known.due = known.ordinal, later
  end
  if known.ceiling > 0 then
    known.ceiling = known.ceiling + spared
    if known.lease > 0 and now >= known.lease then known.landed = known.ordinal end -- an answer that is missing for so long never comes
  end
  if ordinal > known.newest then
    local low = left + before + 1
    if known.ceiling == 0 then known.lease = now + 1000000 end
    if known.ceiling > left + known.ordinal then known.ceiling = low end
    known.ceiling, known.newest = max(known.ceiling, low), ordinal
  end
end

-- learn applies the caller's arguments, its message and its snapshot, each "" if it sends none. It
-- returns the state of the lane.
local function learn(i, text, counts)
  known = readKnown(text, counts)
  local place, ordinal, free, revoke = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3] == "1"
  local message, snapshot = ARGV[i + 10], ARGV[i + 11]
  known.ordinal, known.landed = max(known.ordinal, ordinal) + free, max(known.landed, ARGV[i + 20] + 0)
  if place < known.to or message ~= "" or snapshot ~= "" then
    known.entries = held("entries")
    local size = #known.entries
    -- A caller that could not read them has a place before all.
    if size ~= known.to - known.from or place < 0 and boundary(size + 1) <= size then
      known.from, known.to, known.entries, known.snapshot, known.writes = 0, 0, "", "", true
    end
  end
  if snapshot ~= "" and place > known.from then keep(place, snapshot) end
  if place <= known.to and message ~= "" and known.to - known.from < MOST then
    append(message)
    known.took = true
  end
  if known.revoked > known.to then known.revoked = 0 end
  if place > known.applied or place == known.applied and ordinal >= known.upto or known.applied > known.to then
    known.applied, known.upto = place, ordinal
    known.unit, known.den = tonumber(ARGV[i + 4]), tonumber(ARGV[i + 5])
    known.hold, known.alone, known.since = tonumber(ARGV[i + 6]), tonumber(ARGV[i + 7]), tonumber(ARGV[i + 8])
    known.keep, known.unbound, known.reserve = tonumber(ARGV[i + 9]), tonumber(ARGV[i + 18]), tonumber(ARGV[i + 19])
  end
  local lapsed = tonumber(ARGV[i + 12])
  read(ARGV[i + 13] + lapsed, ARGV[i + 14] + lapsed, tonumber(ARGV[i + 15]), tonumber(ARGV[i + 16]), tonumber(ARGV[i + 17]))
  -- Ignore a revocation from a caller that has not applied the last one.
  known.revoke = revoke and known.took and place >= known.revoked
  if known.revoke then known.revoked = known.to end
  if known.revoke or lapsed > 0 then known.lease = 0 end
  known.place, known.first, known.stale = place, known.ordinal, place < known.revoked
  return known
end

-- respace changes the rule's interval. Promised permits keep their instants. The next permit is due
-- an old interval earlier and a new one later. If it is then more than 5 s away, and the interval
-- has more than halved, all intervals until then become new ones. Otherwise the promises of a slow
-- pace, one to each caller, would stop the lane until then. A permit due sooner is not recounted:
-- calls at the fast pace would leave beside the promised ones, and the vendor refuses them.
local function respace(rule, unit, den)
  local at, sure, was, burst = rule.at, rule.sure, rule.one, rule.burst
  local share = unit * rule.den / (den * rule.unit)
  rule:set(unit, den, burst)
  local function moved(instant)
    if instant <= now then return instant end
    if share < 0.5 and instant > now + 5000000 then return now + math.floor((instant - now) * share) end
    return max(instant - was + rule.one, now)
  end
  rule.at, rule.frac = moved(at), 0
  if sure then rule.sure, rule.sureFrac = moved(sure), 0 end
end

-- pace returns the rule of the learned limit.
local function pace(field, text)
  local claim = ("b 1 1 %.0f %.0f 1 -"):format(known.unit, known.den)
  local claimed, from = (text or ""):match("^(b 1 1 %d+ %d+ 1 %-);()")
  local rule = claimed and rare().claimNumbers(claimed) and newRule(field, claimed, "")
  if not (rule and rule:read(text, from)) then
    rule = newRule(field, claim, "")
    rule.dirty = true
    if not lane.new then rule = rare().join(rule) end
  end
  if rule.claimed > now then rare().rewind(rule) end
  if now - rule.claimed > 500000 then rule.claimed, rule.dirty = now, true end
  local most = max(now + 2000000, lane.furthest, lane.paused) + rule.one + 1 -- of one interval after the last
  if rule.at > most then rule.at, rule.frac, rule.dirty = most, 0, true end
  if rule.unit ~= known.unit or rule.den ~= known.den then
    respace(rule, known.unit, known.den)
    rule.claim, rule.dirty = claim, true
  end
  return rule
end

-- room returns how many may depart before they go one by one.
local function room()
  if known.alone == 1 then return 0 end
  return known.ceiling > 0 and max(known.ceiling - known.reserve - known.ordinal, 0) or 2^53
end

-- hold returns the instant of the earliest departure. After a refusal, the next one waits until the
-- caller that decides has applied it.
local function hold()
  local applied = known.applied >= known.to
  if known.lease == 0 and room() == 0 and not applied then return max(known.hold, now + SOON) end
  if known.alone == 1 and known.ordinal > known.since then return max(known.hold, known.lease) end
  if room() > 0 or known.alone == 1 or applied and known.landed == known.ordinal then return known.hold end
  -- Callers take turns to ask, half as often after each time without a grant.
  local since, callers = now - (known.lease - 1000000), max(lane.this, lane.before)
  return max(known.hold, min(known.lease, now + max(SOON, (divide(since, 2))) * callers))
end

-- count counts n departures granted at an instant.
local function count(at, n)
  known.ordinal = known.ordinal + n
  if known.alone == 1 or known.ceiling > 0 then known.lease = max(at, now) + 1000000 end
end

-- counts returns the field "ordinal".
local function counts() return ("%.0f %.0f %.0f %.0f"):format(known.ordinal, known.applied, known.upto, known.landed) end

-- answer appends the entries that the caller has not applied, and the field "learned".
local function answer(list)
  local n, entries, snapshot = #list, "", ""
  if known.place < known.from then
    snapshot, entries = known.snapshot or held("snapshot"), known.entries
  elseif known.place < known.to then
    entries = known.entries:sub(known.place - known.from + 1)
  end
  list[n + 1], list[n + 2] = known.first, known.took and 1 or 0
  local numbers = {}
  for i, name in ipairs(FIELDS) do numbers[i] = ("%.0f"):format(known[name]) end
  known.text = table.concat(numbers, " ")
  list[n + 3], list[n + 4], list[n + 5], list[n + 6] = known.landed, snapshot, entries, known.text
end

return { learn = learn, pace = pace, room = room, hold = hold, count = count, counts = counts, answer = answer }

-- The call: it reads the clock and the state, applies the caller's claims, echo and reports,
-- grants a run, and writes the changes.
--
-- KEYS[1] is the lane's hash, the others are the lists of its sliding logs.
--
-- ARGV, integers in decimal, times in microseconds:
--   1  now: empty, for the clock of Redis; only tests fill it
--   2  tolerance
--   3  longest time from now to the date of a permit
--   4  horizon: longest time from the first permit of the run to its last; 0: the permits before one
--      that is expected later are left to others
--   5  most permits dated after now
--   6, 7, 8  generation, epoch and furthest, as the caller has seen them; 0: never
--   9  the last period in which the caller was counted; 0: never
--   10 "1": the caller wants the state of the limits
--   11 channel of the messages; empty: no message is published
--   12 the lane's name in messages
--   13 number of limits, then for each its field in the hash, its claim, the bounds of its
--      calendar windows, and its reserve
--   then the number of reports, then for each its kind and
--      p remaining       refused for a time
--      o                 an operator ends the current pause
--      r at epoch n...   permits of each limit that never left
--      s at epoch n...   the same, older, or of no use to others at their instant
--      x at e... a...    estimates charged at an instant, and actual costs
--      l n...            permits that left here while the store was lost
--      t heirs...        new limits, and the limit from which each takes over
--   then the number of groups in line, then for each its count, its age in line, and the costs
--      of one request in permits of each limit; negative count: urgent, may spend reserves;
--      negative age: expected that much later
--   then how many callers this one knows; 0: it never saw a count
--   then, if callers learn together, the place up to which this one has applied entries,
--      the latest ordinal it knows, how many departed without a permit, "1" to revoke the
--      permits of others, unit and den of the pace, hold, "1" for one by one, since which ordinal,
--      how long to keep all this, its message, its snapshot at its place, how
--      many departures that it was granted will not take place, how many have landed,
--      how many were refused, a reading: its departure, how many were left, how many had
--      landed then; "1" if readings bound nothing, the reserve, and how many the caller
--      knows to have landed
--
-- The reply is a flat array of integers:
--   now, generation, epoch, furthest, paused, alive, period, flags, first
--   the number of pairs, and the pairs of instant and count
--   when each limit has one permit; 0: now
--   if requested, the state of each limit: five numbers
--   if callers learn together: the ordinal before the first permit, 1 if the caller's message was
--   appended, how many landed, the snapshot if the caller's place is before the entries, the
--   entries since its place, and the field "learned"
--
-- The commands that a caller must be allowed: EVAL, EVALSHA, TIME, HMGET, HSET,
-- PEXPIRE, DEL and PUBLISH; with sliding logs LLEN, LRANGE, LTRIM, LSET and RPUSH.

-- stored returns the fields of the lane's hash, and whether they were invalid.
local function stored(fields)
  local values = redis.pcall("HMGET", KEYS[1], unpack(fields))
  if not wrongType(values) then return values end
  redis.call("DEL", KEYS[1])
  for i = 1, #fields do values[i] = false end
  return values, true
end

-- save writes the changes. Every key then lives 10 s longer than its content matters. seen is the
-- furthest instant as it was read.
local function save(seen)
  local till, changed = max(lane.paused, lane.furthest, now), lane.dirty or lane.furthest ~= seen
  for i = 1, #rules do
    till = max(till, rules[i]:expiry())
    changed = changed or rules[i].dirty
  end
  if lane.known then till, changed = max(till, now + lane.known.keep), true end
  if not changed then return end
  if till > lane.till or lane.new then
    lane.till, lane.dirty = min(till + 5000000, latest), true -- not with every call
  else
    till = false
  end
  local write, n = { KEYS[1], "at", ("%.0f"):format(lane.furthest), false, false }, 3
  for i = 1, #rules do
    local rule = rules[i]
    if rule.dirty then
      local text = rule:text()
      if rule.others or rule.bounds ~= "" then text = text .. rare().claimText(rule) end
      write[n + 1], write[n + 2], n = rule.field, text, n + 2
    end
  end
  if lane.dirty then write[n + 1], write[n + 2], n = "lane", rare().laneText(), n + 2 end
  if lane.known then
    write[n + 1], write[n + 2], n = "learned", lane.known.text, n + 2
    write[n + 1], write[n + 2], n = "ordinal", learning().counts(), n + 2
    if lane.known.writes then write[n + 1], write[n + 2], n = "entries", lane.known.entries, n + 2 end
    if lane.known.snapshot then write[n + 1], write[n + 2], n = "snapshot", lane.known.snapshot, n + 2 end
  end
  redis.call("HSET", unpack(write, 1, n))
  if till then redis.call("PEXPIRE", KEYS[1], ("%.0f"):format((divide(lane.till - now, 1000)) + 10000)) end
  for i = 1, #rules do
    local rule = rules[i]
    if rule.key and (rule.dirty or till) then
      rule:flush()
      redis.call("PEXPIRE", rule.key, ("%.0f"):format((divide(lane.till - now, 1000)) + 10000))
    end
  end
end

-- revoke voids the permits in replicas' hands, so that they call at once and receive the caller's
-- message. No grant is dated later than now.
local function revoke()
  rare()
  for i = 1, #rules do
    if rules[i].burst then rules[i]:unpromise() end
  end
  lane.epoch, lane.furthest, lane.dirty = lane.epoch + 1, min(lane.furthest, now), true
  if lane.paused <= now then lane.message = ("%s %.0f 0"):format(ARGV[12], lane.epoch) end
end

local function decide()
  local k, most = tonumber(ARGV[13]), 0
  local arg = 14 + 4 * k -- the reports
  local fields, reports, tune = { "lane", "at" }, nil, nil
  reserves = {}
  for i = 1, k do
    fields[i + 2], reserves[i] = ARGV[10 + 4 * i], tonumber(ARGV[13 + 4 * i])
    most = max(most, reserves[i])
  end
  if most == 0 then reserves = {} end
  if ARGV[arg] == "0" then
    arg = arg + 1
  else
    reports, tune, arg = rare().readReports(arg, k, fields)
  end
  local tail = arg + 1 + tonumber(ARGV[arg]) * (2 + k) -- how many callers it knows
  if ARGV[tail + 1] then fields[#fields + 1], fields[#fields + 2] = "learned", "ordinal" end
  local values, healed = stored(fields)
  lane = values[1] and readLane(values[1], values[2])
  if not lane then
    lane = rare().newLane()
    lane.healed = values[1] and true
  end
  lane.healed = lane.healed or healed or distrusted
  local gen, epoch, furthest = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
  local alive = countCaller(gen, tonumber(ARGV[9]))
  local seen = lane.furthest
  lane.known = ARGV[tail + 1] and learning().learn(tail + 1, values[#fields - 1], values[#fields]) or false

  rules = {}
  local heirs = tune and rare().heirsOf(fields, values)
  for i = 1, k do
    rules[i] = enforce(fields[i + 2], values[i + 2], ARGV[11 + 4 * i], ARGV[12 + 4 * i], heirs and heirs["=" .. tune.heirs[i]])
  end
  if gen > 0 and (gen ~= lane.gen or epoch >= lane.epoch and (furthest > seen or epoch > lane.epoch)) then
    alive = rare().honour(gen, epoch, furthest, alive, tonumber(ARGV[tail]))
  end
  if reports then rare().takeReports(reports) end
  if lane.known then
    if lane.known.revoke then revoke() end
    lane.hold = learning().hold()
  end

  local list = {
    now, lane.gen, lane.epoch, 0, lane.paused > now and lane.paused or 0, alive, lane.period, 0, 0, 0,
  }
  -- What a caller asks for at the pace that was revoked would hold all until it falls due.
  if lane.known and lane.known.stale then
    list[9] = now
  elseif ARGV[arg] ~= "0" then
    list[10], list[9] = grant(arg, list)
  end
  list[4] = lane.furthest
  for i = 1, k do
    local due = rules[i]:earliest(now, now, 1, 0)
    list[10 + 2 * list[10] + i] = due > now and due or 0
  end
  if ARGV[10] == "1" then rare().answerState(list) end
  if lane.known then learning().answer(list) end
  save(seen)
  -- A replica without the message learns by its next call.
  if lane.message and ARGV[11] ~= "" then redis.pcall("PUBLISH", ARGV[11], lane.message) end
  list[8] = (lane.lost and 1 or 0) + (lane.differs and 2 or 0) + (lane.healed and 4 or 0)
  return list
end

if ARGV[1] == "" then
  local time = redis.call("TIME")
  now = time[1] * 1000000 + time[2]
else
  now = tonumber(ARGV[1])
end
latest = now + 2^48
tolerance = tonumber(ARGV[2])

local done, reply = pcall(decide)
while not done do
  -- A list is invalid: decide again without it.
  local key = type(reply) == "table" and reply.weir
  if not key or distrusted and distrusted[key] then
    -- An error of the server is text here, and is passed on with its first word.
    return redis.error_reply(tostring(type(reply) == "table" and reply.err or reply))
  end
  distrusted = distrusted or {}
  distrusted[key] = true
  done, reply = pcall(decide)
end
return reply

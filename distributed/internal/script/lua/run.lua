-- The run: permits for the requests in line at the caller, each at the first instant
-- at which all limits allow it.

-- allowed returns when costs asked for at an instant are no longer delayed by a limit or a pause,
-- for a caller in line since arrived. It is the instant at which the last of them ends.
local function allowed(at, arrived, costs)
  while true do
    local due = max(lane.paused, lane.hold)
    for i = 1, #rules do
      local n = costs[i]
      if n > 0 then
        due = max(due, rules[i]:earliest(at, arrived, n, leaves[i] or 0))
        if at < lane.tuned then due = max(due, lane.tuned) end -- the rules know nothing earlier
      end
    end
    -- A returned permit that one limit counted on may be lost by then.
    if due <= at or due - tolerance <= arrived then return due end
    arrived = due - tolerance
  end
end

-- firstFor returns the first instant from now on at which costs are allowed, since when they
-- are allowed then, and the arrival to spend with. If that instant is beyond bound, it
-- returns only a lower bound for it. A caller expected at since goes no sooner.
local function firstFor(since, bound, costs)
  local at = max(now, since)
  for _ = 1, 100 do
    local arrived = at -- no caller has waited for a promised instant
    if at == now or at > bound then arrived = max(min(since, now), at - tolerance) end
    local due = allowed(at, arrived, costs)
    if due <= at and at > bound then return at end
    if due <= at then return at, max(due, arrived), arrived end
    at = max(at, due)
    if at > bound and not next(leaves) then return at end
  end
  return at
end

-- spend charges as many requests of one cost as count at one instant with the first, up to most,
-- for a departure at the instant at. It returns that instant, and their number.
local function spend(at, arrived, charged, costs, most)
  local k = #rules
  for i = 1, k do
    local n = costs[i]
    if most > 1 and n > 0 then most = min(most, rules[i]:room(at, arrived, charged, n, most, leaves[i] or 0)) end
  end
  local counts = charged
  for i = 1, k do
    local n = costs[i]
    if n > 0 then counts = min(counts, rules[i]:spend(at, arrived, charged, n, most)) end
  end
  return counts, most
end

-- estimates reports whether costs may be estimates, or belong to a bucket that takes more than a
-- second to earn a permit. Such a charge may come back late.
local function estimates(costs)
  if max(unpack(costs)) > 1 then return true end
  for i = 1, #rules do
    if costs[i] > 0 and rules[i].burst and rules[i].one > 1000000 then return true end
  end
  return false
end

-- plenty reports whether half of each burst, at least, is at hand at an instant to come.
-- Only then are permits granted ahead of callers.
local function plenty(at, costs)
  for i = 1, #rules do
    local rule = rules[i]
    if costs[i] > 0 and rule.burst and rule:earliest(at, at, max(costs[i], (rule.burst + rule.burst % 2) / 2), 0) > at then
      return false
    end
  end
  return true
end

-- spares reports whether an urgent request could still go now if costs were promised for a later
-- instant to a request that must leave permits. A bucket without a reserve prevents that only if it
-- has permits at hand: until a promised instant no other caller may spend those.
local function spares(at, costs)
  for i = 1, #rules do
    local rule, n, leave = rules[i], costs[i], leaves[i] or 0
    if leave == 0 and next(leaves) and rule.burst then
      local hand = atHand(rule, now)
      leave = hand > 0 and max(hand - n, 1) or 0
    end
    if n > 0 and leave > 0 and not rule:spares(at, n, leave) then return false end
  end
  return true
end

-- grant appends pairs of an instant and a count to a list, for the groups that begin at an
-- argument. It returns the number of pairs, and a lower bound for the first request not granted.
local function grant(arg, list)
  local k, given, size = #rules, 0, #list
  local bound, horizon, ahead, started = now + min(tonumber(ARGV[3]), 2^47), tonumber(ARGV[4]), tonumber(ARGV[5]), false
  for _ = 1, tonumber(ARGV[arg]) do
    local count, since, costs = math.abs(tonumber(ARGV[arg + 1])), now - tonumber(ARGV[arg + 2]), { tonumber(ARGV[arg + 3]) }
    for i = 2, k do costs[i] = tonumber(ARGV[arg + 2 + i]) end
    leaves = tonumber(ARGV[arg + 1]) < 0 and {} or reserves
    arg = arg + 2 + k
    if lane.settled == 0 and (horizon == 0 and since > now or estimates(costs)) then rare().remember() end
    local joins = false -- the previous pair
    while count > 0 do
      skips = since > now and horizon == 0
      if since > now and not skips and not plenty(since, costs) then return given, since end
      local at, charged, arrived = firstFor(since, bound, costs)
      local room = lane.known and learning().room() or 2^53
      if not charged or given == 128 or started and at - started > horizon
        or at > now and (min(room, ahead) < 1 or not spares(at, costs)) then
        return given, max(at, 1)
      end
      started = started or at
      local most = next(leaves) and 1 or ahead -- of one later instant
      local counts, times = spend(at, arrived, charged, costs, max(min(count, room, at > now and most or count), 1))
      if lane.known then
        learning().count(at, times)
        lane.hold = learning().hold()
      end
      count = count - times
      if at > now then ahead = ahead - times end
      if at > lane.furthest then lane.furthest = at end
      if joins and list[size - 1] == counts then
        list[size] = list[size] + times
      else
        list[size + 1], list[size + 2] = counts, times
        size, given, joins = size + 2, given + 1, true
      end
    end
  end
  return given, 0
end

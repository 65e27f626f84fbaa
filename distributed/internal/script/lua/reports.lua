-- Reports: events at the caller since its last call, in order.

-- readReports returns the reports that begin at an argument, the tune among them,
-- and the place after them. It appends the fields that it takes to a list.
local function readReports(i, k, fields)
  local parts = {
    p = { "span" }, o = {}, r = { "at", "epoch", "costs" }, s = { "at", "epoch", "costs" },
    x = { "at", "costs", "actual" }, l = { "costs" }, t = { "heirs" },
  }
  local lists = { costs = true, actual = true, heirs = true } -- an element for each limit
  local reports, tune = {}, nil
  for n = 1, tonumber(ARGV[i]) do
    local report = { kind = ARGV[i + 1] }
    i = i + 1
    for _, part in ipairs(parts[report.kind]) do
      local list = {}
      for j = 1, lists[part] and k or 1 do list[j] = part == "heirs" and ARGV[i + j] or tonumber(ARGV[i + j]) end
      report[part], i = lists[part] and list or list[1], i + #list
    end
    if report.heirs then
      tune = report
      for _, heir in ipairs(report.heirs) do
        if heir ~= "" then fields[#fields + 1] = "=" .. heir end
      end
    end
    reports[n] = report
  end
  return reports, tune, i + 1
end

-- pause delays all callers until an instant. Permits promised for later are void, and a message
-- says so to the replicas that hold them.
local function pause(till)
  till = min(till, now + 2^47)
  if till <= lane.paused then return end
  for _, rule in ipairs(rules) do
    if rule.burst then
      if lane.paused <= now then rule:resume(0) end -- that pause is over
      rule:pause(till)
    end
  end
  lane.paused, lane.epoch, lane.dirty = till, lane.epoch + 1, true
  lane.message = ("%s %.0f %.0f"):format(ARGV[12], lane.epoch, till - now)
end

-- resume ends the current pause, as if it were due to end now. A message says so to the
-- replicas that wait for its end, perhaps of a pause that was lost here.
local function resume()
  local by = lane.paused - now
  for _, rule in ipairs(rules) do
    if by > 0 and rule.burst then
      rule:resume(by)
      rule:pause(now)
    end
  end
  lane.paused, lane.epoch, lane.dirty = min(lane.paused, now), lane.epoch + 1, true
  lane.message = ("%s %.0f 0"):format(ARGV[12], lane.epoch)
end

-- void reports whether permits granted at an instant can no longer be taken back: other
-- rules granted them, or a lane that was lost.
local function void(at) return at <= lane.tuned or tonumber(ARGV[6]) ~= lane.gen end

-- refund takes back permits that never left. In buckets those from before a pause are void. A later
-- instant must have been promised.
local function refund(report)
  local at = report.at
  if void(at) or report.epoch == lane.epoch and at > max(now, lane.furthest) then return end
  local current = report.epoch == lane.epoch and at >= lane.paused
  for i, rule in ipairs(rules) do
    local n = report.costs[i]
    if n > 0 and (not rule.burst or current and at >= now - tolerance) then
      rule:refund(at, n, report.kind == "s")
    elseif n > 0 and current and report.kind == "s" then
      rule:relieve(at, n)
    end
  end
end

-- remember makes buckets remember their charges: from the first that may be an estimate or is
-- dated by another limiter, or else from the first that was one. Earlier grants, up to the furthest instant, are unknown.
local function remember()
  for _, rule in ipairs(rules) do
    if rule.burst then rule.slack, rule.dirty = newSlack(lane.furthest), true end
  end
  lane.settled, lane.dirty = 1, true
end

-- settle corrects estimated costs. Overspend is always charged, now.
local function settle(report)
  if lane.settled == 0 then remember() end
  local at = report.at
  for i, rule in ipairs(rules) do
    local more = max(report.actual[i], 0) - max(report.costs[i], 0)
    if more > 0 then
      rule:charge(more)
    elseif more < 0 and at >= lane.paused and at <= max(now, lane.furthest) and not void(at) then
      rule:relieve(at, -more)
    end
  end
end

local function departed(report)
  for i, rule in ipairs(rules) do
    if report.costs[i] > 0 then rule:departed(report.costs[i]) end
  end
end

local function takeReports(reports)
  local take = {
    p = function(report) pause(now + report.span) end, o = resume, r = refund, s = refund,
    x = settle, l = departed, t = function() end,
  }
  for _, report in ipairs(reports) do take[report.kind](report) end
end

-- answerState appends the state of the limits to the reply.
local function answerState(list)
  local n = #list
  for _, rule in ipairs(rules) do
    list[n + 1], list[n + 2], list[n + 3], list[n + 4], list[n + 5] = rule:state()
    n = n + 5
  end
end

return {
  newLane = newLane, readRare = readRare, laneText = laneText, readSections = readSections,
  newSlack = newSlack, remembered = remembered, firstReturned = firstReturned,
  earliestReturned = earliestReturned, takeReturned = takeReturned,
  claimNumbers = claimNumbers, readClaim = readClaim, claimText = claimText, contest = contest,
  join = join, heirsOf = heirsOf,
  honour = honour, rewind = rewind, readReports = readReports, takeReports = takeReports, remember = remember, answerState = answerState,
}

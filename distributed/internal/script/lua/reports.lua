-- Reports: events at the caller since its last call, in order.

-- readReports returns the reports that begin at an argument, the tune among them,
-- and the place after them. It appends the fields that it takes to a list.
local function readReports(i, k, fields)
  local reports, tune = {}, nil
  local function costs()
    local list = {}
    for j = 1, k do list[j] = tonumber(ARGV[i + j - 1]) end
    i = i + k
    return list
  end
  local function one()
    i = i + 1
    return ARGV[i - 1]
  end
  for n = 1, tonumber(one()) do
    local report = { kind = one() }
    local kind = report.kind
    if kind == "p" then
      report.span = tonumber(one())
    elseif kind == "r" or kind == "s" then
      report.at, report.epoch = tonumber(one()), tonumber(one())
      report.costs = costs()
    elseif kind == "x" then
      report.at = tonumber(one())
      report.costs, report.actual = costs(), costs()
    elseif kind == "l" then
      report.costs = costs()
    elseif kind == "t" then
      tune = report
      report.heirs = {}
      for j = 1, k do
        report.heirs[j] = one()
        if report.heirs[j] ~= "" then fields[#fields + 1] = "=" .. report.heirs[j] end
      end
    end
    reports[n] = report
  end
  return reports, tune, i
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
  if ARGV[11] ~= "" then
    lane.message = ("%s %.0f %.0f"):format(ARGV[12], lane.epoch, till - now)
  end
end

-- resume ends the current pause, as if it were due to end now. A message says so to the
-- replicas that wait for its end.
local function resume()
  local by = lane.paused - now
  if by <= 0 then return end
  for _, rule in ipairs(rules) do
    if rule.burst then
      rule:resume(by)
      rule:pause(now)
    end
  end
  lane.paused, lane.epoch, lane.dirty = now, lane.epoch + 1, true
  if ARGV[11] ~= "" then lane.message = ("%s %.0f 0"):format(ARGV[12], lane.epoch) end
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
      rule:refund(at, n)
    elseif n > 0 and current and report.kind == "s" then
      rule:relieve(at, n)
    end
  end
end

-- remember makes buckets remember their charges: from the first that may be an estimate, or else
-- from the first that was one. Earlier grants, up to the furthest instant, are unknown.
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
  for _, report in ipairs(reports) do
    local kind = report.kind
    if kind == "p" then
      pause(now + report.span)
    elseif kind == "o" then
      resume()
    elseif kind == "r" or kind == "s" then
      refund(report)
    elseif kind == "x" then
      settle(report)
    elseif kind == "l" then
      departed(report)
    end
  end
end

-- answerState appends the state of the limits to the reply.
local function answerState(list)
  local n = #list
  for _, rule in ipairs(rules) do
    list[n + 1] = rule:whole() and 1 or 0
    list[n + 2], list[n + 3], list[n + 4], list[n + 5], list[n + 6] = rule:state()
    n = n + 6
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

-- The echo: each caller sends back what it has seen of the state, and a lost state is restored from
-- that.

-- rewindLane moves the lane's instants back by as much as the clock. The rest of a pause
-- stays as long.
local function rewindLane(by)
  lane.paused, lane.furthest = max(lane.paused - by, 0), max(lane.furthest - by, 0)
  lane.tuned = min(lane.tuned, now)
  lane.back, lane.dirty = true, true
end

-- rewind moves a rule back if the clock moved back since the rule was claimed, half a second before
-- the last call or later. An instant read out of order can only be refused. But a step, such as
-- from the clock of one node to that of another, would stop the lane for as long as the step. So a
-- rule waits for a second at most, or for its time per permits if that is shorter. A claim later
-- than any write to the lane is invalid.
local function rewind(rule)
  local by = rule.claimed - now
  local sense = rule.claimed < lane.written
  rule.claimed, rule.dirty = now, true
  if by <= min(rule.per, 1000000) or not sense then return end
  rule:rewind(by)
  if not lane.back then rewindLane(by) end
end

-- honour restores the lane from the furthest instant that the caller has seen granted, and
-- from the number of callers that it knew. It returns how many callers there are.
local function honour(gen, epoch, furthest, alive, knew)
  if lane.new then
    lane.before = min(knew, CALLERS)
    alive = max(alive, lane.before)
  end
  -- Also in a new lane: a message of an earlier epoch is ignored.
  if (gen == lane.gen or lane.new) and epoch > lane.epoch and epoch <= 2^50 then lane.epoch, lane.dirty = epoch, true end
  for _, rule in ipairs(rules) do
    if rule.burst and rule:restore(furthest, alive, gen == lane.gen) then lane.lost = true end
  end
  -- A caller cannot have been granted more.
  furthest = min(furthest, now + 2000000)
  if furthest > lane.furthest then lane.furthest, lane.dirty = furthest, true end
  return alive
end

-- The echo: what a caller has seen of a state that was lost is restored from it.

-- rewindLane has the lane follow a clock that moved back by so much. What is left of
-- a pause stays.
local function rewindLane(by)
  lane.paused, lane.furthest = max(lane.paused - by, 0), max(lane.furthest - by, 0)
  lane.tuned = min(lane.tuned, now)
  lane.back, lane.dirty = true, true
end

-- rewind takes in that the clock moved back since a rule was claimed, half a second
-- before the last call or later. An instant read out of order can only be refused.
-- But a step, as that of another node's clock may be, would stop all for as long: so no
-- rule stands for longer than a second, or its time per permits if that is shorter. A
-- claim that is later than the lane was ever written makes no sense.
local function rewind(rule)
  local by = rule.claimed - now
  local sense = rule.claimed < lane.written
  rule.claimed, rule.dirty = now, true
  if by <= min(rule.per, 1000000) or not sense then return end
  rule:rewind(by)
  if not lane.back then rewindLane(by) end
end

-- honour takes in the furthest instant that the caller has seen granted, and how
-- many it knew. It returns how many callers there are.
local function honour(gen, epoch, furthest, alive, knew)
  if lane.new then
    lane.before = min(knew, CALLERS)
    alive = max(alive, lane.before)
  end
  -- Also in a lane that is new: a message of an earlier epoch is ignored.
  if (gen == lane.gen or lane.new) and epoch > lane.epoch and epoch <= 2^50 then lane.epoch, lane.dirty = epoch, true end
  for _, rule in ipairs(rules) do
    if rule.burst and rule:restore(furthest, alive, gen == lane.gen) then lane.lost = true end
  end
  -- Not as far as a caller says: what it cannot have been granted.
  furthest = min(furthest, now + 2000000)
  if furthest > lane.furthest then lane.furthest, lane.dirty = furthest, true end
  return alive
end

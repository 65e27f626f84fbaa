-- Changes: new limits replace old ones.

-- replace puts a new rule in the place of an old one. Permits that were used stay used.
local function replace(new, old)
  new.claimed, new.others = old.claimed, old.others
  new:adopt(old)
  if lane.settled > 0 and new.burst then new.slack = newSlack(0) end
  if new.burst and lane.paused > now then new:pause(lane.paused) end
  new.dirty = true
  lane.tuned, lane.dirty = max(lane.tuned, now), true
  return new
end

-- join adds a new limit to an existing lane. Its rule has not counted earlier grants, unless it
-- takes over from another.
local function join(rule, heir)
  local old = heir and heir()
  if old then
    rule = replace(rule, old)
    rule.claimed, rule.others = now, false
  elseif rule.burst and lane.paused > now then
    rule:pause(lane.paused)
  end
  lane.tuned, lane.dirty = max(lane.tuned, now), true
  return rule
end

-- heirsOf returns, by the field, how to get the rule from which a new one takes over.
local function heirsOf(fields, values)
  local heirs = {}
  for i = 3, #fields do
    local rule
    heirs[fields[i]] = function()
      if not rule and values[i] then rule = readRule(fields[i], values[i], "", "") end
      return rule
    end
  end
  return heirs
end


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
  if heir then
    rule = replace(rule, heir)
    rule.claimed, rule.others = now, false
  elseif rule.burst and lane.paused > now then
    rule:pause(lane.paused)
  end
  lane.tuned, lane.dirty = max(lane.tuned, now), true
  return rule
end

-- heirsOf returns the rules from which new ones may take over, by the field.
local function heirsOf(fields, values)
  local heirs = {}
  for i = 3, #fields do heirs[fields[i]] = values[i] and readRule(fields[i], values[i], "", "") end
  return heirs
end

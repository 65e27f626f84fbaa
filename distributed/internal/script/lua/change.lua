-- Changes: other limits in the place of the old.

-- replace puts a new rule in the place of an old one; what was used stays used.
local function replace(new, old)
  new.claimed, new.others = old.claimed, old.others
  new:adopt(old)
  if lane.settled > 0 and new.burst then new.slack = newSlack(0) end
  if new.burst and lane.paused > now then new:pause(lane.paused) end
  new.dirty = true
  lane.tuned, lane.dirty = max(lane.tuned, now), true
  return new
end

-- join takes in a limit that is new in a lane that is not. What was granted so
-- far it has not counted, unless it takes over from another.
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

-- heirsOf returns, by the field, how to get a rule that others take over from.
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

-- takeOver makes the rules of a call that changes limits. A rule that is new takes
-- over from its heir. A forced tune makes all rules new, even if others claim other
-- limits; then the fields of the rules they replace are returned.
local function takeOver(tune, fields, values)
  local heirs = heirsOf(fields, values)
  for i, name in ipairs(tune.heirs) do
    local field, claim, bounds, heir = fields[i + 2], ARGV[12 + 3 * i], ARGV[13 + 3 * i], heirs["=" .. name]
    if tune.force then
      lane.forced = true
      rules[i] = join(newRule(field, claim, bounds), heir)
      rules[i].dirty = true
    else
      rules[i] = enforce(field, values[i + 2], claim, bounds, heir)
    end
  end
  if not tune.force then return nil end
  for _, rule in ipairs(rules) do heirs[rule.field] = nil end
  return heirs
end

local function forget(fields)
  for field in pairs(fields) do
    redis.call("HDEL", KEYS[1], field)
    redis.call("DEL", KEYS[1] .. ":log:" .. field:sub(2))
  end
end

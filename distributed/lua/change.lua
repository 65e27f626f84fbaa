-- Changes: other limits, another share of the rate, in the place of the old.

-- slowNew has a rule that was just made keep to the share of its rate.
local function slowNew(rule)
  local share = rule.share
  if rule.burst or share == 1000 then return end
  rule.share = 1000
  rule:slow(share)
end

-- replace puts a new rule in the place of an old one; what was used stays used.
local function replace(new, old)
  new.claimed, new.others = old.claimed, old.others
  new:adopt(old)
  slowNew(new)
  if lane.settled > 0 and new.burst then new.slack = newSlack(0) end
  if lane.paused > now then new:pause(lane.paused) end
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
  else
    slowNew(rule)
    if lane.paused > now then rule:pause(lane.paused) end
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
      rules[i] = join(newRule(field, claim, bounds, lane.share), heir)
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

-- cutPace returns the interval at a share of the rate: rounded up by less than one
-- part in a million million if the exact one leaves the range. Only absurd
-- limits leave it then; they keep the whole rate.
local function cutPace(unit, den, share)
  local common, rest = 1000, share
  while rest > 0 do
    local next = common % rest
    common, rest = rest, next
  end
  local longer, shorter = unit * (1000 / common), den * (share / common)
  if longer < 2^51 and shorter < 2^51 then return longer, shorter end
  longer = (muldiv(unit, 1000, share)) + 1
  if longer < 2^51 then return longer, den end
  return unit, den
end

-- reshared returns the rule at the share of the rate in force.
local function reshared(rule)
  if not rule.burst then
    rule:slow(lane.share)
    return rule
  end
  return replace(newRule(rule.field, rule.claim, rule.bounds, lane.share), rule)
end

local function retime(share)
  lane.share, lane.shareAt, lane.dirty = share, now, true
  for i, rule in ipairs(rules) do
    if rule.slowed and rule.share ~= share then rules[i] = reshared(rule) end
  end
end

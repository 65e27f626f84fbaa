-- Claims. A caller claims each of its limits, as "kind permits per unit den burst align".
-- Callers may differ, as in a rolling deploy: contest.lua says which claim is then in force.

local buckets -- the methods of both kinds
local makers -- functions that make the methods of the other kinds
local kinds = {} -- the methods of the other kinds

local function methodsOf(kind)
  if kind == "b" or kind == "l" then
    buckets = buckets or makeBuckets()
    return buckets
  end
  makers = makers or makeWindows()
  kinds[kind] = kinds[kind] or makers[kind]()
  return kinds[kind]
end

-- newRule returns the rule of a claim, as new.
local function newRule(field, claim, bounds)
  local kind, permits, per, unit, den, burst, align = claim:match("^(%l) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)$")
  per = tonumber(per)
  local rule = setmetatable({
    field = field, claim = claim, per = per, claimed = now, bounds = bounds,
    -- Fields of buckets. A missing one is false: nil would be looked up in the methods.
    unit = 0, den = 0, one = 0, rest = 0, burst = false, leaky = kind == "l", spare = 0, spareRest = 0,
    at = 0, frac = 0, sure = false, sureFrac = 0, most = 0, returned = false, slack = false, held = 0,
    others = false, dirty = false, key = false,
  }, methodsOf(kind))
  unit, den = tonumber(unit), tonumber(den)
  if kind == "b" or kind == "l" then
    rule:set(unit, den, tonumber(burst))
  else
    rule.kind, rule.unit, rule.den = kind, unit, den
    rule:set(tonumber(permits), per, align)
  end
  return rule
end

-- readRule returns the rule of a field; nothing if it is invalid. A field equal to the caller's
-- claim and bounds need not be parsed.
local function readRule(field, text, claim, bounds)
  local rule, from
  if text:find(claim, 1, true) == 1 and text:byte(#claim + 1) == 59 then
    rule, from = newRule(field, claim, bounds), #claim + 2
  else
    local held = text:match("^([^;]*);")
    if not held or not rare().claimNumbers(held) then return nil end
    rule, from = newRule(field, held, ""), #held + 2
  end
  -- A key lives until everything in it is as good as new. A longer debt is corrupt.
  if not rule:read(text, from) or (rule.burst and rule.at or rule:expiry()) > lane.till and not lane.new then return nil end
  -- A bucket that was not overspent is whole one burst after the last departure.
  if rule.burst and lane.settled == 0 and lane.tuned == 0
    and rule.at > max(now + 2000000, lane.reach) + rule.spare + rule.one + 2 then
    return nil
  end
  if lane.settled > 0 and rule.burst and not rule.slack then
    rule.slack = rare().newSlack(ceil(rule.at, rule.frac))
  end
  return rule
end

local LEARNED = "~" -- the field of the learned limit, which no caller claims

-- enforce returns the rule in force of a limit that the caller claims. text is its field in the
-- lane's hash. Without text the limit is new, and takes over from the rule heir, if any.
local function enforce(field, text, claim, bounds, heir)
  if field == LEARNED then return learning().pace(field, text) end
  local rule = text and readRule(field, text, claim, bounds)
  if not rule then
    if text then lane.healed = true end
    rule = newRule(field, claim, bounds)
    rule.dirty = true
    if not lane.new then return rare().join(rule, heir) end
    return rule
  end
  if rule.claimed > now then rare().rewind(rule) end
  if rule.claim ~= claim then return rare().contest(rule, claim, bounds) end
  if now - rule.claimed > 500000 or rule.claimed > now then -- contest.lua relies on it
    rule.claimed, rule.dirty = now, true
  end
  return rule
end

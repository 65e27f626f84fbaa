-- Claims that differ. The strictest claim of the last seconds is in force. The others are in
-- sections "c claimed bounds claim" of the rule.

local OTHERS = 3 -- kept beside the one in force

-- live reports whether a claim is current: for 5 s, plus the half second by which its date may lag.
-- A claim dated by a clock that moved back is not.
local function live(claimed)
  local age = now - claimed
  return age <= 5500000 and age >= -5500000
end

-- readClaim reads a section of another claim.
local function readClaim(rule, body)
  local claimed, bounds, claim = body:match("^(%d+) (%S+) (.+)$")
  claimed = tonumber(claimed)
  if not claimed or claimed > latest then return false end
  rule.others = rule.others or {}
  rule.others[#rule.others + 1] = { claimed = claimed, bounds = bounds, claim = claim }
  return true
end

-- claimText returns the sections of the other claims and of a calendar's bounds.
local function claimText(rule)
  local text = ""
  if rule.bounds ~= "" then text = ";a " .. rule.bounds end
  for _, other in ipairs(rule.others or {}) do
    if live(other.claimed) then
      text = ("%s;c %.0f %s %s"):format(text, other.claimed, other.bounds, other.claim)
    end
  end
  return text
end

-- claimNumbers returns permits, unit, den and burst of a claim; nothing if it is invalid.
local function claimNumbers(claim)
  local permits, per, unit, den, burst = claim:match("^[bfgls] (%d+) (%d+) (%d+) (%d+) (%d+) %S+$")
  permits, per, unit, den, burst = tonumber(permits), tonumber(per), tonumber(unit), tonumber(den), tonumber(burst)
  if permits and min(permits, per, unit, den, burst) > 0 and max(permits, per, unit, den, burst) < 2^51 then
    return permits, unit, den, burst
  end
end

-- stricter reports whether the claim a grants less than b: the lower rate, then
-- the fewer permits at once.
local function stricter(a, b)
  local permitsA, unitA, denA, burstA = claimNumbers(a)
  local permitsB, unitB, denB, burstB = claimNumbers(b)
  local wholeA, restA = divide(unitA, denA)
  local wholeB, restB = divide(unitB, denB)
  if wholeA ~= wholeB then return wholeA > wholeB end
  local scaled, more = muldiv(restA, denB, denA)
  if scaled ~= restB then return scaled > restB end
  if more > 0 then return true end
  if burstA ~= burstB then return burstA < burstB end
  if permitsA ~= permitsB then return permitsA < permitsB end
  return a < b
end

-- note adds the caller's claim to the others.
local function note(rule, claim, bounds)
  if bounds == "" then bounds = "-" end
  rule.others = rule.others or {}
  for _, other in ipairs(rule.others) do
    if other.claim == claim then
      if now - other.claimed > 500000 or other.claimed > now then other.claimed, rule.dirty = now, true end
      if other.bounds ~= bounds then other.bounds, rule.dirty = bounds, true end
      return
    end
  end
  rule.dirty = true
  rule.others[#rule.others + 1] = { claimed = now, bounds = bounds, claim = claim }
end

-- contest returns the rule in force if the caller's claim is not the rule's.
local function contest(rule, claim, bounds)
  note(rule, claim, bounds)
  local claims = {}
  for _, other in ipairs(rule.others) do
    if live(other.claimed) and claimNumbers(other.claim) then claims[#claims + 1] = other end
  end
  local held = { claimed = rule.claimed, bounds = rule.bounds ~= "" and rule.bounds or "-", claim = rule.claim }
  if live(held.claimed) then claims[#claims + 1] = held end
  table.sort(claims, function(a, b) return stricter(a.claim, b.claim) end)
  local first = table.remove(claims, 1)
  while #claims > OTHERS do table.remove(claims) end
  if first ~= held then
    local was = rule.burst and rule.at
    rule = replace(newRule(rule.field, first.claim, first.bounds ~= "-" and first.bounds or ""), rule)
    rule.claimed, rule.others = first.claimed, claims
    -- A claim of a wrong rate would leave years of debt.
    if was and rule.burst then rule.at = min(rule.at, max(was, now + 2 * (rule.spare + rule.one + 1))) end
  end
  lane.differs = lane.differs or rule.claim ~= claim
  return rule
end

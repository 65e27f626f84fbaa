-- Counting: what the fixed window, the sliding log and the sliding window share.
-- They count permits in spans of time, and a spacing may hold their departures.

local function setCount(c, permits, per)
  c.per, c.permits, c.spacing = per, permits, false
end

-- readCount reads when c was claimed, and the sections.
local function readCount(c, claimed, tail)
  c.claimed = tonumber(claimed)
  return c.claimed <= latest and (tail == "" or rare().readSections(c, tail))
end

-- textCount appends the sections to a text.
local function textCount(c, text)
  if c.spacing then return text .. spacingText(c.spacing) end
  return text
end

-- newCounting returns the methods that the three share. Each has two more besides those of
-- bucket.lua: count(at, n), which counts n permits at an instant, and usedAt(at), which returns
-- how many count there.
local function newCounting()
  local rule = {}
  rule.__index = rule

  function rule.section(c, tag, list)
    if tag == "w" then c.spacing = readSpacing(list) end
    return c.spacing ~= nil
  end

  -- spend counts at the departure itself.
  function rule.spend(c, at, _, charged, n, times)
    c:count(at, n * times)
    spacingSpend(c.spacing, at, charged, n * times)
    c.dirty = true
    return charged
  end

  function rule.charge(c, n)
    c:count(now, n)
    c.dirty = true
  end

  rule.departed = rule.charge

  function rule.refund(c, at, n) c:relieve(at, n, at) end

  function rule.used(c) return c:usedAt(now) end

  function rule.left(c, at)
    local hand = c.permits - c:usedAt(at)
    if spacingOver(c.spacing, at) then return hand end
    return min(hand, max(atHand(c.spacing, at), 0)) -- the others depart later
  end

  function rule.spares(c, _, n) return c:earliest(now, now, n + 1, 0) <= now end

  function rule.next(c, at) return c:earliest(at, 2^53, 1, 0) end

  function rule.state(c) return c:left(now), c:used(), c.permits, 0, 0 end

  return rule
end

-- fading returns how long before the end of a window n permits weigh no more than room, in
-- whole permits, if their weight falls evenly to zero until then.
local function fading(per, n, room)
  local left, rest = muldiv(room + 1, per, n)
  if rest == 0 then left = left - 1 end
  return left
end

-- aligned returns the multiple of per up to an instant.
local function aligned(at, per) return at - fmod(at, per) end

-- Counting: what the fixed window, the sliding log and the sliding window share.
-- They count permits in spans of time, and a spacing may hold their departures.

local function setCount(c, permits, per)
  c.per, c.permits, c.spacing = per, permits, false
end

-- readCount takes in when c was claimed, and the sections.
local function readCount(c, claimed, tail)
  c.claimed = tonumber(claimed)
  return c.claimed <= latest and (tail == "" or rare().readSections(c, tail))
end

local function sectionCount(c, tag, list)
  if tag == "w" then c.spacing = readSpacing(list) end
  return c.spacing ~= nil
end

-- textCount appends the sections to a text.
local function textCount(c, text)
  if c.spacing then return text .. spacingText(c.spacing) end
  return text
end

-- spendCount is how the rules that count spend: at the departure itself.
local function spendCount(c, at, _, charged, n, times)
  c:count(at, n * times)
  spacingSpend(c.spacing, at, charged, n * times)
  c.dirty = true
  return charged
end

-- aligned returns the multiple of per up to an instant.
local function aligned(at, per) return at - fmod(at, per) end

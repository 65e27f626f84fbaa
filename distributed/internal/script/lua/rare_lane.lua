-- The lane, continued: functions that few calls need.

-- numbers returns the integers of a text; nothing if a word is no number that this script can count
-- with.
local function numbers(text)
  local list = {}
  for word in text:gmatch("%S+") do
    local n = tonumber(word)
    if not n or n >= 2^53 or n <= -2^53 or n % 1 ~= 0 then return nil end
    list[#list + 1] = n
  end
  return list
end

-- joined is the inverse of numbers.
local function joined(list)
  local words = {}
  for i = 1, #list do words[i] = ("%.0f"):format(list[i]) end
  return table.concat(words, " ")
end

local function newLane()
  return {
    gen = now, epoch = 0, paused = 0, period = 0, this = 0, before = 0, till = 0,
    settled = 0, tuned = 0, furthest = 0, written = 0, reach = 0,
    known = false, hold = 0,
    new = true, dirty = true,
  }
end

-- recent reports whether a pause runs, or would run after a step of the clock that rewind
-- ignores.
local function recent(l) return l.paused > now - 2000000 end

-- readRare reads numbers that few lanes have. A pause whose end is not repeated there is corrupt,
-- and is ignored.
local function readRare(l, tail)
  local list = numbers(tail)
  if not list or #list > 3 or #list == 1 or #list > 0 and (min(unpack(list)) < 0 or max(unpack(list)) > latest) then return nil end
  l.settled, l.tuned = list[1] or 0, list[2] or 0
  if l.paused > now and list[3] ~= l.paused then l.paused, l.dirty = now, true end
  l.dirty = l.dirty or list[3] and not recent(l)
  return l
end

local function laneText()
  local list = { lane.gen, lane.epoch, lane.paused, lane.period, lane.this, lane.before, lane.till }
  if max(lane.settled, lane.tuned) > 0 or recent(lane) then list[8], list[9] = lane.settled, lane.tuned end
  if recent(lane) then list[10] = lane.paused end
  return joined(list)
end

-- readSections passes the sections after its state to a rule.
local function readSections(rule, tail)
  local length = 0
  for tag, body in tail:gmatch(";(%a) ([^;]*)") do
    length = length + 3 + #body
    if tag == "c" then
      if not made.readClaim(rule, body) then return false end
    elseif tag == "a" then
      if rule.bounds == "" then rule.bounds = body end
    else
      local list = numbers(body)
      if not list or not rule:section(tag, list) then return false end
    end
  end
  return length == #tail
end

-- Slack: a bucket's memory of its charges, once a lane has costs that may be estimates. A charge
-- that turned out too high is taken back at most by the least lead of the state over a later
-- charge. If the state had fallen behind that charge, the bucket would have been whole, and a whole
-- bucket saves nothing more.
--
-- As numbers: the instant up to which nothing is known, then pairs. A pair is an instant, and the
-- least lead of the state, in microseconds, at the charges up to it.

local MOST_LOWS = 8

local slack = {}
slack.__index = slack

local function newSlack(from) return setmetatable({ from }, slack) end

-- note adds a charge. A higher one before a lower one never counts. If there are
-- too many, the oldest two become one, to the stricter side.
function slack.note(list, at, ahead)
  local n = #list
  while n > 1 and list[n] >= ahead do
    at = max(at, list[n - 1])
    list[n], list[n - 1] = nil, nil
    n = n - 2
  end
  if n > 1 then at = max(at, list[n - 1]) end
  if n == 1 + 2 * MOST_LOWS then
    list[5] = min(list[3], list[5])
    table.remove(list, 2)
    table.remove(list, 2)
    n = n - 2
  end
  list[n + 1], list[n + 2] = at, ahead
end

-- after returns the least lead of the state at the charges after at.
function slack.after(list, at)
  if at <= list[1] then return 0 end
  local least = 2^53 - 1
  for i = 2, #list, 2 do
    if list[i] > at then least = min(least, list[i + 1]) end
  end
  return max(least, 0)
end

-- lower reduces the lead of the state after at.
function slack.lower(list, at, by)
  for i = 2, #list, 2 do
    if list[i] > at then list[i + 1] = max(list[i + 1] - by, -2^51) end
  end
end

-- readSlack returns the memory of which these are the numbers; nothing if they are invalid.
local function readSlack(list)
  if #list % 2 ~= 1 or #list > 1 + 2 * MOST_LOWS then return nil end
  for i = 2, #list, 2 do
    if list[i] < 0 then return nil end
  end
  return setmetatable(list, slack)
end

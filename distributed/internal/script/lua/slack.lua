-- Slack: a bucket's memory of its charges, once a lane has costs that may be estimates. A charge
-- that turned out too high is taken back at most by the least lead of the state over a later
-- charge. If the state had fallen behind that charge, the bucket would have been whole, and a whole
-- bucket saves nothing more.
--
-- As numbers: the instant up to which nothing is known, then pairs. A pair is an instant, and the
-- least lead of the state, in microseconds, at the charges up to it.

local MOST_LOWS = 8

local function newSlack(from, lows)
  local slack = {}
  lows = lows or {}

  -- note adds a charge. A higher one before a lower one never counts. If there are
  -- too many, the oldest two become one, to the stricter side.
  function slack.note(at, ahead)
    local n = #lows
    while n > 0 and lows[n].ahead >= ahead do
      at = max(at, lows[n].at)
      lows[n] = nil
      n = n - 1
    end
    if n > 0 then at = max(at, lows[n].at) end
    if n == MOST_LOWS then
      lows[2].ahead = min(lows[1].ahead, lows[2].ahead)
      table.remove(lows, 1)
      n = n - 1
    end
    lows[n + 1] = { at = at, ahead = ahead }
  end

  -- after returns the least lead of the state at the charges after at.
  function slack.after(at)
    if at <= from then return 0 end
    local least = 2^53 - 1
    for _, low in ipairs(lows) do
      if low.at > at then least = min(least, low.ahead) end
    end
    return max(least, 0)
  end

  -- lower reduces the lead of the state after at.
  function slack.lower(at, by)
    for _, low in ipairs(lows) do
      if low.at > at then low.ahead = max(low.ahead - by, -2^51) end
    end
  end

  function slack.list()
    local list = { from }
    for _, low in ipairs(lows) do
      list[#list + 1] = low.at
      list[#list + 1] = low.ahead
    end
    return list
  end

  return slack
end

-- readSlack is the inverse of list; it returns nothing for an invalid list.
local function readSlack(list)
  if #list % 2 ~= 1 or #list > 1 + 2 * MOST_LOWS then return nil end
  local lows = {}
  for i = 2, #list, 2 do
    if list[i] < 0 then return nil end
    lows[#lows + 1] = { at = list[i], ahead = list[i + 1] }
  end
  return newSlack(list[1], lows)
end

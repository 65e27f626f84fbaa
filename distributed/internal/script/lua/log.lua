-- Sliding log: a number of permits in any span of the length, exactly. The last permits spent, up
-- to that number, are in a list of the lane. It consists of runs "at n" that left at one instant,
-- the oldest first. The next n may go when the n-th of them is older than the span. A log of many
-- permits counts each at the end of one of GRAINS parts of the span, which bounds the number of
-- runs.
--
-- In the lane's hash: runs in the list, permits kept in them, the instants of the
-- youngest permit forgotten and of the youngest kept. Section:
--   o by                 the instants in the list are that far ahead: of a clock that
--                        has moved back since
--
-- A call reads and writes the list at its ends, as far as it needs to. Its elements after g.skip up
-- to g.tail are live. g.young are new runs after them.

-- logKey returns the key of the list of a field's limit.
local function logKey(field) return KEYS[1] .. ":log:" .. field:sub(2) end

-- An invalid list is found in the middle of a call, before anything is written. The call begins
-- again without it.
local function distrust(key) error({ weir = key }) end

local function makeLog()
  local CHUNK, CHUNKS = 16, 1024 -- runs read at once, first and at most
  local GRAINS = 4096 -- runs in a span, if it holds more permits
  local MOST = 16384 -- runs that one call reads; no list of ours is as long
  local STEP = 256 -- expired runs that one call drops, more than it adds
  local LOOK = 512 -- expired runs that are counted for the state
  local log = newCounting()
  local section = log.section

  function log.set(g, permits, per)
    setCount(g, permits, per)
    g.key = logKey(g.field)
    g.grain, g.reads = permits > GRAINS and max((divide(per, GRAINS)), 1) or 1, 0
    g.skip, g.tail, g.length, g.kept, g.gone, g.last, g.ahead = 0, 0, 0, 0, 0, 0, 0
    g.young, g.loaded, g.oldest, g.chunk = {}, {}, false, CHUNK
    g.stale = true -- the list has foreign content
  end

  -- load reads the run of the list at a place, with its neighbours in a direction.
  local function load(g, place, down)
    local from, to = place, min(place + g.chunk - 1, g.tail)
    if down then from, to = max(place - g.chunk + 1, g.skip + 1), place end
    g.chunk, g.reads = min(2 * g.chunk, CHUNKS), g.reads + to - from + 1
    if g.reads > MOST then distrust(g.key) end
    for i, text in ipairs(redis.call("LRANGE", g.key, from - 1, to - 1)) do
      local at, n = text:match("^(%d+) (%d+)$")
      at, n = tonumber(at), tonumber(n)
      if not n or n < 1 or n > 2^51 or at - g.ahead > latest then distrust(g.key) end
      g.loaded[from + i - 1] = g.loaded[from + i - 1] or { at = max(at - g.ahead, 0), n = n }
    end
    if not g.loaded[place] then distrust(g.key) end
  end

  -- run returns the run at a place, the first after g.skip being 1.
  local function run(g, i)
    local place = g.skip + i
    if place > g.tail then return g.young[place - g.tail] end
    if not g.loaded[place] then load(g, place) end
    return g.loaded[place]
  end

  -- forget drops the first run.
  local function forget(g)
    if g.skip < g.tail then
      g.skip, g.oldest = g.skip + 1, false
    else
      table.remove(g.young, 1)
    end
  end

  -- expire drops runs that had left the span at an instant. Credit for time in line is bounded by
  -- the tolerance, so no decision needs those runs.
  local function expire(g, at)
    for _ = 1, STEP do
      local r = run(g, 1)
      if not r or r.at + g.per > at then return end
      g.gone, g.kept, g.dirty = r.at, g.kept - r.n, true
      forget(g)
    end
  end

  -- read accepts a list only if its length is the one in the hash: other programs, or eviction, may
  -- change the list alone.
  function log.read(g, text, from)
    local claimed, length, kept, gone, last, tail = text:match("^(%d+) (%d+) (%d+) (%d+) (%d+)(.*)$", from)
    if not claimed or distrusted and distrusted[g.key] then return false end
    g.length, g.kept, g.gone, g.last = tonumber(length), tonumber(kept), tonumber(gone), tonumber(last)
    local found = redis.pcall("LLEN", g.key)
    if wrongType(found) or found ~= g.length then return false end
    g.tail, g.stale = g.length, false
    if g.kept > 2^51 or max(g.gone, g.last) > latest or not readCount(g, claimed, tail) then return false end
    expire(g, now - tolerance)
    return true
  end

  function log.text(g)
    local text = textCount(g, ("%s;%.0f %.0f %.0f %.0f %.0f"):format(g.claim, g.claimed,
      g.tail - g.skip + #g.young, g.kept, g.gone, g.last))
    if g.ahead > 0 then text = ("%s;o %.0f"):format(text, g.ahead) end
    return text
  end

  function log.section(g, tag, list)
    if tag ~= "o" then return section(g, tag, list) end
    g.ahead = list[1] or -1
    return #list == 1 and g.ahead >= 0 and g.ahead <= latest
  end

  -- take makes the youngest run of the list the first of g.young.
  local function take(g)
    table.insert(g.young, 1, g.loaded[g.tail])
    g.tail = g.tail - 1
  end

  -- youngest returns the youngest run of the list; nothing if there is none.
  local function youngest(g)
    if g.tail == g.skip then return nil end
    if not g.loaded[g.tail] then load(g, g.tail, true) end
    return g.loaded[g.tail]
  end

  -- opens returns when the permits that prevent n more have left the span.
  local function opens(g, n)
    local way, at, i = g.kept - g.permits + n, g.gone, 1
    while way > 0 do
      local r = run(g, i)
      if not r then break end
      at, way, i = r.at, way - r.n, i + 1
    end
    if at == 0 then return 0 end
    return at + g.per
  end

  function log.earliest(g, _, _, n, leave)
    return max(opens(g, min(n + leave, max(n, g.permits))), spacingEarliest(g.spacing))
  end

  -- room counts the permits that left the span up to the instant.
  function log.room(g, at, _, charged, n, most, leave)
    if not spacingOver(g.spacing, at) then return 1 end
    local free, i = g.permits - g.kept - leave, 1
    while free < most * n do
      local r = run(g, i)
      if not r or r.at + g.per > charged then break end
      free, i = free + r.n, i + 1
    end
    return max((divide(free, n)), 1)
  end

  -- drop takes n permits off the first runs, and returns when the last of them left; nothing if
  -- there are fewer.
  local function drop(g, n)
    local at
    while n > 0 do
      local r = run(g, 1)
      if not r then return nil end
      local back = min(r.n, n)
      at, r.n, g.kept, n = r.at, r.n - back, g.kept - back, n - back
      if r.n == 0 then forget(g) else g.oldest = r end
    end
    return at
  end

  -- trim drops all but the last permits.
  local function trim(g)
    if g.kept > g.permits then g.gone = drop(g, g.kept - g.permits) or distrust(g.key) end
  end

  function log.count(g, at, n)
    local part = fmod(at, g.grain)
    if part > 0 then at = at + g.grain - part end
    n = min(n, 2^51)
    if at <= g.last and #g.young == 0 and youngest(g) then take(g) end
    local r = g.young[#g.young]
    if r and r.at >= at then
      r.n = r.n + n -- one is promised for later: these stay as long
    else
      g.young[#g.young + 1] = { at = at, n = n }
      g.last = at
    end
    g.kept = g.kept + n
    trim(g)
  end

  function log.expiry(g)
    local till = max(g.last, g.gone)
    if till > 0 then till = till + g.per end
    return max(till, g.spacing and g.spacing.till or 0)
  end

  -- flush writes the list.
  function log.flush(g)
    if g.stale or g.skip == g.tail then
      redis.call("DEL", g.key)
    elseif g.tail < g.length or g.skip > 0 then
      redis.call("LTRIM", g.key, g.skip, g.tail - 1)
    end
    if g.oldest and g.skip < g.tail then
      redis.call("LSET", g.key, 0, ("%.0f %.0f"):format(g.oldest.at + g.ahead, g.oldest.n))
    end
    for first = 1, #g.young, 1000 do -- the most arguments of a Lua call
      local words = {}
      for i = first, min(first + 999, #g.young) do
        words[#words + 1] = ("%.0f %.0f"):format(g.young[i].at + g.ahead, g.young[i].n)
      end
      redis.call("RPUSH", g.key, unpack(words))
    end
  end

  -- relieve takes back the first permits that left at an instant or later, so the log stays
  -- on the strict side. If that is many runs ago it takes back the first of all, which is
  -- stricter.
  function log.relieve(g, at, n)
    if at <= g.gone then return end
    g.dirty = true
    spacingRelieve(g.spacing, n)
    local i = #g.young
    while i > 0 and g.young[i].at >= at do i = i - 1 end
    if i == 0 then
      local deep = g.tail - g.skip - STEP
      if deep > 0 and run(g, deep).at >= at then return drop(g, n) end
      local r = youngest(g)
      while r and r.at >= at do
        take(g)
        r = youngest(g)
      end
    end
    i = i + 1
    while n > 0 and g.young[i] do
      local r = g.young[i]
      local back = min(r.n, n)
      r.n, g.kept, n = r.n - back, g.kept - back, n - back
      if r.n == 0 then table.remove(g.young, i) else i = i + 1 end
    end
  end

  function log.rewind(g, by)
    spacingRewind(g.spacing, by)
    g.gone, g.last, g.ahead, g.dirty = max(g.gone - by, 0), max(g.last - by, 0), g.ahead + by, true
    for _, r in pairs(g.loaded) do r.at = max(r.at - by, 0) end
    for _, r in ipairs(g.young) do r.at = max(r.at - by, 0) end
  end

  -- usedAt returns the permits in the span that ends at an instant, or more if it
  -- has just lost many.
  function log.usedAt(g, at)
    local used, i = g.kept, 1
    local r = run(g, i)
    while r and r.at + g.per <= at and i <= LOOK do
      used, i = used - r.n, i + 1
      r = run(g, i)
    end
    return used
  end

  -- keepGone keeps permits that had left the old span from counting in a longer one.
  local function keepGone(g, old)
    if old.gone > 0 and old.gone + old.per > now then g.gone = old.gone end
    trim(g)
  end

  -- adopt keeps the permits that left in the last span. Permits that another rule had used
  -- count as leaving now.
  function log.adopt(g, old)
    if old.kind == "g" then expire(old, now) end
    if old.kind == "g" and old.key == g.key then
      for _, name in ipairs({ "skip", "tail", "length", "loaded", "young", "oldest", "stale", "kept", "last", "ahead" }) do
        g[name] = old[name]
      end
      keepGone(g, old)
    elseif old.kind == "g" then
      for i = 1, old.tail - old.skip + #old.young do
        local r = run(old, i)
        g.young[i] = { at = r.at, n = r.n }
      end
      g.kept, g.last = old.kept, old.last
      keepGone(g, old)
    else
      local used = old:used()
      if used > 0 then g:count(now, used) end
    end
    g.spacing = spacedChange(spaced(now, now + g.per, g.permits), g.permits - g:used(), old)
  end

  return log
end

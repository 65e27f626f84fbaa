-- Sliding window by two counters. The permits of the window before count in
-- proportion to its part of the span that ends now, rounded down to whole permits. With those
-- of this window they are at most the limit's.
--
-- In the lane's hash: start of the window, permits used in it, in the one before
-- and in the one before that.

local function makeSliding()
  local sliding = newCounting()

  function sliding.set(s, permits, per)
    setCount(s, permits, per)
    s.counts = { start = 0, this = 0, before = 0, ago = 0 }
  end

  function sliding.read(s, text, from)
    local claimed, start, this, before, ago, tail = text:match("^(%d+) (%d+) (%d+) (%d+) (%d+)(.*)$", from)
    if not claimed then return false end
    local c = { start = tonumber(start), this = tonumber(this), before = tonumber(before), ago = tonumber(ago) }
    s.counts = c
    return c.start <= latest and max(c.this, c.before, c.ago) <= 2^51 and readCount(s, claimed, tail)
  end

  function sliding.text(s)
    local c = s.counts
    return textCount(s, ("%s;%.0f %.0f %.0f %.0f %.0f"):format(s.claim, s.claimed, c.start, c.this, c.before, c.ago))
  end

  -- countsAt returns the counts at an instant; those in force if the instant is before
  -- the end of their window. After a step of the clock windows follow each other as before.
  local function countsAt(s, at)
    local c = s.counts
    local next = c.start + s.per
    if at < next then return c end
    if at >= next + s.per then return { start = aligned(at, s.per), this = 0, before = 0, ago = 0 } end
    return { start = next, this = 0, before = c.this, ago = c.before }
  end

  -- weight returns how many whole permits of the window before count.
  local function weight(s, c, at)
    return (muldiv(c.before, max(min(c.start + s.per - at, s.per), 0), s.per))
  end

  -- fades returns how far into a window the permits of the window before weigh no more than
  -- room, in whole permits: before*(per-past)/per < room+1.
  local function fades(s, before, room)
    if before <= room then return 0 end
    return s.per - fading(s.per, before, room)
  end

  -- opens returns since when n more keep the estimate within the permits.
  local function opens(s, c, n)
    n = min(n, s.permits) -- a request above a stricter claim's permits goes alone
    if c.this + c.before + c.ago + n <= s.permits then return c.start - s.per end
    local start, this, before = c.start, c.this, c.before
    while true do
      local room = s.permits - this - n
      if room >= 0 then
        local past = fades(s, before, room)
        if past < s.per then return start + past end
      end
      start, before, this = start + s.per, this, 0
    end
  end

  function sliding.earliest(s, at, _, n, leave)
    local c = countsAt(s, at)
    local due = opens(s, c, n + leave)
    if at < c.start then due = max(due, c.start) end
    return max(due, spacingEarliest(s.spacing))
  end

  function sliding.room(s, at, _, charged, n, _, leave)
    local c = countsAt(s, at)
    if not spacingOver(s.spacing, at) or charged < c.start then return 1 end
    return max((divide(s.permits - c.this - weight(s, c, charged) - leave, n)), 1)
  end

  local fits = sliding.spares
  -- spares: a promise for the next window ends this one.
  function sliding.spares(s, at, n) return fits(s, at, n) and at < countsAt(s, now).start + s.per end

  function sliding.count(s, at, n)
    local c = countsAt(s, at)
    c.this = min(c.this + n, 2^51)
    s.counts = c
  end

  function sliding.expiry(s)
    local c = s.counts
    local till = s.spacing and s.spacing.till or 0
    if c.this > 0 then till = max(till, c.start + 2 * s.per) end
    if c.before > 0 then till = max(till, c.start + s.per) end
    return till
  end

  -- relieve takes permits back from the window of the instant. Permits that left after its end are
  -- taken from the lighter counter, on the strict side.
  function sliding.relieve(s, at, n, asOf)
    local c = countsAt(s, asOf or now)
    if at >= c.start then
      c.this = max(c.this - n, 0)
    elseif at >= c.start - s.per then
      c.before = max(c.before - n, 0)
    else
      return
    end
    spacingRelieve(s.spacing, n)
    s.counts, s.dirty = c, true
  end

  function sliding.rewind(s, by)
    spacingRewind(s.spacing, by)
    s.counts.start, s.dirty = max(s.counts.start - by, 0), true
  end

  function sliding.usedAt(s, at)
    local c = countsAt(s, at)
    return c.this + weight(s, c, at)
  end

  -- adopt keeps the counters if the windows are the same, and counts in this
  -- window what another rule had used.
  function sliding.adopt(s, old)
    if old.kind == "s" and old.per == s.per then
      local c = countsAt(old, now)
      s.counts = { start = c.start, this = c.this, before = c.before, ago = c.ago }
    else
      s:count(now, min(old:used(), s.permits))
    end
    s.spacing = spacedChange(spaced(now, now + s.per, s.permits), s.permits - s:used(), old)
  end

  return sliding
end

return { f = makeFixed, g = makeLog, s = makeSliding }

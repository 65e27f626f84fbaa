-- Fixed window: a number of permits in each window. Windows follow each other and never move back.
-- The window in force is a later one if a permit of it is promised.
--
-- In the lane's hash: start, till, used, debt, before, usedBefore. Permits beyond
-- those of a window are debt, which later windows pay. before is the start of the
-- window before. If that ended where this one starts, usedBefore of it were used.
-- Section of a window of first use, if it is not zero:
--   f n                  permits charged up to the instant with which it begins

local function makeFixed()
  local fixed = newCounting()
  local section = fixed.section

  function fixed.set(f, permits, per, align)
    setCount(f, permits, per)
    f.align, f.calendar = align, false
    f.window = { start = 0, till = 0, used = 0, debt = 0, before = 0, usedBefore = 0, first = 0 }
  end

  function fixed.read(f, text, from)
    local claimed, start, till, used, debt, before, usedBefore, tail =
      text:match("^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)(.*)$", from)
    if not claimed then return false end
    local w = {
      start = tonumber(start), till = tonumber(till), used = tonumber(used), debt = tonumber(debt),
      before = tonumber(before), usedBefore = tonumber(usedBefore), first = 0,
    }
    f.window = w
    return w.start <= w.till and w.before <= w.start and w.till <= latest
      and max(w.used, w.debt, w.usedBefore) <= 2^51 and readCount(f, claimed, tail)
  end

  function fixed.text(f)
    local w = f.window
    local text = ("%s;%.0f %.0f %.0f %.0f %.0f %.0f %.0f"):format(f.claim, f.claimed,
      w.start, w.till, w.used, w.debt, w.before, w.usedBefore)
    if w.first > 0 then text = text .. (";f %.0f"):format(w.first) end
    return textCount(f, text)
  end

  function fixed.section(f, tag, list)
    if tag == "f" then f.window.first = min(max(list[1] or 0, 0), 2^51) end
    return section(f, tag, list)
  end

  -- boundsOf returns the bounds of a calendar, ascending.
  local function boundsOf(f)
    if not f.calendar then
      f.calendar = {}
      for word in f.bounds:gmatch("%d+") do f.calendar[#f.calendar + 1] = tonumber(word) end
      if #f.calendar == 0 then f.calendar[1] = 0 end
    end
    return f.calendar
  end

  -- byCalendar returns the window that holds an instant. Before the first bound
  -- and after the last, which are far off, windows are of the longest length.
  local function byCalendar(f, at)
    local bounds = boundsOf(f)
    local first, last = bounds[1], bounds[#bounds]
    if at < first then
      local start = first - f.per * (divide(first - at - 1, f.per) + 1)
      return start, start + f.per
    elseif at >= last then
      local start = last + f.per * divide(at - last, f.per)
      return start, start + f.per
    end
    local i = 1
    while bounds[i + 1] <= at do i = i + 1 end
    return bounds[i], bounds[i + 1]
  end

  local function around(f, at)
    if f.align == "first" then return 0, at + f.per end
    if f.align ~= "-" then return byCalendar(f, at) end
    local start = aligned(at, f.per)
    return start, start + f.per
  end

  -- settle makes a window pay as much of its debt as it can.
  local function settle(w, permits)
    local pay = min(w.debt, max(permits - w.used, 0))
    w.used, w.debt = w.used + pay, w.debt - pay
  end

  -- paying returns the window at an instant after w, whose debt is paid by windows of first use:
  -- they follow each other, because no permit would begin one.
  local function paying(f, w, at)
    local windows = divide(w.debt - 1, f.permits) + 1
    local past = min((divide(at - w.till, f.per)), windows)
    local start = w.till + past * f.per
    if past == windows then return start, at + f.per end
    return start, start + f.per
  end

  -- owed returns the debt of w left by the windows between it and the window that begins at an
  -- instant. Calendar windows differ in length.
  local function owed(f, w, start)
    local debt, till = w.debt, w.till
    if f.align == "-" or f.align == "first" then
      local between = divide(start - till, f.per)
      return between <= divide(debt, f.permits) and debt - between * f.permits or 0
    end
    while till < start and debt > 0 do
      debt = debt - f.permits
      local _, next = byCalendar(f, till)
      till = next
    end
    return max(debt, 0)
  end

  -- windowAt returns the window at an instant; w, the one in force, if the instant is
  -- before its end.
  local function windowAt(f, w, at)
    if at < w.till then return w end
    local start, till = around(f, at)
    if f.align == "first" and w.debt > 0 then start, till = paying(f, w, at) end
    local next = { start = max(start, w.till), till = till, used = 0, debt = 0, before = w.till, usedBefore = 0, first = 0 }
    if next.start == w.till then next.before, next.usedBefore = w.start, w.used end
    if w.debt > 0 then
      next.debt = owed(f, w, next.start)
      settle(next, f.permits)
    end
    return next
  end

  -- fits reports whether n more permits fit into a window with this many used. A request above the
  -- permits of a stricter claim has a window to itself.
  local function fits(n, used, permits) return used <= permits - n or used == 0 end

  -- paid returns when a window after w has room for n, the debt paid before.
  local function paid(f, w, n)
    if w.debt == 0 then return w.till end
    local full, rest = divide(w.debt, f.permits)
    if not fits(n, rest, f.permits) then full = full + 1 end
    if f.align == "-" or f.align == "first" then return w.till + full * f.per end
    local till = w.till
    for _ = 1, min(full, 2000) do -- debt is bounded
      local _, next = byCalendar(f, till)
      till = next
    end
    return till
  end

  -- opens returns since when a window has room for n beside the permits to leave.
  local opens
  opens = function(f, at, n, leave)
    local w = windowAt(f, f.window, at)
    if not fits(n, w.used, f.permits) then
      local due = paid(f, w, n)
      if leave > 0 and due > at then return max(due, opens(f, due, n, leave)) end
      return due
    end
    local room = f.permits - n - w.used
    if room >= 0 and leave > room then -- the reserve is released until the end
      return w.till - fading(f.align == "first" and f.per or w.till - w.start, leave, room)
    end
    if at < w.start or not fits(n, w.usedBefore, f.permits) then return w.start end
    return w.before
  end

  function fixed.earliest(f, at, _, n, leave)
    return max(opens(f, at, n, leave), spacingEarliest(f.spacing))
  end

  function fixed.room(f, at, _, _, n, _, leave)
    if not spacingOver(f.spacing, at) then return 1 end
    local w = windowAt(f, f.window, at)
    if leave > 0 then return 1 end -- each waits for its own release
    return max((divide(f.permits - w.used, n)), 1)
  end

  function fixed.count(f, at, n)
    local w = windowAt(f, f.window, at)
    if w ~= f.window and f.align == "first" then w.till = at + f.per end -- it begins here, even if it pays
    if f.align == "first" and at <= w.till - f.per then w.first = min(w.first + n, 2^51) end
    w.debt = min(w.debt + n, 2^51)
    settle(w, f.permits)
    f.window = w
  end

  function fixed.expiry(f)
    local w = f.window
    local windows = divide(w.debt + f.permits - 1, f.permits)
    return max(w.till + windows * f.per, f.spacing and f.spacing.till or 0)
  end

  -- relieve takes back n permits that count at an instant, if they left in the window in
  -- force: if they count from its start on.
  function fixed.relieve(f, at, n, asOf)
    local w = f.window
    if at < w.start or (asOf or now) >= w.till then return end
    local back = min(n, w.debt)
    w.debt = w.debt - back
    w.used = max(w.used - (n - back), 0)
    spacingRelieve(f.spacing, n)
    f.dirty = true
  end

  -- refund takes back permits that never left. If all permits that began a window of
  -- first use come back, that window was not begun. If others left since, one of those
  -- began it, within the tolerance.
  function fixed.refund(f, at, n)
    f:relieve(at, n, at)
    local w = f.window
    if f.align ~= "first" or at < w.start or at > w.till - f.per then return end
    w.first = max(w.first - n, 0)
    if w.used + w.debt == 0 then
      w.till = w.start
    elseif w.first == 0 then
      w.first, w.till = w.used + w.debt, max(w.till, max(at, now - tolerance) + f.per + 100000)
    end
  end

  -- rewind keeps the window in force from now on, until a bound of windows that is no earlier
  -- than its end. Otherwise three windows would be spent in the time of two.
  function fixed.rewind(f, by)
    spacingRewind(f.spacing, by)
    local w = windowAt(f, f.window, now + by)
    f.dirty = true
    if f.align == "first" then
      w.start, w.till, w.before = max(w.start - by, 0), max(w.till - by, 0), max(w.before - by, 0)
      f.window = w
      return
    end
    local used, till = w.used, w.till
    if now + by < w.start then -- it was a later window
      used, till = min(used + w.usedBefore, 2^51), w.start
    end
    local start = around(f, now)
    local _, bound = around(f, max(till - by - 1, now))
    f.window = { start = start, till = bound, used = used, debt = w.debt, before = start, usedBefore = 0, first = 0 }
  end

  function fixed.usedAt(f, at)
    local w = windowAt(f, f.window, at)
    return w.used + w.debt
  end

  -- adopt keeps the count if the windows are the same. Otherwise the permits that the other
  -- rule had used count in this window.
  function fixed.adopt(f, old)
    if old.kind == "f" and old.per == f.per and old.align == f.align then
      local w, begun = old.window, true
      if w.debt > 0 and now >= w.till then
        w = windowAt(old, w, now) -- earlier windows paid by the old limit
        begun = f.align ~= "first"
      end
      f.window = {
        start = w.start, till = w.till, used = w.used, debt = w.debt, before = w.before, usedBefore = w.usedBefore, first = w.first,
      }
      if not begun then
        f.window.till, f.window.used, f.window.debt = w.start, f.permits, w.used + w.debt
      end
      settle(f.window, f.permits)
    else
      local used = old:used()
      if used > 0 then f:count(now, min(used, f.permits)) end
    end
    local w = windowAt(f, f.window, now)
    f.spacing = spacedChange(spaced(now, w.till, f.permits - w.used), f.permits - w.used, old)
  end

  return fixed
end

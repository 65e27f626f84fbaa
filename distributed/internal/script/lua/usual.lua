-- The usual call: it wants permits of one each of one or two buckets, reports nothing and asks for
-- no state. If the lane is usual as well, this file decides, before the functions of the other
-- files are made. Otherwise it writes nothing, spells the arguments out as main.lua lists them, and
-- the other files decide. Both decide the same, and the other files explain why.
--
-- ARGV[1], numbers of eight bytes each:
--   now; 0: the clock of Redis
--   tolerance, latest, horizon, most, generation, epoch, furthest, period, count, age
--   how many callers this one knows
--   of the field "lane" in ARGV[2]: the end of the pause, how long the keys live, tuned
--   for each bucket: unit, den, its interval in whole microseconds, and the time of its burst
--   less one permit, in whole microseconds and the rest in 1/den
-- ARGV[2] is the field "lane" as the caller saw it last.
-- ARGV[3], numbers likewise; empty if callers learn nothing:
--   place and ordinal of the caller, hold, since, keep, and how many landed
--   if it talks: unit and den of the pace, how many departed without a permit, how many were
--   refused, unbound, reserve
-- ARGV[4] is the field "learned" as a quiet caller saw it last, or the message of one that talks.
-- A caller is quiet if it sends no message, has most likely applied all entries, and would decide
-- as that field has it.
-- Then for each bucket its field in the hash, and its claim.
--
-- The reply; if it begins with a number, the other files decided:
--   the field "lane"; empty: as the caller saw it
--   now, furthest, first
--   when each limit has one permit; 0: now
--   to a quiet caller: the ordinal before the first permit, and how many landed
--   pairs of instant and count
--   to one that talks: the end of main.lua's reply

if #ARGV < 9 then
  local fmod, min, max = math.fmod, math.min, math.max
  local learned, field1, claim1, field2, claim2 = ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
  local numbers = rawget(_G, "struct") and struct.size and struct.size("l") == 8 and struct.unpack or function(_, packed)
    local list = {}
    for i = 8, #packed, 8 do
      local n = 0
      for j = i, i - 7, -1 do n = n * 256 + packed:byte(j) end
      list[#list + 1] = n
    end
    return unpack(list)
  end
  -- read returns the state of a bucket in a field; nothing if it is unusual.
  local function read(field, claim, den, till, now, ahead)
    if not field or field:find(claim, 1, true) ~= 1 then return nil end
    local claimed, at, frac = field:match("^;(%d+) (%d+) (%d+)$", #claim + 1)
    local sure, sureFrac, largest = false, 0, 0
    if not claimed then
      claimed, at, frac, sure, sureFrac, largest = field:match("^;(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$", #claim + 1)
      if not claimed or max(at, sure) > till or sureFrac + 0 >= den or largest + 0 > 2^51 then return nil end
      sure = ahead > now and sure + 0 -- otherwise all promised permits have departed
    end
    claimed, at, frac = claimed + 0, at + 0, frac + 0
    if claimed > now or at > till or frac >= den then return nil end
    return claimed, at, frac, sure, sureFrac + 0, largest + 0
  end
  local instant, tolerance, latest, horizon, most, gen, epoch, furthest, period, count, age, alive, paused, till, tuned,
    unit1, den1, one1, spare1, part1, unit2, den2, one2, spare2, part2 = numbers(field2
      and "<i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8" or "<i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8i8", ARGV[1])
  if not field2 then unit2, den2, one2, spare2, part2 = 0, 1, 0, 0, 0 end
  local learns, talks = ARGV[3] ~= "", #ARGV[3] > 48
  local place, ordinal, hold, since, keep, lands, unit, den, free, spared, unbound, reserve = 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0
  if talks then
    place, ordinal, hold, since, keep, lands, unit, den, free, spared, unbound, reserve = numbers("<i8i8i8i8i8i8i8i8i8i8i8i8", ARGV[3])
  elseif learns then
    place, ordinal, hold, since, keep, lands = numbers("<i8i8i8i8i8i8", ARGV[3])
  end
  local reply
  repeat -- until something is unusual
    local now = instant
    if now == 0 then
      local time = redis.call("TIME")
      now = time[1] * 1000000 + time[2]
    end
    local values, given, applied, upto, landed
    if talks then
      values = redis.pcall("HMGET", unpack({ KEYS[1], "lane", "at", field1, "learned", "ordinal", "entries", field2 }))
    elseif learns then
      values = field2 and redis.pcall("HMGET", KEYS[1], "lane", "at", field1, "learned", "ordinal", field2)
        or redis.pcall("HMGET", KEYS[1], "lane", "at", field1, "learned", "ordinal")
      if values[4] ~= learned then break end
    else
      values = field2 and redis.pcall("HMGET", KEYS[1], "lane", "at", field1, field2)
        or redis.pcall("HMGET", KEYS[1], "lane", "at", field1)
    end
    if learns then
      given, applied, upto, landed = (values[5] or ""):match("^(%d+) (%d+) (%d+) (%d+)$")
      if not given or max(given, applied, upto, landed) > 2^52 then break end
      given, applied, upto, landed = given + 0, applied + 0, upto + 0, landed + 0
      if given < ordinal then break end
    end
    local lane, ahead, text, text2 = values[1], values[2], values[3], field2 and values[talks and 7 or learns and 6 or 4]
    if not (lane and ahead and text) or not ahead:find("^%d+$") then break end
    ahead = ahead + 0
    if lane == ARGV[2] then
      lane = ""
    else
      local laneGen, laneEpoch, lanePaused, lanePeriod, this, before, laneTill, tail =
        lane:match("^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)(.*)$")
      tuned = tail == "" and 0 or tail and tail:match("^ 0 (%d+)$") -- no settlements
      if not tuned or laneGen + 0 ~= gen or laneEpoch + 0 ~= epoch or lanePeriod + 0 ~= period
        or max(this, before) > 100000 then
        break
      end
      paused, till, tuned = lanePaused + 0, laneTill + 0, tuned + 0
    end
    if period ~= (now - fmod(now, 5000000)) / 5000000 or furthest > ahead or tuned > now
      or paused > now or max(gen, ahead) > till or till > now + 2^48 or epoch > 2^50 then
      break
    end

    -- The caller's message, the entries that it has not applied, and the resulting state of the
    -- lane.
    local held, kept, respaced, entries, unread, state = hold, keep, false, nil, nil, nil
    if talks then
      local from, to, u, d, h, s, lease, revoked, k, un, res =
        (values[4] or ""):match("^(%d+) (%d+) (%d+) (%d+) (%d+) 0 (%d+) (%d+) (%d+) (%d+) (%d) (%d+) 0 0 0 0$")
      if not from then break end -- invalid, or departures go one by one, or readings bound them
      from, to, entries = from + 0, to + 0, values[6] or ""
      if from > place or place > to or #entries ~= to - from or #entries >= 65536 or applied > to or revoked + 0 > place
        or min(u, d) < 1 or max(u, d) >= 2^51 or max(to, h, s, lease, k) > 2^52 then
        break
      end
      given = given + free
      if learned ~= "" then
        local frame = ("%d %d %d "):format(given, now, #learned)
        entries, to = entries .. frame .. learned, to + #frame + #learned
      end
      local decides = place > applied or place == applied and ordinal >= upto
      if decides then
        u, d, h, s, k, un, res, applied, upto = unit, den, hold, since, keep, unbound, reserve, place, ordinal
      end
      held, kept, unread = h + 0, k + 0, entries:sub(place - from + 1)
      state = ("%d %d %d %d %d 0 %d %d %d %d %d %d 0 0 0 0"):format(from, to, u, d, h, s, lease, revoked, k, un, res)
      if (field2 or field1) == "~" then -- the bucket of the pace
        local one = (u - fmod(u, d)) / d
        local was, wasDen, claimed, at, frac, rest =
          ((field2 and text2 or text) or ""):match("^b 1 1 (%d+) (%d+) 1 %-;(%d+) (%d+) (%d+)(.*)$")
        if not was or min(was, wasDen) < 1 or max(was, wasDen) > 2^51 or one > 1000000
          or at + 0 > till or frac + 0 >= wasDen + 0 then
          break
        end
        local pace, claim = nil, ("b 1 1 %d %d 1 -"):format(u, d)
        if was + 0 ~= u + 0 or wasDen + 0 ~= d + 0 then
          if at + 0 > now + 5000000 then break end -- respace may count other intervals
          local less, sure, sureFrac, largest = (was - fmod(was, wasDen)) / wasDen - one, rest:match("^ (%d+) (%d+) (%d+)$")
          if sure then
            if sure + 0 > till or sureFrac + 0 >= wasDen + 0 then break end
            rest = (" %d 0 %s"):format(sure + 0 > now and max(sure - less, now) or sure, largest)
          elseif rest ~= "" then
            break
          end
          if at + 0 > now then at = max(at - less, now) end
          pace, respaced = ("%s;%s %d 0%s"):format(claim, claimed, at, rest), true
        end
        if field2 then
          text2, claim2, unit2, den2, one2 = pace or text2, claim, u + 0, d + 0, one
        else
          text, claim1, unit1, den1, one1 = pace or text, claim, u + 0, d + 0, one
        end
      end
    end

    -- The buckets, within the bounds of claims.lua.
    local claimed1, at1, frac1, sure1, sureFrac1, largest1 = read(text, claim1, den1, till, now, ahead)
    local claimed2, at2, frac2, sure2, sureFrac2, largest2 = now, 0, 0, false, 0, 0
    if field2 then claimed2, at2, frac2, sure2, sureFrac2, largest2 = read(text2, claim2, den2, till, now, ahead) end
    local furthermost = max(now + 2000000, ahead) + 2
    if not claimed1 or not claimed2 or at1 > furthermost + spare1 + one1 or at2 > furthermost + spare2 + one2 then break end

    -- The run.
    local bound, arrived, left = now + min(latest, 2^47), max(min(now - age, now), now - tolerance), most
    local first, list, size, start = 0, { lane, now, 0, 0, 0 }, 5, nil
    if field2 then list[6], size = 0, 6 end
    if learns then landed = min(landed + lands, given) end
    if learns and not talks then list[size + 1], list[size + 2], size = given, landed, size + 2 end
    paused = max(paused, held) -- no departure before either
    local head, wants, due1, due2 = size, count
    local exact = true -- no product was rounded
    while true do
      due1 = frac1 > part1 and at1 - spare1 + 1 or at1 - spare1
      due2 = frac2 > part2 and at2 - spare2 + 1 or at2 - spare2
      if wants == 0 then break end
      local charged, at = max(paused, due1, due2), now
      if charged > now then at = charged elseif charged < arrived then charged = arrived end
      if at > bound or size == head + 256 or at > now and left < 1 or start and at - start > horizon then
        first = max(at, 1)
        break
      end
      start = start or at
      local times = wants
      if at > now then
        times, ahead = min(wants, left), max(ahead, at)
        if not sure1 then sure1, sureFrac1, largest1 = at1, frac1, 0 end
        if not sure2 then sure2, sureFrac2, largest2 = at2, frac2, 0 end
      elseif now > ahead then
        ahead = now
      end
      if sure1 then largest1 = max(largest1, 1) end
      if sure2 then largest2 = max(largest2, 1) end
      if (frac1 > 0 and at1 + 1 or at1) < charged then at1, frac1 = charged, 0 end
      if field2 and (frac2 > 0 and at2 + 1 or at2) < charged then at2, frac2 = charged, 0 end
      if times > 1 then -- as many as count at one instant
        local ticks = (charged - at1 + spare1) * den1 + part1 - frac1
        times, exact = min(times, max((ticks - fmod(ticks, unit1)) / unit1, 0) + 1), exact and ticks < 2^52
        if field2 then
          ticks = (charged - at2 + spare2) * den2 + part2 - frac2
          times, exact = min(times, max((ticks - fmod(ticks, unit2)) / unit2, 0) + 1), exact and ticks < 2^52
        end
        exact = exact and times * max(unit1, unit2) < 2^52
      end
      local ticks = times * unit1 + frac1
      frac1 = fmod(ticks, den1)
      at1 = at1 + (ticks - frac1) / den1
      if field2 then
        ticks = times * unit2 + frac2
        frac2 = fmod(ticks, den2)
        at2 = at2 + (ticks - frac2) / den2
      end
      wants = wants - times
      if at > now then left = left - times end
      if size > head and list[size - 1] == charged then
        list[size] = list[size] + times
      else
        list[size + 1], list[size + 2] = charged, times
        size = size + 2
      end
    end
    if not exact then break end

    -- The changes.
    local needs = max(ahead, now + kept, at1 + 1, ahead + spare1 + one1 + 2)
    if field2 then needs = max(needs, at2 + 1, ahead + spare2 + one2 + 2) end
    if needs > till then break end -- the keys must live longer
    list[3], list[4], list[5] = ahead, first, due1 > now and due1 or 0
    if field2 then list[6] = due2 > now and due2 or 0 end
    local write1, write2, wrote = size > head or respaced and not field2, field2 and (size > head or respaced), nil
    if now - claimed1 > 500000 then claimed1, write1 = now, true end
    if now - claimed2 > 500000 then claimed2, write2 = now, true end
    if write1 then
      text = sure1 and ahead > now and ("%s;%d %d %d %d %d %d"):format(claim1, claimed1, at1, frac1, sure1, sureFrac1, largest1)
        or ("%s;%d %d %d"):format(claim1, claimed1, at1, frac1)
    end
    if write2 then
      text2 = sure2 and ahead > now and ("%s;%d %d %d %d %d %d"):format(claim2, claimed2, at2, frac2, sure2, sureFrac2, largest2)
        or ("%s;%d %d %d"):format(claim2, claimed2, at2, frac2)
    end
    local decides = learns and not talks and (place ~= applied or ordinal > upto) -- most entries applied of all callers
    if decides then applied, upto = place, ordinal end
    if talks then
      local fields = { KEYS[1], "at", ("%d"):format(ahead), "learned", state,
        "ordinal", ("%d %d %d %d"):format(given + count - wants, applied, upto, landed) }
      if learned ~= "" then fields[8], fields[9] = "entries", entries end
      if write1 then fields[#fields + 1], fields[#fields + 2] = field1, text end
      if write2 then fields[#fields + 1], fields[#fields + 2] = field2, text2 end
      wrote = redis.pcall("HSET", unpack(fields))
      list[size + 1], list[size + 2], list[size + 3], list[size + 4], list[size + 5], list[size + 6] =
        given, learned ~= "" and 1 or 0, landed, "", unread, state
    elseif learns and (write1 or write2 or decides or lands > 0) then
      local counted, last = ("%d %d %d %d"):format(given + count - wants, applied, upto, landed), ("%d"):format(ahead)
      wrote = field2 and redis.pcall("HSET", KEYS[1], "at", last, "ordinal", counted, field1, text, field2, text2)
        or redis.pcall("HSET", KEYS[1], "at", last, "ordinal", counted, field1, text)
    elseif write2 then
      wrote = redis.pcall("HSET", KEYS[1], "at", ("%d"):format(ahead), field1, text, field2, text2)
    elseif write1 then
      wrote = redis.pcall("HSET", KEYS[1], "at", ("%d"):format(ahead), field1, text)
    end
    reply = type(wrote) == "table" and wrote or list -- an error is a table
  until true
  if reply then return reply end

  local size = 0
  local function spell(...)
    for _, word in ipairs({ ... }) do
      size = size + 1
      ARGV[size] = word
    end
  end
  spell(instant == 0 and "" or instant, tolerance, latest, horizon, most, gen, epoch, furthest, period, "", "", "")
  spell(field2 and 2 or 1, field1, claim1, "", 0)
  if field2 then spell(field2, claim2, "", 0) end
  spell("0", 1, count, age, 1)
  if field2 then spell(1) end
  spell(alive)
  if learns then
    if not talks then
      unit, den, unbound, reserve = learned:match("^%d+ %d+ (%d+) (%d+) %d+ %d+ %d+ %d+ %d+ %d+ (%d) (%d+)")
      learned = ""
    end
    spell(place, ordinal, free, "", unit, den, hold, 0, since, keep)
    spell(learned, "", 0, lands, spared, 0, 0, 0, unbound, reserve, 0)
  end
end

-- The slots: how many calls of a lane each replica may have in flight. They are shared
-- max-min fairly: a replica gets the slots that it wants, or as many as any other (its sure
-- slots). If the rest is too small for one more each, replicas get one more in turn. This is
-- a separate script, on a hash of its own, KEYS[1], with a field for each replica's lease. The field
-- " learned" has the most slots of all replicas as they have learned last, and when.
--
-- ARGV, integers in decimal, times in microseconds:
--   1  the replica's name
--   2  number of the call: a call that arrives after a later one changes nothing, and a
--      repeated one gets the first one's reply
--   3  most slots of all replicas, by this one's settings: the least of all is in force
--   4  how long the lease lasts from now on
--   5  slots that the replica has, no fewer than its calls in flight
--   6  slots that it wants
--   7  how long a replica that is asked to call may take
--   8  channel of the messages
--   9  the head of a message, before the names of the replicas asked to call
--  10  most slots of all replicas, by what they have learned together; 0: they have learned none
--  11  when, by this server's clock; 0: not known. What was learned last is in force
--
-- The reply: the replica's slots, its sure slots, how many more it may have in turn (0 or 1), 1 if
-- replicas want more than there is, slots of all replicas, replicas, and the time until another's
-- lease may end; 0: no other lease.
--
-- The commands that a caller must be granted: EVAL, EVALSHA, TIME, HGETALL, HSET, HDEL, PEXPIRE,
-- DEL and PUBLISH.

local max, min, floor = math.max, math.min, math.floor

local clock = redis.call("TIME")
local now = clock[1] * 1000000 + clock[2]
local longest = 3600000000 -- the longest lease, in microseconds
local most, patience = tonumber(ARGV[3]), tonumber(ARGV[7])

-- read returns the lease of a field; nothing if it is invalid:
--   call    number of the replica's last call
--   most    slots of all replicas, by its settings
--   till    end of the lease
--   has     slots that it was granted
--   wants   slots that it wants
--   sure    sure slots that it was granted
--   since   when it joined, or got one more slot in turn
--   called  when it was asked to call, if it has not since; 0: not asked
--   lasts   duration of its lease
local function read(text)
  local call, bound, till, has, wants, sure, since, called, lasts =
    text:match("^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$")
  if not call then return nil end
  local l = {
    call = tonumber(call), most = tonumber(bound), till = tonumber(till), has = tonumber(has),
    wants = tonumber(wants), sure = tonumber(sure), since = tonumber(since), called = tonumber(called),
    lasts = tonumber(lasts),
  }
  if l.lasts > longest or l.call > 2^51 or l.most < 1 or max(l.most, l.has, l.wants, l.sure) > 2^30 then return nil end
  if l.till > now + l.lasts then -- the clock has moved back since
    l.till, l.since, l.called, l.changed = now + l.lasts, min(l.since, now), min(l.called, now), true
  end
  return l
end

local function write(l)
  redis.call("HSET", KEYS[1], l.name, ("%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f"):format(
    l.call, l.most, l.till, l.has, l.wants, l.sure, l.since, l.called, l.lasts))
end

local stored = redis.pcall("HGETALL", KEYS[1])
if stored.err then
  if not stored.err:find("WRONGTYPE", 1, true) then return stored end
  redis.call("DEL", KEYS[1])
  stored = {}
end

local learned, learnedAt = tonumber(ARGV[10] or 0), tonumber(ARGV[11] or 0)
local leases, mine, latest = {}, nil, 0 -- latest: when the last turn began
local ended = {}
for i = 1, #stored, 2 do
  local l = read(stored[i + 1])
  if stored[i] == " learned" then
    local bound, at = stored[i + 1]:match("^(%d+) (%d+)$")
    if bound and tonumber(at) > learnedAt and tonumber(at) <= now then learned, learnedAt = min(bound, 2^30), tonumber(at) end
  elseif not l then
    redis.call("HDEL", KEYS[1], stored[i])
  else
    l.name = stored[i]
    local list = l.till > now and leases or ended
    list[#list + 1] = l
    if l.name == ARGV[1] then mine = l end
  end
end
-- If the caller's lease has ended here but it still has slots, the clock was set ahead. The leases
-- of the others are current as well.
local moved = mine and mine.till <= now and tonumber(ARGV[5]) > 0
for i = 1, #ended do
  local l = ended[i]
  if moved then
    leases[#leases + 1], l.till, l.changed = l, now + l.lasts, true
  else
    redis.call("HDEL", KEYS[1], l.name)
    if l == mine then mine = nil end
  end
end
for i = 1, #leases do
  latest = max(latest, leases[i].since)
  if leases[i].changed then write(leases[i]) end
end
local fresh = not mine
if fresh then
  mine = { name = ARGV[1], call = 0, sure = 0, since = now }
  leases[#leases + 1] = mine
end
local call = tonumber(ARGV[2])
if call < mine.call and call > mine.call - 3 then return { 0, 0, 0, 0, 0, 0, 0 } end -- no caller waits for the reply
local has = tonumber(ARGV[5])
if call == mine.call then has = max(has, mine.has) end -- the first reply was lost
mine.call, mine.most, mine.till, mine.called = call, most, now + tonumber(ARGV[4]), 0
mine.lasts = tonumber(ARGV[4])
mine.has, mine.wants = has, tonumber(ARGV[6])

-- A replica that does not call when asked to wants no more than it has.
local wanted, had, live, ends = 0, 0, now, 0
for i = 1, #leases do
  local l = leases[i]
  l.absent = l.called > 0 and now - l.called > patience
  l.want = l.absent and min(l.wants, l.has) or l.wants
  wanted, had = wanted + l.want, had + l.has
  most, live = min(most, l.most), max(live, l.till)
  if l ~= mine and (ends == 0 or l.till < ends) then ends = l.till end
end

if learned > 0 then most = min(most, learned) end
if learnedAt > 0 then redis.call("HSET", KEYS[1], " learned", ("%.0f %.0f"):format(learned, learnedAt)) end

-- level is the most sure slots of any replica, and rest is what remains of all.
local contended = wanted > most or had > most
local level, rest = most, 0
if wanted > most then
  local wants, left = {}, most
  for i = 1, #leases do wants[i] = leases[i].want end
  table.sort(wants)
  for i = 1, #wants do
    local open = #wants - i + 1
    level = floor(left / open)
    if wants[i] > level then
      rest = left - level * open
      break
    end
    left = left - wants[i]
  end
end
for i = 1, #leases do leases[i].due = min(leases[i].want, level) end

-- The caller has its sure slots as soon as they are free.
local free = most - had
local gain = max(0, min(mine.due - mine.has, free))
mine.has, free = mine.has + gain, free - gain

local names = {}
local function summon(l)
  if l == mine or l.called > 0 then return end
  l.called, names[#names + 1] = now, l.name
  write(l)
end

-- Free slots go to replicas that lack sure ones, and then, one each, to those whose last
-- turn is longest ago.
local spare, turns = free, {}
for i = 1, #leases do
  local l = leases[i]
  if spare > 0 and not l.absent and l.has < l.due then
    spare = spare - min(l.due - l.has, spare)
    summon(l)
  end
  if rest > 0 and not l.absent and l.want > level and l.has <= level then turns[#turns + 1] = l end
end
if spare > 0 and #turns > 0 then
  table.sort(turns, function(a, b) return a.since < b.since end)
  for i = 1, min(spare, #turns) do
    if turns[i] == mine then
      -- Turns never begin at the same instant, or the first name would always go first.
      mine.has, mine.since, free = mine.has + 1, max(now, latest + 1), free - 1
    else
      summon(turns[i])
    end
  end
end

-- Ask replicas with more than their sure slots to call, unless they know it.
if contended then
  for i = 1, #leases do
    local l = leases[i]
    if l.has > l.due and l.sure > l.due then summon(l) end
  end
end

mine.sure = contended and mine.due or most
write(mine)
redis.call("PEXPIRE", KEYS[1], ("%.0f"):format(floor((live - now) / 1000) + 60000)) -- longer than most steps of the clock
if #names > 0 and ARGV[8] ~= "" then
  redis.call("PUBLISH", ARGV[8], ARGV[9] .. " " .. table.concat(names, " "))
end
local sure, extra = mine.sure, rest > 0 and mine.want > level and 1 or 0
if fresh and free < 0 then -- others have taken its slots: it uses only the rest
  sure, extra = max(0, min(sure, mine.has + free)), 0
end
return { mine.has, sure, extra, contended and 1 or 0, most - free, #leases, max(0, ends - now) }

-- The lane: what its limits have in common. Its state is in two fields of the hash KEYS[1]: "lane",
-- which changes now and then, and "at", which changes with every grant. During a pause, and for 2 s
-- after it, "lane" has its end twice.

local now -- the instant of this call
local latest -- no instant of the state is later
local tolerance -- how far back credit for time in line reaches
local lane -- its state:
--   gen       the instant at which it was made; a different one means a lost state
--   epoch     grows with each pause, which voids earlier promises
--   paused    no departure before it
--   period, this, before  callers counted in the period of that number, and in the one before
--   till      its keys live until then
--   settled   1: costs may be settled, and charges are remembered for it
--   tuned     up to here, other rules may have granted
--   furthest  the field "at": the latest instant of a grant; a later one was promised
-- and of this call:
--   new, dirty  it was made, or changed
--   lost      it had less than the caller had seen
--   differs   other limits than the caller's are in force
--   healed    an invalid part of the keys was reset
--   message   what is published to the replicas
--   back      the clock moved back
--   written   it was last written before that instant
--   reach     the later of furthest and paused, as it was read
--   known     what the callers have learned together; hold: no departure before it
local CALLERS = 100000 -- the most that a lane counts
local distrusted -- invalid lists, by key
local rules -- the rules of the caller's limits, in order
local reserves, leaves -- permits that limits reserve, and those that a request must leave, by limit

-- Most calls do not need these. The first use in a call makes them.
local makeRare, makeWindows, makeLearned -- of the files that follow
local made -- by makeRare
local function rare()
  made = made or makeRare()
  return made
end
local learnt -- by makeLearned
local function learning()
  learnt = learnt or makeLearned()
  return learnt
end

-- readLane returns the state in the two fields; nothing if they are invalid.
local function readLane(text, at)
  local gen, epoch, paused, period, this, before, till, tail =
    text:match("^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)(.*)$")
  if not gen then return nil end
  local l = {
    gen = tonumber(gen), epoch = tonumber(epoch), paused = tonumber(paused),
    period = tonumber(period), this = tonumber(this), before = tonumber(before), till = tonumber(till),
    settled = 0, tuned = 0, furthest = tonumber(at and at:match("^%d+$")),
    known = false, hold = 0,
  }
  l.written = (l.period + 1) * 5000000
  if not l.furthest or l.furthest > latest or l.gen > latest or l.epoch > 2^50
    or max(l.paused, l.furthest) > l.till or l.written > latest or max(l.this, l.before) > CALLERS or l.till > latest then
    return nil
  end
  l.reach = max(l.paused, l.furthest)
  if tail == "" and l.paused <= now then return l end
  return rare().readRare(l, tail)
end

-- countCaller counts the caller once in each period of 5 s. The caller was last counted in the
-- period seen of the generation gen. It returns the number of callers.
local function countCaller(gen, seen)
  local period = divide(now, 5000000)
  if period ~= lane.period then
    if period < lane.period then -- the clock moved back
      lane.before = max(lane.this, lane.before)
    else
      lane.before = period == lane.period + 1 and lane.this or 0
    end
    lane.period, lane.this, lane.dirty = period, 0, true
  end
  if seen ~= lane.period or gen ~= lane.gen then
    lane.this, lane.dirty = min(lane.this + 1, CALLERS), true
  end
  return max(lane.this, lane.before, 1)
end

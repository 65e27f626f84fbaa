-- The echo: what a caller has seen of a state that was lost is restored from it.

-- honour takes in the furthest instant that the caller has seen granted, and how
-- many it knew. It returns how many callers there are.
local function honour(gen, epoch, furthest, alive)
  if lane.new then
    lane.before = tonumber(ARGV[#ARGV])
    alive = max(alive, lane.before)
  end
  -- Also in a lane that is new: the news of an epoch that was before is no news.
  if (gen == lane.gen or lane.new) and epoch > lane.epoch then lane.epoch, lane.dirty = epoch, true end
  for _, rule in ipairs(rules) do
    if rule.burst and rule:restore(furthest, alive) then lane.lost = true end
  end
  -- Not as far as a caller says: what it cannot have been granted.
  furthest = min(furthest, now + 2000000)
  if furthest > lane.furthest then lane.furthest, lane.dirty = furthest, true end
  return alive
end

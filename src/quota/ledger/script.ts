/**
 * The shared ledger's one atomic script. It keeps one table of slots for all replicas and owns all time in it; whatever it cannot know
 * counts as spent.
 *
 * Every slot has at most one home: the replica that alone may use it, also while Redis is gone. Slots without a home are the pool, used
 * through Redis alone. A slot leaves its home only when its replica is known to have heard of it, has left, or is known to be dead. So no
 * two replicas ever use the same slot, whoever is cut off.
 */
import { redisScript } from "../../redis.js";

/**
 * Arguments: one JSON object (see `Request` in ledger-redis.ts). Answer: the moment and the whole table as this replica needs it (see
 * `decodeReply` there).
 *
 * A slot: `at` the latest moment at which its last call can have arrived; `grant` the call that is in flight; `before` what `at` was
 * before that; `home` its replica; `leaving` the revision whose answer told that replica that the slot is no longer its own; `assumed`
 * spent only because nothing is known; `gift` free only because nobody has claimed otherwise.
 *
 * A member: `seen` when it last asked; `seat` whether it has a share of its own; `place` where it runs, so that another one there shows that
 * it is dead; `since` when it came; `ahead` how far the table's time was ahead of its own clock when that was least; `excess` by how much
 * more it was at every request since `excessAt`, by its own clock.
 */
export const LEDGER_SCRIPT = redisScript(`
local q = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local clock = math.floor(time[1] * 1000 + time[2] / 1000)
local raw = redis.call('GET', KEYS[1])
local read, s = pcall(cmsgpack.unpack, raw or '')
if not (raw and read and type(s) == 'table' and s.slots) then s = nil end
-- The table's time is Redis's clock, put right by what replicas measure. It only goes forward.
local now = clock
if s then
  s.skew = math.max(s.skew or 0, s.now - clock)
  now = clock + s.skew
end
-- A command that lay in a hung Redis must not speak for a replica that has long gone on without it.
if now > q.notAfter then return {now, '', 0, {}, 0, 0, 0, 0, {}, {}, {}, {}, 0} end

-- Who has another budget or window gets nothing while anybody is there who shares the one in force.
if s and (s.budget ~= q.budget or s.windowMs ~= q.windowMs) then
  for name, member in pairs(s.members) do
    if name ~= q.me and now - member.seen <= q.evictMs then return {now, '', -1, {}, 0, 0, 0, 0, {}, {}, {}, {}, 0} end
  end
end
-- Another budget, or a state older than one that this replica has seen (restored from a snapshot), tells nothing that can be relied on.
if s and (s.budget ~= q.budget or s.windowMs ~= q.windowMs or (s.epoch == q.epoch and s.revision < q.revision)) then s = nil end
-- For this request it is no later than the replica's own clock and a slow command explain, so it sees what it would have seen in time. What
-- every request of a second has shown beyond that is no delay but a step of Redis's clock: however small the steps, they add up here.
local known = s and s.members[q.me]
if known then
  known.ahead = known.ahead or now - q.at
  local excess = now - q.at - known.ahead - q.unevenMs
  if excess <= 0 then known.excess = nil
  else
    if not known.excess then known.excess = excess; known.excessAt = q.at end
    known.excess = math.min(known.excess, excess)
    now = now - excess
    if q.at - known.excessAt > 1000 then s.skew = s.skew - known.excess; known.excess = nil end
  end
  now = math.max(now, s.now)
  known.ahead = math.min(known.ahead + (q.at - (known.at or q.at)) / 1000, now - q.at)
  known.at = q.at
end
local latest = now + q.longestMs
if not s then
  local gifts = 0
  if not raw and q.epoch == '' then gifts = q.assumeFree and q.budget or q.headroom end
  known = nil
  s = { epoch = q.nonce, revision = 0, skew = 0, budget = q.budget, windowMs = q.windowMs, now = now, pausedUntil = 0,
        wantedAt = 0, wantedBy = '', day = 0, largest = 0, slots = {}, members = {} }
  for id = 1, q.budget do
    -- A gift opens late enough for a replica that knows better to say so.
    if id <= gifts then s.slots[id] = { at = now - q.occupiedMs + q.evictMs, before = 0, grant = '', home = '', gift = true, assumed = false }
    else s.slots[id] = { at = latest, before = latest, grant = '', home = '', gift = false, assumed = true } end
  end
end

-- Where nobody was heard of for a while, Redis itself was gone, and the table may be older than the last word of those who were there:
-- first everybody gets the chance to be heard again.
if now - s.now > q.evictMs / 2 then s.silentUntil = now; s.trustedFrom = now + q.localAfterMs end
s.now = now

local function slotsAt(name)
  local list = {}
  for _, slot in ipairs(s.slots) do if slot.home == name then list[#list + 1] = slot end end
  return list
end
local function homesOf(name)
  local list = {}
  for _, slot in ipairs(s.slots) do if slot.home == name and not slot.leaving then list[#list + 1] = slot end end
  return list
end
local function sorted(list)
  table.sort(list, function(a, b) return a.at < b.at end)
  return list
end
local function longestRested(list)
  local first = nil
  for _, slot in ipairs(list) do if not first or slot.at < first.at then first = slot end end
  return first
end
local function rested(slot) return slot.at + q.occupiedMs <= now end

-- The use of slots that this replica made on its own: put on those that have rested longest, its own first.
local function charge(agoMs)
  local slot = longestRested(homesOf(q.me)) or longestRested(homesOf(''))
  if slot and slot.at < now - agoMs then slot.at = now - agoMs; slot.grant = ''; slot.gift = false end
end

if not known then s.members[q.me] = { seen = now, since = now, place = q.place, ahead = now - q.at, at = q.at } end
s.members[q.me].seen = now
if s.epoch == q.epoch then
  for _, slot in ipairs(slotsAt(q.me)) do
    if slot.leaving and q.revision >= slot.leaving then slot.home = ''; slot.leaving = nil end
  end
  for _, r in ipairs(q.reports) do
    local slot = s.slots[r.id]
    if r.inFlight then slot.grant = r.grant; slot.before = latest; slot.at = latest
    else
      -- Whatever else was granted on it can no longer be taken back.
      slot.at = slot.grant == r.grant and now - r.agoMs or math.max(slot.at, now - r.agoMs)
      slot.grant = ''
    end
    slot.gift = false
  end
  for _, agoMs in ipairs(q.extra) do charge(agoMs) end
else
  -- Whoever was a member of an earlier table knows that what looks unused may have been used.
  if q.epoch ~= '' then
    for _, slot in ipairs(s.slots) do
      if slot.gift then slot.gift = false; slot.at = latest; slot.before = latest; slot.assumed = true end
    end
  end
  if known then
    -- Said again, by a request sent before the answer to the first: what is known of each slot stays, the rest is the later of the two.
    local mine = sorted(homesOf(q.me))
    table.sort(q.own, function(a, b) return a < b end)
    for n, agoMs in ipairs(q.own) do
      local slot = mine[#mine + 1 - n]
      if not slot then charge(agoMs)
      elseif slot.at < now - agoMs then slot.at = now - agoMs; slot.grant = '' end
    end
  else
    for _, agoMs in ipairs(q.own) do
      local claimed = nil
      for _, slot in ipairs(s.slots) do if slot.home == '' and slot.assumed then claimed = slot end end
      if claimed then claimed.home = q.me; claimed.at = now - agoMs; claimed.assumed = false else charge(agoMs) end
    end
  end
end
if q.op == 'sync' and known and s.epoch == q.epoch then
  -- A grant that its replica never heard of was never used.
  local live = {}
  for _, grant in ipairs(q.live) do live[grant] = true end
  for _, slot in ipairs(s.slots) do
    if slot.grant ~= '' and slot.owner == q.me and not live[slot.grant] then slot.at = slot.before; slot.grant = '' end
  end
end

-- The slots of a dead replica pass on: as they are recorded, unless it had time to use them on its own until it can have been alive.
local function retire(name, aliveUntil)
  local exact = aliveUntil - s.members[name].seen <= q.exactMs
  for _, slot in ipairs(slotsAt(name)) do
    slot.home = ''; slot.leaving = nil
    if not exact then slot.at = math.max(slot.at, aliveUntil + q.longestMs); slot.assumed = true end
  end
  s.members[name] = nil
end
-- Silence alone proves nothing, because a replica that is cut off continues alone: a replica is dead when another one began in its place after its last
-- word, or when it has been silent for very long.
local names = {}
for name in pairs(s.members) do names[#names + 1] = name end
for _, name in ipairs(names) do
  local member = s.members[name]
  local silentMs = now - member.seen
  if name ~= q.me and now > (s.trustedFrom or 0) then
    local began = now - q.openForMs
    if member.place == q.place and began > member.seen and silentMs > q.evictMs then retire(name, began)
    elseif silentMs > q.deadMs then retire(name, now) end
  end
end
-- No more than replicasMax have a seat, and with it a share of their own; the others use what is left in the pool, through Redis alone.
local seats, withheld = 0, 0
for name, member in pairs(s.members) do
  if member.seat then
    seats = seats + 1
    -- Silent, it may soon use its whole share on its own.
    if now - member.seen > q.localAfterMs then withheld = withheld + math.max(0, q.share - #slotsAt(name)) end
  end
end
local self = s.members[q.me]
if not self.seat and seats < q.replicasMax then self.seat = true end

local mine = homesOf(q.me)
local share = self.seat and q.share or 0
local lends = q.waiting == 0 and s.wantedBy ~= q.me and now - s.wantedAt < q.localAfterMs
local aim = lends and math.min(1, share) or share
if q.op == 'leave' then aim = 0 end
if #mine > aim then sorted(mine) end
for n = aim + 1, #mine do mine[n].leaving = s.revision + 1 end
if not lends and q.op ~= 'leave' and #mine < share then
  local pool = sorted(homesOf(''))
  for n = 1, math.min(share - #slotsAt(q.me), #pool - withheld) do pool[n].home = q.me end
end
if q.op == 'leave' then
  for _, slot in ipairs(slotsAt(q.me)) do slot.home = ''; slot.leaving = nil end
  s.members[q.me] = nil
end
mine = homesOf(q.me)
local pool = homesOf('')
local poolFree = -withheld
for _, slot in ipairs(pool) do if rested(slot) then poolFree = poolFree + 1 end end

local taken = {}
-- Who came only after a silence takes nothing until those who were there before it have had the time to say what they know.
local trusted = now >= (s.trustedFrom or 0) or (self.since or 0) < s.silentUntil
if q.op == 'take' and s.pausedUntil <= now and trusted then
  for _, grant in ipairs(q.grants) do
    local slot = longestRested(mine)
    if not (slot and rested(slot)) then
      slot = poolFree > 0 and longestRested(pool) or nil
      if slot then poolFree = poolFree - 1 end
    end
    if not slot then break end
    slot.before = slot.at; slot.at = latest; slot.grant = grant; slot.owner = q.me; slot.gift = false; slot.assumed = false
    for id, one in ipairs(s.slots) do if one == slot then taken[#taken + 1] = id end end
  end
end
if q.op == 'take' then
  if #taken == 0 then s.wantedAt = now; s.wantedBy = q.me end
elseif q.op == 'settle' then
  local slot = s.slots[q.id]
  if slot.grant == q.grant then
    slot.at = q.ending == 'unsent' and slot.before or now + 1 + q.graceMs
    slot.grant = ''
  end
end
if q.pauseMs > 0 then s.pausedUntil = math.max(s.pausedUntil, now + q.pauseMs) end

local used, real = 0, 0
for _, slot in ipairs(s.slots) do
  if not rested(slot) then
    used = used + 1
    if not (slot.assumed or slot.gift) then real = real + 1 end
  end
end
local day = math.floor(now / 86400000)
if day ~= s.day then s.day = day; s.largest = 0 end
s.largest = math.max(s.largest, real)
s.revision = s.revision + 1
redis.call('SET', KEYS[1], cmsgpack.pack(s), 'PX', 86400000)

local ids, ats, poolIds, poolAts = {}, {}, {}, {}
for id, slot in ipairs(s.slots) do
  if slot.home == q.me and not slot.leaving then ids[#ids + 1] = id; ats[#ats + 1] = slot.at
  elseif slot.home == '' then poolIds[#poolIds + 1] = id; poolAts[#poolAts + 1] = slot.at end
end
return {now, s.epoch, s.revision, taken, s.pausedUntil, used, s.largest, withheld, ids, ats, poolIds, poolAts, self.seat and 1 or 0}
`);

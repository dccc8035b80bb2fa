/**
 * The shared ledger's one atomic script. It keeps one table of slots for all replicas, in the table's own time. Anything it can't know counts as
 * spent.
 *
 * Every slot has at most one holder: the only replica that may use it, even while Redis is unreachable. Slots without a holder form the pool, which
 * is used only through Redis. A slot leaves its holder only when that replica has confirmed it, has left, or is known to be dead. So two replicas
 * never use the same slot, even if one of them is cut off.
 *
 * One exception: an urgent request may borrow a rested slot of another replica through Redis. A replica that has agreed to lend lends one slot, and
 * no other until it has seen the loan. If it is cut off in the meantime, it uses one slot less.
 *
 * Table. `generation`: the time of its creation, later than that of every table known before. `unconfirmed`: the replicas that may have seen writes
 * that the table has lost, each with when its calls have rested (in earlier builds all until `poolFrom`). `settledFrom`: from when newcomers can get
 * a share. `wantedAt`, `wantedBy`: when a replica last wanted more slots than it had, and which. `stood`: for how long Redis's clock has stood still
 * in all, as far as any member has found; until `stoodUntil`, requests from before the last time may still arrive. `former`: the members that left
 * or died within the last `deadMs`, with their last revision and request.
 *
 * Slot. `at`: the latest time at which its last call can have arrived. `grant`: the call in flight. `owner`: the replica that makes it. `before`:
 * the value of `at` before that call. `holder`: see above. `leaving`: the revision whose reply asks the holder to give up the slot. `assumed`:
 * counts as spent because nothing is known. `unclaimed`: counts as free because no replica has reported otherwise.
 *
 * Member. `seen`, `sent`: the time and the number of its last request. `contactAt`: when it sent the last request whose reply it has received;
 * some time after that it continues alone, even if its requests still arrive. `revision`, `listedAt`: the revisions of the last and the first reply
 * to it. `seat`: whether it has its own share, of `share` slots. `place`: where it runs; another replica there proves it dead. `isExpected`: it
 * belonged to a lost table and hasn't sent a request since.
 *
 * A member's clock. `ahead`: the smallest lead of the table's time over it, measured at `at`. `excess`: by how much at least every request since
 * `excessAt` has exceeded that lead. `newUntil`: until when the member can't detect a step of Redis's clock. `stood`: the table's `stood` at its last
 * request.
 *
 * Lending. `urgentSince`: since when each urgent request waits at the member, the oldest first. `lends`: whether it has agreed to lend. `lent`: the
 * revision that lent one of its slots, until the member has seen it. `poolDemand`: the calls per window that visitors want there beyond its share.
 */
import { redisScript } from "../../redis.js";

/**
 * Reads the request and the table. Returns early for a command that comes too late, and for a replica whose budget or window differs from the
 * table's while a replica with those of the table is present.
 */
const READ = `
local q = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local clock = math.floor(time[1] * 1000 + time[2] / 1000)
local raw = redis.call('GET', KEYS[1])
local read, s = pcall(cmsgpack.unpack, raw or '')
if not (raw and read and type(s) == 'table' and s.slots) then s = nil end
-- The table's time is Redis's clock, corrected by what replicas measure. It never goes backwards.
local now = clock
if s then
  s.skew = math.max(s.skew or 0, s.now - clock)
  now = clock + s.skew
end
-- Returns only the time.
local function nothing(isMismatch) return cjson.encode({ now = now, isMismatch = isMismatch }) end
-- A command that was stuck in a hung Redis must not be executed: its replica may have continued alone since.
if now > q.notAfter then return nothing(false) end

-- A replica with a different budget or window gets nothing while one with those of the table is present. A short silence doesn't count as absence.
if s and (s.budget ~= q.budget or s.windowMs ~= q.windowMs) then
  for name, member in pairs(s.members) do
    if name ~= q.me and now - member.seen <= 2 * q.localAfterMs then return nothing(true) end
  end
end
`;

/** Finds the caller in the table, and decides whether the table can be trusted. Returns early for a request that was overtaken by a later one. */
const LOST = `
local lost = nil
-- A table with another budget can't be trusted, nor one whose last writes were lost (in a failover, or restored from a snapshot). Every reply to a
-- replica is on record, so a replica that has seen a later one has seen what was lost, whatever others have written since.
if s then
  s.former = s.former or {}
  local onRecord = s.members[q.me] or s.former[q.me]
  local isLost = s.epoch == q.epoch and q.revision > (onRecord and onRecord.revision or 0)
  local isOlder = q.epoch ~= '' and s.epoch ~= q.epoch and (s.generation or 0) <= q.generation
  if s.budget ~= q.budget or s.windowMs ~= q.windowMs or isLost or isOlder then lost = s; s = nil end
end
local listed = s and s.members[q.me]
local isExpected = listed and listed.isExpected
local self = listed
if not listed or isExpected then
  -- The lead of a lost table says nothing about that of another.
  local ahead = s and s.epoch == q.epoch and q.ahead or nil
  self = { ahead = ahead, at = q.at, newUntil = not ahead and q.at + q.newMs or nil, seat = isExpected or nil }
end
-- A handover applies only to the table that the dead replica knew: in a later one, its slots may belong to others.
if q.isFromSuccessor and not lost and not (listed and not isExpected and s.epoch == q.epoch) then return nothing(false) end
-- Overtaken by a later request of this replica, which no longer waits for this one, or has left.
local former = not listed and s and s.former[q.me] or {}
if q.sent <= math.max(self.sent or 0, former.sent or 0) then return nothing(false) end
-- The replica may only have been stopped, and send further requests.
if not q.isFromSuccessor then self.sent = q.sent end
`;

/** Determines the time: distinguishes steps of Redis's clock from network delay. */
const CLOCK = `
-- Older releases don't send these fields.
local function contactOf(member) return member.contactAt or member.seen end
local function shareOf(member) return member.share or q.share end
-- By the confirmed time: by any other, all would seem to have been silent since a step.
local function isPresent(name, member) return name ~= q.me and s.now - member.seen <= q.evictMs end
-- The time of a request is when it was sent, by the replica's own clock. If every request within a second was late by at least some amount, that
-- amount isn't delay but a step of Redis's clock, and is corrected for everyone. Small steps add up here.
local stoodMs = 0
if s then
  self.ahead = self.ahead or now - q.at
  -- If nobody could detect a step while it was cut off, its slots and those of the pool have rested for less than they seem to.
  -- A leave request from the successor confirms a step unless another member is there to correct it.
  local confirmed = s.now
  if q.isFromSuccessor then
    confirmed = now
    for name, member in pairs(s.members) do
      if isPresent(name, member) and not member.newUntil then confirmed = s.now end
    end
  end
  local stepped = confirmed - q.at - self.ahead - q.unevenMs
  if stepped > 0 and (q.isFromSuccessor or s.now - (self.seen or 0) > q.evictMs) then
    for _, slot in ipairs(s.slots) do
      if (slot.holder == q.me or slot.holder == '') and slot.at <= q.at + self.ahead + q.longestMs then
        slot.at = slot.at + stepped; slot.before = slot.before + stepped
      end
    end
    self.ahead = self.ahead + stepped
  end
  local excess = now - q.at - self.ahead - q.unevenMs
  if excess <= 0 then self.excess = nil
  else
    if not self.excess then self.excess = excess; self.excessAt = q.at end
    self.excess = math.min(self.excess, excess)
    now = now - excess
    if q.at - self.excessAt > 1000 then s.skew = s.skew - self.excess; self.excess = nil end
  end
  now = math.max(now, s.now)
  -- If Redis's clock stood still, the others have been silent for so much longer than the table's time says.
  local behind = math.max(0, self.ahead - (now - q.at))
  for name, member in pairs(s.members) do
    if name ~= q.me and member.contactAt then member.contactAt = member.contactAt - behind end
  end
  -- A request that doesn't show what others have found was sent before the clock stood still. Its replica may have continued alone since.
  s.stood = s.stood or 0
  local shown = (self.stood or s.stood) + behind
  if shown + q.evictMs / 2 < s.stood and now <= s.stoodUntil then return nothing(false) end
  if shown > s.stood + q.evictMs / 2 then
    stoodMs = shown - s.stood
    s.stood = shown
    s.stoodUntil = now + q.longestMs + q.occupiedMs
  end
  self.stood = s.stood
  self.ahead = math.min(self.ahead + (q.at - self.at) / 1000, now - q.at)
end
self.at = q.at
`;

/** Creates a table if there is none. Everything that a lost one knew counts as spent. */
const NEW_TABLE = `
local latest = now + q.longestMs
if not s then
  local freeSlots = 0
  if not raw and q.epoch == '' then freeSlots = q.assumeFree and q.budget or q.headroom end
  s = { epoch = q.nonce, generation = math.max(clock, q.generation + 1), revision = 0, skew = now - clock, budget = q.budget, windowMs = q.windowMs, now = now, pausedUntil = 0,
        settledFrom = now + q.evictMs, wantedAt = 0, wantedBy = '', day = 0, largest = 0, slots = {}, members = {}, former = {} }
  for id = 1, q.budget do
    -- Not usable until replicas that know better have had time to report it.
    if id <= freeSlots then s.slots[id] = { at = now - q.occupiedMs + q.evictMs, before = 0, grant = '', holder = '', unclaimed = true, assumed = false }
    else s.slots[id] = { at = latest, before = latest, grant = '', holder = '', unclaimed = false, assumed = true } end
  end
end

-- Members of a lost table may be cut off and continue alone: each keeps a share until it sends a request or is known to be dead.
local function expect(name, place, seen, contactAt, share)
  if name == q.me or s.members[name] then return end
  local held = 0
  for _, slot in ipairs(s.slots) do
    if held < share and slot.holder == '' and slot.assumed then slot.holder = name; held = held + 1 end
  end
  s.members[name] = { seen = seen, contactAt = contactAt, share = share, place = place, seat = true, isExpected = true }
end
if q.epoch ~= '' and s.epoch ~= q.epoch then
  -- This replica belonged to an earlier table, so slots that look unused may have been used.
  for _, slot in ipairs(s.slots) do
    if slot.unclaimed then slot.unclaimed = false; slot.at = latest; slot.before = latest; slot.assumed = true end
  end
  for _, other in ipairs(q.others) do expect(other.name, other.place, now - other.silentMs, now - other.silentMs, other.share) end
end
if lost then
  for name, member in pairs(lost.members) do
    if member.seat then expect(name, member.place, math.min(now, member.seen), math.min(now, contactOf(member)), shareOf(member)) end
  end
end
`;

/** Determines which other replicas must report before the pool is used or a new replica gets a share. */
const TRUST = `
-- If no replica sent a request for a while, Redis itself was unreachable, and the table may have lost its last writes. Until every replica that may
-- have seen one has reported, or its calls have rested, no slot of the pool is given out.
if now - (s.requestedAt or s.now) + stoodMs > q.evictMs / 2 then
  s.trustedFrom = now + q.localAfterMs
  s.poolFrom = now + q.longestMs + q.occupiedMs
  s.unconfirmed = s.unconfirmed or {}
  for name, member in pairs(s.members) do
    if s.now - member.seen <= q.localAfterMs then s.unconfirmed[name] = s.poolFrom end
  end
end
if s.unconfirmed then
  s.unconfirmed[q.me] = nil
  for name, from in pairs(s.unconfirmed) do
    if now >= (tonumber(from) or s.poolFrom) then s.unconfirmed[name] = nil end
  end
  if not next(s.unconfirmed) then s.unconfirmed = nil end
end
s.requestedAt = now
-- A process that has just started can't detect a step of Redis's clock. While others can, it doesn't advance the time by which slots have rested.
-- And it gets a seat only once the others know of it; otherwise it would be forgotten if the table were lost.
if self.newUntil and q.at >= self.newUntil then self.newUntil = nil end
self.listedAt = self.listedAt or s.revision + 1
local isChecked, isKnown = true, true
for name, member in pairs(s.members) do
  if isPresent(name, member) then
    if self.newUntil and not member.newUntil then isChecked = false end
    if (member.revision or 0) < self.listedAt then isKnown = false end
  end
end
if isChecked then s.now = math.max(s.now, now) end
`;

/** Helpers of the parts below. */
const SLOTS = `
local function slotsOf(name)
  local list = {}
  for _, slot in ipairs(s.slots) do if slot.holder == name then list[#list + 1] = slot end end
  return list
end
local function ownSlotsOf(name)
  local list = {}
  for _, slot in ipairs(s.slots) do if slot.holder == name and not slot.leaving then list[#list + 1] = slot end end
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
local function rested(slot) return slot.at + q.occupiedMs <= s.now end
-- The slot that this member can lend now, or nil.
local function lendable(name, member)
  if s.unconfirmed or member.lent or not member.lends or now - contactOf(member) > q.lendMs then return nil end
  local slot = longestRested(ownSlotsOf(name))
  return slot and rested(slot) and slot or nil
end
`;

/** Records what this replica has done since its last request, with or without Redis. */
const REPORTS = `
local function otherMember(slot) return slot.holder ~= q.me and s.members[slot.holder] or nil end
local chargeable = {
  function(slot) return slot.holder == q.me and not slot.leaving end,
  function(slot) return slot.holder == '' end,
  function(slot) local member = otherMember(slot); return member and member.place == q.place and now - member.seen > q.evictMs end,
  function(slot) local member = otherMember(slot); return member and now - member.seen <= q.evictMs end,
}
-- Records a call on a slot, unless it is known to have been used later. If that was by a grant that is taken back, this call still counts.
local function record(slot, at)
  slot.before = math.max(slot.before, at)
  if slot.at < at then slot.at = at; slot.grant = ''; slot.unclaimed = false; slot.assumed = false end
end
-- Records a call that this replica made alone, on a slot that nobody uses now: its own, one of the pool, one of a silent member in the same place,
-- or one of a replica that currently takes slots through Redis and so learns of it. If there is none, on the one used longest ago.
local function charge(agoMs)
  local at = now - agoMs
  local last = nil
  for _, isChargeable in ipairs(chargeable) do
    for _, slot in ipairs(s.slots) do if isChargeable(slot) and (not last or slot.at < last.at) then last = slot end end
    if last and rested(last) then break end
  end
  if last then record(last, at) end
end

self.ahead = self.ahead or now - q.at
self.seen = now
self.contactAt = now - q.contactAgoMs
self.place = q.place
self.share = q.share
self.lends = q.lends
self.poolDemand = q.poolDemand
s.members[q.me] = self
if s.epoch == q.epoch then
  if q.revision >= (self.lent or math.huge) then self.lent = nil end
  for _, slot in ipairs(slotsOf(q.me)) do
    if slot.leaving and q.revision >= slot.leaving then slot.holder = ''; slot.leaving = nil end
  end
  for _, r in ipairs(q.reports) do
    local slot = s.slots[r.id]
    if r.inFlight then slot.grant = r.grant; slot.before = latest; slot.at = latest
    else
      -- Another call granted on the slot since then can no longer be undone.
      local isLast = r.grant ~= '' and slot.grant == r.grant
      slot.at = isLast and now - r.agoMs or math.max(slot.at, now - r.agoMs)
      slot.grant = ''
    end
    slot.unclaimed = false; slot.assumed = false
  end
  for _, agoMs in ipairs(q.extra) do charge(agoMs) end
else
  -- It hasn't seen a loan of the lost table.
  if q.mayHaveLent then self.lent = s.revision + 1 end
  if isExpected then
    for _, slot in ipairs(slotsOf(q.me)) do slot.holder = '' end
  end
  if listed and not isExpected then
    -- A repeated report, sent before the reply to the first arrived: for each slot, the later time counts.
    local mine = sorted(ownSlotsOf(q.me))
    table.sort(q.own, function(a, b) return a < b end)
    for n, agoMs in ipairs(q.own) do
      local slot = mine[#mine + 1 - n]
      if slot then record(slot, now - agoMs) else charge(agoMs) end
    end
  else
    for _, agoMs in ipairs(q.own) do
      local claimed = nil
      for _, slot in ipairs(s.slots) do
        if slot.holder == '' and slot.assumed and (not claimed or slot.at < claimed.at) then claimed = slot end
      end
      if claimed then claimed.holder = q.me; claimed.at = now - agoMs; claimed.assumed = false else charge(agoMs) end
    end
  end
end
if q.op == 'sync' and listed and s.epoch == q.epoch then
  -- A grant whose reply never reached its replica was never used.
  local live = {}
  for _, grant in ipairs(q.live) do live[grant] = true end
  for _, slot in ipairs(s.slots) do
    if slot.grant ~= '' and slot.owner == q.me and not live[slot.grant] then slot.at = slot.before; slot.grant = '' end
  end
end
`;

/** Determines which members are dead, which have a share, and how many slots of the pool are withheld for silent ones. */
const MEMBERS = `
local function remove(name)
  local member = s.members[name]
  s.members[name] = nil
  s.former[name] = { revision = member.revision, sent = member.sent, at = now }
end
for name, one in pairs(s.former) do
  if now - one.at > q.deadMs then s.former[name] = nil end
end
-- Frees the slots of a dead replica: as recorded, unless it was silent for long enough to have used them alone.
local function retire(name, aliveUntil)
  local exact = aliveUntil - contactOf(s.members[name]) <= q.exactMs
  for _, slot in ipairs(slotsOf(name)) do
    slot.holder = ''; slot.leaving = nil
    if not exact then slot.at = math.max(slot.at, aliveUntil + q.longestMs); slot.grant = ''; slot.assumed = true end
  end
  remove(name)
end
-- Silence alone proves nothing, because a replica that is cut off continues alone. A replica is dead if another one started in its place after its
-- last request, or if it has been silent for deadMs and the caller has been running for at least as long: a younger caller can't tell silence from
-- a step of Redis's clock.
if now > (s.trustedFrom or 0) then
  local began = now - q.openForMs
  for _, name in ipairs(q.replaced) do
    local member = s.members[name]
    if member and began > member.seen and now - member.seen > q.evictMs then retire(name, began) end
  end
  local dead = {}
  for name, member in pairs(s.members) do
    if name ~= q.me and math.min(now - member.seen, q.openForMs) > q.deadMs then dead[#dead + 1] = name end
  end
  for _, name in ipairs(dead) do retire(name, now) end
end
-- At most replicasMax members have a seat, and with it their own share, if the budget has one left: some replicas may be configured for more replicas than
-- others, and so have smaller shares. Those without a seat use what the pool has left, only through Redis.
local seats, shares, withheld = 0, 0, 0
for name, member in pairs(s.members) do
  if member.seat then
    seats = seats + 1
    shares = shares + shareOf(member)
    -- A silent member may soon use its whole share alone.
    if now - contactOf(member) > q.localAfterMs then withheld = withheld + math.max(0, shareOf(member) - #slotsOf(name)) end
  end
end
-- Usually all report within a beat, so forecasts don't change until that takes too long.
local forecast = s.unconfirmed and now >= s.trustedFrom and s.budget or withheld
if s.unconfirmed then withheld = s.budget end
-- In a new table, replicas that had a share in the former one come first.
local isTurn = q.seated or isKnown and now >= (s.settledFrom or 0)
local isFree = seats < q.replicasMax and shares + q.share <= s.budget
if not self.seat and isFree and isTurn then self.seat = true end
`;

/** Gives this replica its share or takes it back: all of it when it leaves, all but one slot while it is idle and others want more than they have. */
const SHARES = `
local mine = ownSlotsOf(q.me)
local share = self.seat and q.share or 0
local isIdle = not q.waiting and q.poolDemand == 0
local lends = isIdle and s.wantedBy ~= q.me and now - s.wantedAt < q.localAfterMs
local aim = lends and math.min(1, share) or share
if q.op == 'leave' then aim = 0 end
if #mine > aim then sorted(mine) end
for n = aim + 1, #mine do mine[n].leaving = s.revision + 1 end
-- The slots of the pool that have rested longest are those that silent members may soon use, this replica perhaps among them.
if not lends and q.op ~= 'leave' and #mine < share and now - contactOf(self) <= q.localAfterMs then
  local pool = sorted(ownSlotsOf(''))
  for n = 1, math.min(share - #slotsOf(q.me), #pool - withheld) do pool[withheld + n].holder = q.me end
end
if q.op == 'leave' then
  for _, slot in ipairs(slotsOf(q.me)) do slot.holder = ''; slot.leaving = nil end
  remove(q.me)
end
mine = ownSlotsOf(q.me)
local pool = ownSlotsOf('')
local poolFree = -withheld
for _, slot in ipairs(pool) do if rested(slot) then poolFree = poolFree + 1 end end
`;

/** Takes or settles a slot. */
const CALLS = `
-- Urgent requests of any replica get the next slots, first those that have waited longest: everyone leaves as many slots as those before it can use.
self.urgentSince = {}
for n, forMs in ipairs(q.urgentForMs) do self.urgentSince[n] = now - forMs end
table.sort(self.urgentSince)
local oldest = self.urgentSince[1]
local wanted, before, poolDemandElsewhere = 0, 0, 0
for name, member in pairs(s.members) do
  if name ~= q.me and now - member.seen <= q.evictMs / 2 then
    poolDemandElsewhere = poolDemandElsewhere + (member.poolDemand or 0)
    for _, since in ipairs(member.urgentSince or {}) do
      wanted = wanted + 1
      if not oldest or since < oldest then before = before + 1 end
    end
  end
end
local taken, isBorrowed = 0, false
if q.op == 'take' and s.pausedUntil <= now then
  local own = {}
  for _, slot in ipairs(mine) do if rested(slot) then own[#own + 1] = slot end end
  -- If the table has lost its last writes, one of its own slots may be lent.
  local keeps = s.unconfirmed and q.mayHaveLent and 1 or 0
  -- Those before it get the free slots of the pool and, if there aren't enough, the first slots that others lend.
  local spare = 0
  if before > 0 then
    spare = math.min(0, math.max(0, poolFree) - before)
    poolFree = poolFree - before
    if spare < 0 and lendable(q.me, self) then keeps = 1 end
  end
  local slot = #own > keeps and longestRested(own) or nil
  if not slot and poolFree > 0 then slot = longestRested(pool) end
  if not slot and oldest then
    local lender = nil
    for name, member in pairs(s.members) do
      local other = name ~= q.me and lendable(name, member)
      if other then spare = spare + 1 end
      if other and (not slot or other.at < slot.at) then slot = other; lender = member end
    end
    if spare <= 0 then slot = nil end
    if slot then lender.lent = s.revision + 1; isBorrowed = true end
  end
  if slot then
    slot.before = slot.at; slot.at = latest; slot.grant = q.grant; slot.owner = q.me; slot.unclaimed = false; slot.assumed = false
    for id, one in ipairs(s.slots) do if one == slot then taken = id end end
  end
end
if q.poolDemand > 0 or q.op == 'take' and taken == 0 then s.wantedAt = now; s.wantedBy = q.me end
if q.op == 'settle' then
  local slot = s.slots[q.id]
  if slot.grant == q.grant then
    slot.at = q.outcome == 'unsent' and slot.before or now + 1 + q.graceMs
    slot.grant = ''
  end
end
if taken > 0 then table.remove(self.urgentSince, 1) end
if q.pauseMs > 0 then s.pausedUntil = math.max(s.pausedUntil, now + q.pauseMs) end
`;

/** Stores the table, and returns this replica's view of it. */
const REPLY = `
local used, real = 0, 0
for _, slot in ipairs(s.slots) do
  if not rested(slot) then
    used = used + 1
    if not (slot.assumed or slot.unclaimed) then real = real + 1 end
  end
end
local day = math.floor(now / 86400000)
if day ~= s.day then s.day = day; s.largest = 0 end
s.largest = math.max(s.largest, real)
s.revision = s.revision + 1
self.revision = s.revision
redis.call('SET', KEYS[1], cmsgpack.pack(s), 'PX', 86400000)

-- The members that have a share or may soon get one.
local others = {}
for name, member in pairs(s.members) do
  if name ~= q.me and (member.seat or seats < q.replicasMax) then
    others[#others + 1] = { name = name, place = member.place, share = shareOf(member), silentMs = math.max(0, now - member.seen) }
  end
end
local ids, ats, poolIds, poolAts, otherAts = {}, {}, {}, {}, {}
for id, slot in ipairs(s.slots) do
  if slot.holder == q.me and not slot.leaving then ids[#ids + 1] = id; ats[#ats + 1] = slot.at
  elseif slot.holder == '' then poolIds[#poolIds + 1] = id; poolAts[#poolAts + 1] = slot.at
  elseif q.borrows and s.members[slot.holder] and now - contactOf(s.members[slot.holder]) <= q.lendMs then otherAts[#otherAts + 1] = slot.at end
end
return cjson.encode({
  now = now, epoch = s.epoch, generation = s.generation or 0, revision = s.revision,
  taken = taken, isBorrowed = isBorrowed, pausedUntil = s.pausedUntil, used = used, largest = s.largest,
  withheld = forecast, isSeated = self.seat or false, own = { ids = ids, ats = ats }, pool = { ids = poolIds, ats = poolAts },
  others = otherAts, urgentElsewhere = wanted, poolDemandElsewhere = poolDemandElsewhere, aheadMs = math.ceil(self.ahead), members = others,
})
`;

/** Takes a `Request` and returns what `parseReply` reads (protocol.ts), both as JSON. */
export const LEDGER_SCRIPT = redisScript(
  [READ, LOST, CLOCK, NEW_TABLE, TRUST, SLOTS, REPORTS, MEMBERS, SHARES, CALLS, REPLY].join(""),
);

/**
 * Shares reservations and the rate of cart calls between replicas: each publishes its own through Redis, and reads those of the others, seven times
 * a second. So a reservation is valid at every replica. No request waits for Redis; without it, each replica continues with what it knows.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { type RedisLink, redisScript } from "../redis.js";
import type { Reservation, SharedReservations } from "./scheduler/reservations.js";
import type { OwnReservations } from "./scheduler/scheduler.js";

/** A reservation, or null if it is over. */
interface Change {
  readonly reservation: Reservation | null;
  /** Monotonic. */
  readonly at: number;
}

interface ShareReservationsSettings {
  readonly redis: RedisLink;
  /** Identifies the credential without revealing it. */
  readonly fingerprint: string;
  readonly clock: Clock;
}

/** The minimum wait of a refusal is one second. */
const EXCHANGE_EVERY_MS = 150;

/**
 * Records this replica's changes and returns those of the others since `after`, or everything if the table isn't the one the replica knows. A
 * reservation has `n`, the number of its last change; `by`, the replica that made it; `at`, when it is due; and `over`, whether it was claimed or
 * given up. It is deleted three seconds after it was due, and a replica after three seconds of silence. Of two changes, the one decided last (`told`)
 * holds, in whichever order they arrive. `carts`: the cart calls per window of each replica.
 */
const EXCHANGE = redisScript(`
local q = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local raw = redis.call('GET', KEYS[1])
local read, s = pcall(cmsgpack.unpack, raw or '')
if not (raw and read and type(s) == 'table' and s.reservations) then s = { table = q.nonce, n = 0, members = {}, reservations = {} } end
s.carts = s.carts or {}
local changed = math.abs(now - (s.members[q.me] or 0)) > 1000 or s.carts[q.me] ~= q.carts
s.members[q.me] = now
s.carts[q.me] = q.carts
for _, one in ipairs(q.changes) do
  s.n = s.n + 1
  local told, before = now - one.agoMs, s.reservations[one.key]
  if before and (before.told or 0) > told then before.n = s.n
  else s.reservations[one.key] = { n = s.n, told = told, by = q.me, at = now + one.inMs, over = one.over, client = one.client, asked = now - one.askedAgoMs, wait = one.maxWaitMs, early = one.earlyAsks } end
  changed = true
end
local others, members, carts = {}, 0, 0
for name, seen in pairs(s.members) do
  if math.abs(now - seen) > 3000 then s.members[name] = nil; s.carts[name] = nil; changed = true
  else
    members = members + 1
    if name ~= q.me then carts = carts + (s.carts[name] or 0) end
  end
end
for key, one in pairs(s.reservations) do
  if one.at < now - 3000 then s.reservations[key] = nil
  elseif one.by ~= q.me and (s.table ~= q.table or one.n > q.after) then
    others[#others + 1] = { key, one.over and 1 or 0, one.client, one.at - now, now - one.asked, one.wait, one.early }
  end
end
if changed then redis.call('SET', KEYS[1], cmsgpack.pack(s), 'PX', 600000) end
return { s.table, s.n, members, math.ceil(carts), others }`);

const replySchema = z.tuple([
  z.string(),
  z.number(),
  z.number(),
  z.number(),
  z.array(z.tuple([z.string(), z.number(), z.string(), z.number(), z.number(), z.number(), z.number()])),
]);

export function shareReservations(
  settings: ShareReservationsSettings,
  own: OwnReservations,
): SharedReservations {
  const { redis, fingerprint, clock } = settings;
  const redisKey = `af-storefront:reservations:${fingerprint}`;
  const me = randomUUID();
  /** Changes that Redis hasn't confirmed, and when they were decided. */
  const unpublished = new Map<string, Change>();
  let table = "";
  let after = 0;
  let members = 1;
  let cartsElsewhere = 0;
  let cancel = (): void => {};

  async function exchange(): Promise<void> {
    const sentAt = clock.monotonic();
    const publishing = [...unpublished];
    const request = {
      me,
      nonce: randomUUID(),
      table,
      after,
      carts: own.cartsPerWindow(),
      changes: publishing.map(([key, { reservation, at }]) => ({
        key,
        agoMs: Math.round(sentAt - at),
        over: reservation === null,
        client: reservation?.client ?? "",
        inMs: Math.round((reservation?.dueAt ?? sentAt) - sentAt),
        askedAgoMs: Math.round(sentAt - (reservation?.askedAt ?? sentAt)),
        maxWaitMs: reservation?.maxWaitMs ?? 0,
        earlyAsks: reservation?.earlyAsks ?? 0,
      })),
    };
    const reply = await redis.run(EXCHANGE, redisKey, [JSON.stringify(request)]);
    const [newTable, last, count, carts, others] = replySchema.parse(reply);
    const now = clock.monotonic();
    for (const [key, change] of publishing) if (unpublished.get(key) === change) unpublished.delete(key);
    if (newTable !== table && table !== "")
      for (const reservation of own.all())
        if (!unpublished.has(reservation.key)) unpublished.set(reservation.key, { reservation, at: 0 });
    table = newTable;
    after = last;
    members = count;
    cartsElsewhere = carts;
    for (const [key, isOver, client, inMs, askedAgoMs, maxWaitMs, earlyAsks] of others) {
      if (unpublished.has(key)) continue;
      const reservation = { key, client, dueAt: now + inMs, askedAt: now - askedAgoMs, maxWaitMs, earlyAsks };
      own.learn(key, isOver === 1 ? null : reservation);
    }
  }

  function later(): void {
    cancel = clock.after(EXCHANGE_EVERY_MS, () => {
      const exchanged = redis.reachable() ? exchange().catch(() => undefined) : Promise.resolve();
      void exchanged.then(() => {
        if (!isClosed) later();
      });
    });
  }
  let isClosed = false;
  later();

  return {
    changed: (key, reservation) => {
      unpublished.set(key, { reservation, at: clock.monotonic() });
    },
    // Without Redis, only a replica that has been the only one knows that there are no others.
    canPublish: () => redis.reachable() || (table !== "" && members === 1),
    replicas: () => members,
    cartsElsewhere: () => cartsElsewhere,
    async close() {
      isClosed = true;
      cancel();
      if (unpublished.size > 0 && redis.reachable()) await exchange().catch(() => undefined);
    },
  };
}

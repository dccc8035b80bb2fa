/**
 * Reservations over replicas: each tells Redis of those that it makes and of those that are over, and hears of the others' a few times a
 * second. So where their holder returns, it is known; nobody who asks waits for Redis, and without it each goes on with what it knows.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { type RedisLink, redisScript } from "../redis.js";
import type { Place, SharedPlaces } from "./scheduler/reservations.js";
import type { OwnPlaces } from "./scheduler/scheduler.js";

export interface SharePlacesSettings {
  readonly redis: RedisLink;
  /** Names the credential without telling it. */
  readonly fingerprint: string;
  readonly clock: Clock;
}

/** The minimum wait of a refusal is one second. */
const EXCHANGE_EVERY_MS = 150;

/**
 * Adds this replica's changes and returns those of the others since `after`, or all where the table is another than the replica has seen.
 * A place: `n` number of its last change, `by` who made that, `at` when it is due, `over` claimed or given up. It is forgotten three
 * seconds after it was due, and so is a replica that has not been heard of for as long.
 */
const EXCHANGE = redisScript(`
local q = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local raw = redis.call('GET', KEYS[1])
local read, s = pcall(cmsgpack.unpack, raw or '')
if not (raw and read and type(s) == 'table' and s.places) then s = { table = q.nonce, n = 0, members = {}, places = {} } end
local changed = math.abs(now - (s.members[q.me] or 0)) > 1000
s.members[q.me] = now
for _, one in ipairs(q.changes) do
  s.n = s.n + 1
  s.places[one.key] = { n = s.n, by = q.me, at = now + one.inMs, over = one.over, client = one.client, asked = now - one.askedAgoMs, wait = one.maxWaitMs, early = one.earlyAsks }
  changed = true
end
local others, members = {}, 0
for name, seen in pairs(s.members) do
  if math.abs(now - seen) > 3000 then s.members[name] = nil; changed = true else members = members + 1 end
end
for key, one in pairs(s.places) do
  if one.at < now - 3000 then s.places[key] = nil
  elseif one.by ~= q.me and (s.table ~= q.table or one.n > q.after) then
    others[#others + 1] = { key, one.over and 1 or 0, one.client, one.at - now, now - one.asked, one.wait, one.early }
  end
end
if changed then redis.call('SET', KEYS[1], cmsgpack.pack(s), 'PX', 600000) end
return { s.table, s.n, members, others }`);

const replySchema = z.tuple([
  z.string(),
  z.number(),
  z.number(),
  z.array(z.tuple([z.string(), z.number(), z.string(), z.number(), z.number(), z.number(), z.number()])),
]);

export function sharePlaces(settings: SharePlacesSettings, own: OwnPlaces): SharedPlaces {
  const { redis, fingerprint, clock } = settings;
  const redisKey = `af-storefront:reservations:${fingerprint}`;
  const me = randomUUID();
  /** What the others have not heard. */
  const untold = new Map<string, Place | null>();
  let table = "";
  let after = 0;
  let members = 1;
  let cancel = (): void => {};

  async function exchange(): Promise<void> {
    const sentAt = clock.monotonic();
    const telling = [...untold];
    const request = {
      me,
      nonce: randomUUID(),
      table,
      after,
      changes: telling.map(([key, place]) => ({
        key,
        over: place === null,
        client: place?.client ?? "",
        inMs: Math.round((place?.dueAt ?? sentAt) - sentAt),
        askedAgoMs: Math.round(sentAt - (place?.askedAt ?? sentAt)),
        maxWaitMs: place?.maxWaitMs ?? 0,
        earlyAsks: place?.earlyAsks ?? 0,
      })),
    };
    const reply = await redis.run(EXCHANGE, redisKey, [JSON.stringify(request)]);
    const [newTable, last, count, others] = replySchema.parse(reply);
    const now = clock.monotonic();
    for (const [key, place] of telling) if (untold.get(key) === place) untold.delete(key);
    if (newTable !== table && table !== "")
      for (const place of own.all()) if (!untold.has(place.key)) untold.set(place.key, place);
    table = newTable;
    after = last;
    members = count;
    for (const [key, isOver, client, inMs, askedAgoMs, maxWaitMs, earlyAsks] of others) {
      if (untold.has(key)) continue;
      const place = { key, client, dueAt: now + inMs, askedAt: now - askedAgoMs, maxWaitMs, earlyAsks };
      own.learn(key, isOver === 1 ? null : place);
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
    changed: (key, place) => {
      untold.set(key, place);
    },
    replicas: () => members,
    close() {
      isClosed = true;
      cancel();
    },
  };
}

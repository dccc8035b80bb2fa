/**
 * One limit per client across all replicas. Each replica admits a client's share (limit / replicas) without Redis; a client that exceeds
 * its share is counted in Redis by every replica from then on. While Redis is unreachable, each replica admits only the share.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { type Clock, pause } from "../../clock.js";
import { type RedisLink, redisScript } from "../../redis.js";
import type { ClientWindow, ClientWindows } from "./client-windows.js";

interface SharedLimit {
  /** Whether the client's next request must be counted in Redis. */
  mustAsk(window: ClientWindow): boolean;
  /** Counts the request; returns whether it is within the limit of all replicas. Takes at most a few Redis deadlines. */
  take(window: ClientWindow): Promise<boolean>;
  /** How many more requests will be admitted, as far as this replica knows. */
  left(window: ClientWindow): number;
}

/** The replicas that share a Redis. */
export interface Replicas {
  readonly link: RedisLink;
  readonly replicasMax: number;
}

interface SharedLimitSettings extends Replicas {
  readonly limit: number;
  readonly windows: ClientWindows;
  readonly clock: Clock;
}

/** How long a request waits for the counts of other replicas; after that they count as having admitted their shares. */
const MAX_WAIT_MS = 50;
const POLL_EVERY_MS = 5;
const CHANNEL = "af-storefront:limit:requests";

/**
 * The first call for a client notifies all replicas (`notified`: how many received it), which then add what they admitted without Redis. Until they
 * have, their shares count as admitted. Arguments: replica, admitted there, 1 to admit one more, limit, share, ms to the end of the minute,
 * channel, client.
 */
const COUNT = redisScript(`
local me, limit, share = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local raw = redis.call('GET', KEYS[1])
local minute = raw and cjson.decode(raw)
local leftMs = raw and redis.call('PTTL', KEYS[1]) or tonumber(ARGV[6])
if not minute then minute = { notified = redis.call('PUBLISH', ARGV[7], me .. ' ' .. ARGV[8]), admitted = {} } end
if not minute.admitted[me] then minute.admitted[me] = tonumber(ARGV[2]) end
local total, members = 0, 0
for _, count in pairs(minute.admitted) do total = total + count; members = members + 1 end
local missing = math.max(0, minute.notified - members)
local granted = 0
if ARGV[3] == '1' and total + missing * share < limit then
  granted = 1
  minute.admitted[me] = minute.admitted[me] + 1
end
redis.call('SET', KEYS[1], cjson.encode(minute), 'PX', math.max(1, leftMs))
return { granted, total + granted, missing, leftMs }`);

const replySchema = z
  .tuple([z.number(), z.number(), z.number(), z.number()])
  .transform(([granted, total, missing, leftMs]) => ({ granted, total, missing, leftMs }));

export function createSharedLimit(settings: SharedLimitSettings): SharedLimit {
  const { link, limit, replicasMax, windows, clock } = settings;
  const me = randomUUID();
  const share = Math.floor(limit / replicasMax);

  async function count(window: ClientWindow, wanted: 0 | 1) {
    const { client } = window;
    const admitted = (window.admittedHere ??= window.count);
    const sentAtMs = clock.monotonic();
    const untilResetMs = Math.max(1, Math.ceil(windows.untilResetMs(window)));
    const args = [me, admitted, wanted, limit, share, untilResetMs, link.channel(CHANNEL), client];
    const reply = replySchema.parse(await link.run(COUNT, `${CHANNEL}:${client}`, args));
    // Ends no later than in Redis, so that requests of this minute are never added to the next.
    window.resetAtMs = sentAtMs + reply.leftMs;
    window.admittedHere = (window.admittedHere ?? 0) + reply.granted;
    window.count = Math.max(window.count, reply.total);
    return reply;
  }

  function takeAlone(window: ClientWindow): boolean {
    const admitted = (window.admittedHere ??= window.count);
    if (admitted >= share) return false;
    window.admittedHere = admitted + 1;
    window.count += 1;
    return true;
  }

  link.subscribe(
    CHANNEL,
    (message) => {
      const [replica, client = ""] = message.split(" ");
      if (replica !== me && client !== "") count(windows.of(client), 0).catch(() => undefined);
    },
    () => {},
  );

  return {
    mustAsk: ({ admittedHere, count }) => admittedHere !== null || count >= share,
    async take(window) {
      const waitUntilMs = clock.monotonic() + MAX_WAIT_MS;
      try {
        for (;;) {
          const { granted, total, missing } = await count(window, 1);
          if (granted === 1) return true;
          if (total >= limit) window.count += 1;
          if (total >= limit || missing === 0 || clock.monotonic() >= waitUntilMs) return false;
          await pause(clock, POLL_EVERY_MS, new AbortController().signal);
        }
      } catch {
        return takeAlone(window);
      }
    },
    left: ({ admittedHere, count }) =>
      Math.max(0, link.reachable() ? limit - count : share - (admittedHere ?? count)),
  };
}

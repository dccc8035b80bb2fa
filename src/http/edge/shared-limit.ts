/**
 * One limit per client over all replicas. A client's share of it (limit / replicas) is admitted without asking anybody; who uses that up is
 * counted in Redis from then on, by every replica. While Redis is gone each admits the share alone.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { type Clock, pause } from "../../clock.js";
import { type RedisLink, redisScript } from "../../redis.js";
import type { ClientWindow, ClientWindows } from "../client-windows.js";

export interface SharedLimit {
  /** Whether the client's next request has to be asked of Redis. */
  mustAsk(window: ClientWindow): boolean;
  /** Counts the request and admits it, unless all replicas together have admitted the limit. Takes at most a few deadlines of Redis. */
  take(window: ClientWindow): Promise<boolean>;
  /** How many more requests are admitted, by what is known here. */
  left(window: ClientWindow): number;
}

export interface SharedLimitSettings {
  readonly link: RedisLink;
  /** Tells the limits of one service apart. */
  readonly name: string;
  readonly limit: number;
  readonly replicasMax: number;
  readonly windows: ClientWindows;
  readonly clock: Clock;
}

/** How long a request waits for what the other replicas have admitted; beyond that they count as having admitted their shares. */
const PATIENCE_MS = 50;
const ASK_AGAIN_MS = 5;

/**
 * The first that asks calls all replicas (`heard` of them), who add what they have admitted without asking. Until they have, their shares
 * count as admitted. Arguments: replica, admitted there, 1 to admit one more, limit, share, ms to the end of the minute, channel, client.
 */
const ASK = redisScript(`
local me, limit, share = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local raw = redis.call('GET', KEYS[1])
local minute = raw and cjson.decode(raw)
local leftMs = raw and redis.call('PTTL', KEYS[1]) or tonumber(ARGV[6])
if not minute then minute = { heard = redis.call('PUBLISH', ARGV[7], me .. ' ' .. ARGV[8]), admitted = {} } end
if not minute.admitted[me] then minute.admitted[me] = tonumber(ARGV[2]) end
local total, members = 0, 0
for _, count in pairs(minute.admitted) do total = total + count; members = members + 1 end
local missing = math.max(0, minute.heard - members)
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
  const { link, name, limit, replicasMax, windows, clock } = settings;
  const me = randomUUID();
  const share = Math.floor(limit / replicasMax);
  const channel = `af-storefront:limit:${name}`;

  async function ask(window: ClientWindow, wanted: 0 | 1) {
    const { client } = window;
    const admitted = (window.admittedHere ??= window.count);
    const sentAtMs = clock.monotonic();
    const untilResetMs = Math.max(1, Math.ceil(windows.untilResetMs(window)));
    const args = [me, admitted, wanted, limit, share, untilResetMs, channel, client];
    const reply = replySchema.parse(await link.run(ASK, `${channel}:${client}`, args));
    // Ends before it does in Redis, so that what was counted in this minute is never added to the next.
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
    channel,
    (message) => {
      const [replica, client = ""] = message.split(" ");
      if (replica !== me && client !== "") ask(windows.of(client), 0).catch(() => undefined);
    },
    () => {},
  );

  return {
    mustAsk: ({ admittedHere, count }) => admittedHere !== null || count >= share,
    async take(window) {
      const patientUntilMs = clock.monotonic() + PATIENCE_MS;
      try {
        for (;;) {
          const { granted, total, missing } = await ask(window, 1);
          if (granted === 1) return true;
          if (total >= limit) window.count += 1;
          if (total >= limit || missing === 0 || clock.monotonic() >= patientUntilMs) return false;
          await pause(clock, ASK_AGAIN_MS, new AbortController().signal);
        }
      } catch {
        return takeAlone(window);
      }
    },
    left: ({ admittedHere, count }) =>
      Math.max(0, link.reachable() ? limit - count : share - (admittedHere ?? count)),
  };
}

/**
 * The replicas that share a Redis. Each one publishes a heartbeat every second and counts as gone three seconds after its last one. Too many
 * replicas, or replicas with different settings, are reported.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { type Clock, every } from "./clock.js";
import { parseJson } from "./json.js";
import type { Log } from "./logger.js";
import { type RedisLink, redisScript } from "./redis.js";
import { fleetFiguresShape } from "./wire/staff.js";

/** Another release may have more figures. */
const figuresSchema = z.object(fleetFiguresShape.shape);
/** The figures that are added up across replicas. */
export type FleetFigures = z.infer<typeof figuresSchema>;

const replicaSchema = z.object({
  replica: z.string(),
  version: z.string(),
  sinceMs: z.number(),
  /** A fingerprint of the settings that replicas must have in common. */
  settings: z.string(),
  figures: figuresSchema,
});
export type Replica = z.infer<typeof replicaSchema>;

const FAULTS = ["oversized", "settings differ"] as const;
export type FleetFault = (typeof FAULTS)[number];

export interface Fleet {
  /** This replica first; only this one without Redis. */
  members(): readonly [Replica, ...Replica[]];
  /**
   * What is wrong, once it has been for three seconds: until then a killed replica may still count beside its replacement, and a changed file may not
   * have been read by every replica.
   */
  fault(): FleetFault | null;
  /** Removes this replica from the fleet; resolves even if Redis is unreachable. */
  close(): Promise<void>;
}

interface FleetSettings {
  /** Null: there is no fleet. */
  readonly link: RedisLink | null;
  readonly version: string;
  readonly replicasMax: number;
  readonly settings: () => string;
  readonly figures: () => FleetFigures;
  readonly clock: Clock;
  readonly log: Log;
}

const KEY = "af-storefront:fleet";
const HEARTBEAT_MS = 1000;
const GONE_AFTER_MS = 3000;
const FAULT_AFTER_MS = GONE_AFTER_MS;

/** Stores ARGV[2] for the replica ARGV[1], or removes the replica if ARGV[2] is empty, and returns the others. */
const HEARTBEAT = redisScript(`
local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local read, fleet = pcall(cjson.decode, redis.call('GET', KEYS[1]) or '')
if not read or type(fleet) ~= 'table' then fleet = {} end
for name, one in pairs(fleet) do
  if math.abs(now - one.at) > tonumber(ARGV[3]) then fleet[name] = nil end
end
fleet[ARGV[1]] = ARGV[2] ~= '' and { at = now, says = ARGV[2] } or nil
redis.call('SET', KEYS[1], cjson.encode(fleet), 'PX', ARGV[3])
local words = {}
for name, one in pairs(fleet) do if name ~= ARGV[1] then words[#words + 1] = one.says end end
return words`);

export function createFleet({ link, version, replicasMax, clock, log, ...own }: FleetSettings): Fleet {
  const id = randomUUID();
  const sinceMs = clock.now();
  let others: readonly Replica[] = [];
  const faultySinceMs = new Map<FleetFault, number>();
  let reported: FleetFault | null = null;
  let cancel = (): void => {};

  const me = (): Replica => ({
    replica: id,
    version,
    sinceMs,
    settings: own.settings(),
    figures: own.figures(),
  });
  const known = (): readonly Replica[] => (link?.reachable() === true ? others : []);

  function fault(): FleetFault | null {
    if (known().length === 0) return null;
    const until = clock.monotonic() - FAULT_AFTER_MS;
    return FAULTS.find((fault) => (faultySinceMs.get(fault) ?? Infinity) < until) ?? null;
  }

  function note(fault: FleetFault, isThere: boolean): void {
    if (!isThere) faultySinceMs.delete(fault);
    else if (!faultySinceMs.has(fault)) faultySinceMs.set(fault, clock.monotonic());
  }

  async function heartbeat(to: RedisLink): Promise<void> {
    try {
      const self = me();
      const words = z
        .array(z.string())
        .parse(await to.run(HEARTBEAT, KEY, [id, JSON.stringify(self), GONE_AFTER_MS]));
      others = words.flatMap((text) => replicaSchema.safeParse(parseJson(text)).data ?? []);
      note("oversized", others.length + 1 > replicasMax);
      note(
        "settings differ",
        others.some(({ settings }) => settings !== self.settings),
      );
    } catch {
      return;
    }
    const found = fault();
    if (found === "oversized" && reported !== found)
      log.error("fleet.oversized", { replicas: others.length + 1, replicasMax });
    if (found === "settings differ" && reported !== found) log.error("fleet.settings.differ");
    reported = found;
  }

  if (link !== null) {
    link.onReachable(() => void heartbeat(link));
    cancel = every(clock, HEARTBEAT_MS, () => void heartbeat(link));
  }

  return {
    members: () => [me(), ...known()],
    fault,
    async close() {
      cancel();
      await link?.run(HEARTBEAT, KEY, [id, "", GONE_AFTER_MS]).catch(() => undefined);
    },
  };
}

/** The sums over all replicas. */
export function totalOf(members: readonly Replica[]): FleetFigures {
  const sum = (key: keyof FleetFigures): number =>
    members.reduce((total, { figures }) => total + figures[key], 0);
  return figuresSchema.parse(Object.fromEntries(figuresSchema.keyof().options.map((key) => [key, sum(key)])));
}

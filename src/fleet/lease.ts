/**
 * One owner among several replicas: the holder of a lease in Redis, of which there is one per credential. It may send calls until four seconds after
 * it sent its last successful renewal, by its own monotonic clock; nobody else can hold the lease earlier than six seconds after that.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { z } from "zod";
import { type Clock, every } from "../clock.js";
import { unavailable } from "../errors.js";
import { parseJson } from "../json.js";
import type { Log } from "../logger.js";
import type { Note } from "../quota/quota.js";
import type { Beginning, Leases } from "../quota/quotas.js";
import { graceMsOf, occupiedMsOf } from "../quota/slot-table.js";
import { handedPlace } from "../quota/tickets.js";
import { type RedisLink, redisScript } from "../redis.js";

const LEASE_MS = 6_000;
const RIGHT_MS = 4_000;
const RENEW_MS = 1_500;
/** A lease that is gone without a note is taken at once by its last owner, and by others only when it has been missing for this long. */
const MISSING_MS = 3_000;
/** An older note is no note, because the times in it are no longer exact. */
const NOTE_MS = 10_000;

/**
 * Extends the lease ARGV[1], or takes it as ARGV[2] if nobody holds it: at once with a note or for its last owner, otherwise if ARGV[4] is 1; never as "". Returns
 * the state, the holder or the last owner, and a note of this server that is at most ARGV[5] ms old, with its age.
 */
const TAKE = redisScript(`
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[3]) return { 'mine', holder } end
if holder then return { 'other', holder } end
local last, note = redis.call('GET', KEYS[1] .. ':last') or '', redis.call('HMGET', KEYS[1] .. ':note', 'at', 'run', 'text')
if ARGV[2] == '' or not (note[1] or last == '' or last == ARGV[1] or ARGV[4] == '1') then return { 'missing', '' } end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('SET', KEYS[1] .. ':last', ARGV[2])
redis.call('DEL', KEYS[1] .. ':note')
local time = redis.call('TIME')
local age = time[1] * 1000 + math.floor(time[2] / 1000) - (note[1] or 0)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if note[2] ~= run or age < 0 or age > tonumber(ARGV[5]) then return { 'taken', last } end
return { 'taken', last, age, note[3] }`);

/** Gives up the lease of ARGV[1] and leaves the note ARGV[2] for the next owner. */
const GIVE_UP = redisScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local at = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1] .. ':note', 'at', at, 'run', run, 'text', ARGV[2])
redis.call('PEXPIRE', KEYS[1] .. ':note', ARGV[3])
return redis.call('DEL', KEYS[1])`);

const replyShape = z.union([
  z.tuple([z.string(), z.string()]),
  z.tuple([z.string(), z.string(), z.number(), z.string()]),
]);
const memberShape = z.object({ id: z.string(), url: z.string(), token: z.string() });
/** Where a replica is reached, and the token that it demands of requests that others hand on to it. */
export type Member = z.infer<typeof memberShape>;

const noteShape = z.object({
  windowMs: z.number(),
  slots: z.array(z.number()),
  pausedForMs: z.number(),
  places: z.array(handedPlace),
});

/** `none`: no owner is known. */
export type Role = "owner" | "follower" | "none";

export interface Fleet extends Leases {
  role(): Role;
  /** Since when; wall clock. */
  roleSinceMs(): number;
  /** The other replica that owns the credential in use; null if it is this one, or unknown. */
  owner(): Member | null;
  /** This replica as others know it. */
  readonly me: Pick<Member, "id" | "token">;
  /** Calls `act` after each change of the role, or of the owner. */
  onChange(act: () => void): void;
  /** Starts renewing; resolves when Redis has answered once, or can't be reached. */
  start(): Promise<void>;
  stop(): void;
}

export interface FleetSettings {
  readonly link: RedisLink;
  /** Where other replicas reach this one; read when it becomes the owner. */
  readonly url: () => string;
  /** Identifies the upstream. */
  readonly upstreamId: string;
  /** The fingerprint of the credential in use. */
  readonly credentialInUse: () => string;
  readonly windowMs: number;
  readonly budget: number;
  readonly headroom: number;
  readonly coldStart: "assume-spent" | "assume-free";
  readonly clock: Clock;
  /** Counts suspensions of the machine, after which another process may be the owner. */
  readonly factClock: Clock;
  readonly log: Log;
}

interface Lease {
  rightUntilAt: number;
  /**
   * What stands in Redis while this process holds it; "" otherwise. Each taking has a value of its own, so a process that never saw the reply to
   * its taking finds a stranger's lease, and a former owner finds out that somebody was in between.
   */
  value: string;
  /** What was known when this process became the owner; null unless it is. */
  beginning: Beginning | null;
  owner: Member | null;
  missingSinceAt: number | null;
  hasSeenOwner: boolean;
  renewing: Promise<void> | null;
  isGivenUp: boolean;
}

export function createFleet(settings: FleetSettings): Fleet {
  const { link, upstreamId, credentialInUse, windowMs, clock, factClock, log } = settings;
  const me = { id: randomUUID(), token: randomBytes(24).toString("base64url") };
  const leases = new Map<string, Lease>();
  const lost: ((fingerprint: string) => void)[] = [];
  const changed: (() => void)[] = [];
  let known: { readonly role: Role; readonly owner: string | null } = { role: "none", owner: null };
  let sinceMs = clock.now();
  let cancel = (): void => {};

  const keyOf = (fingerprint: string): string => `af-storefront:owner:${upstreamId} ${fingerprint}`;

  function leaseOf(fingerprint: string): Lease {
    const lease = leases.get(fingerprint) ?? {
      rightUntilAt: -Infinity,
      value: "",
      beginning: null,
      owner: null,
      missingSinceAt: null,
      hasSeenOwner: false,
      renewing: null,
      isGivenUp: false,
    };
    leases.set(fingerprint, lease);
    return lease;
  }

  function renew(fingerprint: string, lease: Lease): Promise<void> {
    lease.renewing ??= tryRenewing(fingerprint, lease)
      // Without Redis, the right ends by itself.
      .catch(() => undefined)
      .finally(() => {
        lease.renewing = null;
        noteChanges();
      });
    return lease.renewing;
  }

  async function tryRenewing(fingerprint: string, lease: Lease): Promise<void> {
    const sentAt = factClock.monotonic();
    const isMissing = (lease.missingSinceAt ?? Infinity) <= sentAt - MISSING_MS;
    const taken = lease.isGivenUp ? "" : JSON.stringify({ ...me, url: settings.url(), taking: randomUUID() });
    const args = [lease.value, taken, LEASE_MS, isMissing ? 1 : 0, NOTE_MS];
    const [state, holder, ageMs, text] = replyShape.parse(await link.run(TAKE, keyOf(fingerprint), args));
    lease.missingSinceAt = state === "missing" ? (lease.missingSinceAt ?? sentAt) : null;
    lease.owner = state === "other" ? (memberShape.safeParse(parseJson(holder)).data ?? null) : null;
    if (state === "other" || state === "missing") {
      lease.hasSeenOwner = true;
      // A missing lease is taken by its last owner at once, so this process isn't the last one any more.
      if (lease.beginning !== null) lose(fingerprint, lease, state);
      return;
    }
    // Its own table is still true if nobody else was the owner in between.
    const isStillTrue = lease.beginning !== null && holder === lease.value;
    if (!isStillTrue) {
      if (lease.beginning !== null) lose(fingerprint, lease, "unknown");
      lease.beginning = beginningOf(lease, holder, ageMs, text);
      lease.hasSeenOwner = true;
    }
    if (state === "taken") lease.value = taken;
    lease.rightUntilAt = sentAt + RIGHT_MS;
  }

  function beginningOf({ hasSeenOwner }: Lease, last: string, ageMs = 0, text = ""): Beginning {
    const note = noteShape.safeParse(parseJson(text)).data;
    const now = clock.monotonic();
    if (note?.windowMs === windowMs) {
      log.info("owner.taken", { reason: "the former owner has left a note" });
      const { slots, pausedForMs } = note;
      const left = (ms: number): number => Math.max(0, ms - ageMs);
      const rests = { windowMs, slots: slots.map(left), pausedForMs: left(pausedForMs) };
      const places = note.places.map((place) => ({ ...place, dueInMs: place.dueInMs - ageMs }));
      return { rests, blockedUntilAt: -Infinity, places };
    }
    if (last === "" && !hasSeenOwner) {
      log.info("owner.taken", { reason: "there is no record of a former owner" });
      const { budget, headroom, coldStart } = settings;
      const spentMs = coldStart === "assume-free" ? 0 : occupiedMsOf(windowMs) + graceMsOf(windowMs);
      const slots = Array.from({ length: budget }, (_, n) => (n < headroom ? 0 : spentMs));
      return { rests: { windowMs, slots, pausedForMs: 0 }, blockedUntilAt: -Infinity, places: [] };
    }
    log.warn("owner.taken", { reason: "the former owner is gone, so its calls count as just made" });
    const blockedUntilAt = now + RIGHT_MS + occupiedMsOf(windowMs) + graceMsOf(windowMs);
    return { rests: null, blockedUntilAt, places: [] };
  }

  function lose(fingerprint: string, lease: Lease, reason: string): void {
    lease.beginning = null;
    lease.value = "";
    lease.rightUntilAt = -Infinity;
    log.warn("owner.lost", { reason });
    known = { role: "none", owner: null };
    for (const act of lost) act(fingerprint);
  }

  function role(): Role {
    const { beginning, owner } = leaseOf(credentialInUse());
    return beginning !== null ? "owner" : owner !== null ? "follower" : "none";
  }

  function noteChanges(): void {
    const now = { role: role(), owner: leaseOf(credentialInUse()).owner?.id ?? null };
    if (now.role === known.role && now.owner === known.owner) return;
    if (now.role !== known.role) sinceMs = clock.now();
    known = now;
    log.info("owner.role", { role: now.role });
    for (const act of changed) act();
  }

  /** Every replica wants the lease of the credential in use; its owner alone keeps those of others, such as the standby's. */
  function renewAll(): Promise<unknown> {
    const inUse = credentialInUse();
    leaseOf(inUse);
    const wanted = [...leases].filter(
      ([fingerprint, { beginning }]) => fingerprint === inUse || beginning !== null,
    );
    return Promise.all(wanted.map(([fingerprint, lease]) => renew(fingerprint, lease)));
  }

  return {
    me,
    role,
    roleSinceMs: () => sinceMs,
    owner: () => leaseOf(credentialInUse()).owner,
    onChange: (act) => void changed.push(act),
    onLost: (act) => void lost.push(act),
    mayCall: (fingerprint) => factClock.monotonic() < leaseOf(fingerprint).rightUntilAt,
    async take(fingerprint) {
      const lease = leaseOf(fingerprint);
      if (lease.beginning === null && !lease.isGivenUp) await renew(fingerprint, lease);
      if (lease.beginning === null) throw unavailable();
      return lease.beginning;
    },
    async giveUp(fingerprint, note: Note) {
      const lease = leaseOf(fingerprint);
      await lease.renewing;
      lease.isGivenUp = true;
      lease.beginning = null;
      lease.rightUntilAt = -Infinity;
      await link
        .run(GIVE_UP, keyOf(fingerprint), [lease.value, JSON.stringify(note), NOTE_MS])
        .catch(() => undefined);
      lease.value = "";
      log.info("owner.released");
      noteChanges();
    },
    async start() {
      cancel = every(clock, RENEW_MS, () => void renewAll());
      link.onReachable(() => void renewAll());
      await renewAll();
    },
    stop() {
      cancel();
    },
  };
}

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
import {
  aged,
  allSpent,
  type ColdStart,
  type NoteStore,
  type Note,
  nothingKnown,
  noteShape,
} from "../quota/note.js";
import type { BudgetSettings } from "../quota/slot-table.js";
import type { RedisLink } from "../redis/redis.js";

const LEASE_MS = 6_000;
const RIGHT_MS = 4_000;
const RENEW_MS = 1_500;
/** A lease that is gone without a note is taken at once by its last owner, and by others only when it has been missing for this long. */
const MISSING_MS = 3_000;
/** If its owner is lost, a lease has another one by then. */
export const NEXT_OWNER_WITHIN_MS = LEASE_MS + MISSING_MS + 2 * RENEW_MS;
/** An older note is no note, because the times in it are no longer exact. */
const NOTE_MS = 10_000;

/**
 * Extends the lease ARGV[1], or takes it if nobody holds it: as it is for its last owner; as ARGV[2], never "", with a note, or if ARGV[4] is 1. Returns the
 * state, the holder or the last owner, and a note of this server that is at most ARGV[5] ms old, with its age.
 */
const TAKE = `
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[3]) return { 'mine', holder } end
if holder then return { 'other', holder } end
local last, note = redis.call('GET', KEYS[1] .. ':last') or '', redis.call('HMGET', KEYS[1] .. ':note', 'at', 'run', 'text')
if ARGV[2] == '' or not (note[1] or last == '' or last == ARGV[1] or ARGV[4] == '1') then return { 'missing', '' } end
local value = last ~= '' and last == ARGV[1] and last or ARGV[2]
redis.call('SET', KEYS[1], value, 'PX', ARGV[3])
redis.call('SET', KEYS[1] .. ':last', value)
redis.call('DEL', KEYS[1] .. ':note')
local time = redis.call('TIME')
local age = time[1] * 1000 + math.floor(time[2] / 1000) - (note[1] or 0)
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
if note[2] ~= run or age < 0 or age > tonumber(ARGV[5]) then return { 'taken', last } end
return { 'taken', last, age, note[3] }`;

/** Gives up the lease of ARGV[1] and leaves the note ARGV[2] for the next owner. */
const GIVE_UP = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local at = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('HSET', KEYS[1] .. ':note', 'at', at, 'run', run, 'text', ARGV[2])
redis.call('PEXPIRE', KEYS[1] .. ':note', ARGV[3])
return redis.call('DEL', KEYS[1])`;

const replyShape = z.union([
  z.tuple([z.string(), z.string()]),
  z.tuple([z.string(), z.string(), z.number(), z.string()]),
]);
const memberShape = z.object({ id: z.string(), url: z.string(), token: z.string() });
/** Where a replica is reached, and the token that it demands of requests that others hand on to it. */
export type Member = z.infer<typeof memberShape>;

/** `none`: no owner is known. */
export type Role = "owner" | "follower" | "none";

export interface Fleet extends Required<NoteStore> {
  role(): Role;
  /** Since when; wall clock. */
  roleSinceAt(): number;
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

export interface FleetSettings extends BudgetSettings {
  readonly link: RedisLink;
  /** Where other replicas reach this one; read when it becomes the owner. */
  readonly url: () => string;
  /** Identifies the upstream. */
  readonly upstreamId: string;
  /** The fingerprint of the credential in use. */
  readonly credentialInUse: () => string;
  readonly coldStart: ColdStart;
  readonly clock: Clock;
  /** Counts suspensions of the machine, after which another process may be the owner. */
  readonly factClock: Clock;
  readonly log: Log;
}

interface Lease {
  rightUntilAt: number;
  /**
   * What stands in Redis while this process holds it; "" otherwise. Each taking has a value of its own, unless nobody else was the owner since the last.
   * So a former owner finds out whether somebody was in between, even if it never saw the reply to a taking.
   */
  value: string;
  /** Whether this process is the owner, and what it then knew of earlier calls. */
  isOwn: boolean;
  note: Note | null;
  owner: Member | null;
  missingSinceAt: number | null;
  hasSeenOwner: boolean;
  renewing: Promise<void> | null;
  isGivenUp: boolean;
}

export function createFleet(settings: FleetSettings): Fleet {
  const { link, upstreamId, credentialInUse, clock, factClock, log } = settings;
  const me = { id: randomUUID(), token: randomBytes(24).toString("base64url") };
  const leases = new Map<string, Lease>();
  const lost: ((fingerprint: string) => void)[] = [];
  const changed: (() => void)[] = [];
  let known: { readonly role: Role; readonly owner: string | null } = { role: "none", owner: null };
  let sinceAt = clock.now();
  let cancel = (): void => {};

  const keyOf = (fingerprint: string): string => `af-storefront:owner:${upstreamId} ${fingerprint}`;
  const NOT_HELD = { isOwn: false, value: "", rightUntilAt: -Infinity } as const;

  function leaseOf(fingerprint: string): Lease {
    const lease = leases.get(fingerprint) ?? {
      ...NOT_HELD,
      note: null,
      owner: null,
      missingSinceAt: null,
      hasSeenOwner: false,
      renewing: null,
      isGivenUp: false,
    };
    leases.set(fingerprint, lease);
    return lease;
  }

  function renew(fingerprint: string): Promise<void> {
    const lease = leaseOf(fingerprint);
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
    const [state, holder, ageMs, text] = replyShape.parse(
      await link.command("EVAL", TAKE, 1, keyOf(fingerprint), ...args),
    );
    lease.missingSinceAt = state === "missing" ? (lease.missingSinceAt ?? sentAt) : null;
    lease.owner = state === "other" ? (memberShape.safeParse(parseJson(holder)).data ?? null) : null;
    const isHeld = state === "mine" || state === "taken";
    // Its own table is still true if nobody else was the owner in between. A missing lease is taken by its last owner at once.
    const isStillTrue = isHeld && lease.isOwn && holder === lease.value;
    if (lease.isOwn && !isStillTrue) lose(fingerprint, lease, isHeld ? "unknown" : state);
    if (isHeld) {
      if (!isStillTrue) {
        lease.note = noteOf(lease, holder, ageMs, text);
        lease.value = taken;
      }
      lease.isOwn = true;
      lease.rightUntilAt = sentAt + RIGHT_MS;
    }
    lease.hasSeenOwner = true;
  }

  /** What is known of earlier calls; null: there were none. */
  function noteOf({ hasSeenOwner }: Lease, last: string, ageMs = 0, text = ""): Note | null {
    const { success, data } = noteShape.safeParse(parseJson(text));
    if (success) {
      log.info("owner.taken", { reason: "the former owner has left a note" });
      return aged(data, ageMs);
    }
    if (last === "" && !hasSeenOwner) {
      log.info("owner.taken", { reason: "there is no record of a former owner" });
      return settings.coldStart === "assume-free" ? null : nothingKnown(settings);
    }
    log.warn("owner.taken", { reason: "the former owner is gone, so its calls count as just made" });
    return allSpent(settings, RIGHT_MS);
  }

  function lose(fingerprint: string, lease: Lease, reason: string): void {
    Object.assign(lease, NOT_HELD);
    log.warn("owner.lost", { reason });
    known = { role: "none", owner: null };
    for (const act of lost) act(fingerprint);
  }

  function role(): Role {
    const { isOwn, owner } = leaseOf(credentialInUse());
    return isOwn ? "owner" : owner !== null ? "follower" : "none";
  }

  function noteChanges(): void {
    const now = { role: role(), owner: leaseOf(credentialInUse()).owner?.id ?? null };
    if (now.role === known.role && now.owner === known.owner) return;
    if (now.role !== known.role) sinceAt = clock.now();
    known = now;
    log.info("owner.role", { role: now.role });
    for (const act of changed) act();
  }

  /** Every replica wants the lease of the credential in use; its owner alone keeps those of others, such as the standby's. */
  function renewAll(): Promise<unknown> {
    const own = [...leases].flatMap(([fingerprint, { isOwn }]) => (isOwn ? [fingerprint] : []));
    return Promise.all([...new Set([credentialInUse(), ...own])].map(renew));
  }

  return {
    me,
    role,
    roleSinceAt: () => sinceAt,
    owner: () => leaseOf(credentialInUse()).owner,
    onChange: (act) => void changed.push(act),
    onLost: (act) => void lost.push(act),
    async take(fingerprint) {
      const lease = leaseOf(fingerprint);
      if (!lease.isOwn && !lease.isGivenUp) await renew(fingerprint);
      if (!lease.isOwn) throw unavailable();
      return { note: lease.note, mayCall: () => factClock.monotonic() < lease.rightUntilAt };
    },
    async giveUp(fingerprint, note) {
      const lease = leaseOf(fingerprint);
      await lease.renewing;
      lease.isGivenUp = true;
      const { value } = lease;
      Object.assign(lease, NOT_HELD);
      await link
        .command("EVAL", GIVE_UP, 1, keyOf(fingerprint), value, JSON.stringify(note), NOTE_MS)
        .catch(() => undefined);
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

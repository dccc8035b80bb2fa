/** The messages between a replica and the script of the shared ledger, and the times that all replicas agree on. */
import { z } from "zod";
import type { Outcome } from "./ledger.js";
import { graceMsOf, occupiedMsOf } from "./slot-table.js";

/** A command that Redis runs later than this is ignored. */
export const COMMAND_VALID_MS = 300;
/** A slot that was requested longer ago than this isn't used: the process may have been suspended in the meantime. */
export const GRANT_VALID_MS = 500;

/** Times of the protocol; the same on every replica, because they follow from the window. */
export function timesOf(windowMs: number, longestCallMs: number) {
  const localAfterMs = Math.min(3000, Math.max(1000, windowMs / 20));
  /** Commands may take this much longer to reach Redis than the fastest one before it counts as a step of Redis's clock. */
  const unevenMs = Math.ceil(Math.min(100, windowMs / 50));
  return {
    unevenMs,
    /** How long after its last contact a replica starts to use its own slots without Redis. */
    localAfterMs,
    beatMs: localAfterMs / 6,
    /** A replica that has received no reply for this long lends nothing: a loan must be made before it can continue alone. */
    lendMs: localAfterMs * 0.6,
    /** A replica silent for this long can be replaced by another one in its place. */
    evictMs: localAfterMs / 2,
    /**
     * For this long after its start, a process can't detect a step of Redis's clock. Longer than it takes the others to correct one: a second and
     * two beats.
     */
    newMs: 1000 + localAfterMs / 2,
    /** A replica that has received a reply less than this ago can't have used anything that isn't recorded. */
    exactMs: localAfterMs * 0.8,
    /** A replica silent for longer is considered gone. */
    deadMs: Math.max(60_000, 10 * windowMs),
    longestMs: Math.ceil(GRANT_VALID_MS + longestCallMs + graceMsOf(windowMs)),
    occupiedMs: occupiedMsOf(windowMs) + unevenMs,
    graceMs: Math.ceil(graceMsOf(windowMs)),
  };
}
export type Times = ReturnType<typeof timesOf>;

/** An operation on the ledger. */
export interface Action {
  readonly op: "sync" | "take" | "settle" | "leave";
  /** The call that is taken or settled. */
  readonly grant?: string;
  /** The slot that is settled. */
  readonly id?: number;
  readonly outcome?: Outcome;
  readonly graceMs?: number;
}

/** A request; the script reads these names. Its times are by the replica's own clock; `agoMs` counts back from when the request was sent. */
export interface Request extends Action, Omit<Times, "graceMs" | "beatMs"> {
  /** The replica's name, the number of this request, and where the replica runs. */
  readonly me: string;
  readonly sent: number;
  readonly place: string;
  /** The name of the table that this request creates if there is none. */
  readonly nonce: string;
  /** The table that this replica knows; empty before the first. */
  readonly epoch: string;
  readonly generation: number;
  readonly revision: number;
  /**
   * `at`: when the request was sent. `ahead`: the maximum lead of the table's time over that. `contactAgoMs`: how long before it the last request
   * was sent whose reply has been received. `openForMs`: how long the replica has been running.
   */
  readonly at: number;
  readonly ahead?: number;
  readonly contactAgoMs: number;
  readonly openForMs: number;
  /** By Redis's clock. From then on the request must not be executed. */
  readonly notAfter: number;
  readonly budget: number;
  readonly windowMs: number;
  readonly headroom: number;
  /** Whether an empty Redis means that no calls have been made. */
  readonly assumeFree: boolean;
  readonly replicasMax: number;
  readonly share: number;
  /** Whether this replica has had a share. */
  readonly seated: boolean;
  /** Whether a successor sends this on behalf of the replica, which has ended. */
  readonly isFromSuccessor: boolean;
  /** Whether requests wait at this replica. */
  readonly waiting: boolean;
  /** The calls per window that visitors want at this replica beyond its share. */
  readonly poolDemand: number;
  /** How long each urgent request has waited at this replica. */
  readonly urgentForMs: readonly number[];
  /**
   * `borrows`: whether this replica borrows at all. `lends`: whether it agrees to lend. `mayHaveLent`: whether one of its slots may have been lent
   * since the last reply.
   */
  readonly borrows: boolean;
  readonly lends: boolean;
  readonly mayHaveLent: boolean;
  readonly pauseMs: number;
  /** The grants that this replica still uses. */
  readonly live: readonly string[];
  /** Uses of its own slots that the table may not know of. */
  readonly reports: readonly {
    readonly id: number;
    readonly grant: string;
    readonly inFlight: boolean;
    readonly agoMs: number;
  }[];
  /** Uses of its share beyond its assigned slots. */
  readonly extra: readonly number[];
  /** For a table that has lost its last writes: the last use of each of its own slots. */
  readonly own: readonly number[];
  readonly others: readonly Member[];
  /** Former replicas in the same place whose handover has been delivered or doesn't exist. */
  readonly replaced: readonly string[];
}

const memberSchema = z.strictObject({
  name: z.string(),
  place: z.string(),
  share: z.number(),
  silentMs: z.number(),
});
/** Another replica that has a share. */
export type Member = Readonly<z.infer<typeof memberSchema>>;

/** An empty Lua table is encoded as an object. */
const listOf = <Item extends z.ZodType>(item: Item) =>
  z.union([z.array(item), z.strictObject({}).transform((): z.infer<Item>[] => [])]);
const numbers = listOf(z.number());
const slots = z
  .strictObject({ ids: numbers, ats: numbers })
  .transform(({ ids, ats }) => ids.map((id, index) => ({ id, at: ats[index] ?? Infinity })));

/** The reply to a request that wasn't executed. */
const clockSchema = z.strictObject({ now: z.number(), isMismatch: z.boolean() });
const tableSchema = z.strictObject({
  now: z.number(),
  epoch: z.string(),
  generation: z.number(),
  revision: z.number(),
  /** 0 = none. */
  taken: z.number(),
  isBorrowed: z.boolean(),
  pausedUntil: z.number(),
  used: z.number(),
  largest: z.number(),
  /** How many slots of the pool must not be used for now. */
  withheld: z.number(),
  isSeated: z.boolean(),
  own: slots,
  pool: slots,
  /** The last use of each slot that can be borrowed from other replicas. */
  others: numbers,
  urgentElsewhere: z.number(),
  /** The calls per window that visitors want at other replicas beyond their shares. */
  poolDemandElsewhere: z.number(),
  aheadMs: z.number(),
  members: listOf(memberSchema),
});
const replySchema = z.union([tableSchema, clockSchema]);

/**
 * The table from this replica's view; or only Redis's clock, with whether the settings differ from those of the other replicas. Times are converted
 * to the replica's clock by this reply alone, because the next one may come from a table with another time. They are as late as they can be, because
 * Redis's clock was read before the reply arrived. `redisAheadMs`: a lower bound of its lead over the replica's.
 */
export function parseReply(reply: unknown, receivedAt: number) {
  const { now, ...parsed } = replySchema.parse(JSON.parse(z.string().parse(reply)));
  const redisAheadMs = now - receivedAt;
  if ("isMismatch" in parsed) return { ...parsed, redisAheadMs };
  const ours = (at: number): number => at - redisAheadMs;
  const slotsOf = (list: z.infer<typeof slots>) => list.map(({ id, at }) => ({ id, at: ours(at) }));
  return {
    ...parsed,
    redisAheadMs,
    pausedUntil: ours(parsed.pausedUntil),
    own: slotsOf(parsed.own),
    pool: slotsOf(parsed.pool),
    others: parsed.others.map(ours),
  };
}
export type Table = Exclude<ReturnType<typeof parseReply>, { isMismatch: boolean }>;

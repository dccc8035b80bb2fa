/** What a replica and the script of the shared ledger tell each other, and the times that all replicas agree on. */
import { z } from "zod";
import type { Ending } from "./ledger.js";
import { graceMsOf, occupiedMsOf } from "./slot-table.js";

/** A command that Redis hasn't run after this long is ignored. */
export const COMMAND_VALID_MS = 300;
/** A slot that was requested longer ago than this isn't used: the process may have been stopped in the meantime. */
export const GRANT_VALID_MS = 500;
/** A step of Redis's clock is corrected after a second. */
const NEW_MS = 1500;

/** Times of the protocol; the same on every replica, because they follow from the window. */
export function timesOf(windowMs: number, longestCallMs: number) {
  const localAfterMs = Math.min(3000, Math.max(1000, windowMs / 20));
  /** By how much the time that commands take to reach Redis may vary before it counts as a step of its clock. */
  const unevenMs = Math.ceil(Math.min(100, windowMs / 50));
  return {
    unevenMs,
    /** How long after its last contact a replica starts to use its own slots without Redis. */
    localAfterMs,
    beatMs: localAfterMs / 6,
    /** A replica silent for this long is replaced by one that runs in its place. */
    evictMs: localAfterMs / 2,
    /** How long a process can't notice a step of Redis's clock. */
    newMs: NEW_MS,
    /** A replica silent for less than this can't have used anything that isn't recorded. */
    exactMs: localAfterMs * 0.8,
    /** A replica silent for longer is considered gone. */
    deadMs: Math.max(60_000, 10 * windowMs),
    longestMs: Math.ceil(GRANT_VALID_MS + longestCallMs + graceMsOf(windowMs)),
    occupiedMs: occupiedMsOf(windowMs) + unevenMs,
    graceMs: Math.ceil(graceMsOf(windowMs)),
  };
}
export type Times = ReturnType<typeof timesOf>;

/** What a replica asks of the ledger. */
export interface Action {
  readonly op: "sync" | "take" | "settle" | "leave";
  /** The call that is taken or settled. */
  readonly grant?: string;
  /** The slot that is settled. */
  readonly id?: number;
  readonly ending?: Ending;
  readonly graceMs?: number;
}

/** One request, whose names the script reads. Its times are those of the replica's own clock, and `agoMs` before this request was sent. */
export interface Request extends Action, Omit<Times, "graceMs" | "beatMs"> {
  /** The replica, the number of this request, and where it runs. */
  readonly me: string;
  readonly sent: number;
  readonly place: string;
  /** Names the table that this request makes if there is none. */
  readonly nonce: string;
  /** The table that this replica knows; empty before the first. */
  readonly epoch: string;
  readonly generation: number;
  readonly revision: number;
  /** When it was sent; how far the table's time can be ahead of that; how long this replica has been running. */
  readonly at: number;
  readonly ahead?: number;
  readonly openForMs: number;
  /** By Redis's clock: from then on this request must not be carried out. */
  readonly notAfter: number;
  readonly budget: number;
  readonly windowMs: number;
  readonly headroom: number;
  /** Whether a Redis without a table means that nobody has called. */
  readonly assumeFree: boolean;
  readonly replicasMax: number;
  readonly share: number;
  /** Whether this replica has had a share. */
  readonly seated: boolean;
  /** Whether its successor says this, once it has ended. */
  readonly isGoodbye: boolean;
  /** Whether anybody waits here. */
  readonly waiting: boolean;
  /** How many requests that go before all others wait here. */
  readonly urgent: number;
  /** Whether this replica borrows at all; whether it agrees to lend; whether one of its slots may be lent since the last reply. */
  readonly borrows: boolean;
  readonly lends: boolean;
  readonly mayHaveLent: boolean;
  readonly pauseMs: number;
  /** The grants that this replica still uses. */
  readonly live: readonly string[];
  /** Uses of its own slots that the table may not know. */
  readonly reports: readonly {
    readonly id: number;
    readonly grant: string;
    readonly inFlight: boolean;
    readonly agoMs: number;
  }[];
  /** Uses of its share beyond the slots that it holds. */
  readonly extra: readonly number[];
  /** For a table that has lost its last writes: when each of its own slots was last used. */
  readonly own: readonly number[];
  readonly others: readonly Member[];
  /** Members that this replica has replaced in their place, and that left no word. */
  readonly replaced: readonly string[];
}

const memberSchema = z.strictObject({ name: z.string(), place: z.string(), silentMs: z.number() });
/** Another replica that has a share. */
export type Member = Readonly<z.infer<typeof memberSchema>>;

/** A Lua table that is empty might as well be an object. */
const listOf = <Item extends z.ZodType>(item: Item) =>
  z.union([z.array(item), z.strictObject({}).transform((): z.infer<Item>[] => [])]);
const numbers = listOf(z.number());
const slots = z
  .strictObject({ ids: numbers, ats: numbers })
  .transform(({ ids, ats }) => ids.map((id, index) => ({ id, at: ats[index] ?? Infinity })));

/** The request wasn't carried out. */
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
  /** How many slots of the pool nobody may use for now. */
  withheld: z.number(),
  isSeated: z.boolean(),
  own: slots,
  pool: slots,
  /** When each slot was last used that can be borrowed from another replica. */
  others: numbers,
  urgentElsewhere: z.number(),
  aheadMs: z.number(),
  members: listOf(memberSchema),
});
export type Table = z.infer<typeof tableSchema>;
const replySchema = z.union([tableSchema, clockSchema]);

/** The table as this replica may use it; or Redis's clock alone, and whether its settings don't fit those of the other replicas. */
export function parseReply(reply: unknown): Table | z.infer<typeof clockSchema> {
  return replySchema.parse(JSON.parse(z.string().parse(reply)));
}

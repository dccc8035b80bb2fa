/**
 * The ledger that replicas share through Redis: together they never pass the budget, by Redis's clock, whichever of them are killed, cut
 * off or started anew, and whatever becomes of Redis.
 *
 * Each replica has slots of its own, recorded in Redis with every use; those it alone may use, so it goes on with them while Redis is
 * gone, once its last word there is old enough (`localAfterMs`). The rest of the budget is used through Redis alone.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../clock.js";
import type { RedisLink } from "../../redis.js";
import { graceMsOf, occupiedMsOf } from "./slot-table.js";
import type { Ending, Forecast, Ledger, SlotId, Taken, Usage } from "./ledger.js";
import { type BudgetSettings, LONGEST_PAUSE_MS } from "./memory.js";
import { LEDGER_SCRIPT } from "./script.js";

export interface RedisLedgerSettings extends BudgetSettings {
  readonly redis: RedisLink;
  /** Names the credential without telling it. */
  readonly fingerprint: string;
  /** Whether a Redis without a record means that nobody has called; asked only by a process that has never seen one. */
  readonly coldStart: "assume-spent" | "assume-free";
  readonly replicasMax: number;
  /** The longest that one call can take. */
  readonly longestCallMs: number;
  /** Where this process runs: no other can run there before it has ended. Default: nobody can tell. */
  readonly place?: string;
  readonly clock: Clock;
}

/** For how long a command that Redis has not run yet may still be run. */
const COMMAND_VALID_MS = 300;
/** A slot that was granted longer ago than this is not used: the process may have been stopped meanwhile. */
const GRANT_VALID_MS = 500;
/** How long a spare slot is kept, and over how long the takes are counted that tell how many are needed. */
const SPARE_MS = 200;
const RATE_OVER_MS = 1000;
/** Slots that are granted at once, at most. More than one was seen to pass the budget at a round trip of 100 ms, so there are no spares yet. */
const MOST_AT_ONCE = 1;
/** How soon a take is tried again that was lost with its connection. */
const TRY_AGAIN_MS = 50;
/** The most that Redis's clock and ours are taken to disagree over one outage. */
const CLOCKS_MS = 1000;
const FIRST_CONTACT_MS = 1000;
const LONG_AGO_MS = 1e9;

/** Times of the protocol; the same on every replica, because they follow from the window. */
function timesOf(windowMs: number, longestCallMs: number) {
  const localAfterMs = Math.min(3000, Math.max(1000, windowMs / 20));
  /** By how much the time that commands take to reach Redis may vary before it counts as a step of its clock. */
  const unevenMs = Math.ceil(Math.min(100, windowMs / 50));
  return {
    unevenMs,
    /** How long after its last word in Redis a replica begins to use its slots on its own. */
    localAfterMs,
    beatMs: localAfterMs / 6,
    /** A replica silent for this long gives way to one that runs in its place. */
    evictMs: localAfterMs / 2,
    /** Silent for less than this it cannot have used anything that is not recorded. */
    exactMs: localAfterMs * 0.8,
    /** Silent for longer, it is taken to be gone for good. */
    deadMs: Math.max(60_000, 10 * windowMs),
    longestMs: Math.ceil(GRANT_VALID_MS + longestCallMs + graceMsOf(windowMs)),
    occupiedMs: occupiedMsOf(windowMs) + unevenMs,
    graceMs: Math.ceil(graceMsOf(windowMs)),
  };
}

const numbers = z.array(z.number());
const replySchema = z
  .tuple([
    z.number(),
    z.string(),
    z.number(),
    numbers,
    z.number(),
    z.number(),
    z.number(),
    z.number(),
    numbers,
    numbers,
    numbers,
    numbers,
    z.number(),
  ])
  .transform(
    ([
      now,
      epoch,
      revision,
      taken,
      pausedUntil,
      used,
      largest,
      withheld,
      ids,
      ats,
      poolIds,
      poolAts,
      seat,
    ]) => ({
      now,
      epoch,
      revision,
      taken,
      pausedUntil,
      used,
      largest,
      withheld,
      homes: ids.map((id, index) => ({ id, at: ats[index] ?? Infinity })),
      isSeated: seat === 1,
      pool: poolIds.map((id, index) => ({ id, at: poolAts[index] ?? Infinity })),
    }),
  );
type Reply = z.infer<typeof replySchema>;

/** What every request says; the script reads exactly these names. */
interface Request {
  readonly op: "sync" | "take" | "settle" | "leave";
  /** The calls that a take is for, and the one that a settle is about. */
  readonly grants?: readonly string[];
  readonly grant?: string;
  readonly id?: number;
  readonly ending?: Ending;
  readonly graceMs?: number;
}

/** A slot that this replica may use without asking; negative ids are its share beyond what Redis knows it to hold. */
interface Home {
  readonly id: number;
  /** Monotonic: the latest moment at which its last call can have arrived; Infinity = in flight. */
  at: number;
}

interface Call {
  readonly grant: string;
  readonly slot: number;
  readonly takenAt: number;
}

/** A slot that was granted beyond what was asked for. */
interface Spare {
  readonly call: SlotId;
  readonly grant: string;
  readonly slot: number;
  readonly goodUntil: number;
}

/** What Redis has not heard yet of a slot. */
interface Report {
  readonly grant: string;
  /** Monotonic; Infinity = in flight. */
  readonly at: number;
}

class RedisLedger implements Ledger {
  readonly limit: number;
  readonly budget: number;
  readonly windowMs: number;
  readonly #settings: RedisLedgerSettings;
  readonly #times: ReturnType<typeof timesOf>;
  readonly #me = randomUUID();
  readonly #key: string;
  readonly #share: number;
  readonly #homes = new Map<number, Home>();
  readonly #calls = new Map<SlotId, Call>();
  /** Takes that Redis may be about to grant, and calls that have ended without its knowing. */
  readonly #asked = new Set<string>();
  #spares: readonly Spare[] = [];
  /** When slots were taken of late, and how long Redis takes to answer. */
  #takenAt: number[] = [];
  #roundTripMs = 0;
  readonly #reports = new Map<number, Report>();
  #pool: readonly { readonly id: number; readonly at: number }[] = [];
  /** The table that Redis told of last; empty before the first. */
  #epoch = "";
  #revision = 0;
  /** When the last request that Redis answered was sent. */
  #contactAt: number;
  readonly #openedAt: number;
  /** Redis's clock less ours, at least; unknown until it has answered. */
  #redisAheadMs = -Infinity;
  #pausedUntil = -Infinity;
  #pauseTold = true;
  /** Whether Redis's clock has been read since its last word on slots. */
  #clockRead = false;
  #rejoining: Promise<Reply | null> | null = null;
  /** Whether we have a share of our own: not one replica too many, nor one with other settings than those there. */
  #isSeated = true;
  #used = 0;
  #largest = 0;
  #waitedAt = -Infinity;
  #grants = 0;
  #closed = false;
  #cancelBeat = (): void => {};

  constructor(settings: RedisLedgerSettings) {
    const { limit, headroom, windowMs, fingerprint, replicasMax, longestCallMs, clock } = settings;
    this.limit = limit;
    this.budget = limit - headroom;
    this.windowMs = windowMs;
    this.#settings = settings;
    this.#times = timesOf(windowMs, longestCallMs);
    this.#key = `af-storefront:quota:${fingerprint}`;
    this.#share = Math.floor(this.budget / replicasMax);
    this.#contactAt = clock.monotonic();
    this.#openedAt = this.#contactAt;
  }

  /** Resolves when Redis has told what this replica may use, or after a moment without it. */
  async open(): Promise<void> {
    const { clock, redis } = this.#settings;
    await new Promise<void>((done) => {
      const cancel = clock.after(FIRST_CONTACT_MS, done);
      redis.onReachable(() => {
        void this.#sync().then(() => {
          cancel();
          done();
        });
      });
    });
    this.#beat();
  }

  async take(): Promise<Taken> {
    if (this.#closed) throw new Error("the quota ledger is closed");
    const { clock, redis } = this.#settings;
    this.#waitedAt = clock.monotonic();
    const spare = this.#spare(this.#waitedAt);
    if (spare !== undefined) return this.#begin(spare.call, spare, this.#waitedAt);
    this.#grants += 1;
    const slot = this.#grants;
    if (redis.reachable()) {
      const granted = await this.#askFor(slot);
      if (granted !== null) {
        const [first, ...more] = granted;
        if (first === undefined) return { retryInMs: this.#retryInMs() };
        if (more.length > 0) this.#keepSpares(more);
        return this.#begin(first.call, first, clock.monotonic());
      }
    }
    return this.#takeAlone(slot, this.#grantOf(slot));
  }

  async settle(slot: SlotId, ending: Ending): Promise<void> {
    const call = this.#calls.get(slot);
    if (call === undefined) return;
    this.#calls.delete(slot);
    const graceMs = ending === "abandoned" ? this.#times.graceMs : 0;
    const at = this.#settings.clock.monotonic() + graceMs;
    const home = this.#homes.get(call.slot);
    if (home !== undefined) home.at = at;
    if (this.#settings.redis.reachable()) {
      const { grant, slot: id } = call;
      // Else a request that overtakes this one would say that the call was never made.
      this.#asked.add(grant);
      const reply = await this.#request({ op: "settle", grant, id, ending, graceMs });
      this.#asked.delete(grant);
      if (reply !== null) return;
    }
    if (call.slot > 0) this.#reports.set(call.slot, { grant: call.grant, at });
  }

  async pause(forMs: number): Promise<void> {
    const pauseMs = Math.min(Math.max(forMs, 0), LONGEST_PAUSE_MS);
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#settings.clock.monotonic() + pauseMs);
    this.#pauseTold = false;
    await this.#request({ op: "sync" });
  }

  forecast(): Forecast {
    const now = this.#settings.clock.monotonic();
    const { occupiedMs } = this.#times;
    const calls = [...this.#calls.values()];
    const taken = new Set([...calls, ...this.#spares].map(({ slot }) => slot));
    const others = this.#alone(now) ? this.#restOfShare() : this.#pool;
    const resting = [...this.#homes.values(), ...others]
      .filter(({ id }) => !taken.has(id))
      .map(({ at }) => Math.max(0, at + occupiedMs - now));
    const usableInMs = [...this.#spares.map(() => 0), ...resting].sort((a, b) => a - b);
    return {
      resting: usableInMs.length,
      usableInMs: (n) => usableInMs[n] ?? Infinity,
      inFlightForMs: calls.map(({ takenAt }) => now - takenAt),
      pausedForMs: Math.max(0, this.#pausedUntil - now),
      occupiedMs,
    };
  }

  usage(): Usage {
    const now = this.#settings.clock.monotonic();
    const busy = [...this.#homes.values()].filter(({ at }) => at + this.#times.occupiedMs > now).length;
    return { used: this.#alone(now) ? busy : this.#used, largestWindowToday: this.#largest };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelBeat();
    await this.#request({ op: "leave" });
  }

  #beat(): void {
    this.#cancelBeat = this.#settings.clock.after(this.#times.beatMs, () => {
      void this.#sync().then(() => {
        if (!this.#closed) this.#beat();
      });
    });
  }

  async #sync(): Promise<void> {
    if (this.#closed || !this.#settings.redis.reachable()) return;
    await this.#request({ op: "sync" });
  }

  #grantOf(call: SlotId): string {
    return `${this.#me}:${call}`;
  }

  #begin(call: SlotId, { grant, slot }: Pick<Spare, "grant" | "slot">, now: number): Taken {
    this.#calls.set(call, { grant, slot, takenAt: now });
    this.#takenAt = [...this.#takenAt.filter((at) => at > now - RATE_OVER_MS), now];
    return { slot: call };
  }

  #spare(now: number): Spare | undefined {
    const [first, ...rest] = this.#spares;
    if (first === undefined || first.goodUntil <= now) return undefined;
    this.#spares = rest;
    return first;
  }

  /** Returns spare slots to Redis once they expire unused. */
  #keepSpares(spares: readonly Spare[]): void {
    const { clock } = this.#settings;
    this.#spares = [...this.#spares, ...spares];
    clock.after(SPARE_MS, () => {
      for (const spare of spares) {
        if (!this.#spares.includes(spare)) continue;
        this.#spares = this.#spares.filter((one) => one !== spare);
        this.#calls.set(spare.call, { ...spare, takenAt: clock.monotonic() });
        void this.settle(spare.call, "unsent");
      }
    });
  }

  /** The slots that Redis grants: one, and as many more as are taken in two of its round trips. Null when it does not answer. */
  async #askFor(first: SlotId): Promise<readonly Spare[] | null> {
    const { clock } = this.#settings;
    const sentAt = clock.monotonic();
    const takes = this.#takenAt.filter((at) => at > sentAt - RATE_OVER_MS).length;
    const count = Math.min(MOST_AT_ONCE, 1 + Math.round((2 * takes * this.#roundTripMs) / RATE_OVER_MS));
    const calls = [first, ...Array.from({ length: count - 1 }, () => (this.#grants += 1))];
    const grants = calls.map((call) => this.#grantOf(call));
    for (const grant of grants) this.#asked.add(grant);
    try {
      const reply = await this.#request({ op: "take", grants });
      const now = clock.monotonic();
      const goodUntil = now + SPARE_MS;
      if (reply === null) return null;
      const granted = reply.taken.flatMap((slot, index) => {
        const [call, grant] = [calls[index], grants[index]];
        return call === undefined || grant === undefined ? [] : [{ call, grant, slot, goodUntil }];
      });
      if (granted.length === 0 || now - sentAt < GRANT_VALID_MS - SPARE_MS) return granted;
      for (const { call, grant, slot } of granted) {
        this.#calls.set(call, { grant, slot, takenAt: now });
        void this.settle(call, "unsent");
      }
      return [];
    } finally {
      // Not before those that were granted are known as calls or spares.
      setImmediate(() => {
        for (const grant of grants) this.#asked.delete(grant);
      });
    }
  }

  /** Whether Redis has heard nothing of us for so long that it leaves our slots to us, and we must leave all others alone. */
  #alone(now: number): boolean {
    return this.#epoch === "" || now - this.#contactAt > this.#times.localAfterMs;
  }

  #takeAlone(slot: SlotId, grant: string): Taken {
    const now = this.#settings.clock.monotonic();
    if (!this.#alone(now)) return { retryInMs: this.#retryInMs() };
    if (this.#pausedUntil > now) return { retryInMs: this.#retryInMs() };
    for (const home of this.#restOfShare())
      if (home.at + this.#times.occupiedMs <= now) this.#homes.set(home.id, home);
    const home = [...this.#homes.values()].sort((a, b) => a.at - b.at)[0];
    if (home === undefined || home.at + this.#times.occupiedMs > now) return { retryInMs: this.#retryInMs() };
    home.at = Infinity;
    this.#calls.set(slot, { grant, slot: home.id, takenAt: now });
    if (home.id > 0) this.#reports.set(home.id, { grant, at: Infinity });
    return { slot };
  }

  /**
   * What our share has beyond our own slots, lent to the pool or never taken from it: ours again without Redis, once whoever used it last
   * must have finished.
   */
  #restOfShare(): Home[] {
    const { localAfterMs, longestMs } = this.#times;
    const at = this.#contactAt + localAfterMs + longestMs + CLOCKS_MS;
    const missing = this.#isSeated ? Math.max(0, this.#share - this.#homes.size) : 0;
    const taken = [...this.#homes.keys()].filter((id) => id < 0).length;
    return Array.from({ length: missing }, (_, index) => ({ id: -1 - taken - index, at }));
  }

  #retryInMs(): number {
    const { redis, clock } = this.#settings;
    if (!this.#alone(clock.monotonic()) && !redis.reachable()) return TRY_AGAIN_MS;
    const { resting, usableInMs, pausedForMs } = this.forecast();
    let soonestMs = this.#times.beatMs;
    for (let n = resting - 1; n >= 0 && usableInMs(n) > 0; n -= 1)
      soonestMs = Math.min(soonestMs, usableInMs(n));
    return Math.max(1, pausedForMs, soonestMs);
  }

  /** Null when Redis did not answer in time. */
  async #request(what: Request): Promise<Reply | null> {
    // After a silence what was used alone is told once, before anything else is asked.
    if (this.#alone(this.#settings.clock.monotonic())) {
      this.#rejoining ??= this.#attempt({ op: "sync" }).finally(() => {
        this.#rejoining = null;
      });
      if ((await this.#rejoining) === null) return null;
    }
    return this.#attempt(what);
  }

  async #attempt(what: Request): Promise<Reply | null> {
    try {
      // What was sent with a wrong idea of Redis's clock was not done, and has corrected the idea.
      return (await this.#send(what)) ?? (await this.#send(what));
    } catch {
      return null;
    }
  }

  async #send(what: Request): Promise<Reply | null> {
    const { redis, clock, headroom, coldStart, replicasMax } = this.#settings;
    const sentAt = clock.monotonic();
    const agoOf = (at: number): number =>
      at === Infinity ? -this.#times.longestMs : Math.min(Math.floor(sentAt - at), LONG_AGO_MS);
    const reports = [...this.#reports];
    const pausedForMs = this.#pauseTold ? 0 : Math.max(0, Math.ceil(this.#pausedUntil - sentAt));
    const fresh = !this.#alone(sentAt) && this.#redisAheadMs > -Infinity;
    const request = {
      ...this.#times,
      grants: [],
      grant: "",
      id: 0,
      ending: "",
      graceMs: 0,
      ...what,
      me: this.#me,
      nonce: randomUUID(),
      epoch: this.#epoch,
      revision: this.#revision,
      place: this.#settings.place ?? this.#me,
      at: Math.floor(sentAt),
      openForMs: Math.ceil(sentAt - this.#openedAt),
      // After a silence our idea of its clock is too old to say how long the command may be run: it only asks for the time.
      notAfter: fresh || this.#clockRead ? Math.ceil(sentAt + this.#redisAheadMs) + COMMAND_VALID_MS : 0,
      budget: this.budget,
      windowMs: this.windowMs,
      headroom,
      assumeFree: coldStart === "assume-free",
      replicasMax,
      share: this.#share,
      waiting: sentAt - this.#waitedAt < this.windowMs / 4 ? 1 : 0,
      pauseMs: pausedForMs,
      live: [...[...this.#calls.values(), ...this.#spares].map(({ grant }) => grant), ...this.#asked],
      reports: reports.map(([id, { grant, at }]) => ({
        id,
        grant,
        inFlight: at === Infinity,
        agoMs: agoOf(at),
      })),
      extra: [...this.#homes.values()].filter(({ id }) => id < 0).map(({ at }) => agoOf(at)),
      own: [...this.#homes.values()].map(({ at }) => agoOf(at)),
    };
    const reply = replySchema.parse(await redis.run(LEDGER_SCRIPT, this.#key, [JSON.stringify(request)]));
    this.#roundTripMs += (clock.monotonic() - sentAt - this.#roundTripMs) / 8;
    this.#redisAheadMs = reply.now - clock.monotonic();
    this.#clockRead = reply.epoch === "";
    if (reply.revision < 0) {
      this.#isSeated = false;
      this.#homes.clear();
    }
    if (reply.epoch === "") return null;
    for (const [id, report] of reports) if (this.#reports.get(id) === report) this.#reports.delete(id);
    if (pausedForMs > 0) this.#pauseTold = true;
    this.#learn(reply, sentAt);
    return reply;
  }

  #learn(reply: Reply, sentAt: number): void {
    this.#contactAt = Math.max(this.#contactAt, sentAt);
    if (reply.epoch === this.#epoch && reply.revision < this.#revision) return;
    this.#epoch = reply.epoch;
    this.#revision = reply.revision;
    this.#isSeated = reply.isSeated;
    // Redis's moments as ours, as late as they can be: its clock was read before its answer came.
    const ours = (at: number): number => at - this.#redisAheadMs;
    this.#homes.clear();
    for (const { id, at } of reply.homes) this.#homes.set(id, { id, at: ours(at) });
    const pool = reply.pool.map(({ id, at }) => ({ id, at: ours(at) })).sort((a, b) => a.at - b.at);
    this.#pool = pool.slice(0, Math.max(0, pool.length - reply.withheld));
    this.#pausedUntil = Math.max(this.#pausedUntil, ours(reply.pausedUntil));
    this.#used = reply.used;
    this.#largest = reply.largest;
  }
}

/** Opens the shared ledger of one credential; without Redis it begins with nothing until a window is over. Never rejects. */
export async function openRedisLedger(settings: RedisLedgerSettings): Promise<Ledger> {
  const ledger = new RedisLedger(settings);
  await ledger.open();
  return ledger;
}

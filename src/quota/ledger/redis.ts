/**
 * The ledger that replicas share through Redis: together they never exceed the budget, by Redis's clock, whichever of them are killed, cut
 * off or restarted, and whatever happens to Redis.
 *
 * Each replica has slots of its own that no other may use. While Redis is unreachable it continues with them, once its last contact is old
 * enough (`localAfterMs`). The rest of the budget is used through Redis only. A replica takes one slot per round trip, so at most 10 calls
 * a second with a Redis 100 ms away.
 */
import { randomUUID } from "node:crypto";
import type { Clock } from "../../clock.js";
import type { RedisLink } from "../../redis.js";
import type { Ending, Forecast, Ledger, SlotId, Taken, Usage } from "./ledger.js";
import { type BudgetSettings, LONGEST_PAUSE_MS } from "./memory.js";
import { OwnSlots, type Slot } from "./own-slots.js";
import {
  type Action,
  COMMAND_VALID_MS,
  GRANT_VALID_MS,
  type Member,
  parseReply,
  type Request,
  type Table,
  type Times,
  timesOf,
} from "./protocol.js";
import { LEDGER_SCRIPT } from "./script.js";
import { type Known, leaveWord, noWord, type Word } from "./word.js";

export interface RedisLedgerSettings extends BudgetSettings {
  readonly redis: RedisLink;
  /** Identifies the credential without revealing it. */
  readonly fingerprint: string;
  /** Whether a Redis without a record means that nobody has called; asked only by a process that has never seen one. */
  readonly coldStart: "assume-spent" | "assume-free";
  readonly replicasMax: number;
  /** The longest that one call can take. */
  readonly longestCallMs: number;
  /** Where this process runs: no other can run there before it has ended. Default: nobody can tell. */
  readonly place?: string;
  /** Where it leaves word for the next process in its place. Default: nowhere. */
  readonly directory?: string;
  readonly clock: Clock;
  readonly onFault: (what: string, error: unknown) => void;
}

/** The delay before a take is retried that was lost with its connection. */
const TRY_AGAIN_MS = 50;
const FIRST_CONTACT_MS = 1000;
const LONG_AGO_MS = 1e9;
/** A replica with a larger share seldom has to wait for a slot of its own. */
const MOST_TO_BORROW = 60;

interface Call {
  readonly grant: string;
  readonly slot: number;
  readonly takenAt: number;
}

class RedisLedger implements Ledger {
  readonly limit: number;
  readonly budget: number;
  readonly windowMs: number;
  readonly #settings: RedisLedgerSettings;
  readonly #times: Times;
  readonly #me = randomUUID();
  readonly #key: string;
  readonly #share: number;
  readonly #borrows: boolean;
  readonly #own: OwnSlots;
  readonly #word: Word;
  /** A process has a ledger for each of its credentials. */
  readonly #wordPlace: string;
  readonly #calls = new Map<SlotId, Call>();
  /** Takes that Redis may be granting, and ended calls that it may not know of yet. */
  readonly #asked = new Set<string>();
  #pool: readonly Slot[] = [];
  /** When each slot of other replicas was last used. */
  #others: readonly number[] = [];
  #urgent = 0;
  /** Until when this replica agrees to lend: a window after urgent requests have last waited elsewhere. */
  #lendsUntil = -Infinity;
  /** When the last request that agreed to it was sent. */
  #agreedAt = -Infinity;
  /** The table in the last reply; empty before the first. */
  #epoch = "";
  #generation = 0;
  #revision = 0;
  #sent = 0;
  /** When the last request that Redis answered was sent. */
  #contactAt: number;
  readonly #openedAt: number;
  /** The other replicas at the last contact. */
  #members: readonly Member[] = [];
  /** Former processes in this place, and what each knew last, if it has left word and nobody has told Redis of it. */
  readonly #predecessors = new Map<string, Known | null>();
  /** How far the table's time was ahead of our clock at the last contact. */
  #tableAheadMs: number | null = null;
  /** A lower bound of Redis's clock minus ours; unknown until the first reply. */
  #redisAheadMs = -Infinity;
  #pausedUntil = -Infinity;
  #pausePublished = true;
  /** Whether the last reply contained only Redis's clock. */
  #clockRead = false;
  #rejoining: Promise<Table | null> | null = null;
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
    this.#borrows = this.#share <= MOST_TO_BORROW;
    this.#own = new OwnSlots(this.#share, this.#times);
    if (replicasMax === 1) this.#own.assumeShare();
    const { place, directory, onFault } = settings;
    this.#wordPlace = `${fingerprint} ${place}`;
    const onNoWord = (error: unknown): void => {
      onFault("the word for the next process in this place could not be written", error);
    };
    this.#word =
      place === undefined || directory === undefined
        ? noWord
        : leaveWord({ directory, me: this.#me, clock, onFault: onNoWord });
    this.#contactAt = clock.monotonic();
    this.#openedAt = this.#contactAt;
  }

  /** Resolves with the first reply from Redis, or after a second without one. */
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

  urgent(count: number): void {
    this.#urgent = count;
  }

  async take(): Promise<Taken> {
    if (this.#closed) throw new Error("the quota ledger is closed");
    const { clock, redis } = this.#settings;
    const sentAt = clock.monotonic();
    this.#waitedAt = sentAt;
    this.#grants += 1;
    const call = this.#grants;
    const grant = `${this.#me}:${call}`;
    if (!redis.reachable()) return this.#takeAlone(call, grant);
    this.#asked.add(grant);
    const reply = await this.#request({ op: "take", grant });
    const now = clock.monotonic();
    if (reply !== null && reply.taken > 0) this.#calls.set(call, { grant, slot: reply.taken, takenAt: now });
    // Not before it is known as a call, or a request between the two would report that it never happened.
    this.#asked.delete(grant);
    if (reply === null) return this.#takeAlone(call, grant);
    if (reply.taken > 0 && now - sentAt < GRANT_VALID_MS)
      return { slot: call, isBorrowed: reply.isBorrowed, sendBefore: this.#sendBefore(sentAt) };
    if (reply.taken > 0) void this.settle(call, "unsent");
    return { retryInMs: this.#retryInMs() };
  }

  async settle(slot: SlotId, ending: Ending): Promise<void> {
    const call = this.#calls.get(slot);
    if (call === undefined) return;
    this.#calls.delete(slot);
    const { grant, slot: id } = call;
    const graceMs = ending === "abandoned" ? this.#times.graceMs : 0;
    const at = this.#settings.clock.monotonic() + graceMs;
    this.#own.settle(id, at);
    // Redis knows only the slots that it has assigned.
    if (id > 0 && this.#settings.redis.reachable()) {
      // Otherwise a request that overtakes this one would report that the call was never made.
      this.#asked.add(grant);
      const reply = await this.#request({ op: "settle", grant, id, ending, graceMs });
      this.#asked.delete(grant);
      if (reply !== null) return;
    }
    this.#own.report(id, { grant, at });
    this.#leaveWord();
  }

  async pause(forMs: number): Promise<void> {
    const pauseMs = Math.min(Math.max(forMs, 0), LONGEST_PAUSE_MS);
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#settings.clock.monotonic() + pauseMs);
    this.#pausePublished = false;
    await this.#request({ op: "sync" });
  }

  forecast(): Forecast {
    const now = this.#settings.clock.monotonic();
    const { occupiedMs } = this.#times;
    const calls = [...this.#calls.values()];
    const taken = new Set(calls.map(({ slot }) => slot));
    const others = this.#alone(now) ? this.#own.restOfShare(this.#contactAt) : this.#pool;
    const usableInMs = [...this.#own.all(), ...others]
      .filter(({ id }) => !taken.has(id))
      .map(({ at }) => Math.max(0, at + occupiedMs - now))
      .sort((a, b) => a - b);
    return {
      resting: usableInMs.length,
      usableInMs: (n) => usableInMs[n] ?? Infinity,
      borrowableInMs: this.#alone(now) ? [] : this.#others.map((at) => Math.max(0, at + occupiedMs - now)),
      newsInMs: this.#members.length === 0 ? Infinity : this.#times.beatMs,
      inFlightForMs: calls.map(({ takenAt }) => now - takenAt),
      pausedForMs: Math.max(0, this.#pausedUntil - now),
      occupiedMs,
    };
  }

  usage(): Usage {
    const now = this.#settings.clock.monotonic();
    return { used: this.#alone(now) ? this.#own.busy(now) : this.#used, largestWindowToday: this.#largest };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelBeat();
    // Before it leaves: if Redis loses that, its successor mustn't say it once more.
    this.#word.end();
    await this.#request({ op: "leave" });
  }

  #beat(): void {
    this.#cancelBeat = this.#settings.clock.after(this.#times.beatMs, () => {
      if (!this.#closed && this.#alone(this.#settings.clock.monotonic())) this.#goOnAlone();
      void this.#sync().then(() => {
        if (!this.#closed) this.#beat();
      });
    });
  }

  /**
   * One of several that has never reached Redis can't know whether there is a share for it, so it has none; but if it runs in the place of a
   * process that had a share, it takes that over.
   */
  #goOnAlone(): void {
    const { clock } = this.#settings;
    if (this.#epoch === "" && !this.#own.hasShare) {
      const former = this.#word.takeOfPlace(this.#wordPlace, this.#times.deadMs / 2);
      if (former !== null) {
        this.#predecessors.set(former.name, former.known);
        this.#contactAt = clock.monotonic();
        this.#own.assumeShare();
      }
    }
    this.#leaveWord();
  }

  async #sync(): Promise<void> {
    if (this.#closed || !this.#settings.redis.reachable()) return;
    // Only one process can run here, so a silent member with the same place has ended.
    for (const member of this.#membersAt(this.#settings.clock.monotonic()))
      if (member.place === this.#settings.place && member.silentMs > this.#times.evictMs)
        await this.#replace(member);
    await this.#request({ op: "sync" });
  }

  /**
   * Says for a former process in this place what it would have said on leaving, if it has left word. Only once, only in the table that it
   * knew, and only while nobody else can have ended its share: else others may have used its slots since then.
   */
  async #replace({ name, silentMs }: Member): Promise<void> {
    const sentAt = this.#settings.clock.monotonic();
    const known = this.#predecessors.get(name) ?? this.#word.take(name, silentMs);
    const isUsable =
      known?.epoch === this.#epoch && sentAt - known.monotonicMs <= this.#times.deadMs / 2 ? known : null;
    this.#predecessors.set(name, isUsable);
    if (isUsable === null) return;
    try {
      if ((await this.#exchange(this.#goodbyeOf(name, isUsable, sentAt))) === null) return;
    } catch {
      // It may have been heard.
    }
    this.#predecessors.set(name, null);
  }

  #goodbyeOf(name: string, { reports, extra, ...known }: Known, sentAt: number): Request {
    return {
      ...this.#nothing(sentAt),
      op: "leave",
      isGoodbye: true,
      me: name,
      sent: Number.MAX_SAFE_INTEGER,
      epoch: known.epoch,
      generation: known.generation,
      revision: known.revision,
      seated: true,
      reports: reports.map(({ id, grant, at }) => ({
        id,
        grant,
        inFlight: false,
        agoMs: this.#agoMs(at, sentAt),
      })),
      extra: extra.map((at) => this.#agoMs(at, sentAt)),
    };
  }

  /** Writes down what this replica knows; whether it will be read if this process is killed. */
  #leaveWord(): boolean {
    if (this.#closed) return false;
    const now = this.#settings.clock.monotonic();
    const lastOf = (at: number): number => (at === Infinity ? now + this.#times.longestMs : at);
    return this.#word.write({
      monotonicMs: now,
      place: this.#wordPlace,
      hasShare: this.#own.hasShare,
      epoch: this.#epoch,
      generation: this.#generation,
      revision: this.#revision,
      reports: this.#own.reports().map(([id, { grant, at }]) => ({ id, grant, at: lastOf(at) })),
      extra: this.#own.extra().map(lastOf),
    });
  }

  /** Whether the last contact is so old that this replica uses its own slots without Redis, and no others. */
  #alone(now: number): boolean {
    return this.#epoch === "" || now - this.#contactAt > this.#times.localAfterMs;
  }

  #takeAlone(call: SlotId, grant: string): Taken {
    const now = this.#settings.clock.monotonic();
    if (!this.#alone(now)) return { retryInMs: this.#retryInMs() };
    if (this.#pausedUntil > now) return { retryInMs: this.#retryInMs() };
    if (this.#mayHaveLent()) this.#own.assumeLent(this.#contactAt);
    const slot = this.#own.takeAlone(grant, now, this.#contactAt, () => this.#leaveWord());
    if (slot === null) return { retryInMs: this.#retryInMs() };
    this.#calls.set(call, { grant, slot, takenAt: now });
    return { slot: call, sendBefore: this.#sendBefore(now) };
  }

  /** A call that leaves later may arrive when its slot counts as rested, because nobody else knows that it is under way. */
  #sendBefore(takenAt: number): number {
    return takenAt + GRANT_VALID_MS + this.#settings.longestCallMs;
  }

  #retryInMs(): number {
    const { redis, clock } = this.#settings;
    if (!this.#alone(clock.monotonic()) && !redis.reachable()) return TRY_AGAIN_MS;
    const { resting, usableInMs, borrowableInMs, pausedForMs } = this.forecast();
    let soonestMs = this.#times.beatMs;
    for (let n = resting - 1; n >= 0 && usableInMs(n) > 0; n -= 1)
      soonestMs = Math.min(soonestMs, usableInMs(n));
    if (this.#urgent > 0)
      for (const inMs of borrowableInMs) if (inMs > 0) soonestMs = Math.min(soonestMs, inMs);
    return Math.max(1, pausedForMs, soonestMs);
  }

  /** Whether another replica may have borrowed a slot since the last reply. */
  #mayHaveLent(): boolean {
    return this.#agreedAt >= this.#contactAt;
  }

  /** Null when Redis did not answer in time. */
  async #request(what: Action): Promise<Table | null> {
    // After a silence, report once what was used alone, before anything else.
    if (this.#alone(this.#settings.clock.monotonic())) {
      this.#rejoining ??= this.#attempt({ op: "sync" }).finally(() => {
        this.#rejoining = null;
      });
      if ((await this.#rejoining) === null) return null;
    }
    return this.#attempt(what);
  }

  async #attempt(what: Action): Promise<Table | null> {
    try {
      // A request sent with a wrong estimate of Redis's clock wasn't carried out, but its reply corrected the estimate.
      return (await this.#send(what)) ?? (await this.#send(what));
    } catch {
      return null;
    }
  }

  async #send(what: Action): Promise<Table | null> {
    const sentAt = this.#settings.clock.monotonic();
    const reports = this.#own.reports();
    const pauseMs = this.#pausePublished ? 0 : Math.max(0, Math.ceil(this.#pausedUntil - sentAt));
    const lends = sentAt < this.#lendsUntil;
    const mayHaveLent = this.#mayHaveLent();
    // Its slots may have been used by others since.
    const isReplaced = this.#alone(sentAt) && this.#word.isTaken();
    if (lends) this.#agreedAt = sentAt;
    const reply = await this.#exchange({
      ...this.#nothing(sentAt),
      ...what,
      sent: (this.#sent += 1),
      epoch: this.#epoch,
      generation: this.#generation,
      revision: this.#revision,
      seated: this.#epoch !== "" && this.#own.hasShare,
      waiting: sentAt - this.#waitedAt < this.windowMs / 4,
      urgent: this.#borrows ? this.#urgent : 0,
      lends,
      mayHaveLent,
      pauseMs,
      live: [...[...this.#calls.values()].map(({ grant }) => grant), ...this.#asked],
      reports: reports.map(([id, { grant, at }]) => ({
        id,
        grant,
        inFlight: at === Infinity,
        agoMs: this.#agoMs(at, sentAt),
      })),
      extra: this.#own.extra().map((at) => this.#agoMs(at, sentAt)),
      own: this.#own
        .ofLostTable(sentAt, mayHaveLent)
        .map((at) => this.#agoMs(isReplaced ? Infinity : at, sentAt)),
    });
    if (reply === null) return null;
    this.#own.reported(reports);
    if (pauseMs > 0) this.#pausePublished = true;
    this.#learn(reply, sentAt);
    return reply;
  }

  /** A request of this replica that says only who it is and whom it knows. */
  #nothing(sentAt: number): Request {
    const { headroom, coldStart, replicasMax } = this.#settings;
    const fresh = !this.#alone(sentAt) && this.#redisAheadMs > -Infinity;
    return {
      ...this.#times,
      op: "sync",
      me: this.#me,
      sent: 0,
      place: this.#settings.place ?? this.#me,
      nonce: randomUUID(),
      epoch: "",
      generation: 0,
      revision: 0,
      at: Math.floor(sentAt),
      ...this.#aheadAt(sentAt),
      openForMs: Math.ceil(sentAt - this.#openedAt),
      // After a silence the estimate of its clock is too old to set a deadline: this request only reads the clock.
      notAfter: fresh || this.#clockRead ? Math.ceil(sentAt + this.#redisAheadMs) + COMMAND_VALID_MS : 0,
      budget: this.budget,
      windowMs: this.windowMs,
      headroom,
      assumeFree: coldStart === "assume-free",
      replicasMax,
      share: this.#share,
      seated: false,
      isGoodbye: false,
      waiting: false,
      urgent: 0,
      borrows: this.#borrows,
      lends: false,
      mayHaveLent: false,
      pauseMs: 0,
      live: [],
      reports: [],
      extra: [],
      own: [],
      others: this.#membersAt(sentAt),
      replaced: [...this.#predecessors].filter(([, known]) => known === null).map(([name]) => name),
    };
  }

  #membersAt(now: number): Member[] {
    const sinceMs = Math.floor(now - this.#contactAt);
    return this.#members.map((one) => ({ ...one, silentMs: one.silentMs + sinceMs }));
  }

  #agoMs(at: number, sentAt: number): number {
    return at === Infinity ? -this.#times.longestMs : Math.min(Math.floor(sentAt - at), LONG_AGO_MS);
  }

  /** Null if Redis didn't carry it out; rejects if it did not answer in time. */
  async #exchange(request: Request): Promise<Table | null> {
    const { redis, clock } = this.#settings;
    const reply = parseReply(await redis.run(LEDGER_SCRIPT, this.#key, [JSON.stringify(request)]));
    this.#redisAheadMs = reply.now - clock.monotonic();
    this.#clockRead = "isMismatch" in reply;
    if (!("isMismatch" in reply)) return reply;
    if (reply.isMismatch) this.#own.assign([], false);
    return null;
  }

  /** How far the table's time can be ahead of our clock by now, though the clocks drift apart. */
  #aheadAt(now: number): { ahead?: number } {
    if (this.#tableAheadMs === null) return {};
    return { ahead: Math.ceil(this.#tableAheadMs + (now - this.#contactAt) / 1000) };
  }

  #learn(reply: Table, sentAt: number): void {
    this.#contactAt = Math.max(this.#contactAt, sentAt);
    if (reply.epoch === this.#epoch && reply.revision < this.#revision) return;
    this.#epoch = reply.epoch;
    this.#generation = reply.generation;
    this.#revision = reply.revision;
    // Converts Redis's times to ours, as late as they can be, because its clock was read before the reply arrived.
    const ours = (at: number): number => at - this.#redisAheadMs;
    const oursOf = ({ id, at }: Slot): Slot => ({ id, at: ours(at) });
    this.#own.assign(reply.own.map(oursOf), reply.isSeated);
    const pool = reply.pool.map(oursOf).sort((a, b) => a.at - b.at);
    this.#pool = pool.slice(0, Math.max(0, pool.length - reply.withheld));
    this.#others = reply.others.map(ours);
    this.#pausedUntil = Math.max(this.#pausedUntil, ours(reply.pausedUntil));
    if (reply.urgentElsewhere > 0) this.#lendsUntil = sentAt + this.windowMs;
    this.#members = reply.members;
    this.#tableAheadMs = reply.aheadMs;
    this.#used = reply.used;
    this.#largest = reply.largest;
    this.#leaveWord();
  }
}

/** Opens the shared ledger of one credential. Without Redis it has nothing until a window is over. Never rejects. */
export async function openRedisLedger(settings: RedisLedgerSettings): Promise<Ledger> {
  const ledger = new RedisLedger(settings);
  await ledger.open();
  return ledger;
}

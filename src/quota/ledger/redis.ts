/**
 * The ledger that replicas share through Redis. Together they never exceed the budget by Redis's clock, whichever of them are killed, cut off or
 * restarted, and whatever happens to Redis.
 *
 * Each replica has its own slots, which no other may use. While Redis is unreachable, it continues with these once its last contact is old enough
 * (`localAfterMs`). The rest of the budget is used only through Redis. A replica takes one slot per round trip, so at most 10 calls a second if
 * Redis is 100 ms away.
 */
import { randomUUID } from "node:crypto";
import { type Clock, countingSuspensions } from "../../clock.js";
import type { RedisLink } from "../../redis.js";
import { type LeftLedger, leftLedger } from "./file.js";
import type { Outcome, Forecast, Ledger, SlotId, Taken, Usage } from "./ledger.js";
import { type BudgetSettings, MAX_PAUSE_MS } from "./memory.js";
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
import { Demand, dividePool } from "./pool.js";
import { LEDGER_SCRIPT } from "./script.js";
import { type Known, openHandover, noHandover, type Handover } from "./handover.js";

export interface RedisLedgerSettings extends BudgetSettings {
  readonly redis: RedisLink;
  /** Identifies the credential without revealing it. */
  readonly fingerprint: string;
  /** Whether an empty Redis means that no calls have been made; applies only to a process that has never seen a record. */
  readonly coldStart: "assume-spent" | "assume-free";
  readonly replicasMax: number;
  /** The maximum duration of one call. */
  readonly longestCallMs: number;
  /** Identifies where this process runs. No other process can have the same value while this one exists. Default: unknown. */
  readonly place?: string;
  /** The folder of the handover files for the next process in the same place. Default: none. */
  readonly directory?: string;
  readonly clock: Clock;
  readonly onFault: (what: string, error: unknown) => void;
}

/** The delay before a take that was lost with its connection is retried. */
const TRY_AGAIN_MS = 50;
const FIRST_CONTACT_MS = 1000;
/** Longer than it takes to open a new connection. */
const LEAVES_WITHIN_MS = 1000;
const LONG_AGO_MS = 1e9;
/** Replicas with a larger share don't borrow, because they rarely wait for a slot of their own. */
const MAX_TO_BORROW = 60;

interface Call {
  readonly grant: string;
  /** The table that has the slot. */
  readonly epoch: string;
  readonly slot: number;
  readonly takenAt: number;
}

class RedisLedger implements Ledger {
  readonly limit: number;
  readonly budget: number;
  readonly windowMs: number;
  readonly #settings: RedisLedgerSettings;
  /** Counts suspensions of the machine too: a grant from before one is no longer valid. */
  readonly #withSuspensions: Clock;
  readonly #times: Times;
  readonly #me = randomUUID();
  readonly #key: string;
  readonly #share: number;
  readonly #borrows: boolean;
  readonly #own: OwnSlots;
  /** Null once it is removed. */
  #left: LeftLedger | null;
  readonly #handover: Handover;
  /** The place with the fingerprint, because a process has a ledger for each of its credentials. */
  readonly #handoverPlace: string;
  readonly #calls = new Map<SlotId, Call>();
  /** Pending takes, and ended calls that Redis may not know of yet. */
  readonly #asked = new Set<string>();
  #pool: readonly Slot[] = [];
  readonly #demand: Demand;
  /** The calls per window that visitors want at the other replicas beyond their shares. */
  #poolDemandElsewhere = 0;
  /** The last use of each slot that can be borrowed from other replicas. */
  #others: readonly number[] = [];
  /** Since when each urgent request waits here. */
  #urgent: readonly number[] = [];
  /** Until when this replica agrees to lend: for one window after urgent requests last waited elsewhere. */
  #lendsUntil = -Infinity;
  /** When this replica last sent its agreement to lend. */
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
  /** Former processes in this place, each with its handover; null once that is delivered, or if there is none that can be used. */
  readonly #predecessors = new Map<string, Known | null>();
  /** The lead of the table's time over our clock at the last contact. */
  #tableAheadMs: number | null = null;
  /** A lower bound of Redis's clock minus ours; unknown until the first reply. */
  #redisAheadMs = -Infinity;
  #pausedUntil = -Infinity;
  /** The end of the pause that the table is known to have. */
  #publishedUntil = -Infinity;
  /** Whether the last reply contained only Redis's clock. */
  #clockRead = false;
  #rejoining: Promise<Table | null> | null = null;
  #used = 0;
  #largest = 0;
  #waitedAt = -Infinity;
  #grants = 0;
  /** How many calls were made alone. */
  #madeAlone = 0;
  #closed = false;
  #cancelBeat = (): void => {};

  constructor(settings: RedisLedgerSettings) {
    const { limit, headroom, windowMs, fingerprint, replicasMax, longestCallMs, clock } = settings;
    this.limit = limit;
    this.budget = limit - headroom;
    this.windowMs = windowMs;
    this.#settings = settings;
    this.#withSuspensions = countingSuspensions(clock);
    this.#times = timesOf(windowMs, longestCallMs);
    this.#key = `af-storefront:quota:${fingerprint}`;
    this.#share = Math.floor(this.budget / replicasMax);
    this.#borrows = this.#share <= MAX_TO_BORROW;
    this.#own = new OwnSlots(this.#share, this.#times);
    this.#demand = new Demand(windowMs);
    if (replicasMax === 1) this.#own.assumeShare();
    const { place, directory, onFault } = settings;
    this.#handoverPlace = `${fingerprint} ${place}`;
    const onHandoverFault = (error: unknown): void => {
      onFault("the handover file for the next process could not be written", error);
    };
    this.#handover =
      place === undefined || directory === undefined
        ? noHandover
        : openHandover({ directory, me: this.#me, clock, onFault: onHandoverFault });
    this.#contactAt = clock.monotonic();
    this.#openedAt = this.#contactAt;
    this.#left =
      directory === undefined ? null : leftLedger({ directory, fingerprint, windowMs, clock, onFault });
    // The table doesn't know of its calls, and nor do the other replicas. A pause applies to all of them.
    this.#pausedUntil = this.#left?.restedAt ?? -Infinity;
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

  urgent(waitingSince: readonly number[]): void {
    this.#urgent = waitingSince;
  }

  wanted(): void {
    this.#demand.wanted(this.#settings.clock.monotonic());
  }

  async take(): Promise<Taken> {
    if (this.#closed) throw new Error("the quota ledger is closed");
    const { clock, redis } = this.#settings;
    const isFresh = this.#lasts(GRANT_VALID_MS);
    const mayBeSent = this.#maySend();
    this.#waitedAt = clock.monotonic();
    this.#grants += 1;
    const call = this.#grants;
    const grant = `${this.#me}:${call}`;
    if (!redis.reachable()) return this.#takeAlone(call, grant);
    this.#asked.add(grant);
    const reply = await this.#request({ op: "take", grant });
    if (reply !== null && reply.taken > 0)
      this.#calls.set(call, { grant, epoch: reply.epoch, slot: reply.taken, takenAt: clock.monotonic() });
    // Only once `#calls` has it; otherwise a request sent in between would report that the call was never made.
    this.#asked.delete(grant);
    if (reply === null) return this.#takeAlone(call, grant);
    if (reply.taken > 0 && isFresh()) return { slot: call, isBorrowed: reply.isBorrowed, mayBeSent };
    if (reply.taken > 0) void this.settle(call, "unsent");
    return { retryInMs: this.#retryInMs() };
  }

  async settle(slot: SlotId, outcome: Outcome): Promise<void> {
    const call = this.#calls.get(slot);
    if (call === undefined) return;
    this.#calls.delete(slot);
    const { grant, epoch, slot: id } = call;
    // A later table has already accounted for this call, and uses the same number for another slot.
    if (epoch !== this.#epoch) return;
    const graceMs = outcome === "abandoned" ? this.#times.graceMs : 0;
    const at = this.#settings.clock.monotonic() + graceMs;
    this.#own.settle(id, at);
    // Redis knows only the slots that it has assigned.
    if (id > 0 && this.#settings.redis.reachable()) {
      // Otherwise a request that overtakes this one would report that the call was never made.
      this.#asked.add(grant);
      const reply = await this.#request({ op: "settle", grant, id, outcome, graceMs });
      this.#asked.delete(grant);
      if (reply !== null) return;
    }
    this.#own.report(id, { grant, at });
    this.#writeHandover();
  }

  async pause(forMs: number): Promise<void> {
    this.#pauseUntil(this.#settings.clock.monotonic() + forMs);
    await this.#request({ op: "sync" });
  }

  /** From the first call on, that file is no record of the last window. Without it, a later process without Redis knows that it has none. */
  #removeLeft(): void {
    this.#left?.remove();
    this.#left = null;
  }

  #pauseUntil(time: number): void {
    const latest = this.#settings.clock.monotonic() + MAX_PAUSE_MS;
    this.#pausedUntil = Math.max(this.#pausedUntil, Math.min(time, latest));
  }

  forecast(): Forecast {
    const now = this.#settings.clock.monotonic();
    const { occupiedMs } = this.#times;
    const calls = [...this.#calls.values()];
    const taken = new Set(calls.map(({ slot }) => slot));
    const isAlone = this.#alone(now);
    const pool = isAlone ? [] : this.#pool.filter(({ id }) => !taken.has(id));
    const { ours, others } = dividePool(pool, this.#poolDemand(now), this.#poolDemandElsewhere);
    const rest = isAlone ? this.#own.restOfShare(this.#contactAt) : ours;
    const inMs = (at: number): number => Math.max(0, at + occupiedMs - now);
    const usableInMs = [...this.#own.all(), ...rest]
      .filter(({ id }) => !taken.has(id))
      .map(({ at }) => inMs(at))
      .sort((a, b) => a - b);
    const borrowable = this.#borrows && !isAlone ? [...this.#others, ...others.map(({ at }) => at)] : [];
    return {
      resting: usableInMs.length,
      usableInMs: (n) => usableInMs[n] ?? Infinity,
      borrowableInMs: borrowable.map(inMs),
      updateInMs: this.#members.length === 0 ? Infinity : this.#times.beatMs,
      inFlightForMs: calls.map(({ takenAt }) => now - takenAt),
      pausedForMs: Math.max(0, this.#pausedUntil - now),
      occupiedMs,
    };
  }

  #poolDemand(now: number): number {
    return Math.max(0, Math.round(this.#demand.perWindow(now)) - this.#own.usable);
  }

  usage(): Usage {
    const now = this.#settings.clock.monotonic();
    return { used: this.#alone(now) ? this.#own.busy(now) : this.#used, largestWindowToday: this.#largest };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#cancelBeat();
    // Deleted first: even if Redis loses the leave request, no successor may repeat it.
    this.#handover.end();
    const { clock } = this.#settings;
    // Without any reply so far, it probably has no share to pass on.
    const tryUntil = this.#epoch === "" ? -Infinity : clock.monotonic() + LEAVES_WITHIN_MS;
    while ((await this.#request({ op: "leave" })) === null && clock.monotonic() < tryUntil)
      await new Promise<void>((done) => clock.after(TRY_AGAIN_MS, done));
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
   * One of several replicas that has never reached Redis can't know whether there is a share for it, so it has none. But if a former process in its
   * place had a share, it takes that over.
   */
  #goOnAlone(): void {
    const { clock } = this.#settings;
    if (this.#epoch === "" && !this.#own.hasShare) {
      const former = this.#handover.takeOfPlace(this.#handoverPlace, this.#times.deadMs / 2);
      if (former !== null) {
        this.#predecessors.set(former.name, former.known);
        this.#contactAt = clock.monotonic();
        this.#own.assumeShare(former.known.share);
        this.#pauseUntil(former.known.pausedUntil);
      }
    }
    this.#writeHandover();
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
   * Sends the leave request of a former process in this place, from its handover. Only once, only to the table that it knew, and only while nobody
   * else can have ended its share; otherwise others may have used its slots since.
   */
  async #replace({ name, silentMs }: Member): Promise<void> {
    const sentAt = this.#settings.clock.monotonic();
    const known = this.#predecessors.get(name) ?? this.#handover.take(name, silentMs);
    if (known !== null) this.#pauseUntil(known.pausedUntil);
    const isUsable =
      known?.epoch === this.#epoch && sentAt - known.monotonicMs <= this.#times.deadMs / 2 ? known : null;
    this.#predecessors.set(name, isUsable);
    if (isUsable === null) return;
    try {
      if ((await this.#exchange(this.#leaveRequestOf(name, isUsable, sentAt))) === null) return;
    } catch {
      // Redis may have executed it.
    }
    this.#predecessors.set(name, null);
  }

  #leaveRequestOf(name: string, { reports, extra, ...known }: Known, sentAt: number): Request {
    return {
      ...this.#nothing(sentAt),
      op: "leave",
      isFromSuccessor: true,
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

  /** Writes the handover; returns whether a successor would read it if this process were killed. */
  #writeHandover(): boolean {
    if (this.#closed) return false;
    const now = this.#settings.clock.monotonic();
    const lastOf = (at: number): number => (at === Infinity ? now + this.#times.longestMs : at);
    return this.#handover.write({
      monotonicMs: now,
      place: this.#handoverPlace,
      share: this.#own.usable,
      epoch: this.#epoch,
      generation: this.#generation,
      revision: this.#revision,
      reports: this.#own.reports().map(([id, { grant, at }]) => ({ id, grant, at: lastOf(at) })),
      extra: this.#own.extra().map(lastOf),
      pausedUntil: Math.max(0, this.#pausedUntil),
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
    this.#removeLeft();
    if (this.#mayHaveLent()) this.#own.assumeLent(this.#contactAt);
    const slot = this.#own.takeAlone(grant, now, this.#contactAt, () => this.#writeHandover());
    if (slot === null) return { retryInMs: this.#retryInMs() };
    this.#madeAlone += 1;
    this.#calls.set(call, { grant, epoch: this.#epoch, slot, takenAt: now });
    return { slot: call, mayBeSent: this.#maySend() };
  }

  /** A call that is sent later may arrive when its slot counts as rested, because nobody else knows that it is in flight. */
  #maySend(): () => boolean {
    return this.#lasts(GRANT_VALID_MS + this.#settings.longestCallMs);
  }

  /** Whether less than `ms` have passed since this was called, counting suspensions of the machine. */
  #lasts(ms: number): () => boolean {
    const until = this.#withSuspensions.monotonic() + ms;
    return () => this.#withSuspensions.monotonic() < until;
  }

  #retryInMs(): number {
    const { redis, clock } = this.#settings;
    if (!this.#alone(clock.monotonic()) && !redis.reachable()) return TRY_AGAIN_MS;
    const { resting, usableInMs, borrowableInMs, pausedForMs } = this.forecast();
    let soonestMs = this.#times.beatMs;
    for (let n = resting - 1; n >= 0 && usableInMs(n) > 0; n -= 1)
      soonestMs = Math.min(soonestMs, usableInMs(n));
    if (this.#urgent.length > 0)
      for (const inMs of borrowableInMs) if (inMs > 0) soonestMs = Math.min(soonestMs, inMs);
    return Math.max(1, pausedForMs, soonestMs);
  }

  /** Whether another replica may have borrowed a slot since the last reply. */
  #mayHaveLent(): boolean {
    return this.#agreedAt >= this.#contactAt;
  }

  /** Null if Redis didn't answer in time, or didn't execute the request. */
  async #request(what: Action): Promise<Table | null> {
    // After a silence, first report once what was used without Redis. A leave request reports it itself.
    if (what.op !== "leave" && this.#alone(this.#settings.clock.monotonic())) {
      this.#rejoining ??= this.#attempt({ op: "sync" }).finally(() => {
        this.#rejoining = null;
      });
      if ((await this.#rejoining) === null) return null;
    }
    return this.#attempt(what);
  }

  async #attempt(what: Action): Promise<Table | null> {
    try {
      // A request sent with a wrong estimate of Redis's clock isn't executed, but its reply corrects the estimate.
      return (await this.#send(what)) ?? (await this.#send(what));
    } catch {
      return null;
    }
  }

  async #send(what: Action): Promise<Table | null> {
    // Redis would take a request after the leave request for that of a new member.
    if (this.#closed && what.op !== "leave") return null;
    const sentAt = this.#settings.clock.monotonic();
    const reports = this.#own.reports();
    const pausedUntil = this.#pausedUntil;
    const pauseMs = pausedUntil > this.#publishedUntil ? Math.max(0, Math.ceil(pausedUntil - sentAt)) : 0;
    const lends = sentAt < this.#lendsUntil;
    const mayHaveLent = this.#mayHaveLent();
    const othersAsked = this.#asked.size - (what.grant === undefined ? 0 : 1);
    // If so, others may have used its slots since.
    const isReplaced = this.#alone(sentAt) && this.#handover.isTaken();
    const madeAlone = this.#madeAlone;
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
      urgentForMs: this.#borrows ? this.#urgent.map((since) => this.#agoMs(since, sentAt)) : [],
      poolDemand: this.#poolDemand(sentAt),
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
        .ofLostTable(sentAt + COMMAND_VALID_MS, othersAsked + (mayHaveLent ? 1 : 0))
        .map((at) => this.#agoMs(isReplaced ? Infinity : at, sentAt)),
    });
    // A reply that doesn't know of a call made alone, or comes from an older table, counts as lost.
    if (reply === null || madeAlone !== this.#madeAlone || this.#isOlder(reply)) return null;
    this.#removeLeft();
    this.#own.reported(reports);
    this.#learn(reply, sentAt);
    if (pauseMs > 0) this.#publishedUntil = Math.max(this.#publishedUntil, pausedUntil);
    return reply;
  }

  /** A request that only identifies this replica and the others it knows. */
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
      contactAgoMs: Math.ceil(sentAt - this.#contactAt),
      openForMs: Math.ceil(sentAt - this.#openedAt),
      // After a silence, the estimate of Redis's clock is too old to set a deadline, so this request only reads the clock.
      notAfter: fresh || this.#clockRead ? Math.ceil(sentAt + this.#redisAheadMs) + COMMAND_VALID_MS : 0,
      budget: this.budget,
      windowMs: this.windowMs,
      headroom,
      assumeFree: coldStart === "assume-free",
      replicasMax,
      share: this.#share,
      seated: false,
      isFromSuccessor: false,
      waiting: false,
      urgentForMs: [],
      poolDemand: 0,
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

  /** Null if Redis didn't execute the request; rejects if it didn't answer in time. */
  async #exchange(request: Request): Promise<Table | null> {
    const { redis, clock } = this.#settings;
    const answer = await redis.run(LEDGER_SCRIPT, this.#key, [JSON.stringify(request)]);
    const reply = parseReply(answer, clock.monotonic());
    this.#redisAheadMs = reply.redisAheadMs;
    this.#clockRead = "isMismatch" in reply;
    if (!("isMismatch" in reply)) return reply;
    if (reply.isMismatch) this.#own.assign([], false);
    return null;
  }

  /** The maximum lead of the table's time over our clock by now, allowing for clock drift. */
  #aheadAt(now: number): { ahead?: number } {
    if (this.#tableAheadMs === null) return {};
    return { ahead: Math.ceil(this.#tableAheadMs + (now - this.#contactAt) / 1000) };
  }

  /** Whether the reply comes from a table that was restored for a while after another one had been created. */
  #isOlder({ epoch, generation }: Table): boolean {
    return this.#epoch !== "" && epoch !== this.#epoch && generation <= this.#generation;
  }

  #learn(reply: Table, sentAt: number): void {
    this.#contactAt = Math.max(this.#contactAt, sentAt);
    if (reply.epoch === this.#epoch && reply.revision < this.#revision) return;
    // A new table may not know the pause.
    if (reply.epoch !== this.#epoch) this.#publishedUntil = -Infinity;
    this.#epoch = reply.epoch;
    this.#generation = reply.generation;
    this.#revision = reply.revision;
    const lateMs = this.#settings.clock.monotonic() - sentAt;
    this.#own.assign(reply.own, reply.isSeated, lateMs);
    const pool = reply.pool.sort((a, b) => a.at - b.at);
    this.#pool = pool.slice(0, Math.max(0, pool.length - reply.withheld));
    this.#poolDemandElsewhere = reply.poolDemandElsewhere;
    this.#others = reply.others;
    if (reply.pausedUntil > this.#pausedUntil) this.#pausedUntil = this.#publishedUntil = reply.pausedUntil;
    if (reply.urgentElsewhere > 0) this.#lendsUntil = sentAt + this.windowMs;
    this.#members = reply.members;
    this.#tableAheadMs = reply.aheadMs;
    this.#used = reply.used;
    this.#largest = reply.largest;
    this.#writeHandover();
  }
}

/**
 * Opens the shared ledger of one credential; never rejects. If Redis can't be reached at the start, a single replica makes no calls for about a
 * window; one of several makes none until it has reached Redis, unless it takes over from a predecessor.
 */
export async function openRedisLedger(settings: RedisLedgerSettings): Promise<Ledger> {
  const ledger = new RedisLedger(settings);
  await ledger.open();
  return ledger;
}

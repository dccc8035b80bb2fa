/**
 * Compares our budget with common rate limiters. Each is configured to send the budget's number of calls per window to an identical receiver.
 * They take turns, so that noise of the machine affects all of them alike. The figures combine all turns.
 */
import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Bottleneck from "bottleneck";
import pThrottle from "p-throttle";
import { RateLimiterMemory, RateLimiterQueue, RateLimiterRes } from "rate-limiter-flexible";
import { openQuota } from "./quota.js";
import {
  ask,
  BUDGET,
  type Jitter,
  LIMIT,
  Receiver,
  SMALL_JITTER,
  WIDE_JITTER,
  WINDOW_MS,
} from "./receiver.js";

const TURNS = 2;
const WINDOWS_PER_TURN = 5;
const CALLERS = 2 * BUDGET;
const CROWDS_PER_TURN = 2;
/** By then every policy has served the crowd. */
const CROWD_EVERY_WINDOWS = 3.5;
const IDLE_WINDOWS = 0.9;

/** A call, which invokes `answered` as soon as its answer begins. */
type Call = (answered: () => void) => Promise<void>;

interface Limiter {
  /** Resolves when the call has ended. Rejects if the limiter is closed before the call's turn. */
  run(caller: number, call: Call): Promise<void>;
  close(): Promise<void>;
}

/** When a limiter is closed, it drops the waiting calls if it can. */
const POLICIES: Readonly<Record<string, () => Promise<Limiter>>> = {
  "our budget, with its ledger file": async () => {
    const directory = mkdtempSync(join(tmpdir(), "bench-compare-"));
    const quota = await openQuota(directory);
    const closing = new AbortController();
    setMaxListeners(0, closing.signal);
    return {
      run: (caller, call) => {
        // The calls wait longer than a turn, so none is refused, as with the other limiters.
        const request = {
          lane: "exact",
          client: `caller ${caller}`,
          queryKey: "",
          maxWaitMs: 60_000,
        } as const;
        return quota.run({ ...request, signal: closing.signal }, ({ answered }) => call(answered));
      },
      close: async () => {
        closing.abort();
        await quota.close();
        rmSync(directory, { recursive: true });
      },
    };
  },
  "p-throttle": async () => throttled(false),
  "p-throttle, strict": async () => throttled(true),
  "Bottleneck, reservoir refreshed each window": async () =>
    bottleneck({ reservoirRefreshAmount: BUDGET, reservoirRefreshInterval: WINDOW_MS }),
  // It checks its reservoir every 250 ms, a quarter of a window, and can add only whole calls.
  "Bottleneck, reservoir increased each quarter": async () =>
    bottleneck({
      reservoirIncreaseAmount: Math.floor(BUDGET / 4),
      reservoirIncreaseInterval: WINDOW_MS / 4,
      reservoirIncreaseMaximum: BUDGET,
    }),
  "rate-limiter-flexible, memory": async () => {
    const limiter = new RateLimiterMemory({ points: BUDGET, duration: WINDOW_MS / 1000 });
    return {
      async run(_, call) {
        for (;;) {
          const refusal: unknown = await limiter.consume("upstream").then(
            () => null,
            (reason: unknown) => reason,
          );
          if (refusal === null) return call(() => {});
          if (!(refusal instanceof RateLimiterRes)) throw refusal;
          await sleep(refusal.msBeforeNext);
        }
      },
      close: async () => {},
    };
  },
  "rate-limiter-flexible, memory and queue": async () => {
    const limiter = new RateLimiterMemory({ points: BUDGET, duration: WINDOW_MS / 1000 });
    const queue = new RateLimiterQueue(limiter);
    return {
      async run(_, call) {
        await queue.removeTokens(1);
        await call(() => {});
      },
      close: async () => {},
    };
  },
  "fixed window, by hand": async () => {
    let current = -1;
    let sent = 0;
    return {
      async run(_, call) {
        for (;;) {
          const now = Date.now();
          const window = Math.floor(now / WINDOW_MS);
          if (window !== current) [current, sent] = [window, 0];
          if (sent < BUDGET) {
            sent += 1;
            return call(() => {});
          }
          await sleep((window + 1) * WINDOW_MS - now);
        }
      },
      close: async () => {},
    };
  },
};

function throttled(strict: boolean): Limiter {
  const closing = new AbortController();
  const throttle = pThrottle({ limit: BUDGET, interval: WINDOW_MS, strict, signal: closing.signal });
  const send = throttle((call: Call) => call(() => {}));
  return {
    run: async (_, call) => send(call),
    close: async () => {
      closing.abort();
    },
  };
}

function bottleneck(options: Bottleneck.ConstructorOptions): Limiter {
  const limiter = new Bottleneck({ reservoir: BUDGET, ...options });
  return {
    run: (_, call) => limiter.schedule(() => call(() => {})),
    close: async () => {
      await limiter.stop({ dropWaitingJobs: true });
      await limiter.disconnect();
    },
  };
}

/** Sends calls through a limiter until the load resolves. `send` resolves when a call has ended. */
type Load = (send: (caller: number) => Promise<void>, ended: () => boolean) => Promise<void>;

/** More callers than slots, each of which calls again immediately. */
const saturated: Load = async (send, ended) => {
  const keepCalling = async (caller: number): Promise<void> => {
    while (!ended()) await send(caller);
  };
  for (let caller = 0; caller < CALLERS; caller += 1) void keepCalling(caller);
  await sleep((WINDOWS_PER_TURN + 0.5) * WINDOW_MS);
};

/** One call, which starts a window in policies whose windows start with a call; nothing for most of a window; then twice the budget at once. */
const crowds: Load = async (send) => {
  for (let crowd = 0; crowd < CROWDS_PER_TURN; crowd += 1) {
    void send(CALLERS);
    await sleep(IDLE_WINDOWS * WINDOW_MS);
    for (let caller = 0; caller < CALLERS; caller += 1) void send(caller);
    await sleep((CROWD_EVERY_WINDOWS - IDLE_WINDOWS) * WINDOW_MS);
  }
};

interface Turn {
  readonly largest: number;
  readonly refused: number;
  readonly calls: number;
  readonly use: number;
}

async function turn(open: () => Promise<Limiter>, load: Load, jitter: Jitter): Promise<Turn> {
  const receiver = new Receiver(jitter);
  const port = await receiver.listen();
  const limiter = await open();
  let ended = false;
  const send = async (caller: number): Promise<void> => {
    try {
      // A call whose turn comes after the end isn't sent.
      await limiter.run(caller, async (answered) => (ended ? answered() : ask(port, answered)));
    } catch (error) {
      if (!ended) throw error;
    }
  };
  const startedAt = performance.now();
  await load(send, () => ended);
  const use = receiver.use(startedAt + WINDOW_MS / 2, performance.now());
  const { largest, refused, arrivals } = receiver;
  const calls = arrivals.length;
  ended = true;
  await limiter.close();
  receiver.close();
  return { largest, refused, calls, use };
}

async function inTurns(load: Load, jitter: Jitter) {
  const turns = new Map(Object.keys(POLICIES).map((policy): [string, Turn[]] => [policy, []]));
  for (let round = 0; round < TURNS; round += 1)
    for (const [policy, open] of Object.entries(POLICIES))
      turns.get(policy)?.push(await turn(open, load, jitter));
  return [...turns].map(([policy, of]) => ({
    policy,
    largest: Math.max(...of.map(({ largest }) => largest)),
    refused: sum(of.map(({ refused }) => refused)),
    calls: sum(of.map(({ calls }) => calls)),
    use: sum(of.map(({ use }) => use)) / of.length,
  }));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function columns({ policy, largest, refused, calls }: Turn & { readonly policy: string }) {
  return {
    policy,
    "largest window": `${largest} / ${BUDGET}`,
    ratio: (largest / BUDGET).toFixed(2),
    "429s": refused,
    calls,
  };
}

/** Prints the largest window, the violations and the use of each policy, saturated and from idle. */
export async function benchCompare(): Promise<void> {
  console.log(
    `\nHow each policy keeps a budget of ${BUDGET} calls in a window of ${WINDOW_MS} ms; a 429 is a call beyond ${LIMIT} in a window at the receiver`,
  );
  for (const jitter of [SMALL_JITTER, WIDE_JITTER]) {
    const rows = await inTurns(saturated, jitter);
    console.log(
      `saturated by ${CALLERS} callers for ${TURNS * WINDOWS_PER_TURN} windows, latency ${jitter.name} (the bound for a safe policy is the same as above)`,
    );
    console.table(rows.map((row) => ({ ...columns(row), use: row.use.toFixed(3) })));
  }
  const rows = await inTurns(crowds, SMALL_JITTER);
  console.log(
    `from idle: one call, and ${IDLE_WINDOWS} windows later ${CALLERS} at once; ${TURNS * CROWDS_PER_TURN} times; latency ${SMALL_JITTER.name}`,
  );
  console.table(rows.map(columns));
}

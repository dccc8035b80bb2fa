/**
 * `npm run bench -- upgrade --previous DIR`: two replicas over one Redis, asked for twice the budget, replaced one after the other by this
 * release and back by the previous one, which is built in DIR. In each mixture: calls, refusals, prices, and carts that the other one signed.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { newPromiseKey } from "../../src/retail/promise.js";
import { startSandbox } from "../../src/sandbox/sandbox.js";
import { startRedis } from "../support/redis-server.js";
import { Replica } from "./fleet-replica.js";
import { table } from "./table.js";
import { upstreamAt } from "../support/upstream.js";

const LIMIT = 60;
const BUDGET = 57;
const WINDOW_MS = 5000;
const LOAD = 2;
const PHASE_WINDOWS = 4;
/** A replica that has just started has no share yet. */
const SETTLE_WINDOWS = 1;
const TOKEN = "upgrade-bench";
const KNOWN_NAME = "google.af";

interface Phase {
  readonly name: string;
  use: number;
  answered: number;
  waited: number;
  readonly wrong: Set<string>;
}

const availability = z.object({
  available: z.boolean(),
  premium: z.boolean().nullish(),
  price: z.object({ amount: z.string() }).nullable(),
});

/** Prints the table. */
export async function benchUpgrade({ previous }: { readonly previous?: string }): Promise<void> {
  if (previous === undefined) throw new Error("--previous must name the folder of the previous release");
  const [older, newer] = [resolve(previous, "dist", "main.js"), join("dist", "main.js")];
  const sandbox = await startSandbox({
    configFile: "config/sandbox.yaml",
    rateLimit: { limit: LIMIT, windowMs: WINDOW_MS },
  });
  const redis = await startRedis();
  const stateDir = mkdtempSync(join(tmpdir(), "bench-state-"));
  const env = {
    ...upstreamAt(sandbox),
    UPSTREAM_RATE_LIMIT: String(LIMIT),
    UPSTREAM_RATE_WINDOW_MS: String(WINDOW_MS),
    QUOTA_MAX_WAIT_MS: "1000",
    REDIS_URL: redis.url,
    REPLICAS_MAX: "2",
    PROMISE_PRIVATE_KEY: newPromiseKey(),
    STAFF_TOKENS: `bench:${createHash("sha256").update(TOKEN).digest("hex")}:read`,
    STATE_DIR: stateDir,
    CLIENT_RATE_PER_MINUTE: "1000000",
    CLIENT_COLD_PER_MINUTE: "1000000",
    TRUST_PROXY_HOPS: "1",
    LOG_LEVEL: "error",
  };
  const replicas = [await Replica.start(env, older), await Replica.start(env, older)] as const;
  const over = new AbortController();
  let phase: Phase = newPhase("");
  let asked = 0;
  let price: string | null = null;

  async function visit(replica: Replica): Promise<void> {
    const { interruptions } = replica;
    const at = phase;
    const { status, body } = await bodyOf(replica, `/v1/availability?domain=upgrade-${(asked += 1)}.af`);
    if (replica.interruptions !== interruptions) return;
    if (status === 503) at.waited += 1;
    else if (status === 200) {
      at.answered += 1;
      const answer = availability.parse(body);
      if (!answer.available || answer.price === null || answer.premium === true) return;
      price ??= answer.price.amount;
      if (answer.price.amount !== price) at.wrong.add(`price ${answer.price.amount} beside ${price}`);
    } else at.wrong.add(`status ${status}`);
  }
  async function flood(replica: Replica): Promise<void> {
    while (!over.signal.aborted) {
      if (replica.isThere) void visit(replica);
      await sleep(WINDOW_MS / ((LOAD * BUDGET) / replicas.length));
    }
  }
  async function hit(): Promise<void> {
    while (!over.signal.aborted) {
      for (const replica of replicas) {
        const { isThere, interruptions, hasAnswered } = replica;
        const { status } = await bodyOf(replica, `/v1/availability?domain=${KNOWN_NAME}`);
        if (status === 200) replica.hasAnswered = true;
        else if (isThere && hasAnswered && replica.interruptions === interruptions)
          phase.wrong.add(`a known name: ${status}`);
      }
      await sleep(50);
    }
  }
  /** A cart that one replica signs is known to the other one. */
  async function sign(): Promise<void> {
    for (const [signer, other] of [replicas, replicas.toReversed()]) {
      if (signer === undefined || other === undefined) continue;
      const items = [{ domain: "khyber.af", action: "renewal", years: 1 }];
      const { status, body } = await bodyOf(signer, "/v1/quotes", { items });
      const { promise } = z.object({ promise: z.string().nullish() }).catch({}).parse(body);
      const claims = promise?.split(".")[1];
      if (claims === undefined) {
        phase.wrong.add(`a cart wasn't signed: ${status}`);
        continue;
      }
      const { jti } = z
        .object({ jti: z.string() })
        .parse(JSON.parse(Buffer.from(claims, "base64url").toString()));
      const seen = await bodyOf(other, `/v1/staff/promises/${jti}`);
      if (seen.status !== 200) phase.wrong.add(`a signed cart is unknown to the other: ${seen.status}`);
    }
  }
  const accepted = (): number => sandbox.stats().credentials.reduce((sum, one) => sum + one.accepted, 0);
  const windows = (count: number): Promise<void> => sleep(count * WINDOW_MS);
  const phases: Phase[] = [];
  async function during(name: string, change: () => Promise<void>): Promise<void> {
    phase = newPhase(name);
    phases.push(phase);
    await change();
    await windows(SETTLE_WINDOWS);
    const [before, began] = [accepted(), performance.now()];
    await windows(PHASE_WINDOWS);
    phase.use = (accepted() - before) / ((BUDGET * (performance.now() - began)) / WINDOW_MS);
    await sign();
  }

  const [first, second] = replicas;
  const work = [...replicas.map(flood), hit()];
  await during("both of the previous release", () => windows(2));
  await during("the first one replaced", () => first.replaceBy(newer));
  await during("both replaced", () => second.replaceBy(newer));
  await during("the first one rolled back", () => first.replaceBy(older));
  await during("both rolled back", () => second.replaceBy(older));
  await during("the second one replaced", () => second.replaceBy(newer));
  over.abort();
  await Promise.all(work);
  const seen = sandbox.stats().credentials[0];
  await Promise.all(replicas.map((replica) => replica.close()));
  await redis.close();
  await sandbox.close();
  rmSync(stateDir, { recursive: true });
  console.log(
    `\nTwo replicas, ${LOAD} times the budget: worst window over all of it ${seen?.largestWindow} of ${BUDGET}; refused by the upstream: ${seen?.rejected429}`,
  );
  console.log(
    table(
      ["", "use", "answered", "told to wait", "wrong"],
      phases.map(({ name, use, answered, waited, wrong }) => [
        name,
        use.toFixed(2),
        String(answered),
        String(waited),
        wrong.size === 0 ? "nothing" : [...wrong].join("; "),
      ]),
    ),
  );
}

const newPhase = (name: string): Phase => ({ name, use: 0, answered: 0, waited: 0, wrong: new Set() });

async function bodyOf(
  { port }: Replica,
  path: string,
  post?: unknown,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
  const question = post === undefined ? {} : { method: "POST", body: JSON.stringify(post) };
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...question });
    return { status: answer.status, body: await answer.json() };
  } catch {
    return { status: 0, body: null };
  }
}

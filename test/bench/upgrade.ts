/**
 * `npm run bench -- upgrade --previous DIR`: two replicas over one Redis, at twice the budget, are replaced one after the other by this release
 * and rolled back to the previous one, which is built in DIR. In each mixture, calls, refusals, prices and signed carts are checked.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { newPromiseKey } from "../../src/retail/promise.js";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
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
  refused: number;
  readonly errors: Set<string>;
}

const availability = z.object({
  available: z.boolean(),
  premium: z.boolean().nullish(),
  price: z.object({ amount: z.string() }).nullable(),
});

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
    if (status === 503) at.refused += 1;
    else if (status === 200) {
      at.answered += 1;
      const answer = availability.parse(body);
      if (!answer.available || answer.price === null || answer.premium === true) return;
      price ??= answer.price.amount;
      if (answer.price.amount !== price) at.errors.add(`price ${answer.price.amount} instead of ${price}`);
    } else at.errors.add(`status ${status}`);
  }
  async function flood(replica: Replica): Promise<void> {
    while (!over.signal.aborted) {
      if (replica.isUp) void visit(replica);
      await sleep(WINDOW_MS / ((LOAD * BUDGET) / replicas.length));
    }
  }
  async function hit(): Promise<void> {
    while (!over.signal.aborted) {
      for (const replica of replicas) {
        const { isUp, interruptions, hasAnswered } = replica;
        const { status } = await bodyOf(replica, `/v1/availability?domain=${KNOWN_NAME}`);
        if (status === 200) replica.hasAnswered = true;
        else if (isUp && hasAnswered && replica.interruptions === interruptions)
          phase.errors.add(`a known name was answered with ${status}`);
      }
      await sleep(50);
    }
  }
  /** Checks that a cart signed by one replica is known to the other one. */
  async function sign(): Promise<void> {
    for (const [signer, other] of [replicas, replicas.toReversed()]) {
      if (signer === undefined || other === undefined) continue;
      const items = [{ domain: "khyber.af", action: "renewal", years: 1 }];
      const { status, body } = await bodyOf(signer, "/v1/quotes", { items });
      const { promise } = z.object({ promise: z.string().nullish() }).catch({}).parse(body);
      const claims = promise?.split(".")[1];
      if (claims === undefined) {
        phase.errors.add(`a cart wasn't signed: ${status}`);
        continue;
      }
      const { jti } = z
        .object({ jti: z.string() })
        .parse(JSON.parse(Buffer.from(claims, "base64url").toString()));
      const seen = await bodyOf(other, `/v1/staff/promises/${jti}`);
      if (seen.status !== 200)
        phase.errors.add(`a signed cart is unknown to the other replica: ${seen.status}`);
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
    const [before, startedMs] = [accepted(), performance.now()];
    await windows(PHASE_WINDOWS);
    phase.use = (accepted() - before) / ((BUDGET * (performance.now() - startedMs)) / WINDOW_MS);
    await sign();
  }

  const [first, second] = replicas;
  const work = [...replicas.map(flood), hit()];
  await during("both on the previous release", () => windows(2));
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
    `\nTwo replicas at ${LOAD} times the budget: largest window of the whole run ${seen?.largestWindow} of ${BUDGET}; rejected by the upstream: ${seen?.rejected429}`,
  );
  console.log(
    table(
      ["", "use", "answered", "refused", "errors"],
      phases.map(({ name, use, answered, refused, errors }) => [
        name,
        use.toFixed(2),
        String(answered),
        String(refused),
        errors.size === 0 ? "none" : [...errors].join("; "),
      ]),
    ),
  );
}

const newPhase = (name: string): Phase => ({ name, use: 0, answered: 0, refused: 0, errors: new Set() });

async function bodyOf(
  { port }: Replica,
  path: string,
  post?: unknown,
): Promise<{ readonly status: number; readonly body: unknown }> {
  const headers = { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" };
  const init = post === undefined ? {} : { method: "POST", body: JSON.stringify(post) };
  try {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers, ...init });
    return { status: answer.status, body: await answer.json() };
  } catch {
    return { status: 0, body: null };
  }
}

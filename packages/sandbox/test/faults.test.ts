/** Faults on demand: a fault affects only the calls that it was set for, however it was set, and calls are still counted exactly. */
import { connect } from "node:net";
import { describe, expect, it, test } from "@jest/globals";
import { z } from "zod";
import { FAULTS } from "../src/fault-list.js";
import type { FaultRequest, Target } from "../src/faults.js";
import { OPERATIONS, type Sandbox, type SandboxOptions } from "../src/sandbox.js";
import { authHeaders, call, closeAfterEach, dataOf, portal, type Reply, start } from "./client.js";

closeAfterEach();

const WIDE = { limit: 10_000, windowMs: 60_000 };

async function startWith(target: Target, request: FaultRequest, options?: SandboxOptions): Promise<Sandbox> {
  const sandbox = await start(options);
  sandbox.control.setFault(target, request);
  return sandbox;
}

const ASKED = {
  check: ["POST", "/domains/check", { domain: "kabul.af", years: 1 }],
  quote: ["POST", "/pricing", { tld: ".af", action: "renewal", years: 1 }],
  domains: ["GET", "/domains", undefined],
  domain: ["GET", "/domains/khyber.af", undefined],
  balance: ["GET", "/account/balance", undefined],
  tier: ["GET", "/account/tier", undefined],
} as const;

function ask(sandbox: Sandbox, operation: keyof typeof ASKED): Promise<Reply> {
  const [method, path, body] = ASKED[operation];
  const headers = { ...authHeaders(sandbox.credential()), Connection: "close" };
  return call(method, `${sandbox.url}/api/v1${path}`, { headers, body });
}

/** The status, or "none" if no answer can be read. */
async function statusOf(sandbox: Sandbox, operation: keyof typeof ASKED): Promise<number | "none"> {
  return ask(sandbox, operation).then(
    ({ status }) => status,
    () => "none",
  );
}

/** Everything received on a new connection until `isEnough` returns true or the connection ends. */
function raw(sandbox: Sandbox, isEnough: (text: string) => boolean): Promise<string> {
  const { key, secret } = sandbox.credential();
  const { port } = new URL(sandbox.url);
  const request = `GET /api/v1/account/tier HTTP/1.1\r\nHost: sandbox\r\nX-Service-Key: ${key}\r\nX-Service-Secret: ${secret}\r\n\r\n`;
  return new Promise((done) => {
    const socket = connect(Number(port), "127.0.0.1");
    let text = "";
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      if (isEnough(text)) socket.destroy();
    });
    socket.on("close", () => {
      done(text);
    });
    socket.write(request);
  });
}

const accepted = (sandbox: Sandbox): number | undefined => sandbox.stats().credentials[0]?.accepted;

describe("a fault", () => {
  it("affects its operation and no other", async () => {
    const sandbox = await start({ rateLimit: WIDE });
    for (const operation of OPERATIONS) {
      sandbox.control.clearFaults();
      sandbox.control.setFault(operation, { fault: "status-503" });
      const seen = new Map<string, number | "none">();
      for (const asked of OPERATIONS) seen.set(asked, await statusOf(sandbox, asked));
      expect(Object.fromEntries(seen)).toEqual(
        Object.fromEntries(OPERATIONS.map((one) => [one, one === operation ? 503 : 200])),
      );
    }
  });

  it("affects as many calls as it was set for", async () => {
    const sandbox = await startWith("tier", { fault: "status-503", calls: 2 });
    const seen = [];
    for (let count = 0; count < 4; count += 1) seen.push(await statusOf(sandbox, "tier"));
    expect(seen).toEqual([503, 503, 200, 200]);
    expect(sandbox.control.faults().active).toEqual([
      { operation: "tier", fault: "status-503", calls: 2, struck: 2 },
    ]);
  });

  it("doesn't affect requests that the sandbox itself refuses", async () => {
    const sandbox = await startWith(
      "all",
      { fault: "status-503" },
      { rateLimit: { limit: 1, windowMs: 60_000 } },
    );
    expect([await statusOf(sandbox, "tier"), await statusOf(sandbox, "tier")]).toEqual([503, 429]);
    expect((await call("GET", `${sandbox.url}/api/v1/account/tier`)).status).toBe(401);
    expect(sandbox.control.faults().active[0]?.struck).toBe(1);
  });
});

describe("a connection fault", () => {
  it.each(["reset-on-accept", "end-on-accept"])(
    "such as %s takes effect before anything is counted",
    async (fault) => {
      const sandbox = await startWith("all", { fault, calls: 2 });
      expect([await statusOf(sandbox, "tier"), await statusOf(sandbox, "tier")]).toEqual(["none", "none"]);
      expect(accepted(sandbox)).toBe(0);
      expect(await statusOf(sandbox, "tier")).toBe(200);
    },
  );
});

describe("a connection that stays open", () => {
  it("has a forged answer after the honest one, where a second call would read it", async () => {
    const sandbox = await startWith("tier", { fault: "left-over-answer" });
    const text = await raw(
      sandbox,
      (received) => received.includes("bait") && received.split('"data"').length > 2,
    );
    const [, honest, forged] = text.split('"data"');
    expect(honest).toContain("Silver");
    expect(forged).not.toContain("Silver");
  });
});

test("every fault that lets a call arrive counts it once", async () => {
  const sandbox = await start({ rateLimit: WIDE });
  const counted = [...FAULTS.values()].filter(({ play }) => typeof play !== "string");
  for (const { name } of counted) {
    sandbox.control.setFault("tier", { fault: name });
    const before = accepted(sandbox) ?? 0;
    // An answer may never come, but once the fault has struck, the call has arrived.
    const waiting = raw(sandbox, () => true);
    const struck = (): number => sandbox.control.faults().active[0]?.struck ?? 0;
    for (let tries = 0; struck() === 0 && tries < 1000; tries += 1)
      await new Promise((later) => setTimeout(later, 1));
    expect([name, struck(), (accepted(sandbox) ?? 0) - before]).toEqual([name, 1, 1]);
    void waiting;
  }
  expect(sandbox.stats().credentials[0]).toMatchObject({ rejected429: 0, largestWindow: counted.length });
});

describe("the control port", () => {
  const report = z.object({
    active: z.array(z.looseObject({ operation: z.string(), fault: z.string(), struck: z.number() })),
    known: z.array(z.strictObject({ name: z.string(), kind: z.string().min(1) })),
  });

  it("lists every fault, sets some, for an operation or for all without one of their own, reports how many calls they affected, and clears them", async () => {
    const sandbox = await start();
    const { known, active } = report.parse((await portal(sandbox, "GET", "/faults")).json);
    expect(known.map(({ name }) => name)).toEqual([...FAULTS.keys()]);
    expect(active).toEqual([]);
    const set = await portal(sandbox, "PUT", "/faults/tier", { fault: "status-503", calls: 5 });
    expect([set.status, set.json]).toEqual([200, { operation: "tier", fault: "status-503", calls: 5 }]);
    await portal(sandbox, "PUT", "/faults/all", { fault: "html-502" });
    expect([await statusOf(sandbox, "tier"), await statusOf(sandbox, "check")]).toEqual([503, 502]);
    expect(report.parse((await portal(sandbox, "GET", "/faults")).json).active).toMatchObject([
      { operation: "tier", struck: 1 },
      { operation: "all", struck: 1 },
    ]);
    await portal(sandbox, "DELETE", "/faults/tier");
    expect(await statusOf(sandbox, "tier")).toBe(502);
    await portal(sandbox, "DELETE", "/faults");
    expect(dataOf(await ask(sandbox, "tier"))).toMatchObject({ current_tier: "Silver" });
  });

  it("refuses to set a fault that doesn't exist, with invalid settings, or where it can't be played", async () => {
    const sandbox = await start();
    for (const [operation, request, status] of [
      ["tier", { fault: "no-such-fault" }, 422],
      ["tier", { fault: "status-503", more: 1 }, 422],
      ["tier", { fault: "status-503", calls: 0 }, 422],
      ["tier", { fault: "reset-on-accept" }, 422],
      ["nothing", { fault: "status-503" }, 404],
    ] as const) {
      const reply = await portal(sandbox, "PUT", `/faults/${operation}`, request);
      expect([request, reply.status]).toEqual([request, status]);
      expect(z.object({ error: z.string() }).safeParse(reply.json).success).toBe(true);
    }
    expect(sandbox.control.faults().active).toEqual([]);
  });
});

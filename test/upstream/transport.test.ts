/** What a request needs before it is sent, and what it says about the request that caused it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { systemClock } from "../../src/clock.js";
import { serving, traceIn } from "../../src/request-ids.js";
import { createTransport, type Transport } from "../../src/upstream/transport.js";
import { startStub, type Stub, success } from "./support/stub.js";

const CREDENTIAL = { role: "active", key: "key", secret: "secret", fingerprint: "abc" } as const;
const TIER = { method: "GET", path: "/api/v1/account/tier" } as const;
const TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT_ID = "00f067aa0ba902b7";

let stub: Stub;
let transport: Transport;
beforeAll(async () => {
  stub = await startStub(success({}));
  transport = createTransport({ baseUrl: stub.url, timeoutMs: 2000, clock: systemClock });
});
beforeEach(() => {
  stub.forget();
});
afterAll(() => stub.close());

test("a request whose permit has expired isn't sent, and no connection is made for it", async () => {
  let answered = 0;
  const permit = (isValid: boolean) => ({ isValid: () => isValid, answered: () => (answered += 1) });
  const late = transport.send(CREDENTIAL, TIER, permit(false));
  await expect(late).rejects.toMatchObject({ code: "upstream_timeout" });
  expect([stub.sockets.length, answered]).toEqual([0, 0]);
  await transport.send(CREDENTIAL, TIER, permit(true));
  expect([stub.sockets.length, answered]).toEqual([1, 1]);
});

describe("a valid traceparent", () => {
  test.each([
    [`00-${TRACE_ID}-${PARENT_ID}-01`, true],
    [`00-${TRACE_ID}-${PARENT_ID}-00`, false],
    [`cc-${TRACE_ID}-${PARENT_ID}-01-what-the-future-will-be-like`, true],
  ])("such as %s is read", (field, isSampled) => {
    expect(traceIn(field)).toEqual({ id: TRACE_ID, isSampled });
  });

  test("is continued upstream with a parent id of our own, with the request's id", async () => {
    for (const flags of ["01", "00", "01"]) {
      const ids = { requestId: "r-1", trace: traceIn(`00-${TRACE_ID}-${PARENT_ID}-${flags}`) };
      await serving(ids, () => transport.send(CREDENTIAL, TIER, { isValid: () => true, answered() {} }));
    }
    const sent = stub.seen.map(({ headers }) => headers.get("traceparent") ?? "");
    const form = new RegExp(`^00-${TRACE_ID}-([0-9a-f]{16})-(0[01])$`);
    expect(sent.map((field) => form.exec(field)?.[2])).toEqual(["01", "00", "01"]);
    expect(new Set([PARENT_ID, ...sent.map((field) => form.exec(field)?.[1])]).size).toBe(4);
    expect(stub.seen[0]?.headers.get("x-request-id")).toBe("r-1");
  });
});

test.each([
  undefined,
  "",
  `00-${TRACE_ID}-${PARENT_ID}-01-more`,
  `00-${"0".repeat(32)}-${PARENT_ID}-01`,
  `00-${TRACE_ID}-${"0".repeat(16)}-01`,
  `ff-${TRACE_ID}-${PARENT_ID}-01`,
  `00-${TRACE_ID}-${PARENT_ID}-01\n`,
])("%j isn't a valid traceparent and is ignored", (field) => {
  expect(traceIn(field)).toBeNull();
});

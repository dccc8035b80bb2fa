/** Price promises in a fleet: staff can look up a promise on every replica, whichever made it. */
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { z } from "zod";
import { claimsOf } from "../support/promise.js";
import { describeWithRedis } from "../support/redis.js";
import { type Fleet, startFleet } from "../support/fleet.js";
import { bearer, problemOf, type Service, until } from "../support/service.js";

const cartShape = z.object({ promise: z.string().nullable() });

describeWithRedis("a promise in a fleet", () => {
  let fleet: Fleet;
  beforeEach(async () => {
    fleet = await startFleet(3);
  });
  afterEach(() => fleet.close());

  async function promiseFrom(replica: Service): Promise<string> {
    const body = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
    let promise: string | null = null;
    await until(async () => {
      const answer = await replica.ask("/v1/quotes", { method: "POST", body });
      promise = cartShape.safeParse(answer.body).data?.promise ?? null;
      return promise !== null;
    }, "a promise");
    return claimsOf(promise ?? "").jti;
  }

  const lookUp = (replica: Service, jti: string) =>
    replica.ask(`/v1/staff/promises/${jti}`, { headers: bearer("read") });

  test("can be looked up by staff only, with the same answer on every replica", async () => {
    const [maker, ...others] = fleet.replicas;
    if (maker === undefined) throw new Error("there is no replica");
    const jti = await promiseFrom(maker);
    await until(async () => {
      const known = await Promise.all(fleet.replicas.map((replica) => lookUp(replica, jti)));
      return new Set(known.map(({ text }) => text)).size === 1;
    }, "the same answer from every replica");
    for (const replica of others) {
      expect(await lookUp(replica, jti)).toMatchObject({
        status: 200,
        body: { id: jti, items: [{ domain: "kabul.af", wholesale: { currency: "USD" } }] },
      });
      expect((await replica.ask(`/v1/staff/promises/${jti}`)).status).toBe(401);
      expect(problemOf(await lookUp(replica, "no-such-promise")).code).toBe("not_found");
    }
    const [, ttl] = /^:(\d+)/.exec(await fleet.redis.command("PTTL", `af-storefront:promise:${jti}`)) ?? [];
    expect(Number(ttl)).toBeGreaterThan(0);
  });

  test("made without Redis is known to the others once Redis is back", async () => {
    const [maker, other] = fleet.replicas;
    if (maker === undefined || other === undefined) throw new Error("there is no replica");
    await promiseFrom(maker);
    await fleet.redis.kill();
    const jti = await promiseFrom(maker);
    await until(
      async () => problemOf(await lookUp(other, jti)).detail.includes("Redis is unreachable"),
      "the answer that Redis is unreachable",
    );
    await fleet.redis.start();
    await until(async () => (await lookUp(other, jti)).status === 200, "the successful look-up");
  });
});

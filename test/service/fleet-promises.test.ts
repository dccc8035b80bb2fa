/** Price promises of a fleet: what one replica has promised, staff can look up on every other. */
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

  async function promisedBy(replica: Service): Promise<string> {
    const body = { items: [{ domain: "kabul.af", action: "registration", years: 1 }] };
    let promise: string | null = null;
    await until(async () => {
      const answer = await replica.ask("/v1/quotes", { method: "POST", body });
      promise = cartShape.safeParse(answer.body).data?.promise ?? null;
      return promise !== null;
    }, "a promise");
    return claimsOf(promise ?? "").jti;
  }

  const lookedUp = (replica: Service, jti: string) =>
    replica.ask(`/v1/staff/promises/${jti}`, { headers: bearer("read") });

  test("is looked up with the same answer on every replica, by staff only", async () => {
    const [maker, ...others] = fleet.replicas;
    if (maker === undefined) throw new Error("there is no replica");
    const jti = await promisedBy(maker);
    await until(async () => {
      const known = await Promise.all(fleet.replicas.map((replica) => lookedUp(replica, jti)));
      return new Set(known.map(({ text }) => text)).size === 1;
    }, "the same answer");
    for (const replica of others) {
      expect(await lookedUp(replica, jti)).toMatchObject({
        status: 200,
        body: { id: jti, items: [{ domain: "kabul.af", wholesale: { currency: "USD" } }] },
      });
      expect((await replica.ask(`/v1/staff/promises/${jti}`)).status).toBe(401);
      expect(problemOf(await lookedUp(replica, "no-such-promise")).code).toBe("not_found");
    }
    const [, ttl] = /^:(\d+)/.exec(await fleet.redis.command("PTTL", `af-storefront:promise:${jti}`)) ?? [];
    expect(Number(ttl)).toBeGreaterThan(0);
  });

  test("made without Redis is known to the others once Redis is back", async () => {
    const [maker, other] = fleet.replicas;
    if (maker === undefined || other === undefined) throw new Error("there is no replica");
    await promisedBy(maker);
    await fleet.redis.kill();
    const jti = await promisedBy(maker);
    await until(
      async () => problemOf(await lookedUp(other, jti)).detail.includes("Redis is unreachable"),
      "the admission",
    );
    await fleet.redis.start();
    await until(async () => (await lookedUp(other, jti)).status === 200, "the look-up");
  });
});

/** What any replica shows staff of its fleet: the replicas, their figures and the totals, and what is wrong. */
import { expect } from "@jest/globals";
import { readFileSync, writeFileSync } from "node:fs";
import { join as pathOf } from "node:path";
import { z } from "zod";
import { describeWithRedis } from "../support/redis.js";
import { startFleet } from "../support/fleet.js";
import { bearer, type Service, temporaryFolder, until } from "../support/service.js";
import { concurrentTest } from "../support/stories.js";

const overviewShape = z.object({
  fleet: z.array(
    z.object({
      replica: z.string(),
      version: z.literal("1.2.3"),
      since: z.iso.datetime(),
      settings: z.string(),
      figures: z.record(z.string(), z.number()),
    }),
  ),
  fleetTotal: z.record(z.string(), z.number()),
});
const healthShape = z.object({
  checks: z.object({ redis: z.tuple([z.object({ status: z.string(), output: z.string().optional() })]) }),
});

async function overviewOf(replica: Service) {
  return overviewShape.parse((await replica.ask("/v1/staff/overview", { headers: bearer("read") })).body);
}
async function redisCheck(replica: Service) {
  return healthShape.parse((await replica.ask("/health")).body).checks.redis[0];
}

const seenBy = async (replica: Service): Promise<string[]> =>
  (await overviewOf(replica)).fleet.map(({ replica: name }) => name);

describeWithRedis("a fleet", () => {
  const test = concurrentTest(() => startFleet(3));

  test("is shown completely by each of its replicas, with the sums of their figures", async ({
    replicas,
  }) => {
    await until(
      async () => (await Promise.all(replicas.map(seenBy))).every(({ length }) => length === 3),
      "the discovery of all replicas",
    );
    const firsts = await Promise.all(replicas.map(async (replica) => (await seenBy(replica))[0]));
    expect(new Set(firsts).size).toBe(3);
    for (let count = 0; count < 9; count += 1)
      await replicas[count % 3]?.ask("/v1/availability?domain=a..b&years=1");
    await until(async () => {
      const totals = await Promise.all(replicas.map(async (one) => (await overviewOf(one)).fleetTotal));
      return totals.every(({ refusedLocally }) => refusedLocally === 9);
    }, "the update of the sums");
    const [first] = replicas;
    if (first === undefined) throw new Error("there is no replica");
    const { fleet: parts, fleetTotal } = await overviewOf(first);
    expect(new Set(parts.map(({ settings }) => settings)).size).toBe(1);
    for (const [name, total] of Object.entries(fleetTotal))
      expect(parts.reduce((sum, { figures }) => sum + (figures[name] ?? 0), 0)).toBe(total);
    const metrics = await first.ask("/metrics", { headers: bearer("metrics") });
    expect(metrics.text).toMatch(/^fleet_replicas 3$/m);
  });

  test("warns of too many replicas until the extra one has left", async ({ replicas, join }) => {
    const [first] = replicas;
    if (first === undefined) throw new Error("there is no replica");
    const fourth = await join();
    await until(
      async () => (await redisCheck(first)).output?.includes("REPLICAS_MAX") === true,
      "the warning",
    );
    const line = JSON.stringify({ level: "error", event: "fleet.oversized", replicas: 4, replicasMax: 3 });
    await until(() => first.log.includes(line), "the log line");
    await fourth.close();
    await until(async () => (await redisCheck(first)).status === "pass", "the recovery");
  });

  test("warns when its replicas have different settings", async ({ replicas, join }) => {
    const [first, second] = replicas;
    if (first === undefined || second === undefined) throw new Error("there is no replica");
    await second.close();
    await join({ CLIENT_RATE_PER_MINUTE: "17" });
    await until(
      async () => (await redisCheck(first)).output?.includes("different settings") === true,
      "the warning",
    );
    await until(() => first.log.some((line) => line.includes('"fleet.settings.differ"')), "the log line");
  });

  test("compares the price rules in effect, not those at startup", async ({ replicas, join }) => {
    const [first, second] = replicas;
    if (first === undefined || second === undefined) throw new Error("there is no replica");
    const folder = temporaryFolder();
    const file = pathOf(folder.path, "retail.yaml");
    const shipped = readFileSync("config/retail.yaml", "utf8");
    const edited = shipped.replace(/markupPercent: "\d+"/, 'markupPercent: "77"');
    writeFileSync(file, edited);
    await second.close();
    await join({ RETAIL_CONFIG: file });
    const warns = async (): Promise<boolean> => (await redisCheck(first)).output !== undefined;
    await until(warns, "the warning");
    writeFileSync(file, shipped);
    await until(async () => !(await warns()), "the recovery");
    writeFileSync(file, edited);
    await until(warns, "the warning about the edited file");
    folder.remove();
  });
});

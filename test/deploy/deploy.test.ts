/** The files in `deploy/` fit the current service. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readFileSync } from "node:fs";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { FakeClock } from "../support/fake-clock.js";
import { bearer, type Service, startService } from "../support/service.js";

const DEPLOY = new URL("../../deploy/", import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, DEPLOY), "utf8");
let service: Service;
beforeAll(async () => {
  service = await startService({ clock: new FakeClock() });
});
afterAll(() => service.close());

describe("the monitoring files", () => {
  const families = async (): Promise<Set<string>> => {
    const { text } = await service.ask("/metrics", { headers: bearer("metrics") });
    return new Set([...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name = ""]) => name));
  };
  /** The metrics used in queries, without the suffixes of histograms. */
  const namedIn = (queries: readonly string[]): string[] =>
    queries.flatMap((query) =>
      [...query.matchAll(/\b([a-z]+(?:_[a-z0-9]+)*)(?=\{|\[|\))/g)]
        .map(([, name = ""]) => name.replace(/_(?:bucket|count|sum)$/, ""))
        .filter(
          (name) => !["up", "by", "le", "rate", "sum", "max", "min", "histogram_quantile"].includes(name),
        )
        .filter((name) => name.includes("_") || name === "promises"),
    );

  test("use only metrics that exist in the dashboard", async () => {
    const dashboard = z
      .object({ panels: z.array(z.object({ targets: z.array(z.object({ expr: z.string() })) })) })
      .parse(JSON.parse(textOf("grafana/dashboard.json")));
    const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    const known = await families();
    expect(queries.map((query) => namedIn([query]).length > 0)).not.toContain(false);
    expect(namedIn(queries).filter((name) => !known.has(name))).toEqual([]);
  });

  const rules = z
    .object({
      groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })),
    })
    .parse(parse(textOf("prometheus/alerts.yml")))
    .groups.flatMap(({ rules }) => rules);

  test("use only metrics that exist in the alerts", async () => {
    const known = await families();
    expect(namedIn(rules.map(({ expr }) => expr)).filter((name) => !known.has(name))).toEqual([]);
  });

  test("have a test for each alert", () => {
    const tested = new Set(
      [...textOf("prometheus/alerts.test.yml").matchAll(/alertname: (\w+)/g)].map(([, name]) => name),
    );
    expect(rules.map(({ alert }) => alert).filter((alert) => !tested.has(alert))).toEqual([]);
  });
});

test("the Kubernetes manifests probe endpoints that exist, and use only secrets that they create", async () => {
  const documents = parseAllDocuments(textOf("kubernetes/af-storefront.yaml"));
  const kinds = documents.map((document) => z.object({ kind: z.string() }).parse(document.toJS()).kind);
  expect(kinds).toEqual(["Deployment", "Service", "PodDisruptionBudget"]);
  const text = textOf("kubernetes/af-storefront.yaml");
  for (const [, path = ""] of text.matchAll(/path: (\/\w+), port/g))
    expect((await service.ask(path)).status).toBe(200);
  const created = new Set([...text.matchAll(/--from-file=\w+\/(\w+)/g)].map(([, name]) => name));
  const used = [...text.matchAll(/\/run\/secrets\/af-storefront\/(\w+)/g)].map(([, name]) => name);
  expect(used.filter((name) => !created.has(name))).toEqual([]);
});

test("the compose file uses every secret that it defines, and gives Redis a password and its own network", () => {
  const compose = z
    .object({
      services: z.record(
        z.string(),
        z.looseObject({ secrets: z.array(z.string()), networks: z.array(z.string()) }),
      ),
      secrets: z.record(z.string(), z.unknown()),
      networks: z.record(z.string(), z.object({ internal: z.boolean() })),
    })
    .parse(parse(readFileSync(new URL("../docker-compose.yml", DEPLOY), "utf8")));
  const { storefront, redis } = compose.services;
  expect([...(storefront?.secrets ?? []), ...(redis?.secrets ?? [])].toSorted()).toEqual(
    Object.keys(compose.secrets).toSorted(),
  );
  expect([redis?.networks, compose.networks]).toEqual([["redis"], { redis: { internal: true } }]);
});

/** The files in `deploy/` fit the current service, and the programs that they are for accept them, and work with it. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { freePort } from "../support/free-port.js";
import { bearer, type Service, startService, temporaryFolder, until } from "../support/service.js";
import { pathOf as programAt, succeeds, testWith } from "../support/tools.js";

const DEPLOY = new URL("../../deploy/", import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, DEPLOY), "utf8");
const pathOf = (path: string): string => new URL(path, DEPLOY).pathname;
const folder = temporaryFolder();
let service: Service;
beforeAll(async () => {
  service = await startService({ clock: systemClock, env: { TRUST_PROXY_HOPS: "1" } });
});
afterAll(async () => {
  await service.close();
  folder.remove();
});

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

testWith(
  ["promtool"],
  "the alerts pass promtool's checks, fire and clear, and the metrics are named as Prometheus advises",
  async () => {
    succeeds("promtool", "check", "rules", pathOf("prometheus/alerts.yml"));
    succeeds("promtool", "test", "rules", pathOf("prometheus/alerts.test.yml"));
    const { text } = await service.ask("/metrics", { headers: bearer("metrics") });
    const { stderr } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
    // The client library's Node.js metrics have names that promtool complains about.
    expect(stderr.split("\n").filter((line) => line !== "" && !line.startsWith("nodejs_"))).toEqual([]);
  },
);

testWith(["systemd-analyze"], "the systemd unit is valid and sandboxed", () => {
  succeeds("systemd-analyze", "verify", pathOf("systemd/af-storefront.service"));
  succeeds(
    "systemd-analyze",
    "security",
    "--offline=true",
    "--threshold=20",
    pathOf("systemd/af-storefront.service"),
  );
});

testWith(["nginx", "openssl"], "nginx proxies answers and streams over TLS as one hop", async () => {
  const at = (name: string): string => join(folder.path, name);
  execFileSync(
    "openssl",
    `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=shop.example.af -keyout ${at("key")} -out ${at("cert")}`.split(
      " ",
    ),
    { stdio: "ignore" },
  );
  const port = await freePort();
  const plainPort = await freePort();
  const site = readFileSync(pathOf("proxy/nginx.conf"), "utf8")
    .replaceAll(/ *listen \[::\].*\n/g, "")
    .replace("listen 80;", `listen 127.0.0.1:${plainPort};`)
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replace("127.0.0.1:3000", `127.0.0.1:${service.port}`)
    .replace("/etc/ssl/af-storefront/fullchain.pem", at("cert"))
    .replace("/etc/ssl/af-storefront/privkey.pem", at("key"));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((kind) => `${kind}_temp_path ${at(kind)};`)
    .join("\n");
  writeFileSync(
    at("nginx.conf"),
    `daemon off;\npid ${at("pid")};\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}}\n`,
  );
  const program = programAt("nginx") ?? "nginx";
  succeeds(program, "-t", "-c", at("nginx.conf"), "-e", at("error.log"));
  const nginx = spawn(program, ["-c", at("nginx.conf"), "-e", at("error.log")], { stdio: "ignore" });
  try {
    const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      new Promise<{ status: number; type: string; limits: string; chunks: string[] }>((done, failed) => {
        request({ host: "127.0.0.1", port, path, headers, rejectUnauthorized: false }, (answer) => {
          const chunks: string[] = [];
          answer.setEncoding("utf8");
          answer.on("data", (chunk: string) => chunks.push(chunk));
          answer.on("end", () => {
            const { "content-type": type = "", ratelimit = "" } = answer.headers;
            done({ status: answer.statusCode ?? 0, type, limits: String(ratelimit), chunks });
          });
        })
          .on("error", failed)
          .end();
      });
    await until(
      () =>
        get("/livez").then(
          ({ status }) => status === 200,
          () => false,
        ),
      "the start of nginx",
    );
    const stream = await get("/v1/search?q=kabul", { Accept: "text/event-stream" });
    expect([stream.status, stream.type]).toEqual([200, expect.stringContaining("text/event-stream")]);
    expect(stream.chunks.join("")).toContain("event: done");
    expect((await get("/metrics", bearer("metrics"))).status).toBe(404);
    // A forged address doesn't make another client: both requests count for the same one.
    const left = async (from: string): Promise<number> => {
      const { limits } = await get("/v1/quotes?tld=.af&action=renewal", { "X-Forwarded-For": from });
      return Number(/r=(\d+)/.exec(limits)?.[1]);
    };
    expect((await left("203.0.113.9")) - (await left("203.0.113.10"))).toBe(1);
  } finally {
    const ended = new Promise((done) => nginx.once("exit", done));
    nginx.kill("SIGQUIT");
    await ended;
  }
});

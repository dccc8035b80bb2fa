/** The programs that the files in `deploy/` are for accept them, and work with the current service. */
import { afterAll, beforeAll, expect } from "@jest/globals";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { systemClock } from "../../src/clock.js";
import { freePort } from "../support/free-port.js";
import { bearer, type Service, startService, temporaryFolder, until } from "../support/service.js";
import { pathOf as programAt, succeeds, testWith } from "../support/tools.js";

const DEPLOY = new URL("../../deploy/", import.meta.url);
const pathOf = (path: string): string => new URL(path, DEPLOY).pathname;
let service: Service;
let folder: ReturnType<typeof temporaryFolder>;
beforeAll(async () => {
  folder = temporaryFolder();
  service = await startService({ clock: systemClock, env: { TRUST_PROXY_HOPS: "1" } });
});
afterAll(async () => {
  await service.close();
  folder.remove();
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

/** The tables, lists and commands in the documentation match the code. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { parseEnv } from "node:util";
import { z } from "zod";
import { systemClock } from "../../src/clock.js";
import { readConfig } from "../../src/config/env.js";
import { PROBLEMS } from "../../src/errors.js";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { bearer, type Service, startService } from "../support/service.js";
import { curlOf, curlsOf } from "./support/curl.js";
import { anchorsOf, blocksOf, PAGES, prose, read, ROOT, tableOf } from "./support/markdown.js";
import { dirname, join } from "node:path";

const plain = (cell = ""): string => cell.replaceAll("`", "");

describe("the settings", () => {
  const rows = tableOf(read("docs/settings.md"), "variable", "default", "meaning");
  const documented = rows.map(([name]) => plain(name));
  const example = read(".env.example");

  /** Every environment variable that the service reads. */
  const variables = new Set<string>();
  readConfig(
    new Proxy<Record<string, undefined>>(
      {},
      {
        get: (_target, name) => {
          if (typeof name === "string") variables.add(name);
        },
      },
    ),
    systemClock,
  );
  const secrets = [...variables].filter((name) => variables.has(`${name}_FILE`));
  const secretFiles = new Set(secrets.map((name) => `${name}_FILE`));
  const [, sandboxSchema = ""] =
    /const environment = z\.object\(\{([\s\S]*?)\}\)/.exec(read("packages/sandbox/src/main.ts")) ?? [];
  const used = new Set([
    ...[...variables].filter((name) => !secretFiles.has(name)),
    ...[...sandboxSchema.matchAll(/^\s*([A-Z_]+):/gm)].map(([, name = ""]) => name),
    ...[...read("docker-compose.yml").matchAll(/\$\{([A-Z_]+):-/g)].map(([, name = ""]) => name),
  ]);

  test("in the table and in .env.example are those that are read", () => {
    expect(documented.toSorted()).toEqual([...used].toSorted());
    const listed = [...example.matchAll(/^#?([A-Z][A-Z_]+)=/gm)].map(([, name = ""]) => name);
    expect(listed.toSorted()).toEqual([...used].toSorted());
  });

  test("that contain secrets are marked", () => {
    const marked = rows.filter(([, , meaning]) => meaning?.startsWith("secret;"));
    expect(marked.map(([name]) => plain(name)).toSorted()).toEqual(secrets.toSorted());
  });

  test("have the same defaults in the table, in .env.example and in the code", () => {
    const defaults = parseEnv(example);
    const listed = rows.map(([name, value]) => [plain(name), plain(value)] as const);
    expect(Object.fromEntries(listed.filter(([name]) => name in defaults))).toEqual(defaults);
    expect(readConfig(defaults, systemClock)).toEqual(readConfig({}, systemClock));
  });
});

describe("a running service", () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
  });
  afterAll(() => service.close());

  test("has the metrics that the operations page names", async () => {
    const { text } = await service.ask("/metrics", { headers: bearer("metrics") });
    const [, section = ""] = /^## Alerts and metrics$([\s\S]*?)^## /m.exec(read("docs/operations.md")) ?? [];
    const named = [...prose(section).matchAll(/`([a-z]+(?:_[a-z]+)+|promises)`/g)].map(
      ([, name = ""]) => name,
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !text.includes(`# HELP ${name} `))).toEqual([]);
  });

  test("starts as the README says, and gives the answers that its curl commands get there", async () => {
    const blocks = blocksOf(read("README.md"));
    expect(blocks.map(({ code }) => code.trim())).toContain("npm ci && npm start");
    expect(JSON.parse(read("package.json"))).toMatchObject({ scripts: { start: "node dist/main.js" } });
    const commands = blocks.flatMap((block, index) =>
      curlsOf(block).map((command) => ({ command, next: blocks[index + 1] })),
    );
    expect(commands.filter(({ command }) => command.includes("event-stream"))).toHaveLength(1);
    for (const { command, next } of commands) {
      const { path, question } = curlOf(command);
      const { status, body, text } = await service.ask(path, question);
      expect(status).toBe(200);
      if (command.includes("event-stream")) expect(text).toContain("event: done\n");
      if (next?.language !== "json") continue;
      const shown = z.record(z.string(), z.unknown()).parse(JSON.parse(next.code));
      expect(body).toEqual({ ...shown, asOf: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) });
    }
  });
});

test("the list of log events has those that the code writes, with their levels", () => {
  const sources = readdirSync(`${ROOT}src`, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.startsWith("pages/"))
    .map((file) => readFileSync(`${ROOT}src/${file}`, "utf8"));
  const written = sources.flatMap((source) =>
    [...source.matchAll(/\blog\.(error|warn|info|debug|announce)\(\s*(?:"([a-z.]+)"|[^)])/g)].map(
      ([call, level = "", event = `${call} without a literal`]) =>
        `${event} ${level === "announce" ? "info" : level}`,
    ),
  );
  const [, section = ""] =
    /^The events of each level:$([\s\S]*?)^## /m.exec(read("docs/operations.md")) ?? [];
  const listed = section.split("### ").flatMap((part) => {
    const [level = ""] = part.split("\n");
    return [...part.matchAll(/^- ([^:]+):/gm)].flatMap(([, events = ""]) =>
      events.split(", ").map((event) => `${plain(event)} ${level}`),
    );
  });
  expect(listed.toSorted()).toEqual([...new Set(written)].toSorted());
});

test("the API page lists the error codes with their statuses", () => {
  const [, section = ""] = /^## Errors$([\s\S]*?)^## /m.exec(read("docs/api.md")) ?? [];
  const listed = [...section.matchAll(/(\d{3}) `(\w+)`/g)].map(([, status, name]) => `${status} ${name}`);
  const all = Object.entries(PROBLEMS).map(([name, { status }]) => `${status} ${name}`);
  expect(listed.toSorted()).toEqual(all.toSorted());
});

test("the README lists the endpoints of the OpenAPI document and the pages", () => {
  const rows = tableOf(read("README.md"), "request", "token", "answer");
  const listed = rows.flatMap(([requests = ""]) => plain(requests).split(", "));
  const inDocument = Object.entries(openApiDocument({ version: "1.2.3" }).paths).flatMap(([path, methods]) =>
    Object.keys(z.record(z.string(), z.unknown()).parse(methods)).map(
      (method) => `${method.toUpperCase()} ${path}`,
    ),
  );
  expect(listed.toSorted()).toEqual(
    [...inDocument, "GET /", "GET /embed.js", "GET /staff", "GET /docs"].toSorted(),
  );
});

test("the table of benchmarks lists those that can be run", () => {
  const rows = tableOf(read("docs/development.md"), "name", "shows");
  const listed = rows.map(([name]) => plain(name).replace(/ .*/, ""));
  const run = [...read("test/bench/main.ts").matchAll(/^ {2}(\w+): bench\w+,$/gm)].map(
    ([, name = ""]) => name,
  );
  expect(listed.toSorted()).toEqual(run.toSorted());
});

describe("every page", () => {
  const { scripts } = z
    .object({ scripts: z.record(z.string(), z.string()) })
    .parse(JSON.parse(read("package.json")));

  function brokenLinksOf(page: string): string[] {
    const links = [...prose(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
    return links.filter((target) => {
      if (/^https?:/.test(target)) return false;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : join(dirname(page), path);
      if (!existsSync(`${ROOT}${file}`)) return true;
      return anchor !== undefined && !anchorsOf(read(file)).has(anchor);
    });
  }

  test.each(PAGES)("%s has no broken links, and mentions only files and scripts that exist", (page) => {
    expect(brokenLinksOf(page)).toEqual([]);
    const files = [...prose(read(page)).matchAll(/`((?:src|test|config|docs|packages|\.ci)\/[\w./-]*)`/g)];
    const base = page.startsWith("packages/") ? `${ROOT}${dirname(page)}/` : ROOT;
    expect(files.map(([, path = ""]) => path).filter((path) => !existsSync(base + path))).toEqual([]);
    const named = [...read(page).matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name = ""]) => name);
    const inClient = page.startsWith("packages/client/") || page.endsWith("development.md");
    expect(named.filter((name) => !(name in scripts) && !(inClient && name === "generate"))).toEqual([]);
  });

  test("the README links to every page, has at most 150 lines, and its picture is small", () => {
    const readme = read("README.md");
    expect(PAGES.filter((page) => page !== "README.md" && !readme.includes(`(${page})`))).toEqual([]);
    expect(readme.split("\n").length - 1).toBeLessThanOrEqual(150);
    // Everyone who opens the README downloads it.
    expect(statSync(`${ROOT}docs/storefront.png`).size).toBeLessThanOrEqual(60_000);
  });
});

describe("the security page", () => {
  const text = read("docs/security.md");

  test("refers to tests that exist, for every requirement", () => {
    const rows = text.split("\n").filter((line) => /^- `(?:packages|test)\//.test(line));
    expect(rows.flatMap((row) => row.match(/\d+\.\d+\.\d+/g) ?? []).length).toBeGreaterThan(60);
    for (const row of rows) {
      const tests = [...row.matchAll(/`((?:packages\/\w+\/)?test\/[^`]+)`/g)].map(([, path]) => path ?? "");
      expect([row, tests.length]).not.toEqual([row, 0]);
      for (const path of tests) expect([path, existsSync(`${ROOT}${path}`)]).toEqual([path, true]);
    }
  });

  test.each([
    ["src/http/edge/server.ts", /MAX_CONNECTIONS = (\d+_?\d*)/, /at most (\d+,?\d*) connections/],
    ["src/http/edge/server.ts", /MAX_REQUESTS_PER_CONNECTION = (\d+)/, /ends after (\d+) requests/],
    ["src/http/edge/limits.ts", /WRONG_PER_MINUTE = (\d+)/, /After (\d+) wrong tokens/],
    ["src/http/edge/server.ts", /headersTimeout: (\d+)_000/, /Header fields must arrive within (\d+) s/],
    ["src/http/edge/server.ts", /requestTimeout: (\d+)_000/, /a whole request within (\d+) s/],
  ])("has the figure of %s: %s", (path, inCode, inText) => {
    expect(inText.exec(text)?.[1]).toBe(inCode.exec(read(path))?.[1]?.replace("_", ","));
  });
});

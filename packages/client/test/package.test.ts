/**
 * The package as websites and apps use it: its types are those of the service, it stays small, its examples build, and it works at the real service: in a
 * new project that installs it, and in an app with React Native's globals alone, as its old releases have them
 * (AbortController of abort-controller 3, no `atob`). Its fetch (whatwg-fetch, on XMLHttpRequest) has no `Response.body`, and an answer arrives when it
 * has ended.
 */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { build } from "esbuild";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { createContext, runInContext } from "node:vm";
import { openApiDocument } from "../../../src/wire/document.js";
import { partOf } from "../part.js";
import type * as Package from "../src/index.js";
import { FakeClock } from "../../../test/support/fake-clock.js";
import { type Service, startService, temporaryFolder } from "../../../test/support/service.js";

const CLIENT = fileURLToPath(new URL("../", import.meta.url));
const run = promisify(execFile);
/** TypeScript 5, which many projects have. */
const COMPILER = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin/tsc");

let service: Service;
beforeAll(async () => {
  service = await startService({ clock: new FakeClock() });
});
afterAll(() => service.close());

const typesIn = (name: string): string => readFileSync(join(CLIENT, `src/${name}.ts`), "utf8");

test.each([
  ["schema", ["visitors", "customers"]],
  ["staff-schema", ["staff"]],
])(
  "%s is generated from the current document (if not: npm run build && npm run generate -w packages/client)",
  (name, tags) => {
    const part = JSON.stringify(partOf(openApiDocument({ version: "0" }), tags));
    expect(/^\/\/ sha256: ([0-9a-f]{64})$/m.exec(typesIn(name))?.[1]).toBe(
      createHash("sha256").update(part).digest("hex"),
    );
  },
);

test("the types that a website installs contain nothing about staff", () => {
  expect(typesIn("schema")).not.toMatch(/\/v1\/staff|wholesale|Overview|margin/);
});

async function bundle(entry: string, platform: "browser" | "node" = "browser"): Promise<Uint8Array> {
  const { outputFiles, warnings } = await build({
    entryPoints: [join(CLIENT, entry)],
    alias: { "af-storefront-client": join(CLIENT, "src/index.ts") },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    platform,
    logLevel: "silent",
  });
  expect(warnings).toEqual([]);
  return outputFiles[0]?.contents ?? new Uint8Array();
}

test("the whole package is at most 4.5 kB compressed", async () => {
  expect(gzipSync(await bundle("src/index.ts"), { level: 9 }).length).toBeLessThanOrEqual(4.5 * 1024);
});

test.each([
  ["a plain page", "examples/browser/main.js", "browser"],
  ["React", "examples/react/NameSearch.tsx", "browser"],
  ["a server", "examples/server/server.ts", "node"],
] as const)("the example for %s builds", async (_what, entry, platform) => {
  expect((await bundle(entry, platform)).length).toBeGreaterThan(1000);
});

test("the examples compile strictly", async () => {
  // With the compiler of this project, which is several times as fast.
  const compiler = join(CLIENT, "../../node_modules/typescript/bin/tsc");
  await run(process.execPath, [compiler, "-p", join(CLIENT, "examples")]);
});

const program = `
import { createClient, searchAsYouType, StorefrontProblem, type Availability, type Money } from "af-storefront-client";

const client = createClient({ baseUrl: process.argv[2] ?? "" });
const search = await client.search({ q: "kabul", tlds: [".af", ".com.af"] });
const found: Availability[] = [];
let complete: boolean | undefined;
for await (const event of client.searchStream({ q: "kabul", tlds: [".af"] })) {
  if (event.event === "result") found.push(event.result);
  else complete = event.complete;
}
const typed = await new Promise<string[]>((done) => {
  searchAsYouType(client, {
    onChange: ({ phase, results }) => {
      if (phase === "done") done(results.map(({ domain }) => domain));
    },
  }).search({ q: "kabul", tlds: [".af"] });
});
const quote: Money = (await client.quote({ tld: ".af", action: "renewal", years: 2 })).price;
const cart = await client.cart([{ domain: "kabul.af", action: "registration", years: 1 }]);
// @ts-expect-error an unknown action does not compile
const refused: unknown = await client.quote({ tld: ".af", action: "gift" }).catch((error: unknown) => error);
console.log(JSON.stringify({
  searched: search.results.map(({ domain }) => domain),
  streamed: found.map(({ domain, status }) => [domain, status]),
  complete,
  typed,
  quote,
  total: cart.total,
  refused: refused instanceof StorefrontProblem && [refused.code, refused.errors[0]?.field],
}));
`;

test("a new project compiles and runs a search, a stream, a quote and a cart", async () => {
  const folder = temporaryFolder();
  const installed = join(folder.path, "node_modules/af-storefront-client");
  mkdirSync(installed, { recursive: true });
  for (const published of ["package.json", "dist"])
    cpSync(join(CLIENT, published), join(installed, published), { recursive: true });
  writeFileSync(join(folder.path, "package.json"), '{ "type": "module" }');
  writeFileSync(
    join(folder.path, "main.ts"),
    `declare const process: { argv: string[] };\ndeclare const console: { log(text: string): void };\n${program}`,
  );
  const strict = [
    "--strict",
    "--noUncheckedIndexedAccess",
    "--exactOptionalPropertyTypes",
    "--skipDefaultLibCheck",
  ];
  const to = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom,dom.asynciterable"];
  await run(process.execPath, [COMPILER, "main.ts", ...strict, ...to], { cwd: folder.path });
  const { stdout } = await run(process.execPath, ["main.js", service.url], { cwd: folder.path });
  expect(JSON.parse(stdout)).toEqual({
    searched: ["kabul.af", "kabul.com.af"],
    streamed: [["kabul.af", "available"]],
    complete: true,
    typed: ["kabul.af"],
    quote: { amount: expect.any(String), currency: "USD" },
    total: [{ amount: expect.any(String), currency: "USD" }],
    refused: ["invalid_request", "action"],
  });
  folder.remove();
});

async function script(contents: string): Promise<string> {
  const stdin = { contents, resolveDir: join(CLIENT, "test"), loader: "ts" } as const;
  const { outputFiles } = await build({
    stdin,
    bundle: true,
    write: false,
    format: "iife",
    target: "es2022",
  });
  return outputFiles[0]?.text ?? "";
}

/** React Native's XMLHttpRequest, as far as whatwg-fetch uses it. */
class Request {
  status = 0;
  statusText = "";
  responseText = "";
  onload = (): void => {};
  onerror = (): void => {};
  onabort = (): void => {};
  #fields = "";
  #outgoing: ReturnType<typeof request> | undefined;

  open(method: string, url: string): void {
    sent.push(url);
    this.#outgoing = request(url, { method });
  }
  setRequestHeader(name: string, value: string): void {
    this.#outgoing?.setHeader(name, value);
  }
  getAllResponseHeaders(): string {
    return this.#fields;
  }
  send(body: string | null): void {
    this.#outgoing?.on("error", () => {
      this.onerror();
    });
    this.#outgoing?.on("response", (response) => {
      this.status = response.statusCode ?? 0;
      this.#fields = Object.entries(response.headers)
        .map(([name, value]) => `${name}: ${String(value)}`)
        .join("\r\n");
      response.setEncoding("utf8");
      response.on("data", (text: string) => (this.responseText += text));
      response.on("end", () => {
        this.onload();
      });
    });
    this.#outgoing?.end(body ?? undefined);
  }
  abort(): void {
    this.#outgoing?.destroy();
    this.onabort();
  }
}
let sent: string[] = [];

describe("in an app on React Native", () => {
  let app: typeof Package & { readonly AbortController: typeof AbortController };
  let clockMs = 0;

  beforeAll(async () => {
    const globals = {
      setTimeout,
      clearTimeout,
      performance,
      console,
      XMLHttpRequest: Request,
      clock: { leadMs: () => clockMs },
      receive: (loaded: typeof app) => {
        app = loaded;
      },
    };
    const context = createContext({ ...globals, self: undefined });
    runInContext(
      "globalThis.self = globalThis; const real = Date.now; Date.now = () => real() + clock.leadMs();",
      context,
    );
    const shims = `import { AbortController, AbortSignal } from "abort-controller/dist/abort-controller";
      Object.assign(globalThis, { AbortController, AbortSignal });
      import "whatwg-fetch";`;
    runInContext(await script(shims), context);
    runInContext("delete Response.prototype.body;", context);
    runInContext(
      await script('import * as all from "../src/index.js"; globalThis.storefront = all;'),
      context,
    );
    runInContext("receive({ ...storefront, AbortController });", context);
  });

  const client = (more: Package.ClientSettings = {}) => app.createClient({ baseUrl: service.url, ...more });

  test("asks for names, prices and a cart", async () => {
    const names = client();
    expect(await names.availability({ domain: "herat.af" })).toMatchObject({ domain: "herat.af" });
    expect((await names.prices()).prices.length).toBeGreaterThan(0);
    const { items } = await names.cart([{ domain: "khyber.af", action: "renewal", years: 1 }]);
    expect(items).toHaveLength(1);
  });

  test("gets every result of a streamed search, with one request that doesn't wait for a stream", async () => {
    sent = [];
    const domains: string[] = [];
    for await (const event of client().searchStream({ q: "bamyan" }))
      domains.push(event.event === "result" ? event.result.domain : `complete ${event.complete}`);
    expect(domains).toEqual([
      "bamyan.af",
      "bamyan.com.af",
      "bamyan.net.af",
      "bamyan.org.af",
      "complete true",
    ]);
    expect(sent).toHaveLength(1);
  });

  test("can cancel a call, before and while it is made", async () => {
    const control = new app.AbortController();
    const domain = "held.af";
    service.sandbox.control.hold({ operation: "check", asked: { domain } });
    const asked = client().availability({ domain }, { signal: control.signal });
    setTimeout(() => {
      control.abort();
    }, 50);
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
    const late = client().availability({ domain: "herat.af" }, { signal: control.signal });
    await expect(late).rejects.toMatchObject({ name: "AbortError" });
    for (const hold of service.sandbox.control.holds()) hold.release();
  });

  test("gets an error when a call exceeds its deadline", async () => {
    const domain = "too-slow.af";
    service.sandbox.control.hold({ operation: "check", asked: { domain } });
    const asked = client({ timeoutMs: 300 }).availability({ domain });
    await expect(asked).rejects.toMatchObject({ name: "StorefrontProblem", code: "unreachable" });
    for (const hold of service.sandbox.control.holds()) hold.release();
  });

  test("searches while a visitor types", async () => {
    const states: Package.SearchState[] = [];
    const typed = app.searchAsYouType(client(), { onChange: (state) => states.push(state) });
    const done = new Promise<void>((resolve) => {
      const look = setInterval(() => {
        if (states.at(-1)?.phase !== "done" && states.at(-1)?.phase !== "failed") return;
        clearInterval(look);
        resolve();
      }, 10);
    });
    typed.search({ q: "kunduz" });
    await done;
    expect(states.at(-1)?.phase).toBe("done");
    expect(states.at(-1)?.results.map(({ status }) => status)).not.toContain("unknown");
    typed.stop();
  });

  test("holds the prices of a cart for as long as they are valid, whatever the device's clock says", async () => {
    clockMs = 365 * 24 * 3_600_000;
    const cart = app.createCart(client());
    cart.add({ domain: "khyber.af", action: "renewal", years: 1 });
    expect(await cart.confirm()).toEqual(expect.any(String));
    expect(cart.state.phase).toBe("confirmed");
    expect((cart.state.heldUntilMs ?? 0) - app.now()).toBeGreaterThan(10 * 60_000);
    cart.stop();
    clockMs = 0;
  });
});

/** The client package, installed in a new project, compiles strictly and works against the service. */
import { expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { FakeClock } from "../../../test/support/fake-clock.js";
import { startService, temporaryFolder } from "../../../test/support/service.js";

const run = promisify(execFile);
const CLIENT = fileURLToPath(new URL("../", import.meta.url));
const COMPILER = join(
  dirname(
    createRequire(new URL("../../../package.json", import.meta.url)).resolve("typescript/package.json"),
  ),
  "bin/tsc",
);

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
  const service = await startService({ clock: new FakeClock() });
  try {
    const installed = join(folder.path, "node_modules/af-storefront-client");
    mkdirSync(installed, { recursive: true });
    for (const published of ["package.json", "dist"])
      cpSync(join(CLIENT, published), join(installed, published), { recursive: true });

    writeFileSync(join(folder.path, "package.json"), '{ "type": "module" }');
    writeFileSync(
      join(folder.path, "main.ts"),
      `declare const process: { argv: string[] };\ndeclare const console: { log(text: string): void };\n${program}`,
    );
    const strict = ["--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--types", ""];
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
  } finally {
    await service.close();
    folder.remove();
  }
});

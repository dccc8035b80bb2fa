/** The plugin's PHP without WordPress: its syntax, and how it verifies promises of a real service. */
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import manifest from "../../../package.json" with { type: "json" };
import { systemClock } from "../../../src/clock.js";
import { newPromiseKey } from "../../../src/retail/promise.js";
import { blocksOf, read } from "../../../test/docs/support/markdown.js";
import { claimsOf } from "../../../test/support/promise.js";
import { type Service, startService, temporaryFolder } from "../../../test/support/service.js";
import { describeWith, succeeds } from "../../../test/support/tools.js";

const PLUGIN = fileURLToPath(new URL("../af-domain-search/", import.meta.url));
const CHECKOUT = fileURLToPath(new URL("checkout.php", import.meta.url));

const answerShape = z.strictObject({
  promise: z.union([
    z.string(),
    z.strictObject({ id: z.string(), valid_until: z.int(), lines: z.array(z.unknown()) }),
  ]),
  asked: z.int(),
});

/** The promise of a service for one name. */
async function promiseOf(service: Service): Promise<string> {
  const items = [{ domain: "kabul.af", action: "registration", years: 1 }];
  const { body } = await service.ask("/v1/quotes", { method: "POST", body: { items } });
  return z.object({ promise: z.string() }).parse(body).promise;
}

describeWith("php", "the WordPress plugin", () => {
  const folder = temporaryFolder();
  const keyFile = join(folder.path, "key.pem");
  let passedMs = 0;
  let behindMs = 0;
  const clock = {
    ...systemClock,
    now: () => systemClock.now() - behindMs,
    monotonic: () => systemClock.monotonic() + passedMs,
  };
  let service: Service;
  let running: { php: ChildProcessByStdio<Writable, Readable, null>; lines: Interface }[] = [];

  beforeAll(async () => {
    writeFileSync(keyFile, newPromiseKey());
    service = await startService({ clock, env: { PROMISE_PRIVATE_KEY_FILE: keyFile } });
  });
  afterEach(() => {
    for (const { php, lines } of running) {
      lines.close();
      php.kill();
    }
    running = [];
  });
  afterAll(async () => {
    await service.close();
    folder.remove();
  });

  /** A site whose checkout keeps what it stores until the end of the test. */
  function startCheckout(at = service.url) {
    const php = spawn("php", [CHECKOUT, at], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: php.stdout });
    running.push({ php, lines });
    const answers = lines[Symbol.asyncIterator]();
    return {
      pass(seconds: number): void {
        php.stdin.write(`pass ${seconds}\n`);
      },
      async verify(promise: string) {
        php.stdin.write(`verify ${promise}\n`);
        return answerShape.parse(
          JSON.parse(z.object({ value: z.string() }).parse(await answers.next()).value),
        );
      },
    };
  }

  test("has no syntax errors", () => {
    for (const file of readdirSync(PLUGIN).filter((name) => name.endsWith(".php")))
      succeeds("php", "-l", join(PLUGIN, file));
  });

  test("has the version of the service", () => {
    const text = (file: string): string => readFileSync(join(PLUGIN, file), "utf8");
    expect(text("readme.txt")).toContain(`Stable tag: ${manifest.version}\n`);
    const versions = text("af-domain-search.php").match(/\b\d+\.\d+\.\d+\b/g);
    expect(versions).toEqual([manifest.version, manifest.version]);
  });

  test("reads the lines of a promise, with prices as decimal strings, and refuses one that has expired or that the service didn't sign", async () => {
    const promise = await promiseOf(service);
    const { jti, exp } = claimsOf(promise);
    const price = { amount: "26.99", currency: "USD" };
    const line = { domain: "kabul.af", tld: ".af", action: "registration", years: 1, price };
    const { verify } = startCheckout();
    const good = { promise: { id: jti, valid_until: exp, lines: [line] }, asked: 1 };
    expect(await verify(promise)).toEqual(good);
    behindMs = 3_600_000;
    const expired = await promiseOf(service);
    behindMs = 0;
    expect((await verify(expired)).promise).toBe("af_promise_expired");

    const [head = "", body = "", signature = ""] = promise.split(".");
    const encoded = (text: string): string => Buffer.from(text).toString("base64url");
    const decoded = (part: string): string => Buffer.from(part, "base64url").toString("utf8");
    for (const altered of [
      [head, encoded(decoded(body).replace("26.99", "16.99")), signature].join("."),
      [encoded(decoded(head).replace("EdDSA", "none")), body, ""].join("."),
      [encoded(decoded(head).replace("EdDSA", "HS256")), body, signature].join("."),
      [encoded(decoded(head).replace("price-promise+jwt", "JWT")), body, signature].join("."),
      [encoded('{"alg":"EdDSA","typ":"price-promise+jwt","kid":["x"]}'), body, signature].join("."),
      [head, body, ""].join("."),
      [head, body].join("."),
      `${promise}.${signature}`,
      `${promise}=`,
      "x",
      "",
    ])
      expect((await verify(altered)).promise).toBe("af_promise_invalid");
    expect(await verify(promise)).toEqual(good);
    // Of a key that the service doesn't have: once asked, and again.
    const foreign = await startService({ clock: systemClock, at: service.sandbox, warm: false });
    const other = await promiseOf(foreign);
    await foreign.close();
    expect(await startCheckout().verify(other)).toEqual({ promise: "af_promise_invalid", asked: 1 });
    expect(await verify(other)).toEqual({ promise: "af_promise_unverified", asked: 1 });
  });

  test("and the PHP code of docs/api.md agree about what the service signed", async () => {
    const block = blocksOf(read("docs/api.md")).find(
      ({ language, code }) => language === "php" && code.includes("jwks.json"),
    );
    const file = join(folder.path, "documented.php");
    const code = block?.code.replaceAll("https://shop.example.af", service.url);
    writeFileSync(file, `${code}\necho json_encode(promised_lines($argv[1]));`);
    const promise = await promiseOf(service);
    const verify = (text: string) =>
      new Promise<string>((done) => {
        execFile("php", [file, text], (error, stdout) => done(error === null ? stdout : "rejected"));
      });
    expect(JSON.parse(await verify(promise))).toMatchObject([
      { domain: "kabul.af", price: { amount: "26.99", currency: "USD" } },
    ]);
    const [head, body = "", signature] = promise.split(".");
    const cheaper = Buffer.from(body, "base64url").toString("utf8").replace("26.99", "16.99");
    for (const altered of [
      [head, Buffer.from(cheaper).toString("base64url"), signature].join("."),
      `${head}.${body}.`,
      "x",
    ])
      expect(await verify(altered)).toBe("rejected");
  });

  test("asks for the keys every ten minutes, and for an unknown key once a minute", async () => {
    const checkout = startCheckout();
    const promise = await promiseOf(service);
    for (const passed of [0, 0, 500]) {
      checkout.pass(passed);
      expect(await checkout.verify(promise)).toMatchObject({ promise: { lines: [{}] }, asked: 1 });
    }
    checkout.pass(100);
    expect((await checkout.verify(promise)).asked).toBe(2);

    writeFileSync(keyFile, newPromiseKey());
    // The service has read the file less than a second ago.
    passedMs += 1000;
    const rotated = await promiseOf(service);
    expect(rotated.split(".")[0]).not.toBe(promise.split(".")[0]);
    for (const passed of [0, 30]) {
      checkout.pass(passed);
      expect(await checkout.verify(rotated)).toEqual({ promise: "af_promise_unverified", asked: 2 });
    }
    checkout.pass(30);
    for (const one of [rotated, promise])
      expect(await checkout.verify(one)).toMatchObject({ promise: { lines: [{}] }, asked: 3 });
  });

  test("keeps the keys for an hour while the service can't be reached, and then asks once a minute", async () => {
    const short = await startService({
      clock: systemClock,
      env: { PROMISE_PRIVATE_KEY_FILE: keyFile },
      at: service.sandbox,
    });
    const promise = await promiseOf(short);
    const checkout = startCheckout(short.url);
    expect((await checkout.verify(promise)).asked).toBe(1);
    await short.close();
    checkout.pass(700);
    for (const asked of [2, 2]) expect(await checkout.verify(promise)).toMatchObject({ promise: {}, asked });
    checkout.pass(3000);
    for (const asked of [3, 3])
      expect(await checkout.verify(promise)).toEqual({ promise: "af_promise_unverified", asked });
    checkout.pass(60);
    expect((await checkout.verify(promise)).asked).toBe(4);
  });
});

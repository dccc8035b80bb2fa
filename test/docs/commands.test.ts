/** The commands in the documentation do what it says. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { z } from "zod";
import { startSandbox } from "../../packages/sandbox/src/sandbox.js";
import { FakeClock } from "../support/fake-clock.js";
import {
  type Ask,
  type Question,
  type Service,
  spawnService,
  startService,
  temporaryFolder,
} from "../support/service.js";
import { testWith } from "../support/tools.js";
import { type Block, blocksOf, read, ROOT } from "./support/markdown.js";

const run = promisify(execFile);

interface Curl {
  readonly path: string;
  readonly question: Question;
}

/** The request of a `curl` command to localhost. Throws on an unknown option. */
function curlOf(command: string, variables: Readonly<Record<string, string>> = {}): Curl {
  const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) =>
      single ?? double?.replaceAll(/\$(\w+)/g, (_, name: string) => variables[name] ?? "") ?? bare,
  );
  const headers: Record<string, string> = {};
  let path: string | undefined;
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === "-H") {
      const [name = "", ...value] = (words.shift() ?? "").split(": ");
      headers[name] = value.join(": ");
    } else if (word.startsWith("localhost:3000/")) path = word.slice("localhost:3000".length);
    else if (!["curl", "-N"].includes(word)) throw new Error(`unknown word ${word} in ${command}`);
  }
  if (path === undefined) throw new Error(`no URL in ${command}`);
  return { path, question: { headers } };
}

function curlsOf({ code }: Block): string[] {
  return code.split("\n").filter((line) => line.startsWith("curl "));
}

describe("the README", () => {
  const blocks = blocksOf(read("README.md"));
  let service: Service;
  beforeAll(async () => {
    service = await startService({ clock: new FakeClock() });
  });
  afterAll(() => service.close());

  test("starts the service with `npm start`, on the embedded sandbox", async () => {
    expect(blocks.map(({ code }) => code.trim())).toContain("npm ci && npm start");
    const { scripts } = z
      .object({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(read("package.json")));
    expect(scripts["start"]).toBe("node dist/main.js");
    const started = spawnService({});
    const health = await started.ask("/health");
    expect(health.body).toMatchObject({
      status: expect.any(String),
      description: expect.stringContaining("sandbox"),
    });
    expect((await started.ask("/")).text).toContain("<html");
    expect(await started.stop()).toBe(0);
  });

  test("shows the answers that its curl commands get", async () => {
    const commands = blocks.flatMap((block, index) =>
      curlsOf(block).map((command) => ({ command, next: blocks[index + 1] })),
    );
    expect(commands.length).toBeGreaterThan(1);
    for (const { command, next } of commands) {
      const { path, question } = curlOf(command);
      const { status, body } = await service.ask(path, question);
      expect(status).toBe(200);
      if (next?.language !== "json") continue;
      const shown = z.record(z.string(), z.unknown()).parse(JSON.parse(next.code));
      expect(body).toEqual({ ...shown, asOf: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) });
    }
  });

  test("shows how a search is streamed", async () => {
    const command = blocks.flatMap(curlsOf).find((line) => line.includes("event-stream"));
    const { path, question } = curlOf(command ?? "");
    expect((await service.ask(path, question)).text).toContain("event: done\n");
  });
});

describe("docs/going-live.md", () => {
  const blocks = blocksOf(read("docs/going-live.md")).filter(({ language }) => language === "sh");
  const [health = "", ...staffCommands] = blocks.flatMap(curlsOf);
  const scripts = blocks.map(({ code }) => code).filter((code) => /secrets|> \.env/.test(code));

  testWith(
    ["openssl"],
    "leads from an empty folder to a service on a live upstream, step by step",
    async () => {
      const folder = temporaryFolder();
      const sandbox = await startSandbox({});
      try {
        const script = scripts.join("\n").replaceAll("http://127.0.0.1:4000", sandbox.url);
        const { stdout } = await run("sh", ["-euc", script], { cwd: folder.path });
        const TOKEN = stdout.trim();
        // Without this, the service would wait, because it can't know what was spent before.
        const env = { QUOTA_COLD_START: "assume-free", PORT: "0", HOST: "127.0.0.1" };

        const probe = await run(process.execPath, [`${ROOT}dist/probe/main.js`], {
          cwd: folder.path,
          env: { PATH: process.env["PATH"], ...env },
        });
        expect(probe.stdout).toContain("not seen");

        const service = spawnService(env, { cwd: folder.path });
        const ask: Ask = service.ask;
        const healthy = await ask(curlOf(health).path);
        expect(healthy.text).toContain('"description":"Live upstream."');
        expect(staffCommands.length).toBe(2);
        for (const command of staffCommands) {
          const { path, question } = curlOf(command, { TOKEN });
          expect((await ask(path, question)).status).toBe(200);
          expect((await ask(path)).status).toBe(401);
        }
        expect(await service.stop()).toBe(0);
      } finally {
        await sandbox.close();
        folder.remove();
      }
    },
  );
});

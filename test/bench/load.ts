/** Sends as many requests as a server can answer, over keep-alive connections from a separate process, wrk. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { type HttpRequest, pinned, temporaryFolder } from "./servers.js";

export const CONNECTIONS = 50;
/** After this many requests, the changing addresses and names of a load repeat. */
export const MILLION = 1_000_000;

const reportSchema = z.object({
  requests: z.number(),
  /** Answers with a status of 400 or more. */
  errors: z.number(),
  /** Failed connections and missing answers. */
  lost: z.number(),
  seconds: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
});

const script = join(temporaryFolder(), "load.lua");
const run = promisify(execFile);
let asked = 0;

const CHANGES: Readonly<Record<string, string>> = {
  n: "n",
  address: '"10." .. floor(n / 65536) .. "." .. floor(n / 256) % 256 .. "." .. n % 256',
};

/**
 * If the path or a header contains `{n}` or `{address}` (only one of them, once), each request has a different number or IPv4 address. They
 * continue where the last load ended.
 */
export async function load(port: number, { path, headers = {}, body }: HttpRequest, seconds: number) {
  const host = `127.0.0.1:${port}`;
  const sent = body === undefined ? "" : JSON.stringify(body);
  const of = sent === "" ? {} : { "Content-Type": "application/json", "Content-Length": String(sent.length) };
  const fields = Object.entries({ Host: host, ...of, ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const start = `${sent === "" ? "GET" : "POST"} ${path} HTTP/1.1`;
  const [before, change = "", after = ""] = [start, ...fields, "", sent]
    .join("\r\n")
    .split(/\{(n|address)\}/);
  writeFileSync(
    script,
    `local n, floor = ${asked}, math.floor
local before, after = ${JSON.stringify(before)}, ${JSON.stringify(after)}
function request()
  n = (n + 1) % ${MILLION}
  return before .. ${CHANGES[change] ?? '""'} .. after
end
function done(summary, latency)
  local e = summary.errors
  print(string.format('{"requests":%d,"errors":%d,"lost":%d,"seconds":%f,"p50Ms":%f,"p99Ms":%f}', summary.requests, e.status,
    e.connect + e.read + e.write + e.timeout, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`,
  );
  const flags = [`-c${CONNECTIONS}`, "-t1", `-d${seconds}s`, "--timeout", "30s", "-s", script];
  const [program = "", ...args] = pinned("load", ["wrk", ...flags, `http://${host}`]);
  const { stdout } = await run(program, args);
  const report = reportSchema.parse(JSON.parse(stdout.slice(stdout.lastIndexOf('{"requests"'))));
  asked = (asked + report.requests + CONNECTIONS) % MILLION;
  if (report.lost > 0) throw new Error(`${report.lost} requests for ${path} weren't answered`);
  return report;
}

/** Generates the load that test/bench/load.ts describes, for machines without wrk, and prints the same report. */
import autocannon from "autocannon";

const { port, path, body, headers, seconds, connections, from, most } = JSON.parse(process.argv[2]);
let n = from;

function filled(text) {
  return text
    .replace("{n}", String(n))
    .replace("{address}", () => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
}

function setupRequest(request) {
  n = (n + 1) % most;
  const changed = Object.entries(headers).map(([name, value]) => [name, filled(value)]);
  return { ...request, path: filled(path), headers: { ...request.headers, ...Object.fromEntries(changed) } };
}

const changing = /\{(?:n|address)\}/.test(path + Object.values(headers).join());
const sent = body ? { "Content-Type": "application/json", ...headers } : headers;
const result = await autocannon({
  url: `http://127.0.0.1:${port}`,
  connections,
  duration: seconds,
  timeout: 30,
  requests: [
    {
      path,
      headers: sent,
      ...(body && { method: "POST", body: JSON.stringify(body) }),
      ...(changing && { setupRequest }),
    },
  ],
});
console.log(
  JSON.stringify({
    requests: result["2xx"] + result.non2xx,
    errors: result["4xx"] + result["5xx"],
    lost: result.errors + result.timeouts,
    seconds: result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  }),
);

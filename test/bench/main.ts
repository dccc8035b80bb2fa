/** `npm run bench -- NAME… [--rounds N] [--seconds S] [--only WORDS]` prints tables of ratios, without a name those of all benchmarks. */
import { parseArgs } from "node:util";
import { z } from "zod";
import { benchFleet } from "./fleet.js";
import { benchHttp } from "./http.js";
import { benchMemory } from "./memory.js";
import type { Options } from "./table.js";
import { benchTail } from "./tail.js";
import { benchWaits } from "./waits.js";

const BENCHES: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  http: benchHttp,
  tail: benchTail,
  waits: benchWaits,
  fleet: benchFleet,
  memory: benchMemory,
};

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string" }, seconds: { type: "string" }, only: { type: "string" } },
});
const count = z.coerce.number().int().positive().optional();
const options = z.object({ rounds: count, seconds: count, only: z.string().optional() }).parse(values);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`unknown benchmark: ${unknown.join(", ")}; available: ${Object.keys(BENCHES).join(", ")}`);
  process.exit(1);
}
// Cleanup runs on exit, which a signal alone would skip.
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
for (const [name, run] of Object.entries(BENCHES))
  if (wanted.length === 0 || wanted.includes(name)) await run(options);

/**
 * `npm run bench -- NAME… [--rounds N] [--seconds S]`: prints tables; `quota` is all of its parts; without a name, everything.
 * The settings are for `http` and, the rounds alone, for `start`.
 */
import { parseArgs } from "node:util";
import { benchBots } from "./bots.js";
import { benchCompare } from "./compare.js";
import { benchHttp } from "./http.js";
import { benchMemory } from "./memory.js";
import { benchQuota } from "./quota.js";
import { benchReplicas } from "./replicas.js";
import { benchService } from "./service.js";
import { benchStart } from "./start.js";
import { benchWaits } from "./waits.js";

interface Options {
  readonly rounds?: number;
  readonly seconds?: number;
}

const QUOTA = { ledger: benchQuota, compare: benchCompare, bots: benchBots, replicas: benchReplicas };
const BENCHES: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  ...QUOTA,
  waits: benchWaits,
  service: benchService,
  http: benchHttp,
  start: benchStart,
  memory: benchMemory,
};

const { values, positionals: given } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string" }, seconds: { type: "string" } },
});
const options: Options = {
  ...(values.rounds !== undefined && { rounds: Number(values.rounds) }),
  ...(values.seconds !== undefined && { seconds: Number(values.seconds) }),
};
for (const [name, value] of Object.entries(options)) {
  if (!Number.isInteger(value) || value < 1) {
    console.error(`--${name} must be a whole number from 1`);
    process.exit(1);
  }
}
const wanted = given.flatMap((name) => (name === "quota" ? Object.keys(QUOTA) : [name]));
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  const names = ["quota", ...Object.keys(BENCHES)].join(", ");
  console.error(`there is no benchmark ${unknown.join(", ")}; there are: ${names}`);
  process.exit(1);
}
// What must be tidied up is tidied up at the exit, which a signal alone would skip.
process.once("SIGINT", () => process.exit(130));
for (const [name, run] of Object.entries(BENCHES)) {
  if (wanted.length === 0 || wanted.includes(name)) await run(options);
}

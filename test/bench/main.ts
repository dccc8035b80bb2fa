/** `npm run bench -- NAME…`: prints tables; `quota` is all of its parts; without a name, everything. */
import { benchBots } from "./bots.js";
import { benchCompare } from "./compare.js";
import { benchQuota } from "./quota.js";
import { benchReplicas } from "./replicas.js";
import { benchService } from "./service.js";

const QUOTA = { ledger: benchQuota, compare: benchCompare, bots: benchBots, replicas: benchReplicas };
const BENCHES: Readonly<Record<string, () => Promise<void>>> = { ...QUOTA, service: benchService };

const given = process.argv.slice(2);
const wanted = given.flatMap((name) => (name === "quota" ? Object.keys(QUOTA) : [name]));
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  const names = ["quota", ...Object.keys(BENCHES)].join(", ");
  console.error(`there is no benchmark ${unknown.join(", ")}; there are: ${names}`);
  process.exit(1);
}
for (const [name, run] of Object.entries(BENCHES)) {
  if (wanted.length === 0 || wanted.includes(name)) await run();
}

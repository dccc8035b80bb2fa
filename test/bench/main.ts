/** `npm run bench -- NAME…`: prints tables; without a name, all of them. */
import { benchQuota } from "./quota.js";
import { benchService } from "./service.js";

const BENCHES: Readonly<Record<string, () => Promise<void>>> = { quota: benchQuota, service: benchService };

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`there is no benchmark ${unknown.join(", ")}; there are: ${Object.keys(BENCHES).join(", ")}`);
  process.exit(1);
}
for (const [name, run] of Object.entries(BENCHES)) {
  if (wanted.length === 0 || wanted.includes(name)) await run();
}

/** `npm run notify-test`: sends one notice to `NOTIFY_URL`, and says whether the receiver took it. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { loadEnvFile } from "node:process";
import { instant, systemClock } from "../clock.js";
import { readConfig } from "../config/env.js";
import type { Notice } from "./notices.js";
import { notify } from "./notify.js";

if (existsSync(".env")) loadEnvFile(".env");
const read = readConfig(process.env, systemClock);
if (!read.ok) {
  for (const fault of read.faults) console.error(fault);
  process.exit(1);
}
const { notify: receiver } = read.config;
if (receiver === null) {
  console.error("NOTIFY_URL isn't set, so no notices are sent.");
  process.exit(1);
}
const notice: Notice = {
  id: randomUUID(),
  at: instant(systemClock.now()),
  kind: "test",
  state: "test",
  text: "This is a test of the notices of the storefront service. Nothing is wrong.",
  details: {},
};
const problem = await notify(receiver, notice, systemClock);
console.log(problem === null ? "delivered" : `not delivered: ${problem}`);
process.exit(problem === null ? 0 : 1);

/** The benchmarks by name. */
import { benchFleet } from "./fleet.js";
import { benchHttp } from "./http.js";
import { benchMemory } from "./memory.js";
import type { Options } from "./table.js";
import { benchTail } from "./tail.js";
import { benchWaits } from "./waits.js";

export const BENCHES: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  http: benchHttp,
  tail: benchTail,
  waits: benchWaits,
  fleet: benchFleet,
  memory: benchMemory,
};

/** The benchmarks by name. */
import { benchBots } from "./bots.js";
import { benchCompare } from "./compare.js";
import { benchFaults } from "./faults.js";
import { benchFleet } from "./fleet.js";
import { benchFloods } from "./floods.js";
import { benchHttp } from "./http.js";
import { benchMemory } from "./memory.js";
import { benchMisses } from "./misses.js";
import { benchPages } from "./pages.js";
import { benchPair } from "./pair.js";
import { benchReservations } from "./reservations.js";
import { benchQuota } from "./quota.js";
import { benchRecovery } from "./recovery.js";
import { benchRegions } from "./regions.js";
import type { Comparison } from "./rounds.js";
import { benchService } from "./service.js";
import { benchStart } from "./start.js";
import { benchTail } from "./tail.js";
import { benchUpgrade } from "./upgrade.js";
import { benchTruth, type TruthOptions } from "./truth.js";
import { benchWaits } from "./waits.js";

export interface Options extends TruthOptions, Comparison {
  readonly previous?: string;
}

/** The parts of `quota`. */
export const QUOTA = { ledger: benchQuota, compare: benchCompare, bots: benchBots };
export const BENCHES: Readonly<Record<string, (options: Options) => Promise<void>>> = {
  ...QUOTA,
  waits: benchWaits,
  reservations: benchReservations,
  recovery: benchRecovery,
  regions: benchRegions,
  service: benchService,
  http: benchHttp,
  tail: benchTail,
  misses: benchMisses,
  start: benchStart,
  memory: benchMemory,
  floods: benchFloods,
  pages: benchPages,
  pair: benchPair,
};
/** Run only if named, because they take half an hour or more, or need another release. */
export const BY_NAME_ALONE: typeof BENCHES = {
  truth: benchTruth,
  faults: benchFaults,
  fleet: benchFleet,
  upgrade: benchUpgrade,
};

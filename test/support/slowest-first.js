/** Runs the slowest suites first, so that none of them is still running at the end while the other workers are idle. */
import Sequencer from "@jest/test-sequencer";

const SLOWEST = [
  "service/fleet-faults",
  "e2e/storefront-typing",
  "truth/model",
  "service/shared-cache",
  "e2e/storefront-looks",
  "quota/cut-off",
  "service/naughty",
  "quota/fleet-reservations",
  "service/fault-matrix",
  "service/replicas",
  "e2e/operator",
  "quota/waits",
  "quota/replicas",
  "quota/ledger-redis",
  "service/process",
  "service/floods",
  "service/history",
];

/** @param {{ readonly path: string }} test */
function rank({ path }) {
  const at = SLOWEST.findIndex((name) => path.includes(`/dist-test/${name}.`));
  return at === -1 ? SLOWEST.length : at;
}

export default class SlowestFirst extends Sequencer {
  /** @param {Parameters<Sequencer["sort"]>[0]} tests */
  async sort(tests) {
    const sorted = await super.sort(tests);
    return [...sorted].sort((a, b) => rank(a) - rank(b));
  }
}

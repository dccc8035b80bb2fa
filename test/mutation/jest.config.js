/** The tests that play a mutant: those of the mutated modules that take seconds. Crowds (`quota/waits`) would take a minute for each survivor. */
import config from "../../jest.config.js";

const TESTS = [
  "cache/{cache,facts,unknown}",
  "quota/{admission,fairness,priority,queue,reservations,scheduler,slot-table}",
  "retail/{agreement,money,policy,price-epoch}",
  "storefront/name-facts",
  "truth/stories",
];

// Stryker counts tests in the contexts that jest gives to suites.
const { testSequencer: _sequencer, testRunner: _runner, ...rest } = config;

export default {
  ...rest,
  rootDir: "../..",
  // A test that waits in vain kills its mutant too.
  testTimeout: 15_000,
  testMatch: TESTS.map((tests) => `<rootDir>/dist-test/${tests}.test.js`),
};

/**
 * `npm run mutate [-- --mutate src/FILE.ts]`: changes these modules in thousands of small ways, and prints each change that no test notices. CI doesn't run
 * it, so npm fetches Stryker when it is first used.
 */
export default {
  mutate: [
    "src/facts/price-changes.ts",
    "src/quota/slot-table.ts",
    "src/quota/line.ts",
    "src/retail/policy.ts",
    "src/retail/decide-kind.ts",
  ],
  testRunner: "jest",
  jest: { configFile: "test/mutation/jest.config.js", enableFindRelatedTests: false },
  coverageAnalysis: "perTest",
  // Stryker would rewrite it with TypeScript's former API; nothing here needs it.
  tsconfigFile: "none",
  ignorePatterns: ["dist-bench", "var", "coverage", "test-output"],
  tempDirName: "test-output/mutation",
  concurrency: 2,
  thresholds: { high: 95, low: 90, break: 90 },
  reporters: ["clear-text", "progress-append-only", "json"],
  jsonReporter: { fileName: "test-output/mutation.json" },
};

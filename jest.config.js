export default {
  roots: ["<rootDir>/test", "<rootDir>/packages"],
  testMatch: ["**/*.test.ts"],
  transform: {
    "\\.[jt]sx?$": ["@swc/jest", { module: { type: "commonjs" } }],
  },
  // Packages that are ES modules only.
  transformIgnorePatterns: ["/node_modules/(?!(?:jose|p-throttle)/)"],
  moduleNameMapper: {
    "^af-storefront-(sandbox|probe)/(.*)\\.js$": "<rootDir>/packages/$1/src/$2",
    "^(\\.{1,2}/.*)\\.js$": "$1",
  },
  reporters: ["default", "<rootDir>/test/support/skipped.js"],
  // Each look-up of a global is slow in the context that Jest gives a test file. These are used most.
  sandboxInjectedGlobals:
    "Array BigInt Boolean Error Infinity JSON Map Math Number Object Promise Proxy Reflect RegExp Set String Symbol TypeError Uint8Array WeakMap WeakSet".split(
      " ",
    ),
  testTimeout: 120_000,
  // More than there are cores make each other slower.
  maxWorkers: 2,
  // A worker keeps the modules of every suite that it ran, and becomes slower with them.
  workerIdleMemoryLimit: "350MB",
  collectCoverageFrom: ["src/**/*.ts", "packages/*/src/**/*.ts"],
  coverageProvider: "babel",
};

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
  testTimeout: 120_000,
  maxWorkers: 2,
  // A worker keeps the modules of every suite that it ran, and becomes slower with them.
  workerIdleMemoryLimit: "600MB",
  collectCoverageFrom: ["src/**/*.ts", "packages/*/src/**/*.ts"],
  coverageProvider: "babel",
};

export default {
  testMatch: ["<rootDir>/test/**/*.test.ts"],
  extensionsToTreatAsEsm: [".ts"],
  moduleNameMapper: { "^(\\.{1,2}/.*)\\.js$": "$1" },
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      {
        jsc: { target: "es2023", parser: { syntax: "typescript" } },
        module: { type: "es6" },
        sourceMaps: "inline",
      },
    ],
  },
  testSequencer: "<rootDir>/test/support/slowest-first.js",
  testTimeout: 120000,
  maxWorkers: 3,
  // Contexts of ended suites are never freed.
  workerIdleMemoryLimit: "1GB",
};

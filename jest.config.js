export default {
  // What test/bundle.cjs makes of test/**/*.test.ts.
  testMatch: ["<rootDir>/dist-test/**/*.test.js"],
  transform: {},
  testRunner: "<rootDir>/test/support/one-context.js",
  testSequencer: "<rootDir>/test/support/slowest-first.js",
  testTimeout: 120000,
  maxWorkers: 3,
  // Contexts of ended suites are never freed.
  workerIdleMemoryLimit: "500MB",
};

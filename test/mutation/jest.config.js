/** The tests that play a mutant: those of the mutated modules that take seconds. */
import config from "../../jest.config.js";

const TESTS = ["quota/*", "retail/{money,policy,decide-kind}", "shop/prices-change"];

export default {
  ...config,
  rootDir: "../..",
  reporters: ["default"],
  // A test that waits in vain kills its mutant too.
  testTimeout: 15_000,
  testMatch: TESTS.map((tests) => `<rootDir>/test/${tests}.test.ts`),
};

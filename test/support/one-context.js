/**
 * Runs a suite as jest-circus does, but in the context of Node itself instead of one of its own. So the code of the service is loaded, and compiled by
 * V8, once for all suites of a process, and its globals are found at once.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
const CIRCUS = join(dirname(require.resolve("jest-circus/runner")), "jestAdapterInit.js");
const CIRCUS_HANDLERS = Symbol.for("EVENT_HANDLERS");
/** Of Node. Jest raises it to 100, which makes each error that is expected by a test expensive. */
const FRAMES = 10;

export default async function runSuite(
  globalConfig,
  config,
  environment,
  runtime,
  testPath,
  sendMessageToJest,
) {
  // A suite has a circus of its own: it keeps the tests that were defined, and the handlers of their events.
  delete require.cache[CIRCUS];
  delete globalThis[CIRCUS_HANDLERS];
  const { initialize, runAndTransformResultsToJestFormat } = require(CIRCUS);
  await initialize({
    config,
    environment: { global: globalThis },
    globalConfig,
    localRequire: require,
    parentProcess: process,
    runtime,
    sendMessageToJest,
    setGlobalsForRuntime: (globals) => Object.assign(globalThis, globals),
    testPath,
  });
  Error.stackTraceLimit = FRAMES;
  const setupAfterEnvStart = Date.now();
  await import(pathToFileURL(testPath).href);
  const setupAfterEnvPerfStats = { setupAfterEnvStart, setupAfterEnvEnd: setupAfterEnvStart };
  return runAndTransformResultsToJestFormat({ config, globalConfig, setupAfterEnvPerfStats, testPath });
}

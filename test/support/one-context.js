/**
 * Runs a suite with jest-circus, but in Node's main context instead of a new one. The service's code is then loaded and compiled only once for
 * all suites of a process, and access to globals is fast.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(import.meta.url);
const CIRCUS = join(dirname(require.resolve("jest-circus/runner")), "jestAdapterInit.js");
const CIRCUS_HANDLERS = Symbol.for("EVENT_HANDLERS");
/** Node's default. Jest raises it to 100, which makes every error that a test expects expensive. */
const FRAMES = 10;

export default async function runSuite(
  globalConfig,
  config,
  environment,
  runtime,
  testPath,
  sendMessageToJest,
) {
  // Each suite loads jest-circus again, because the module keeps the defined tests and the event handlers.
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

/** Bundles the tests into dist-test, where jest runs them (`test/support/one-context.js`). Modules that several suites use are loaded only once. */
const { readdirSync, readFileSync, rmSync } = require("node:fs");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");
const { build } = require("esbuild");

const root = join(__dirname, "..");
const outdir = join(root, "dist-test");
const suites = readdirSync(__dirname, { recursive: true }).filter(
  (path) => path.endsWith(".test.ts") && !path.includes("node_modules"),
);

/** Keeps each file's own `import.meta.url`, because tests and the service find other files relative to it. */
const ownUrl = {
  name: "own-url",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](?:src|test)[\\/].*\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8").replaceAll(
        "import.meta.url",
        JSON.stringify(pathToFileURL(path).href),
      ),
      loader: "ts",
    }));
  },
};

rmSync(outdir, { recursive: true, force: true });
build({
  absWorkingDir: root,
  entryPoints: suites.map((path) => join("test", path)),
  outbase: "test",
  outdir,
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node20",
  sourcemap: true,
  sourcesContent: false,
  logLevel: "warning",
  plugins: [ownUrl],
  external: ["playwright-core", "esbuild", "quicktype-core"],
  alias: { "@jest/globals": "./test/support/jest-globals.js" },
  // CommonJS packages call `require`.
  banner: {
    js: `import { createRequire as requireFrom } from "node:module"; const require = requireFrom(${JSON.stringify(pathToFileURL(join(root, "package.json")).href)});`,
  },
}).catch(() => process.exit(1));

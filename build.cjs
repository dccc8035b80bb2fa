/** Checks all types, and bundles the service with its tools into dist, its pages into dist/pages and what /docs loads into dist/docs. */
const { spawnSync } = require("node:child_process");
const { cpSync, readdirSync, rmSync } = require("node:fs");
const { dirname, join } = require("node:path");
const { build, buildSync } = require("esbuild");

// Started by its path: npx costs half a second.
const compiler = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");
const projects = ["tsconfig.build.json", "src/pages/tsconfig.json"];
const { status } = spawnSync(process.execPath, [compiler, "--build", ...projects], {
  cwd: __dirname,
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

const bundled = { absWorkingDir: __dirname, bundle: true, format: "esm", logLevel: "warning" };

/** axios loads its fetch adapter in any case, and with it Node's own fetch: a tenth of the start. Only its http adapter is used. */
const withoutFetchAdapter = {
  name: "without-fetch-adapter",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]axios[\\/]lib[\\/]adapters[\\/]fetch\.js$/ }, () => ({
      contents: "export const getFetch = () => null;",
    }));
  },
};

const service = build({
  ...bundled,
  plugins: [withoutFetchAdapter],
  entryPoints: [
    "src/main.ts",
    "src/sandbox/main.ts",
    "src/probe/main.ts",
    "src/keys/token.ts",
    "src/keys/promise-key.ts",
    "src/http/openapi.ts",
  ],
  outbase: "src",
  outdir: "dist",
  splitting: true,
  platform: "node",
  target: "node20",
  sourcemap: true,
  sourcesContent: false,
  metafile: true,
  // Packages of the older kind call it.
  banner: {
    js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
  },
});
service.then(
  ({ metafile }) => {
    for (const file of readdirSync(join(__dirname, "dist")))
      if (/^[a-z]+-[A-Z0-9]{8}\.js(\.map)?$/.test(file) && !(`dist/${file}` in metafile.outputs))
        rmSync(join(__dirname, "dist", file));
  },
  () => process.exit(1),
);

const pages = ["storefront", "operator", "checkout"];
const plainPages = ["missing"];
// Whatever lies there is served.
rmSync(join(__dirname, "dist/pages"), { recursive: true, force: true });
buildSync({
  ...bundled,
  entryPoints: [
    ...pages.map((page) => `src/pages/${page}/${page}.ts`),
    ...[...pages, ...plainPages].map((page) => `src/pages/${page}/${page}.css`),
  ],
  outbase: "src/pages",
  outdir: "dist/pages",
  platform: "browser",
  target: "es2022",
  minify: true,
});
for (const file of [
  "icon.svg",
  "favicon.ico",
  ...[...pages, ...plainPages].map((page) => `${page}/index.html`),
])
  cpSync(join(__dirname, "src/pages", file), join(__dirname, "dist/pages", file));

// Copied, so that production installs neither the package nor the telemetry that it depends on.
const swagger = dirname(require.resolve("swagger-ui-dist/package.json"));
for (const file of ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"])
  cpSync(join(swagger, file), join(__dirname, "dist/docs", file));

/** Checks all types, and bundles the service and its tools into dist, its pages into dist/pages and what /docs loads into dist/docs. */
const { spawnSync } = require("node:child_process");
const { createHash } = require("node:crypto");
const { cpSync, existsSync, readdirSync, readFileSync, rmSync } = require("node:fs");
const { isBuiltin } = require("node:module");
const { dirname, join } = require("node:path");
const { build, buildSync, transformSync } = require("esbuild");

// Started by its path: npx costs half a second.
const compiler = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");
const projects = ["tsconfig.build.json", "src/pages/tsconfig.json"];
const { status } = spawnSync(process.execPath, [compiler, "--build", ...projects], {
  cwd: __dirname,
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

const bundled = { absWorkingDir: __dirname, bundle: true, format: "esm", logLevel: "warning" };

/** Parts of packages that the service never uses, and what takes their place: what isn't there needn't be read at every start. */
const UNUSED = [
  // Node's own fetch: only the http adapter is used.
  [/[\\/]axios[\\/]lib[\\/]adapters[\\/]fetch\.js$/, "export const getFetch = () => null;"],
  // Forms: every body is JSON.
  [/[\\/]form-data[\\/]lib[\\/]form_data\.js$/, "module.exports = class {};"],
  // Messages in other languages: visitors never see those of zod.
  [/[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/, "export {};"],
  // Encodings other than Unicode, and UTF-7, which needs ASCII from them: a body in one of them, JSON or a form, is refused with 415.
  [
    /[\\/]iconv-lite[\\/]encodings[\\/](dbcs-data|sbcs-data|sbcs-data-generated|utf7)\.js$/,
    "module.exports = {};",
  ],
  // Figures are published without exemplars.
  [/[\\/]@opentelemetry[\\/]api[\\/]dist[\\/]index\.c?js$/, "module.exports = {};"],
  // The log goes to the standard output.
  [/[\\/]winston[\\/]lib[\\/]winston[\\/]transports[\\/](file|http)\.js$/, "module.exports = class {};"],
  // A copy of Node's own streams, which are loaded anyway.
  [/[\\/]readable-stream[\\/]readable\.js$/, 'module.exports = require("node:stream");'],
  [
    /[\\/]readable-stream[\\/]lib[\\/]_stream_writable\.js$/,
    'module.exports = require("node:stream").Writable;',
  ],
];

/** Lines of axios that slow down every call or the start, and what takes their place. */
const CHANGED = [
  // It asks for the global FormData, which loads Node's own fetch.
  [/[\\/]axios[\\/]lib[\\/]utils\.js$/, /(?<=FormDataCtor = )[^;]*G\.FormData[^;]*/, "undefined"],
  // Redirects aren't followed. With these functions, V8 keeps most of what a call leaves behind until the next full garbage collection.
  [
    /[\\/]axios[\\/]lib[\\/]adapters[\\/]http\.js$/,
    /options\.beforeRedirects\.(?:direct|proxy) = /,
    "const beforeRedirect = ",
    2,
  ],
];
const found = new Set();
const withoutUnused = {
  name: "without-unused",
  setup({ onLoad }) {
    for (const [filter, contents] of UNUSED) {
      onLoad({ filter }, () => {
        found.add(filter);
        return { contents };
      });
    }
    for (const [filter, line, instead, times = 1] of CHANGED) {
      onLoad({ filter }, ({ path }) => {
        const parts = readFileSync(path, "utf8").split(line);
        if (parts.length !== times + 1) throw new Error(`axios no longer has ${times} times ${line}`);
        return { contents: parts.join(instead) };
      });
    }
  },
};

/** Tables of characters and types, which V8 reads faster as JSON than as code. */
const tablesAsJson = {
  name: "tables-as-json",
  setup({ onLoad }) {
    onLoad({ filter: /\.json$/ }, ({ path }) => {
      const text = JSON.stringify(JSON.parse(readFileSync(path, "utf8")));
      return { contents: `module.exports = JSON.parse(${JSON.stringify(text)});` };
    });
  },
};

/** An ES module that imports one of Node's modules reads all of its exports, which loads what they need: fetch in the case of http. */
const builtinsAsNeeded = {
  name: "builtins-as-needed",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /./ }, ({ path, kind }) =>
      kind === "import-statement" && isBuiltin(path) ? { path, namespace: "builtin" } : undefined,
    );
    onLoad({ filter: /./, namespace: "builtin" }, ({ path }) => ({
      contents: `module.exports = require(${JSON.stringify(path)});`,
    }));
  },
};

const onNode = {
  ...bundled,
  plugins: [withoutUnused, tablesAsJson, builtinsAsNeeded],
  // winston's development version of it loads a package for coloured debugging output.
  alias: { "@dabh/diagnostics": "@dabh/diagnostics/node/production.js" },
  outbase: "src",
  outdir: "dist",
  platform: "node",
  target: "node20",
  sourcemap: true,
  sourcesContent: false,
};

/** One script whose value is a function, as src/code-cache.ts needs it, which reads every byte as a character. */
const service = build({
  ...onNode,
  plugins: [withoutUnused, tablesAsJson],
  entryPoints: ["src/service.ts"],
  outExtension: { ".js": ".cjs" },
  format: "cjs",
  charset: "ascii",
  define: { "import.meta.url": "ownAddress" },
  banner: {
    js: '(function (exports, require, module, __filename, __dirname) { "use strict"; const ownAddress = require("node:url").pathToFileURL(__filename).href;',
  },
  footer: { js: "})" },
});

const others = build({
  ...onNode,
  entryPoints: [
    "src/main.ts",
    "src/sandbox/main.ts",
    "src/probe/main.ts",
    "src/keys/token.ts",
    "src/keys/promise-key.ts",
    "src/http/openapi.ts",
  ],
  splitting: true,
  metafile: true,
  // Packages of the older kind call it.
  banner: {
    js: 'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
  },
});

Promise.all([service, others]).then(
  ([, { metafile }]) => {
    const moved = UNUSED.filter(([filter]) => !found.has(filter));
    for (const [filter] of moved) console.error(`no file of a package is called ${filter} any more`);
    if (moved.length > 0) process.exit(1);
    for (const file of readdirSync(join(__dirname, "dist")))
      if (/^[a-z]+-[A-Z0-9]{8}\.js(\.map)?$/.test(file) && !(`dist/${file}` in metafile.outputs))
        rmSync(join(__dirname, "dist", file));
    const script = readFileSync(join(__dirname, "dist/service.cjs"));
    // esbuild escapes other characters in strings, but not in regular expressions. Those in comments do no harm.
    const { code } = transformSync(script, { charset: "ascii", minifyWhitespace: true });
    const [wrong] = /.{0,40}[^\x00-\x7f].{0,40}/u.exec(code) ?? [];
    if (wrong !== undefined) {
      console.error(`a regular expression contains a character that isn't ASCII: ${wrong}`);
      process.exit(1);
    }
    const hash = createHash("sha256").update(script).digest("hex");
    const caches = join(__dirname, "dist/compile-cache");
    for (const file of existsSync(caches) ? readdirSync(caches) : [])
      if (!file.startsWith(hash)) rmSync(join(caches, file), { recursive: true });
  },
  () => process.exit(1),
);

const pages = ["storefront", "operator", "checkout"];
const plainPages = ["missing"];
// Every file in it is served.
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

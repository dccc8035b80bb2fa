/**
 * `npm run build`: tsc compiles what runs in Node, esbuild bundles what runs in a browser into dist/pages, and what /docs loads is copied to
 * dist/docs. With --if-installed (as `npm ci` runs it) it does nothing where the development packages are missing.
 */
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";

const require = createRequire(import.meta.url);
const ROOT = dirname(require.resolve("./package.json"));

function folderOf(name) {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return null;
  }
}

const typescript = folderOf("typescript");
const swagger = folderOf("swagger-ui-dist");
const esbuild = await import("esbuild").catch(() => null);
if (typescript === null || swagger === null || esbuild === null) {
  if (process.argv.includes("--if-installed")) process.exit(0);
  console.error("The build needs the development packages: npm ci --include=dev");
  process.exit(1);
}

const projects = ["packages/client", "packages/storefront", "packages/operator", "tsconfig.build.json"];
const { status } = spawnSync(process.execPath, [join(typescript, "bin/tsc"), "--build", ...projects], {
  cwd: ROOT,
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

const storefront = join(ROOT, "packages/storefront/src");
const operator = join(ROOT, "packages/operator/src");
const pages = join(ROOT, "dist/pages");
// Every file in it is served.
rmSync(pages, { recursive: true, force: true });
await esbuild.build({
  entryPoints: ["embed/embed", "storefront/storefront", "checkout/checkout"].map((page) =>
    join(storefront, `${page}.ts`),
  ),
  outbase: storefront,
  outdir: pages,
  plugins: [
    {
      name: "templates-and-stylesheet",
      setup(build) {
        build.onLoad({ filter: /storefront[\\/]src[\\/].*\.ts$/ }, withoutIndentation);
        build.onLoad({ filter: /\.css$/ }, asText);
      },
    },
  ],
  ...browser(),
});
esbuild.buildSync({
  entryPoints: ["storefront/storefront", "checkout/checkout", "missing/missing"].map((page) =>
    join(storefront, `${page}.css`),
  ),
  outbase: storefront,
  outdir: pages,
  ...browser(),
});
esbuild.buildSync({
  entryPoints: [join(operator, "operator.ts"), join(operator, "operator.css")],
  outdir: join(pages, "operator"),
  ...browser(),
});
for (const file of ["icon.svg", "favicon.ico", ...["storefront", "checkout", "missing"].map(indexOf)])
  cpSync(join(storefront, file), join(pages, file));
cpSync(join(operator, "index.html"), join(pages, indexOf("operator")));

// Copied, so that production installs neither the package nor the telemetry that it depends on.
for (const file of ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"])
  cpSync(join(swagger, file), join(ROOT, "dist/docs", file));

/** The indentation of HTML templates is a tenth of the script. */
function withoutIndentation({ path }) {
  return { contents: readFileSync(path, "utf8").replace(/(?<!\/\/.*)\n\s+/g, "\n"), loader: "ts" };
}

/** The stylesheet that a script imports. On any website, `rem` is whatever size that website gives its root. */
function asText({ path }) {
  const { outputFiles } = esbuild.buildSync({ entryPoints: [path], write: false, ...browser() });
  const css = outputFiles[0].text.replace(/([\d.]+)rem\b/g, (_rem, size) => `${size * 16}px`);
  return { contents: css, loader: "text" };
}

function browser() {
  return {
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    minify: true,
    charset: "utf8",
    logLevel: "warning",
  };
}

function indexOf(page) {
  return `${page}/index.html`;
}

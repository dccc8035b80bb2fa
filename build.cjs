/** Compiles the service and its pages, and puts the pages' plain files beside their scripts in dist/pages. */
const { spawnSync } = require("node:child_process");
const { cpSync } = require("node:fs");
const { dirname, extname, join } = require("node:path");

/** Folders have no ending, and are entered. */
const PLAIN = new Set(["", ".html", ".css", ".svg"]);

// Started by its path: npx costs half a second.
const compiler = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");
const projects = ["tsconfig.build.json", "src/pages/tsconfig.json"];
const { status } = spawnSync(process.execPath, [compiler, "--build", ...projects], {
  cwd: __dirname,
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);

cpSync(join(__dirname, "src/pages"), join(__dirname, "dist/pages/src/pages"), {
  recursive: true,
  filter: (path) => PLAIN.has(extname(path)),
});

// What the operator page draws its charts with.
const uplot = join(dirname(require.resolve("uplot/package.json")), "dist");
for (const file of ["uPlot.iife.min.js", "uPlot.min.css"])
  cpSync(join(uplot, file), join(__dirname, "dist/pages/uplot", file));

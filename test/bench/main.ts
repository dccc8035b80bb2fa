/**
 * `npm run bench -- NAME… [--rounds N] [--seconds S] [--only WORDS] [--node PATH]…` prints tables of ratios. Without a name it runs all of them.
 * `--only`, words separated by commas, selects rows; `--node`, once for each Node to compare, applies to `http`, `tail` and `memory`.
 */
import { parseArgs } from "node:util";
import { BENCHES, type Options } from "./benches.js";
import { nodeAt } from "./node-program.js";

const { values, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string" },
    seconds: { type: "string" },
    only: { type: "string" },
    node: { type: "string", multiple: true },
  },
});
const numbers = {
  ...(values.rounds !== undefined && { rounds: Number(values.rounds) }),
  ...(values.seconds !== undefined && { seconds: Number(values.seconds) }),
};
for (const [name, value] of Object.entries(numbers)) {
  if (!Number.isInteger(value) || value < 1) {
    console.error(`--${name} must be a positive whole number`);
    process.exit(1);
  }
}
const options: Options = {
  ...numbers,
  ...(values.only !== undefined && { only: values.only }),
  ...(values.node !== undefined && { nodes: values.node.map(nodeAt) }),
};
const unknown = wanted.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`unknown benchmark: ${unknown.join(", ")}; available: ${Object.keys(BENCHES).join(", ")}`);
  process.exit(1);
}
// Cleanup runs on exit, which a signal alone would skip.
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
for (const [name, run] of Object.entries(BENCHES))
  if (wanted.length === 0 || wanted.includes(name)) await run(options);

/**
 * `npm run bench -- NAME… [--rounds N] [--seconds S] [--only WORDS] [--node PATH]…` prints tables. `quota` runs all of its parts. Without a
 * name, it runs everything except `truth`, `faults`, `fleet` and `upgrade --previous DIR`. Rounds and seconds apply to `http`, `tail` and
 * `fleet`, and rounds also to `start`, `misses`, `pages`, `pair` and `floods`. `--only`, words separated by
 * commas, applies to `floods`, `waits`, `http`, `tail` and `fleet`. `--node`, once for each Node to compare, applies to `http`, `tail`, `misses`,
 * `start` and `memory`. `truth [--histories N] [--seed S] [--history JSON]`, `faults [--histories 1000] [--seed S]` and `fleet [--rounds 300]`
 * take half an hour each.
 */
import { parseArgs } from "node:util";
import { nodeAt } from "./node-program.js";
import { BENCHES, BY_NAME_ALONE, type Options, QUOTA } from "./benches.js";

const { values, positionals: given } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string" },
    seconds: { type: "string" },
    histories: { type: "string" },
    seed: { type: "string" },
    history: { type: "string" },
    only: { type: "string" },
    previous: { type: "string" },
    node: { type: "string", multiple: true },
  },
});
const numbers = {
  ...(values.rounds !== undefined && { rounds: Number(values.rounds) }),
  ...(values.seconds !== undefined && { seconds: Number(values.seconds) }),
  ...(values.histories !== undefined && { histories: Number(values.histories) }),
  ...(values.seed !== undefined && { seed: Number(values.seed) }),
};
const options: Options = {
  ...numbers,
  ...(values.history !== undefined && { history: values.history }),
  ...(values.only !== undefined && { only: values.only }),
  ...(values.previous !== undefined && { previous: values.previous }),
  ...(values.node !== undefined && { nodes: values.node.map(nodeAt) }),
};
for (const [name, value] of Object.entries(numbers)) {
  if (!Number.isInteger(value) || value < 1) {
    console.error(`--${name} must be a positive whole number`);
    process.exit(1);
  }
}
const wanted = given.flatMap((name) => (name === "quota" ? Object.keys(QUOTA) : [name]));
const all = { ...BENCHES, ...BY_NAME_ALONE };
const unknown = wanted.filter((name) => !(name in all));
if (unknown.length > 0) {
  const names = ["quota", ...Object.keys(all)].join(", ");
  console.error(`unknown benchmark: ${unknown.join(", ")}; available: ${names}`);
  process.exit(1);
}
// Cleanup runs on exit, which a signal alone would skip.
process.once("SIGINT", () => process.exit(130));
process.once("SIGTERM", () => process.exit(143));
for (const [name, run] of Object.entries(wanted.length === 0 ? BENCHES : all)) {
  if (wanted.length === 0 || wanted.includes(name)) await run(options);
}

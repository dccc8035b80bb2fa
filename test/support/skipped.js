/** A reporter that lists the suites and tests that were skipped because a program isn't installed, and how to install it. */
import { relative } from "node:path";
import { cwd } from "node:process";

export default class Skipped {
  onRunComplete(_contexts, { testResults }) {
    const lines = testResults.flatMap(({ testFilePath, testResults: tests }) =>
      tests
        .filter(({ status }) => status === "pending")
        .flatMap(({ ancestorTitles, title }) =>
          [...ancestorTitles, title].filter((one) => one.includes("(skipped: ")),
        )
        .map((title) => `  ${relative(cwd(), testFilePath)}: ${title}`),
    );
    if (lines.length > 0) console.log(`\nSkipped:\n${[...new Set(lines)].join("\n")}`);
  }
}

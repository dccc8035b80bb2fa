/** A reporter that lists the suites and tests that were skipped because a program isn't installed, and how to install it. */
export default class Skipped {
  onRunComplete(_contexts, { testResults }) {
    const titles = testResults
      .flatMap(({ testResults: tests }) => tests)
      .filter(({ status }) => status === "pending")
      .map(({ ancestorTitles, title }) =>
        [...ancestorTitles, title].find((one) => one.includes("(skipped: ")),
      )
      .filter((title) => title !== undefined);
    const unique = [...new Set(titles)];
    if (unique.length > 0) console.log(`\nSkipped:\n${unique.map((title) => `  ${title}`).join("\n")}`);
  }
}

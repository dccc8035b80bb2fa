/** Everything that the documentation refers to exists: pages, headings, files and scripts. And the README is short. */
import { expect, test } from "@jest/globals";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { anchorsOf, PAGES, prose, read, ROOT } from "./support/markdown.js";

const { scripts } = z
  .object({ scripts: z.record(z.string(), z.string()) })
  .parse(JSON.parse(read("package.json")));

function brokenLinksOf(page: string): string[] {
  const links = [...prose(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return links.filter((target) => {
    if (/^https?:/.test(target)) return false;
    const [path = "", anchor] = target.split("#");
    const file = path === "" ? page : join(dirname(page), path);
    if (!existsSync(`${ROOT}${file}`)) return true;
    return anchor !== undefined && !anchorsOf(read(file)).has(anchor);
  });
}

test.each(PAGES)("%s has no broken links, and mentions only files and scripts that exist", (page) => {
  expect(brokenLinksOf(page)).toEqual([]);
  const files = [...prose(read(page)).matchAll(/`((?:src|test|config|docs|packages|\.ci)\/[\w./-]*)`/g)];
  const base = page.startsWith("packages/") ? `${ROOT}${dirname(page)}/` : ROOT;
  expect(files.map(([, path = ""]) => path).filter((path) => !existsSync(base + path))).toEqual([]);
  const named = [...read(page).matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, name = ""]) => name);
  const inClient = page.startsWith("packages/client/") || page.endsWith("development.md");
  expect(named.filter((name) => !(name in scripts) && !(inClient && name === "generate"))).toEqual([]);
});

test("the README links to every page, has at most 150 lines, and its picture is small", () => {
  const readme = read("README.md");
  expect(PAGES.filter((page) => page !== "README.md" && !readme.includes(`(${page})`))).toEqual([]);
  expect(readme.split("\n").length - 1).toBeLessThanOrEqual(150);
  // Everyone who opens the README downloads it.
  expect(statSync(`${ROOT}docs/storefront.png`).size).toBeLessThanOrEqual(60_000);
});

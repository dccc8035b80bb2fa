/** The `curl` commands in the documentation. */
import type { Question } from "../../support/service.js";
import type { Block } from "./markdown.js";

export function curlsOf({ code }: Block): string[] {
  return code.split("\n").filter((line) => line.startsWith("curl "));
}

/** The request of a `curl` command to localhost. Throws on an unknown option. */
export function curlOf(
  command: string,
  variables: Readonly<Record<string, string>> = {},
): { readonly path: string; readonly question: Question } {
  const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) =>
      single ?? double?.replaceAll(/\$(\w+)/g, (_, name: string) => variables[name] ?? "") ?? bare,
  );
  const headers: Record<string, string> = {};
  let path: string | undefined;
  for (let word = words.shift(); word !== undefined; word = words.shift()) {
    if (word === "-H") {
      const [name = "", ...value] = (words.shift() ?? "").split(": ");
      headers[name] = value.join(": ");
    } else if (word.startsWith("localhost:3000/")) path = word.slice("localhost:3000".length);
    else if (!["curl", "-N"].includes(word)) throw new Error(`unknown word ${word} in ${command}`);
  }
  if (path === undefined) throw new Error(`no URL in ${command}`);
  return { path, question: { headers } };
}

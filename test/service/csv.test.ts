/** With `Accept: text/csv`, staff get the same lists as CSV. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { z } from "zod";
import { csvOf } from "../../src/wire/csv.js";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { bearer, problemOf, type Service, startService, until } from "../support/service.js";

let service: Service;
beforeAll(async () => {
  service = await startService({ clock: new FakeClock() });
  await until(() => service.calls("GET /api/v1/domains") === 1);
  await service.ask("/v1/staff/tier", { headers: { Authorization: "Bearer guessed" } });
});
afterAll(() => service.close());

const get = (path: string, Accept?: string) =>
  service.ask(path, { headers: { ...bearer("read"), ...(Accept !== undefined && { Accept }) } });

const rowsIn = (
  text: string,
): { readonly columns: readonly string[]; readonly rows: readonly string[][] } => {
  expect(text.endsWith("\r\n")).toBe(true);
  const [header = "", ...lines] = text.trimEnd().split("\r\n");
  return { columns: header.split(","), rows: lines.map((line) => line.split(",")) };
};

test.each([
  ["/v1/staff/domains", "domains", "domain"],
  ["/v1/staff/prices", "prices", "tld"],
  ["/v1/staff/audit", "acts", "outcome"],
] as const)(
  "GET %s returns the same rows as CSV, with a header line, unless JSON is preferred",
  async (path, list, column) => {
    const { body } = await get(path);
    const rows = z.object({ [list]: z.array(z.record(z.string(), z.unknown())) }).parse(body)[list] ?? [];
    expect(rows.length).toBeGreaterThan(0);
    const answer = await get(path, "text/csv");
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject({
      "content-type": "text/csv; charset=utf-8; header=present",
      "cache-control": "no-store",
      vary: expect.stringContaining("Accept"),
      "content-disposition": expect.stringMatching(/^attachment; filename="?[a-z]+\.csv"?$/),
    });
    const table = rowsIn(answer.text);
    const at = table.columns.indexOf(column);
    expect(table.rows.map((row) => row[at])).toEqual(rows.map((row) => row[column]));
    matchesDocument(openApiDocument({ version: "1" }), "get", path, answer);
    for (const accept of ["*/*", "text/csv;q=0.5, application/json"])
      expect((await get(path, accept)).headers["content-type"]).toMatch(/^application\/json/);
    const without = await service.ask(path, { headers: { Accept: "text/csv" } });
    expect(problemOf(without).code).toBe("unauthenticated");
  },
);

test("only lists are available as CSV", async () => {
  expect(problemOf(await get("/v1/staff/overview", "text/csv")).code).toBe("not_acceptable");
});

test("a domain list that ends after a hundred says in every row that there are more", async () => {
  const truncatedIn = (text: string): readonly (string | undefined)[] => {
    const { columns, rows } = rowsIn(text);
    return rows.map((row) => row[columns.indexOf("truncated")]);
  };
  const whole = truncatedIn((await get("/v1/staff/domains", "text/csv")).text);
  expect(whole).toEqual(whole.map(() => ""));
  const big = await startService({ clock: new FakeClock(), reseller: "big", warm: false });
  try {
    const headers = { ...bearer("read"), Accept: "text/csv" };
    const { text } = await big.ask("/v1/staff/domains", { headers });
    expect(truncatedIn(text)).toEqual(Array.from({ length: 100 }, () => "true"));
  } finally {
    await big.close();
  }
});

test("text that a spreadsheet would run as a formula is escaped; numbers stay numbers", () => {
  const cells = {
    "=1+1": "'=1+1",
    "+1": "'+1",
    "-1+1": "'-1+1",
    "@SUM(A1)": "'@SUM(A1)",
    "\tx": "'\tx",
    "＝1": "'＝1",
    "-0.80": "-0.80",
    12: "12",
    'a "b", c': '"a ""b"", c"',
    "two\nlines": '"two\nlines"',
  };
  for (const [cell, written] of Object.entries(cells))
    expect(csvOf({ columns: ["cell"], rows: [{ cell }] })).toBe(`cell\r\n${written}\r\n`);
  expect(csvOf({ columns: ["cell"], rows: [{ cell: null }] })).toBe("cell\r\n\r\n");
});

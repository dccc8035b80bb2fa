/** With `Accept: text/csv`, staff get the same lists as CSV. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
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

describe.each([
  ["/v1/staff/domains", "domains", "domain"],
  ["/v1/staff/prices", "prices", "tld"],
  ["/v1/staff/audit", "acts", "outcome"],
] as const)("GET %s", (path, list, column) => {
  test("returns the same rows as CSV, with a header line", async () => {
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
    expect(answer.text.endsWith("\r\n")).toBe(true);
    const [header = "", ...lines] = answer.text.trimEnd().split("\r\n");
    const at = header.split(",").indexOf(column);
    expect(lines.map((line) => line.split(",")[at])).toEqual(rows.map((row) => row[column]));
    matchesDocument(openApiDocument({ version: "1" }), "get", path, answer);
  });

  test("prefers JSON if both are acceptable, requires the token, and offers no other type", async () => {
    for (const accept of ["*/*", "application/json, text/csv", "text/csv;q=0.5, application/json"])
      expect((await get(path, accept)).headers["content-type"]).toMatch(/^application\/json/);
    expect(problemOf(await get(path, "text/html")).code).toBe("not_acceptable");
    const without = await service.ask(path, { headers: { Accept: "text/csv" } });
    expect(problemOf(without).code).toBe("unauthenticated");
  });
});

test("a domain list that ends after a hundred says in every row that there are more", async () => {
  const big = await startService({ clock: new FakeClock(), reseller: "big", warm: false });
  try {
    const headers = { ...bearer("read"), Accept: "text/csv" };
    const { text } = await big.ask("/v1/staff/domains", { headers });
    const [header = "", ...lines] = text.trimEnd().split("\r\n");
    const at = header.split(",").indexOf("truncated");
    expect(lines.map((line) => line.split(",")[at])).toEqual(Array.from({ length: 100 }, () => "true"));
  } finally {
    await big.close();
  }
  const whole = (await get("/v1/staff/domains", "text/csv")).text.trimEnd().split("\r\n");
  expect(whole.slice(1).every((line) => line.endsWith(","))).toBe(true);
});

test("only lists are available as CSV", async () => {
  expect(problemOf(await get("/v1/staff/overview", "text/csv")).code).toBe("not_acceptable");
});

test("text that a spreadsheet would run as a formula is escaped; numbers stay numbers", () => {
  const rows = [
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(A1)",
    "\tx",
    "＝1",
    "-0.80",
    "12",
    'a "b", c',
    "two\nlines",
    null,
  ];
  expect(csvOf({ columns: ["cell"], rows: rows.map((cell) => ({ cell })) })).toBe(
    [
      "cell",
      "'=1+1",
      "'+1",
      "'-1+1",
      "'@SUM(A1)",
      "'\tx",
      "'＝1",
      "-0.80",
      "12",
      '"a ""b"", c"',
      '"two\nlines"',
      "",
      "",
    ].join("\r\n"),
  );
});

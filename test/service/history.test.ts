/** The figures of the last day, for the charts of the staff page. */
import { expect, test } from "@jest/globals";
import { openApiDocument } from "../../src/http/openapi.js";
import { historyShape } from "../../src/wire/operators.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { bearer, problemOf, startService } from "../support/service.js";

const PATH = "/v1/staff/history";
const MINUTE_MS = 60_000;

test("the service keeps a day of figures, a row a minute, for staff alone", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock });
  const history = async () => {
    const answer = await service.ask(PATH, { headers: bearer("read") });
    matchesDocument(openApiDocument({ version: "0" }), "GET", PATH, answer);
    return historyShape.parse(answer.body);
  };
  try {
    expect(problemOf(await service.ask(PATH)).code).toBe("unauthenticated");
    const before = await history();
    for (let times = 0; times < 4; times += 1) await service.ask("/v1/availability?domain=kabul.af");
    await clock.advance(MINUTE_MS);
    const after = await history();
    expect(after.at.length).toBe(before.at.length + 1);
    expect(Date.parse(after.at.at(-1) ?? "") - Date.parse(after.at.at(-2) ?? "")).toBe(MINUTE_MS);
    // The price list was asked again in that minute or not; of the four questions one cost a call.
    expect(after.hitRate.at(-1)).toBeGreaterThan(0);
    expect(after.budget.at(-1)).toBe(997);
    for (let hours = 0; hours < 25; hours += 1) await clock.advance(60 * MINUTE_MS);
    const day = await history();
    const { waitMs, everyMs: _every, ...columns } = day;
    for (const column of [...Object.values(columns), ...Object.values(waitMs)])
      expect(column).toHaveLength(24 * 60);
    expect(Date.parse(day.at.at(-1) ?? "")).toBe(clock.now());
  } finally {
    await service.close();
  }
});

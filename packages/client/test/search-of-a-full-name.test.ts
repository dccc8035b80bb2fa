/** A search for a name with its TLD, at the real service: repeated only for the names that are unknown. */
import { expect, test } from "@jest/globals";
import { createClient, searchAsYouType, type SearchState } from "../src/index.js";
import { FakeClock } from "../../../test/support/fake-clock.js";
import { CHECK, startService, until } from "../../../test/support/service.js";

const RETAIL = `
currency: USD
catalog:
  - { tld: .af, years: { registration: [1] } }
  - { tld: .com.af, years: { registration: [1] } }
rules: [{ match: {}, markupPercent: "25", minMargin: "2.00" }]
premium: { markupPercent: "15" }
`;

test("a name whose answer is known isn't checked again with those that are unknown", async () => {
  const clock = new FakeClock();
  const service = await startService({ clock, retail: RETAIL });
  const states: SearchState[] = [];
  const box = searchAsYouType(createClient({ baseUrl: service.url }), {
    onChange: (state) => states.push(state),
  });
  try {
    await service.ask("/v1/availability?domain=kabul.com.af");
    service.sandbox.control.setFault("check", { fault: "status-500", calls: 1 });
    box.search({ q: "kabul.com.af" });
    await until(() => box.state.phase === "waiting", "the wait");
    const statuses = ({ results }: SearchState) => results.map(({ domain, status }) => [domain, status]);
    expect(statuses(box.state)).toEqual([
      ["kabul.com.af", "available"],
      ["kabul.af", "unknown"],
    ]);
    // The service doesn't remember an available name for so long.
    await clock.advance(31_000);
    const before = service.calls(CHECK);
    await until(() => box.state.phase === "done", "the end of the search");
    expect(statuses(box.state).map(([domain]) => domain)).toEqual(["kabul.com.af", "kabul.af"]);
    expect(box.state.results.map(({ status }) => status)).not.toContain("unknown");
    expect(service.calls(CHECK)).toBe(before + 1);
  } finally {
    box.stop();
    await service.close();
  }
});

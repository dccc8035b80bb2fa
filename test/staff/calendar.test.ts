/** The calendar of expiring domains, which mail programs subscribe to with a token or a signed link. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { openApiDocument } from "../../src/wire/document.js";
import { FakeClock } from "../support/fake-clock.js";
import { matchesDocument } from "../support/openapi.js";
import { bearer, problemOf, type Service, STAFF, startService } from "../support/service.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PATH = "/v1/staff/domains/expiring.ics";
const document = openApiDocument({ version: "1.2.3" });

function newToken(name: string, ...scopes: string[]) {
  const printed = execFileSync(process.execPath, ["dist/keys/token.js", name, ...scopes], {
    cwd: ROOT,
  }).toString();
  const after = (words: string): string | undefined =>
    printed
      .split("\n")
      .find((line) => line.startsWith(words))
      ?.split(": ")[1];
  return { entry: after("entry") ?? "", link: after("link") };
}

describe("the calendar", () => {
  const [anna, ben] = [newToken("anna", "read"), newToken("ben", "metrics")];
  let service: Service;
  beforeAll(async () => {
    const reader = `reader:${createHash("sha256").update(STAFF.read).digest("hex")}:read`;
    service = await startService({
      clock: new FakeClock(),
      env: { STAFF_TOKENS: `${anna.entry},${reader}` },
    });
  });
  afterAll(() => service.close());

  test("has a day for each domain, with its name and whether it renews", async () => {
    const answer = await service.ask(PATH, { headers: bearer("read") });
    matchesDocument(document, "get", PATH, answer);
    expect(answer.headers["cache-control"]).toBe("no-store");
    // Folded lines continue with a space.
    const lines = answer.text.replaceAll("\r\n ", "").split("\r\n");
    expect([lines[0], lines.filter((line) => line === "BEGIN:VEVENT").length]).toEqual([
      "BEGIN:VCALENDAR",
      12,
    ]);
    const at = lines.indexOf("SUMMARY:bamyan.af expires (doesn't renew automatically)");
    const event = lines.slice(lines.lastIndexOf("BEGIN:VEVENT", at), lines.indexOf("END:VEVENT", at));
    expect(event.join("\n")).toMatch(/^DTSTART;VALUE=DATE:\d{4}0702$/m);
    expect(event.join("\n")).toMatch(/^UID:[0-9a-f]{32}@expiring$/m);
    expect(lines).toContain("SUMMARY:khyber.af expires (renews automatically)");
    for (const line of answer.text.split("\r\n")) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(75);
    expect(answer.text).not.toMatch(/ns1|RS-100482|[^\r]\n/);
    const again = { ...bearer("read"), "If-None-Match": answer.headers["etag"] ?? "" };
    expect((await service.ask(PATH, { headers: again })).status).toBe(304);
  });

  test("opens with the link that npm run token prints, which opens nothing else and can't be altered", async () => {
    const link = anna.link ?? "";
    expect((await service.ask(link)).text).toContain("khyber.af expires");
    const [, query = ""] = link.split("?");
    const refused = [
      `/v1/staff/domains?${query}`,
      `/v1/staff/domains/khyber.af?${query}`,
      PATH,
      `${PATH}?name=anna`,
      link.replace("anna", "reader"),
      `${link.slice(0, -2)}xx`,
    ];
    for (const path of refused) expect(problemOf(await service.ask(path)).code).toBe("unauthenticated");
    expect(problemOf(await service.ask(`${link}&years=1`)).code).toBe("unauthenticated");
    expect(ben.link).toBeUndefined();
    expect(service.log.join("\n")).not.toContain(query.split("=").at(-1));
  });
});

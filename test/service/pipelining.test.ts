/** Requests pipelined on one connection, in any order and split at any byte: each gets the answer that it gets alone, in order. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import fc from "fast-check";
import { FakeClock } from "../support/fake-clock.js";
import { comparable, play, playAlone, type Sent, sequences } from "../support/pipelining.js";
import { answersIn, CLOSE, exchange, get } from "../support/raw.js";
import { type Service, startService, until } from "../support/service.js";

/** `PIPELINING_RUNS=20000 npm test -- test/service/pipelining` tests more sequences. */
const RUNS = Number(process.env["PIPELINING_RUNS"] ?? 20);
const SEED = 20_261_121;

let service: Service;
const alone = new Map<string, Promise<unknown>>();

async function start(): Promise<void> {
  alone.clear();
  service = await startService({
    clock: new FakeClock(),
    env: { CORS_ORIGINS: "https://www.example.af", UPSTREAM_RATE_LIMIT: "3000" },
  });
  await until(() => service.calls() === 29);
}
beforeAll(start);
afterAll(() => service.close());

function answerAlone(sent: Sent): Promise<unknown> {
  const known = alone.get(sent.bytes) ?? playAlone(service.port, sent).then(comparable);
  // Names that are never requested again aren't stored.
  if (!sent.bytes.includes("slow-")) alone.set(sent.bytes, known);
  return known;
}

const CLIENTS = 10;
const several = fc.array(sequences({ most: 12 }), { minLength: CLIENTS, maxLength: CLIENTS });

/** Checks the property in many rounds. The clock stands still and each round requests new names, so the service is replaced before its budget runs out. */
async function checkProperty<T>(
  property: fc.IAsyncProperty<T>,
  { rounds, roundsPerService }: { readonly rounds: number; readonly roundsPerService: number },
): Promise<void> {
  for (let played = 0; played < rounds; played += roundsPerService) {
    if (played > 0) {
      await service.close();
      await start();
    }
    await fc.assert(property, { numRuns: Math.min(roundsPerService, rounds - played), seed: SEED + played });
  }
}

test(
  "random sequences from several clients at once get the same answers as each request alone",
  () =>
    checkProperty(
      fc.asyncProperty(several, async (clients) => {
        await Promise.all(
          clients.map(async (sequence) => {
            const answers = (await play(service.port, sequence)).map(comparable);
            expect(answers).toEqual(await Promise.all(sequence.sent.map(answerAlone)));
          }),
        );
      }),
      { rounds: Math.ceil(RUNS / CLIENTS), roundsPerService: 50 },
    ),
  60_000 + 50 * RUNS,
);

test("a connection serves 100 requests, and one on which more are pipelined is closed", async () => {
  const paths = ["/livez", "/v1/prices", "/v1/availability?domain=herat.af", "/nothing"];
  const bodies = [/"live"/, /"prices"/, /"herat\.af"/, /"not_found"/];
  const pipelined = (count: number): string[] =>
    Array.from({ length: count }, (_, at) => get(paths[at % 4] ?? "", at === count - 1 ? CLOSE : {}));
  const answers = answersIn(await exchange(service.port, pipelined(100).join("")));
  expect(answers).toHaveLength(100);
  for (const [at, { body }] of answers.entries())
    expect([at, body]).toEqual([at, expect.stringMatching(bodies[at % 4] ?? /-/)]);
  // What isn't sent by then is lost.
  const text = await exchange(service.port, pipelined(400).join("")).catch(() => "");
  expect(text.split("HTTP/1.1 ").length - 1).toBeLessThanOrEqual(100);
  expect((await service.ask("/livez")).status).toBe(200);
});

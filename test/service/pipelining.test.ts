/** Requests pipelined on one connection, in any order and split at any byte: each gets the answer that it gets alone, in order. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import fc from "fast-check";
import { FakeClock } from "../support/fake-clock.js";
import { comparable, play, playAlone, type Sent, sequences } from "../support/pipelining.js";
import { answersIn, CLOSE, exchange, get } from "../support/raw.js";
import { type Service, startService, until } from "../support/service.js";

/** `PIPELINING_RUNS=20000 npm test -- test/service/pipelining` tests more sequences. */
const RUNS = Number(process.env["PIPELINING_RUNS"] ?? 150);
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

test(
  "a sequence much longer than the limit of outstanding requests gets the same answers as each request alone",
  () =>
    checkProperty(
      fc.asyncProperty(sequences({ most: 400 }), async (sequence) => {
        const answers = await play(service.port, sequence);
        expect(answers.map(comparable)).toEqual(await Promise.all(sequence.sent.map(answerAlone)));
      }),
      { rounds: Math.ceil(RUNS / 30), roundsPerService: 20 },
    ),
  60_000 + 50 * RUNS,
);

test.each(["/livez", "/openapi.json", "/v1/prices", "/nothing"])(
  "thousands of requests for %s that are sent at once are all answered",
  async (path) => {
    const total = 3_000;
    const text = get(path, { "X-Request-Id": "x".repeat(50) }).repeat(total - 1) + get(path, CLOSE);
    expect(answersIn(await exchange(service.port, text))).toHaveLength(total);
  },
);

test("few requests are parsed for a client that doesn't read, and all are answered once it does", async () => {
  const total = 8_000;
  let outstanding = 0;
  let most = 0;
  let parsed = 0;
  service.server.on("request", (_request, response) => {
    parsed += 1;
    outstanding += 1;
    most = Math.max(most, outstanding);
    response.once("close", () => {
      outstanding -= 1;
    });
  });
  const text = get("/v1/prices").repeat(total - 1) + get("/v1/prices", CLOSE);
  const answers = answersIn(await exchange(service.port, text, { pauseUntil: parsingStalls }));
  expect(answers.map(({ status }) => status)).toEqual(Array(total).fill(200));
  expect(most).toBeLessThanOrEqual(32);

  /** Resolves when the server parses no more of these requests, although more have arrived and others are answered. */
  async function parsingStalls(): Promise<void> {
    let before = -1;
    while (parsed !== before || parsed === 0) {
      before = parsed;
      for (let asked = 0; asked < 20; asked += 1) await service.ask("/livez");
      parsed -= 20;
    }
    expect(parsed).toBeLessThan(total - 32);
  }
});

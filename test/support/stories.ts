/** Runs tests concurrently, each in its own world, which is closed after the test. This suits tests that mostly wait. */
import { test } from "@jest/globals";

export interface World {
  close(): Promise<void>;
}

type Limit = (run: () => Promise<void>) => Promise<void>;

/** Runs at most `size` tests at a time, in the order in which they arrive: for tests that a busy process would disturb. */
export function atMost(size: number): Limit {
  let free = size;
  const waiting: (() => void)[] = [];
  return async (run) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((start) => waiting.push(start));
    try {
      await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

export async function inWorld<W extends World>(
  open: () => Promise<W>,
  run: (world: W) => Promise<void>,
): Promise<void> {
  const world = await open();
  try {
    await run(world);
  } finally {
    await world.close();
  }
}

/** Returns a `test` function. The tests of a `describe` run concurrently, as many at a time as jest's `maxConcurrency` and `limit` allow. */
export function concurrentTest<W extends World>(open: () => Promise<W>, limit: Limit = (run) => run()) {
  return (name: string, run: (world: W) => Promise<void>, timeoutMs?: number): void => {
    test.concurrent(name, () => limit(() => inWorld(open, run)), timeoutMs);
  };
}

/** Stories that mostly wait are told side by side, each in a world of its own, which is closed behind it. */
import { test } from "@jest/globals";

export interface World {
  close(): Promise<void>;
}

type Turns = (story: () => Promise<void>) => Promise<void>;

/** Has so many told at a time, in the order in which they come: for stories that a busy process would disturb. */
export function atMost(size: number): Turns {
  let free = size;
  const waiting: (() => void)[] = [];
  return async (story) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((enter) => waiting.push(enter));
    try {
      await story();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

export async function inWorld<W extends World>(
  open: () => Promise<W>,
  story: (world: W) => Promise<void>,
): Promise<void> {
  const world = await open();
  try {
    await story(world);
  } finally {
    await world.close();
  }
}

/** Those of one `describe` are told together: as many at a time as jest's `maxConcurrency` allows, or fewer by their turns. */
export function sideBySide<W extends World>(open: () => Promise<W>, turns: Turns = (story) => story()) {
  return (name: string, story: (world: W) => Promise<void>, timeoutMs?: number): void => {
    test.concurrent(name, () => turns(() => inWorld(open, story)), timeoutMs);
  };
}

/** Stories that mostly wait are told side by side, each in a world of its own, which is closed behind it. */
import { test } from "@jest/globals";

export interface World {
  close(): Promise<void>;
}

/** Those of one `describe` are told together, as many at a time as jest's `maxConcurrency` allows. */
export function sideBySide<W extends World>(open: () => Promise<W>) {
  return (name: string, story: (world: W) => Promise<void>, timeoutMs?: number): void => {
    test.concurrent(
      name,
      async () => {
        const world = await open();
        try {
          await story(world);
        } finally {
          await world.close();
        }
      },
      timeoutMs,
    );
  };
}

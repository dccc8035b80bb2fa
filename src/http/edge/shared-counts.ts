/**
 * Counts per client that replicas tell each other of, ten times a second and without anybody waiting for it. Until the others have heard of
 * an event it has to count once for each of them, since they may have counted as much; where Redis is gone that remains so.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../clock.js";
import type { RedisLink } from "../../redis.js";

export interface SharedCounts {
  /** Counts one event of this replica. */
  add(client: string): void;
  /** What the events of this replica that are still untold count. */
  untold(client: string): number;
}

export interface SharedCountsSettings {
  readonly link: RedisLink;
  /** Tells the counts of one service apart. */
  readonly name: string;
  readonly replicasMax: number;
  readonly clock: Clock;
  /** Called with what is no longer untold: as many as happened, or as they count where the others could not be told. */
  readonly onCounted: (client: string, count: number) => void;
}

const TELL_AFTER_MS = 100;

const messageSchema = z.tuple([z.string(), z.array(z.tuple([z.string(), z.number()]))]);

export function createSharedCounts(settings: SharedCountsSettings): SharedCounts {
  const { link, name, replicasMax, clock, onCounted } = settings;
  const me = randomUUID();
  const channel = `af-storefront:counts:${name}`;
  let untold = new Map<string, number>();
  let telling: ReadonlyMap<string, number> = new Map();

  async function tell(): Promise<void> {
    telling = untold;
    untold = new Map();
    const counts = [...telling];
    const wereTold = await link.publish(channel, JSON.stringify([me, counts])).then(
      () => true,
      () => false,
    );
    telling = new Map();
    for (const [client, count] of counts) onCounted(client, count * (wereTold ? 1 : replicasMax));
    if (untold.size > 0) tellLater();
  }
  const tellLater = (): void => {
    clock.after(TELL_AFTER_MS, () => void tell());
  };

  link.subscribe(
    channel,
    (message) => {
      const [replica, counts] = messageSchema.parse(JSON.parse(message));
      if (replica !== me) for (const [client, count] of counts) onCounted(client, count);
    },
    () => {},
  );

  return {
    add(client) {
      if (untold.size === 0 && telling.size === 0) tellLater();
      untold.set(client, (untold.get(client) ?? 0) + 1);
    },
    untold: (client) => ((untold.get(client) ?? 0) + (telling.get(client) ?? 0)) * replicasMax,
  };
}

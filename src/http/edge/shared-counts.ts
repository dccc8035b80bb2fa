/**
 * Counts per client that replicas publish to each other ten times a second, without delaying requests. Until an event is published, it counts once
 * for each replica, because each of the others may have counted as many that this one doesn't know of. Without Redis, it keeps that weight.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../clock.js";
import { parseJson } from "../../json.js";
import type { Replicas } from "./shared-limit.js";

interface SharedCounts {
  /** Counts one event of this replica. */
  add(client: string): void;
  /** The total weight of the events that this replica hasn't published yet. */
  unpublished(client: string): number;
  /** The maximum number of other replicas, each of which may decide before it knows of this one's events. */
  readonly others: number;
}

/** Calls `onCounted` with events to count: those of other replicas, and those of this one once they are published, or multiplied if that failed. */
export type Share = (onCounted: (client: string, count: number) => void) => SharedCounts;

/** The counts of a single replica: an event counts immediately. */
export const ofOneReplica: Share = (onCounted) => ({
  add: (client) => {
    onCounted(client, 1);
  },
  unpublished: () => 0,
  others: 0,
});

interface SharedCountsSettings extends Replicas {
  /** Distinguishes several counts of one service. */
  readonly name: string;
  readonly clock: Clock;
  readonly onCounted: Parameters<Share>[0];
}

const PUBLISH_AFTER_MS = 100;

const messageSchema = z.tuple([z.string(), z.array(z.tuple([z.string(), z.number()]))]);

export function createSharedCounts(settings: SharedCountsSettings): SharedCounts {
  const { link, name, replicasMax, clock, onCounted } = settings;
  const me = randomUUID();
  const channel = `af-storefront:counts:${name}`;
  let unpublished = new Map<string, number>();
  let publishing: ReadonlyMap<string, number> = new Map();

  async function publish(): Promise<void> {
    publishing = unpublished;
    unpublished = new Map();
    const counts = [...publishing];
    const wasPublished = await link.publish(channel, JSON.stringify([me, counts])).then(
      () => true,
      () => false,
    );
    publishing = new Map();
    for (const [client, count] of counts) onCounted(client, count * (wasPublished ? 1 : replicasMax));
    if (unpublished.size > 0) publishLater();
  }
  const publishLater = (): void => {
    clock.after(PUBLISH_AFTER_MS, () => void publish());
  };

  link.subscribe(
    channel,
    (message) => {
      const { data } = messageSchema.safeParse(parseJson(message));
      // Another release may write its messages differently.
      if (data === undefined) return;
      const [replica, counts] = data;
      if (replica !== me) for (const [client, count] of counts) onCounted(client, count);
    },
    () => {},
  );

  return {
    add(client) {
      if (unpublished.size === 0 && publishing.size === 0) publishLater();
      unpublished.set(client, (unpublished.get(client) ?? 0) + 1);
    },
    others: replicasMax - 1,
    unpublished: (client) => ((unpublished.get(client) ?? 0) + (publishing.get(client) ?? 0)) * replicasMax,
  };
}

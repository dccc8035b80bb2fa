/**
 * Answers that are event streams (WHATWG HTML, server-sent events): sent unbuffered, kept alive, bounded in time and in number, and ended
 * for good when the client goes or the process stops.
 */
import { setMaxListeners } from "node:events";
import type { Request, Response } from "express";
import type { Clock } from "../clock.js";
import { ServiceError } from "../errors.js";
import { contextOf } from "./context.js";

export interface ServerEvent {
  /** What the client sends as `Last-Event-ID` when it comes back; without a line break. */
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

export interface EventStream {
  /** Aborted when nobody reads any more, when the process stops and when the stream's time is over: what is left to say is to be said now. */
  readonly signal: AbortSignal;
  /** Does nothing once the client has gone. */
  send(event: ServerEvent): void;
  /** Resolves when the client has been sent everything, or has gone. */
  end(): Promise<void>;
}

export interface EventStreams {
  /** Answers with a stream; throws while its client, or all clients together, have too many open, and when the client has gone. */
  open(request: Request, response: Response): EventStream;
  /** Has every open stream end now. */
  endAll(): void;
}

export interface EventStreamSettings {
  /** After this a stream ends, in ms. */
  readonly longestMs: number;
  readonly clock: Clock;
}

/** Proxies close what says nothing for a minute, some for half of one. */
const KEEP_ALIVE_MS = 15_000;
/** As many as a client can need within the limit for names that nobody knows yet; several people may share an address. */
const MOST_PER_CLIENT = 10;
/** A stream that waits for quota holds a socket and a few kB. */
const MOST = 500;

const HEADERS = {
  "Content-Type": "text/event-stream; charset=utf-8",
  // Compression would hold events back until there is enough to compress.
  "Cache-Control": "no-store, no-transform",
  // nginx and those who copied it buffer answers otherwise.
  "X-Accel-Buffering": "no",
};

interface Open {
  readonly client: string;
  readonly endsAt: number;
  readonly over: AbortController;
}

export function createEventStreams({ longestMs, clock }: EventStreamSettings): EventStreams {
  /** In the order in which they end. */
  const streams = new Set<Open>();

  function refuseTooMany(client: string): void {
    const all = [...streams];
    const own = all.filter((stream) => stream.client === client);
    const untilEndOf = (first: Open | undefined) => ({
      retryAfterMs: Math.max(1, (first?.endsAt ?? 0) - clock.monotonic()),
    });
    if (own.length >= MOST_PER_CLIENT)
      throw new ServiceError("rate_limited", "Too many open searches of this client.", untilEndOf(own[0]));
    // So many wait only for want of quota.
    if (all.length >= MOST)
      throw new ServiceError("quota_exhausted", "Too many searches are waiting.", untilEndOf(all[0]));
  }

  return {
    open(request, response) {
      const { client, signal: hangUp } = contextOf(request);
      // Its close has been told already and would not be told to the stream.
      if (hangUp.aborted) throw new ServiceError("internal", "The client has gone.");
      refuseTooMany(client);
      const over = new AbortController();
      // Each name of a search listens, and there are as many as are sold.
      setMaxListeners(0, over.signal);
      const stream: Open = { client, endsAt: clock.monotonic() + longestMs, over };
      streams.add(stream);
      const write = (text: string): void => {
        if (!response.destroyed && !response.writableEnded) response.write(text);
      };
      const cancelEnd = clock.after(longestMs, () => {
        over.abort();
      });
      let cancelKeepAlive = (): void => {};
      const keepAlive = (): void => {
        write(": keep-alive\n\n");
        cancelKeepAlive = clock.after(KEEP_ALIVE_MS, keepAlive);
      };
      const closed = new Promise<void>((done) => {
        response.once("close", () => {
          streams.delete(stream);
          cancelEnd();
          cancelKeepAlive();
          over.abort();
          done();
        });
      });
      response.status(200).set(HEADERS).flushHeaders();
      keepAlive();
      return {
        signal: over.signal,
        send: (event) => {
          write(frameOf(event));
        },
        end: () => {
          response.end();
          return closed;
        },
      };
    },
    endAll() {
      for (const { over } of streams) over.abort();
    },
  };
}

function frameOf({ id, event, data }: ServerEvent): string {
  const lines = [
    ...(id === undefined ? [] : [`id: ${id}`]),
    `event: ${event}`,
    `data: ${JSON.stringify(data)}`,
  ];
  return `${lines.join("\n")}\n\n`;
}

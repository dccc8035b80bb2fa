/**
 * Server-sent event streams (WHATWG HTML): unbuffered, kept alive, limited in duration and number, and ended when the client disconnects or
 * the process stops.
 */
import { setMaxListeners } from "node:events";
import type { Request, Response } from "express";
import { type Clock, every } from "../clock.js";
import { ServiceError } from "../errors.js";
import { contextOf } from "./edge/context.js";
import { send } from "./edge/answers.js";

interface ServerEvent {
  /** What the client sends as `Last-Event-ID` when it reconnects; must not contain a line break. */
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

export interface EventStream {
  /** Aborted when the client has disconnected, the process stops or the stream's time is over: send the last events now. */
  readonly signal: AbortSignal;
  /** Does nothing if the client has disconnected. */
  send(event: ServerEvent): void;
  /** Resolves when everything has been sent or the client has disconnected. */
  end(): Promise<void>;
}

export interface EventStreams {
  /** Starts a stream; throws if the client, or all clients together, have too many open, or the client has disconnected. */
  open(request: Request, response: Response): EventStream;
  /** Ends all open streams. */
  endAll(): void;
}

interface EventStreamSettings {
  /** The longest duration of a stream, in ms. */
  readonly longestMs: number;
  readonly clock: Clock;
}

/** Proxies close idle connections after a minute, some after 30 s. */
const KEEP_ALIVE_MS = 15_000;
/** Enough for several people behind one address within the limit for cold requests. */
const MAX_PER_CLIENT = 10;
/** A stream that waits for quota holds a socket and a few kB. */
const MAX = 500;

export const EVENT_STREAM = "text/event-stream; charset=utf-8";
// Compression would delay events until there is enough to compress.
const CACHE_CONTROL = "no-store, no-transform";
// Stops nginx and compatible proxies from buffering.
const UNBUFFERED = { "X-Accel-Buffering": "no" };
const HEADERS = { "Content-Type": EVENT_STREAM, "Cache-Control": CACHE_CONTROL, ...UNBUFFERED };

interface Open {
  readonly client: string;
  readonly endsAt: number;
  readonly over: AbortController;
}

export function createEventStreams({ longestMs, clock }: EventStreamSettings): EventStreams {
  /** In the order of their end times. */
  const streams = new Set<Open>();

  function refuseTooMany(client: string): void {
    const all = [...streams];
    const own = all.filter((stream) => stream.client === client);
    const untilEndOf = (first: Open | undefined) => ({
      retryAfterMs: Math.max(1, (first?.endsAt ?? 0) - clock.monotonic()),
    });
    if (own.length >= MAX_PER_CLIENT)
      throw new ServiceError("rate_limited", "This client has too many open searches.", untilEndOf(own[0]));
    // Only a lack of quota makes so many streams wait.
    if (all.length >= MAX)
      throw new ServiceError("quota_exhausted", "Too many searches are waiting.", untilEndOf(all[0]));
  }

  return {
    open(request, response) {
      const { client, signal: hangUp } = contextOf(request);
      // The response has emitted "close" already and won't emit it to the stream.
      if (hangUp.aborted) throw new ServiceError("internal", "The client has disconnected.");
      refuseTooMany(client);
      const over = new AbortController();
      // Each name of a search adds a listener, one per TLD sold.
      setMaxListeners(0, over.signal);
      const stream: Open = { client, endsAt: clock.monotonic() + longestMs, over };
      streams.add(stream);
      const write = (text: string): void => {
        if (!response.destroyed && !response.writableEnded) response.write(text);
      };
      const cancelEnd = clock.after(longestMs, () => {
        over.abort();
      });
      const keepAlive = (): void => {
        write(": keep-alive\n\n");
      };
      const cancelKeepAlive = every(clock, KEEP_ALIVE_MS, keepAlive);
      const closed = new Promise<void>((done) => {
        response.once("close", () => {
          streams.delete(stream);
          cancelEnd();
          cancelKeepAlive();
          over.abort();
          done();
        });
      });
      response.status(200).set(HEADERS);
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

/** Sends a stream whose events are all there. */
export function sendEvents(response: Response, text: string): void {
  response.set(UNBUFFERED);
  send(response, { body: Buffer.from(text), type: EVENT_STREAM, cacheControl: CACHE_CONTROL });
}

export function frameOf({ id, event, data }: ServerEvent): string {
  const lines = [
    ...(id === undefined ? [] : [`id: ${id}`]),
    `event: ${event}`,
    `data: ${JSON.stringify(data)}`,
  ];
  return `${lines.join("\n")}\n\n`;
}

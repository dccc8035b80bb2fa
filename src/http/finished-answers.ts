/**
 * Finished answers, sent again in front of the rate limiter and of Express. A handler says until when every word of its answer stays true; anything
 * new ends all of them. It knows no routes, names or prices.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Response } from "express";
import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.js";
import {
  type Answer,
  CLIENT_FIELDS,
  ENTITY_FIELDS,
  isNotModified,
  isPublic,
  mayBeRepeated,
  send,
  setFields,
} from "./edge/answers.js";
import { isHandedOn } from "./edge/client.js";
import { requestId } from "./edge/context.js";
import { hasRightHost } from "./edge/headers.js";

/** Until when an answer may be sent again. */
export interface Lasting {
  /** On the clock of facts, ms. */
  readonly untilAt: number;
  /** Until when its header fields stay true, if that is sooner; wall clock, ms. */
  readonly fieldsUntilAt?: number;
  /** Called each time it is sent again. */
  readonly onSentAgain: () => void;
}

export interface FinishedAnswers {
  /** Answers the request if the same one has been answered already and that answer still holds; returns whether it did. */
  sendAgain(request: IncomingMessage, response: ServerResponse): boolean;
  /** Sends an answer that was made in this turn of the event loop, so that nothing new can be missing in it, and keeps it while it lasts. */
  send(response: Response, answer: Answer, lasting: Lasting): void;
}

interface FinishedAnswerSettings {
  /** A number that changes whenever something new may change an answer. */
  readonly changes: () => number;
  /** The time of the next change that is known in advance, such as the start of a promotion; wall clock, ms. */
  readonly nextChangeAt: () => number;
  readonly clock: Clock;
}

/** Some 25 MB. */
const MAX_ANSWERS = 5_000;
const MAX_KEY_LENGTH = 512;
/** What isn't stored with an answer's fields, in lower case: it is about one client, one connection, or the body. */
const OTHERS: ReadonlySet<string> = new Set([...CLIENT_FIELDS, "connection", ...ENTITY_FIELDS]);

interface Finished {
  /** Sent with or without the body. */
  readonly fields: readonly string[];
  readonly entityFields: readonly string[];
  /** One byte per character: Node sends such a string in one piece with the head. */
  readonly body: string;
  readonly etag: string;
  readonly isPublic: boolean;
  /** When it was made; its times would be in the future if the clock was set back since. Wall clock, ms. */
  readonly madeAt: number;
  /** Wall clock, ms. */
  readonly changesAt: number;
  readonly onSentAgain: () => void;
}

export function createFinishedAnswers({
  changes,
  nextChangeAt,
  clock,
}: FinishedAnswerSettings): FinishedAnswers {
  const answers = new LRUCache<string, Finished>({
    max: MAX_ANSWERS,
    perf: { now: () => clock.monotonic() },
    ttlResolution: 0,
  });
  let changesSeen = changes();

  function forgetOld(): void {
    if (changesSeen === changes()) return;
    answers.clear();
    changesSeen = changes();
  }

  function find(key: string): Finished | undefined {
    forgetOld();
    const known = answers.get(key);
    const now = clock.now();
    return known !== undefined && known.madeAt <= now && now < known.changesAt ? known : undefined;
  }

  return {
    sendAgain(request, response) {
      const key = keyOf(request);
      const known = key === null ? undefined : find(key);
      if (known === undefined) return false;
      const isSame = isNotModified(request.headers["if-none-match"], known.etag);
      const own = known.isPublic ? [] : ["x-request-id", requestId(request)];
      response.writeHead(isSame ? 304 : 200, own.concat(known.fields, isSame ? [] : known.entityFields));
      if (isSame) response.end();
      else response.end(known.body, "latin1");
      known.onSentAgain();
      return true;
    },
    send(response, answer, { untilAt, fieldsUntilAt = Infinity, onSentAgain }) {
      const key = keyOf(response.req);
      const ttl = untilAt - clock.monotonic();
      forgetOld();
      if (isHandedOn(response.req)) mayBeRepeated(response, ttl);
      else if (key !== null && ttl > 0) {
        setFields(response, answer);
        const entityFields = fieldsOf(response, (name) => ENTITY_FIELDS.includes(name));
        const fields = fieldsOf(response, (name) => !OTHERS.has(name));
        answers.set(
          key,
          {
            fields,
            entityFields,
            body: answer.body.toString("latin1"),
            etag: String(response.getHeader("ETag")),
            isPublic: isPublic(answer.cacheControl),
            madeAt: clock.now(),
            changesAt: Math.min(nextChangeAt(), fieldsUntilAt),
            onSentAgain,
          },
          { ttl },
        );
      }
      send(response, answer);
    },
  };
}

/** The URL and the fields that an answer depends on; null if it may depend on others, or Express must check them. */
function keyOf(request: IncomingMessage): string | null {
  const { accept = "", origin = "", authorization, expect, "last-event-id": lastEventId } = request.headers;
  if (request.method !== "GET" || authorization !== undefined || expect !== undefined) return null;
  if (lastEventId !== undefined || !hasRightHost(request)) return null;
  const key = `${request.url}\n${accept}\n${origin}`;
  return key.length > MAX_KEY_LENGTH ? null : key;
}

function fieldsOf(response: Response, isWanted: (name: string) => boolean): string[] {
  return response
    .getHeaderNames()
    .filter(isWanted)
    .flatMap((name) => [name, String(response.getHeader(name))]);
}

/**
 * Streams a search as events: each name as soon as it is known, suggestions if the exact name is taken, then `done`. A
 * client that reconnects with `Last-Event-ID` gets only the names that it hasn't received, and only these are looked up.
 */
import { hash } from "node:crypto";
import type { Request, Response } from "express";
import type { Clock } from "../clock.js";
import type { Lane } from "../quota/lane.js";
import type { Availability } from "../shop/availability.js";
import type { VisitorAsk } from "../shop/names.js";
import { type SearchedName, searchWithRetries, type Unknown } from "../shop/search.js";
import type { Shop } from "../shop/shop.js";
import type { AnswerOf } from "../wire/answer.js";
import type { availabilityShape } from "../wire/visitors.js";
import type { AskFor } from "./edge/context.js";
import { type EventStreams, frameOf, sendEvents } from "./event-stream.js";
import { presentAvailability } from "./presenters.js";

interface SearchStreamParts {
  readonly streams: EventStreams;
  readonly ask: AskFor;
  readonly clock: Clock;
}

export interface Searched {
  /** Used for the whole stream, so that all prices come from one version of the policy. */
  readonly shop: Shop;
  readonly exact: SearchedName;
  /** The exact name first. */
  readonly names: readonly SearchedName[];
  /** Whether only memory may be used. */
  readonly onlyKnown: boolean;
}

/** Answers with the events of a search. */
export type SearchStream = (request: Request, response: Response, search: Searched) => Promise<void>;

/** How long a stream waits for quota. People wait longer if they see progress. */
export const SEARCH_PATIENCE_MS = 30_000;

export function createSearchStream(parts: SearchStreamParts): SearchStream {
  const { streams, clock } = parts;

  return async (request, response, search) => {
    const { shop, exact, names } = search;
    const { availability, suggestions } = shop;
    const variants = suggestions.variantsOf(exact);
    const lastEventId = request.get("Last-Event-ID") ?? "";
    const known = knownEvents(search, variants, lastEventId);
    if (known !== null) {
      sendEvents(response, known);
      return;
    }
    const token = new ResumeToken([...names, ...variants], lastEventId);

    const isPending = ({ name }: SearchedName): boolean => !token.sent.has(name.ascii);

    const stream = streams.open(request, response);
    const { signal } = stream;
    const askIn = (lane: Lane): VisitorAsk => ({ ...parts.ask(request, lane), signal });

    function send(result: Availability | Unknown, more: { readonly suggested?: true } = {}): void {
      if (result.status !== "unknown") token.sent.add(result.name.ascii);
      const data: AnswerOf<typeof availabilityShape> = { ...presentAvailability(result), ...more };
      stream.send({ id: token.id(), event: "result", data });
    }

    const suggest = (): Promise<void> =>
      suggestions.suggest(variants.filter(isPending), askIn("suggestion"), (found) => {
        send(found, { suggested: true });
      });

    let complete = true;
    let suggested = token.exactIsTaken ? suggest() : Promise.resolve();
    try {
      await searchWithRetries(
        names.filter(isPending),
        {
          availability,
          askFor: (asked) => askIn(asked === exact ? "exact" : "search"),
          retryForMs: SEARCH_PATIENCE_MS,
          signal,
          clock,
        },
        (asked, result) => {
          if (result.status === "unknown") complete = false;
          const isExactTaken = asked === exact && result.status === "taken";
          if (isExactTaken) token.exactIsTaken = true;
          send(result);
          if (isExactTaken) suggested = suggest();
        },
      );
      await suggested;
    } finally {
      stream.send({ event: "done", data: { complete } });
      await stream.end();
    }
  };
}

/**
 * All events of a search that needs no call: the known names, then `done`. Null if a name isn't known or others could be suggested, which doesn't
 * matter if only memory may be used.
 */
function knownEvents(
  { shop: { availability }, exact, names, onlyKnown }: Searched,
  variants: readonly SearchedName[],
  lastEventId: string,
): string | null {
  const token = new ResumeToken([...names, ...variants], lastEventId);
  const found = names
    .filter(({ name }) => !token.sent.has(name.ascii))
    .map(({ name, years }) => availability.fromMemory(name, years));
  const complete = !found.includes(undefined);
  token.exactIsTaken ||= found.some((one) => one?.status === "taken" && one.name.ascii === exact.name.ascii);
  if (!onlyKnown && (!complete || (token.exactIsTaken && variants.length > 0))) return null;
  const results = found.filter((one) => one !== undefined);
  availability.countHits(results.length);
  const frames = results.map((one) => {
    token.sent.add(one.name.ascii);
    return frameOf({ id: token.id(), event: "result", data: presentAvailability(one) });
  });
  return frames.join("") + frameOf({ event: "done", data: { complete } });
}

/**
 * The names of a search that a client has received, encoded in each event's id: a digest of the search and one bit per name. The server
 * stores nothing, so any replica can resume the stream.
 */
class ResumeToken {
  readonly #names: readonly string[];
  readonly #digest: string;
  readonly sent = new Set<string>();
  /** Whether the stream includes suggestions. */
  exactIsTaken = false;

  /** Restores the state from `lastEventId`, unless that belongs to another search. */
  constructor(names: readonly SearchedName[], lastEventId: string) {
    this.#names = names.map(({ name }) => name.ascii);
    const search = names.map(({ name, years }) => `${name.ascii} ${years}`).join(" ");
    this.#digest = hash("sha256", search, "base64url").slice(0, 16);
    const [digest, bits = "", ...rest] = lastEventId.split(".");
    const isOfThisSearch = digest === this.#digest && rest.length === 0 && /^[01]+$/.test(bits);
    if (!isOfThisSearch || bits.length !== names.length + 1) return;
    this.exactIsTaken = bits.startsWith("1");
    for (const [index, name] of this.#names.entries()) if (bits[index + 1] === "1") this.sent.add(name);
  }

  id(): string {
    const bits = [this.exactIsTaken, ...this.#names.map((name) => this.sent.has(name))];
    return `${this.#digest}.${bits.map((bit) => (bit ? "1" : "0")).join("")}`;
  }
}

/**
 * Streams a search as events: each name as soon as it is known, suggestions if the exact name is taken, then `done`. A
 * client that reconnects with `Last-Event-ID` gets only the names that it hasn't received, and only these are looked up.
 */
import { hash } from "node:crypto";
import type { Request, Response } from "express";
import type { Clock } from "../clock.js";
import type { Lane } from "../quota/lane.js";
import type { Availability } from "../storefront/availability.js";
import type { VisitorAsk } from "../storefront/name-facts.js";
import { type SearchedName, searchWithRetries, type Unknown } from "../storefront/search.js";
import type { Shop } from "../storefront/shop.js";
import type { AnswerOf } from "../wire/answer.js";
import type { availabilityShape } from "../wire/visitors.js";
import type { AskFor } from "./edge/context.js";
import { type EventStreams, frameOf, renderEvents } from "./event-stream.js";
import { presentAvailability } from "./presenters.js";
import type { Rendered } from "./edge/rendered.js";

interface SearchStreamParts {
  readonly streams: EventStreams;
  readonly ask: AskFor;
  readonly clock: Clock;
}

interface StreamedSearch {
  /** Used for the whole stream, so that all prices come from one version of the policy. */
  readonly shop: Shop;
  readonly exact: SearchedName;
  /** The exact name first. */
  readonly names: readonly SearchedName[];
}

/** Answers with the events of a search. */
export type SearchStream = (request: Request, response: Response, search: StreamedSearch) => Promise<void>;

/** How long a stream waits for quota. People wait longer if they see progress. */
export const SEARCH_PATIENCE_MS = 30_000;

export function createSearchStream(parts: SearchStreamParts): SearchStream {
  const { streams, clock } = parts;

  return async (request, response, { shop, exact, names }) => {
    const { availability, suggestions } = shop;
    const variants = suggestions.variantsOf(exact);
    const token = new ResumeToken([...names, ...variants], request.get("Last-Event-ID") ?? "");

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
 * All events of a search that needs no call: the known names, then `done`. Undefined if a name isn't known or others could be suggested, which
 * doesn't matter with `onlyKnown`.
 */
export function knownEvents(
  { shop, exact, names }: StreamedSearch,
  { onlyKnown, lastEventId }: { readonly onlyKnown: boolean; readonly lastEventId: string },
): Rendered | undefined {
  const { availability, suggestions } = shop;
  const variants = suggestions.variantsOf(exact);
  const token = new ResumeToken([...names, ...variants], lastEventId);
  const found = names
    .filter(({ name }) => !token.sent.has(name.ascii))
    .map(({ name, years }) => availability.known(name, years));
  const complete = !found.includes(undefined);
  token.exactIsTaken ||= found.some((one) => one?.status === "taken" && one.name.ascii === exact.name.ascii);
  const suggests = token.exactIsTaken && variants.length > 0;
  if (!onlyKnown && (!complete || suggests)) return undefined;
  let text = "";
  for (const one of found) {
    if (one === undefined) continue;
    availability.countHits(1);
    token.sent.add(one.name.ascii);
    text += frameOf({ id: token.id(), event: "result", data: presentAvailability(one) });
  }
  return renderEvents(text + frameOf({ event: "done", data: { complete } }));
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

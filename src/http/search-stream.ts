/**
 * Streams a search as events (contract section 4): each name as soon as it is known, suggestions if the exact name is taken, then `done`. A
 * client that reconnects with `Last-Event-ID` gets only the names that it hasn't received, and only these are looked up.
 */
import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import type { Clock } from "../clock.js";
import type { Lane } from "../quota/lane.js";
import type { Availability, VisitorAsk } from "../storefront/availability.js";
import { type SearchedName, searchWithRetries, type Unknown } from "../storefront/search.js";
import type { Shop } from "../storefront/shop.js";
import type { AnswerOf } from "../wire/answer.js";
import type { availabilityShape } from "../wire/visitors.js";
import type { EventStreams } from "./event-stream.js";
import { presentAvailability } from "./presenters.js";

interface SearchStreamParts {
  readonly streams: EventStreams;
  readonly ask: (request: Request, lane: Lane) => VisitorAsk;
  readonly clock: Clock;
}

interface StreamedSearch {
  /** Used for the whole stream, so that all prices come from one version of the policy. */
  readonly shop: Shop;
  readonly exact: SearchedName;
  readonly others: readonly SearchedName[];
  /** Answer from memory only. */
  readonly onlyKnown: boolean;
}

/** Answers with the events of a search, the exact name first. */
export type SearchStream = (request: Request, response: Response, search: StreamedSearch) => Promise<void>;

/** How long a stream waits for quota. People wait longer if they see progress. */
export const SEARCH_PATIENCE_MS = 30_000;

export function createSearchStream(parts: SearchStreamParts): SearchStream {
  const { streams, clock } = parts;

  return async (request, response, { shop, exact, others, onlyKnown }) => {
    const { availability, suggestions } = shop;
    const names = [exact, ...others];
    const variants = suggestions.variantsOf(exact);
    const token = new ResumeToken([...names, ...variants]);
    token.resume(request.get("Last-Event-ID") ?? "");

    const isPending = ({ name }: SearchedName): boolean => !token.hasSent(name.ascii);

    const stream = streams.open(request, response);
    const { signal } = stream;
    const askIn = (lane: Lane): VisitorAsk => ({ ...parts.ask(request, lane), signal });

    function send(result: Availability | Unknown, more: { readonly suggested?: true } = {}): void {
      if (result.status !== "unknown") token.markSent(result.name.ascii);
      const data: AnswerOf<typeof availabilityShape> = { ...presentAvailability(result), ...more };
      stream.send({ id: token.id(), event: "result", data });
    }

    async function suggest(): Promise<void> {
      await suggestions.suggest(variants.filter(isPending), askIn("suggestion"), (found) => {
        send(found, { suggested: true });
      });
    }

    if (onlyKnown) {
      for (const { name, years } of names.filter(isPending)) {
        const found = availability.known(name, years);
        if (found === undefined) continue;
        availability.countHits(1);
        send(found);
      }
      stream.send({ event: "done", data: { complete: !names.some(isPending) } });
      return stream.end();
    }

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
 * The names of a search that a client has received, encoded in each event's id: a digest of the search and one bit per name. The server
 * stores nothing, so any replica can resume the stream.
 */
class ResumeToken {
  readonly #names: readonly string[];
  readonly #digest: string;
  readonly #sent = new Set<string>();
  /** Whether the stream includes suggestions. */
  exactIsTaken = false;

  constructor(names: readonly SearchedName[]) {
    this.#names = names.map(({ name }) => name.ascii);
    const search = names.map(({ name, years }) => `${name.ascii} ${years}`).join(" ");
    this.#digest = createHash("sha256").update(search).digest("base64url").slice(0, 16);
  }

  hasSent(name: string): boolean {
    return this.#sent.has(name);
  }

  markSent(name: string): void {
    this.#sent.add(name);
  }

  id(): string {
    const bits = [this.exactIsTaken, ...this.#names.map((name) => this.#sent.has(name))];
    return `${this.#digest}.${bits.map((bit) => (bit ? "1" : "0")).join("")}`;
  }

  /** Restores the state from an event id; ignores an id of another search. */
  resume(id: string): void {
    const [digest, bits = "", ...rest] = id.split(".");
    const isOfThisSearch = digest === this.#digest && rest.length === 0 && /^[01]+$/.test(bits);
    if (!isOfThisSearch || bits.length !== this.#names.length + 1) return;
    this.exactIsTaken = bits.startsWith("1");
    for (const [index, name] of this.#names.entries()) if (bits[index + 1] === "1") this.markSent(name);
  }
}

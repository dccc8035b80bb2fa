/**
 * A search as events (contract section 4): each name as soon as it is known, other names when the exact one is taken, then `done`. A client
 * that comes back with the id of the last event is not told again what it was told, and that is not asked again either.
 */
import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import type { Clock } from "../clock.js";
import type { Lane } from "../quota/quota.js";
import type { Availability, VisitorAsk } from "../storefront/availability.js";
import { type SearchedName, searchPatiently, type Unknown } from "../storefront/search.js";
import type { Shop } from "../storefront/shop.js";
import type { EventStreams } from "./event-stream.js";
import { presentAvailability } from "./presenters.js";

export interface SearchStreamParts {
  readonly streams: EventStreams;
  readonly ask: (request: Request, lane: Lane) => VisitorAsk;
  readonly clock: Clock;
}

export interface StreamedSearch {
  /** Answers the whole stream, so that all its prices are of one version. */
  readonly shop: Shop;
  readonly exact: SearchedName;
  readonly others: readonly SearchedName[];
  /** Send what memory holds and end; ask nobody. */
  readonly onlyKnown: boolean;
}

/** Answers with the events of a search, the exact name first. */
export type SearchStream = (request: Request, response: Response, search: StreamedSearch) => Promise<void>;

/** How long a stream waits for quota. People wait longer when they see that something is under way. */
export const SEARCH_PATIENCE_MS = 30_000;

export function createSearchStream(parts: SearchStreamParts): SearchStream {
  const { streams, clock } = parts;

  return async (request, response, { shop, exact, others, onlyKnown }) => {
    const { availability, suggestions } = shop;
    const names = [exact, ...others];
    const variants = suggestions.variantsOf(exact);
    const told = new Told([...names, ...variants]);
    told.resume(request.get("Last-Event-ID") ?? "");

    const isLeft = ({ name }: SearchedName): boolean => !told.has(name.ascii);

    const stream = streams.open(request, response);
    const { signal } = stream;
    const askIn = (lane: Lane): VisitorAsk => ({ ...parts.ask(request, lane), signal });

    function tell(result: Availability | Unknown, more: { readonly suggested?: true } = {}): void {
      if (result.status !== "unknown") told.add(result.name.ascii);
      stream.send({ id: told.id(), event: "result", data: { ...presentAvailability(result), ...more } });
    }

    async function suggest(): Promise<void> {
      await suggestions.suggest(variants.filter(isLeft), askIn("suggestion"), (found) => {
        tell(found, { suggested: true });
      });
    }

    if (onlyKnown) {
      for (const { name, years } of names.filter(isLeft)) {
        const found = availability.known(name, years);
        if (found === undefined) continue;
        availability.countHits(1);
        tell(found);
      }
      stream.send({ event: "done", data: { complete: !names.some(isLeft) } });
      return stream.end();
    }

    let complete = true;
    let suggested = told.exactIsTaken ? suggest() : Promise.resolve();
    try {
      await searchPatiently(
        names.filter(isLeft),
        {
          desk: availability,
          askFor: (asked) => askIn(asked === exact ? "exact" : "search"),
          patienceMs: SEARCH_PATIENCE_MS,
          signal,
          clock,
        },
        (asked, result) => {
          if (result.status === "unknown") complete = false;
          const opens = asked === exact && result.status === "taken";
          if (opens) told.exactIsTaken = true;
          tell(result);
          if (opens) suggested = suggest();
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
 * What of a question a client has been told, as the id of an event: a digest of the question, and a bit for each of its names. It is all
 * that is kept, and the client keeps it, so any replica can go on.
 */
class Told {
  readonly #names: readonly string[];
  readonly #digest: string;
  readonly #told = new Set<string>();
  /** Then other names are suggested. */
  exactIsTaken = false;

  constructor(names: readonly SearchedName[]) {
    this.#names = names.map(({ name }) => name.ascii);
    const question = names.map(({ name, years }) => `${name.ascii} ${years}`).join(" ");
    this.#digest = createHash("sha256").update(question).digest("base64url").slice(0, 16);
  }

  has(name: string): boolean {
    return this.#told.has(name);
  }

  add(name: string): void {
    this.#told.add(name);
  }

  id(): string {
    const bits = [this.exactIsTaken, ...this.#names.map((name) => this.#told.has(name))];
    return `${this.#digest}.${bits.map((bit) => (bit ? "1" : "0")).join("")}`;
  }

  /** Takes up what an id says; one that is not for this question says nothing. */
  resume(id: string): void {
    const [digest, bits = "", ...rest] = id.split(".");
    const isOurs = digest === this.#digest && rest.length === 0 && /^[01]+$/.test(bits);
    if (!isOurs || bits.length !== this.#names.length + 1) return;
    this.exactIsTaken = bits.startsWith("1");
    for (const [index, name] of this.#names.entries()) if (bits[index + 1] === "1") this.add(name);
  }
}

/**
 * Typed functions for the storefront API. They retry when the service says that a retry will help or can't be reached, and reject with a
 * StorefrontProblem when something goes wrong. Works wherever `fetch` does, without dependencies.
 */
import { type Call, startCall, waitUntil } from "./call.js";
import { now } from "./clock.js";
import { readEvents, type StreamPosition } from "./event-stream.js";
import { Memory } from "./memory.js";
import { type ProblemFacts, problemOf, shaped, StorefrontProblem } from "./problem.js";
import type { components, paths } from "./schema.js";

export { type FieldError, type ProblemCode, StorefrontProblem } from "./problem.js";

type Schemas = components["schemas"];
type Query<P extends keyof paths> = paths[P] extends { readonly get: { parameters: { query?: infer Q } } }
  ? NonNullable<Q>
  : never;
type Parameters = Readonly<Record<string, string | number | readonly string[] | undefined>>;
export type Money = Schemas["Money"];
export type Availability = Schemas["Availability"];
export type Search = Schemas["Search"];
export type Price = Schemas["Price"];
export type PriceList = Schemas["PriceList"];
export type Quote = Schemas["Quote"];
export type QuoteLine = Schemas["QuoteLine"];
export type Quotes = Schemas["Quotes"];
export type CartItem = Schemas["QuoteRequest"]["items"][number];

/**
 * The events of a streamed search: results as they become known, then whether they are complete. A later result for a name replaces an earlier one.
 */
export type SearchEvent =
  | { readonly event: "result"; readonly result: Availability }
  | { readonly event: "done"; readonly complete: boolean };

export interface ClientSettings {
  /** The service's URL, such as `https://names.example.af`; a path before `/v1` is kept. Default: the page's own origin. */
  readonly baseUrl?: string;
  readonly fetch?: typeof fetch;
  /** The maximum number of attempts per request. Default: 3. */
  readonly attempts?: number;
  /** If the service asks for a longer wait before a retry, the call fails immediately. Default: 60 s. */
  readonly longestWaitMs?: number;
  /** The deadline of a call, including all its attempts and waits, but not the time for which the device sleeps or the page is frozen. Default: 2 min. */
  readonly timeoutMs?: number;
  /** A stream that is silent for this long counts as lost; the service sends something every 15 s. Default: 45 s. */
  readonly silenceMs?: number;
}

export interface AskOptions {
  /** Cancels the call; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Overrides the client's `timeoutMs`. */
  readonly timeoutMs?: number;
  /** Called before every wait for a retry, so that a page can count down. */
  readonly onWait?: (problem: StorefrontProblem, waitMs: number) => void;
  /** Called after such a wait, when the retry starts; it may have to wait for the registry in turn. */
  readonly onRetry?: () => void;
}

export type StorefrontClient = ReturnType<typeof createClient>;

export function createClient(settings: ClientSettings = {}) {
  const {
    baseUrl = "",
    attempts = 3,
    longestWaitMs = 60_000,
    silenceMs = 45_000,
    timeoutMs = 120_000,
  } = settings;
  const memory = new Memory();
  // A plain function call: browsers reject a `fetch` that is called as a method of another object.
  const send = settings.fetch ?? ((url: string, init: RequestInit) => fetch(url, init));

  async function once(path: string, init: RequestInit, call: Call): Promise<Response> {
    let response: Response;
    try {
      response = await send(`${baseUrl.replace(/\/$/, "")}${path}`, { ...init, signal: call.signal });
    } catch (cause) {
      call.throwIfEnded();
      throw lost({ cause });
    }
    if (!response.ok && response.status !== NOT_MODIFIED) throw await problemOf(response);
    return response;
  }

  /**
   * Resolves when the next attempt is due: at the time that the service has set, otherwise 1 s after a first failure to reach it, 2 s after the second.
   * Rejects with the problem if no retry would help or no attempt is left.
   */
  async function nextAttempt(
    problem: unknown,
    attempt: number,
    call: Call,
    options: AskOptions,
    retryMs?: number,
  ): Promise<void> {
    if (!(problem instanceof StorefrontProblem)) throw problem;
    const { code, retryAfter = code === "unreachable" ? attempt : Infinity } = problem;
    const waitMs = retryMs ?? 1000 * retryAfter;
    if (attempt >= attempts || waitMs > Math.min(longestWaitMs, call.leftMs())) throw problem;
    options.onWait?.(problem, waitMs);
    await waitUntil(now() + waitMs, call.signal).catch(call.throwIfEnded);
    options.onRetry?.();
  }

  async function ask(path: string, init: RequestInit, call: Call, options: AskOptions) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(path, init, call);
      } catch (problem) {
        await nextAttempt(problem, attempt, call, options);
      }
    }
  }

  async function timed<T>(options: AskOptions, run: (call: Call) => Promise<T>): Promise<T> {
    const call = startCall(options.signal, options.timeoutMs ?? timeoutMs);
    try {
      return await run(call);
    } finally {
      call.end();
    }
  }

  function get<T>(path: keyof paths, query: Parameters, options: AskOptions): Promise<T> {
    return timed(options, async (call) => {
      const address = `${path}${searchOf(query)}`;
      const before = memory.find(address);
      call.throwIfEnded();
      if (before && before.freshUntilMs > now()) return shaped<T>(before.text);
      const headers = { ...JSON_ONLY, ...(before && { "If-None-Match": before.etag }) };
      const response = await ask(address, { headers }, call, options);
      const isSame = before && response.status === NOT_MODIFIED;
      const text = isSame ? before.text : await textOf(response, call);
      const body = shaped<T>(text);
      memory.keep(address, response, text, before);
      return body;
    });
  }

  return {
    /** Whether one name can be registered, and for how much. A taken name isn't an error. */
    availability(query: Query<"/v1/availability">, options: AskOptions = {}): Promise<Availability> {
      return get("/v1/availability", query, options);
    },

    /** One label under each requested TLD, the exact name first. Names that couldn't be checked in time are `unknown`. */
    search(query: Query<"/v1/search">, options: AskOptions = {}): Promise<Search> {
      return get("/v1/search", query, options);
    },

    /**
     * Like `search`, but yields each result as soon as it is known, then `done`. Resumes after a lost connection. If the service answers with JSON,
     * all events come at once.
     */
    async *searchStream(
      query: Query<"/v1/search">,
      options: AskOptions = {},
    ): AsyncGenerator<SearchEvent, void, undefined> {
      const position: StreamPosition = { lastEventId: "", retryMs: undefined };
      const call = startCall(options.signal, options.timeoutMs ?? timeoutMs);
      let losses = 0;
      try {
        for (;;) {
          const response = await ask(
            `/v1/search${searchOf(query)}`,
            {
              headers: {
                ...JSON_ONLY,
                ...(canStream() && { Accept: "text/event-stream, application/json;q=0.5" }),
                ...(position.lastEventId !== "" && { "Last-Event-ID": position.lastEventId }),
              },
            },
            call,
            options,
          );
          const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
          if (!isStream || !response.body) {
            const { results, complete } = shaped<Search>(await textOf(response, call));
            for (const result of results) yield { event: "result", result };
            yield { event: "done", complete };
            return;
          }
          try {
            for await (const { event, data } of readEvents(response.body, position, silenceMs)) {
              if (event === "result") {
                losses = 0;
                yield { event, result: shaped<Availability>(data) };
              } else if (event === "done") {
                yield { event, complete: shaped<{ readonly complete: boolean }>(data).complete };
                return;
              }
            }
          } catch (cause) {
            call.throwIfEnded();
            if (cause instanceof StorefrontProblem) throw cause;
          }
          losses += 1;
          await nextAttempt(lost(), losses, call, options, position.retryMs);
        }
      } finally {
        call.end();
      }
    },

    /** The prices of everything sold, or of what the query selects. */
    prices(query: Query<"/v1/prices"> = {}, options: AskOptions = {}): Promise<PriceList> {
      return get("/v1/prices", query, options);
    },

    /** The price of one action for one term. */
    quote(query: Query<"/v1/quotes">, options: AskOptions = {}): Promise<Quote> {
      return get("/v1/quotes", query, options);
    },

    /** Prices 1 to 20 items together and checks again whether names can be registered. It orders nothing, so it is safe to retry. */
    cart(items: readonly CartItem[], options: AskOptions = {}): Promise<Quotes> {
      return timed(options, async (call) => {
        const init = {
          method: "POST",
          headers: { ...JSON_ONLY, "Content-Type": "application/json" },
          body: JSON.stringify({ items }),
        };
        return shaped<Quotes>(await textOf(await ask("/v1/quotes", init, call, options), call));
      });
    },
  };
}

const JSON_ONLY = { Accept: "application/json" } as const;
const NOT_MODIFIED = 304;

/** Whether an answer can be read while it arrives. In React Native it can't, and one that goes on for seconds would arrive at its end. */
function canStream(): boolean {
  return "body" in Response.prototype;
}

/** `?a=b&c=d,e`, without parameters that are undefined. */
function searchOf(query: Parameters): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(String(value))}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

async function textOf(response: Response, { throwIfEnded }: Call): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    throwIfEnded();
    throw lost({ status: response.status, cause });
  }
}

function lost(facts?: ProblemFacts): StorefrontProblem {
  return new StorefrontProblem("unreachable", "The connection was lost.", facts);
}

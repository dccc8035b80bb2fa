/**
 * The storefront service as typed functions: each question is retried when the service says that a retry will help, and whatever goes
 * wrong is a StorefrontProblem. Works wherever `fetch` does, and needs nothing else.
 */
import { type Call, startCall } from "./call.js";
import { readEvents, type StreamPosition } from "./event-stream.js";
import { Memory } from "./memory.js";
import { problemOf, StorefrontProblem } from "./problem.js";
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

/** What a streamed search brings: results in the order in which they become known, then whether they are all. A later one counts. */
export type SearchEvent =
  | { readonly event: "result"; readonly result: Availability }
  | { readonly event: "done"; readonly complete: boolean };

export interface ClientSettings {
  /** Where the service is, such as `https://names.example.af`; a path before `/v1` is kept. Default: where the page came from. */
  readonly baseUrl?: string;
  readonly fetch?: typeof fetch;
  /** How often one question is asked at most. Default: 3. */
  readonly attempts?: number;
  /** A question that the service wants to be asked again later than this is given up at once. Default: 60 s. */
  readonly longestWaitMs?: number;
  /** How long a call may take, with all its attempts and waits. Default: 2 min. */
  readonly timeoutMs?: number;
  /** How long a stream may be silent before it is taken for lost; the service speaks every 15 s. Default: 45 s. */
  readonly silenceMs?: number;
}

export interface AskOptions {
  /** Ends the question, its waits and its stream; the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** In place of the client's own. */
  readonly timeoutMs?: number;
  /** Called before every wait for a retry, so that a page can count down. */
  readonly onWait?: (problem: StorefrontProblem, waitMs: number) => void;
}

export type StorefrontClient = ReturnType<typeof createClient>;

/** Before a reconnect, unless the service has said otherwise. */
const RECONNECT_MS = 1_000;

export function createClient(settings: ClientSettings = {}) {
  const { baseUrl = "", attempts = 3, longestWaitMs = 60_000, silenceMs = 45_000 } = settings;
  const { timeoutMs = 120_000 } = settings;
  const memory = new Memory();
  // Called without an object: a browser's fetch refuses any other.
  const send = settings.fetch ?? ((url: string, init: RequestInit) => fetch(url, init));

  async function once(path: string, init: RequestInit): Promise<Response> {
    let response: Response;
    try {
      response = await send(`${baseUrl.replace(/\/$/, "")}${path}`, init);
    } catch (cause) {
      init.signal?.throwIfAborted();
      throw new StorefrontProblem("unreachable", "The service cannot be reached.", { cause });
    }
    if (!response.ok && response.status !== NOT_MODIFIED) throw await problemOf(response);
    return response;
  }

  /** Asks until there is a success, a problem that no wait will help, or no attempt left. */
  async function ask(path: string, init: RequestInit, call: Call, onWait: AskOptions["onWait"]) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await once(path, { ...init, signal: call.signal });
      } catch (problem) {
        if (!(problem instanceof StorefrontProblem) || problem.retryAfter === undefined) throw problem;
        const waitMs = problem.retryAfter * 1000;
        if (attempt >= attempts || waitMs > Math.min(longestWaitMs, call.leftMs())) throw problem;
        onWait?.(problem, waitMs);
        await wait(waitMs, call.signal);
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
      call.signal.throwIfAborted();
      if (before !== undefined && before.freshUntilMs > Date.now()) return shaped<T>(before.text);
      const headers = { ...JSON_ONLY, ...(before && { "If-None-Match": before.etag }) };
      const response = await ask(address, { headers }, call, options.onWait);
      const isSame = before !== undefined && response.status === NOT_MODIFIED;
      const text = isSame ? before.text : await textOf(response, call);
      const body = shaped<T>(text);
      memory.keep(address, response, text);
      return body;
    });
  }

  return {
    /** Whether one name can be registered, and for how much. A taken name is a success. */
    availability(query: Query<"/v1/availability">, options: AskOptions = {}): Promise<Availability> {
      return get("/v1/availability", query, options);
    },

    /** One label under every TLD asked for, the exact name first; what could not be had in time is `unknown`. */
    search(query: Query<"/v1/search">, options: AskOptions = {}): Promise<Search> {
      return get("/v1/search", query, options);
    },

    /**
     * The same as results become known, ended by `done`. A lost connection is taken up where it broke off. A service that answers with
     * JSON gives the same events at once.
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
                Accept: "text/event-stream, application/json;q=0.5",
                ...(position.lastEventId !== "" && { "Last-Event-ID": position.lastEventId }),
              },
            },
            call,
            options.onWait,
          );
          if (!isEventStream(response) || response.body === null) {
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
            call.signal.throwIfAborted();
            if (cause instanceof StorefrontProblem) throw cause;
          }
          losses += 1;
          const lost = new StorefrontProblem("unreachable", "The event stream broke off.");
          if (losses >= attempts) throw lost;
          const waitMs = Math.min(position.retryMs ?? RECONNECT_MS * losses, longestWaitMs);
          options.onWait?.(lost, waitMs);
          await wait(waitMs, call.signal);
        }
      } finally {
        call.end();
      }
    },

    /** The price of everything sold, or of what the query names. */
    prices(query: Query<"/v1/prices"> = {}, options: AskOptions = {}): Promise<PriceList> {
      return get("/v1/prices", query, options);
    },

    /** The price of one action for one term. */
    quote(query: Query<"/v1/quotes">, options: AskOptions = {}): Promise<Quote> {
      return get("/v1/quotes", query, options);
    },

    /** Prices 1 to 20 items together; what is to be registered is checked again. Orders nothing, so a retry is harmless. */
    cart(items: readonly CartItem[], options: AskOptions = {}): Promise<Quotes> {
      return timed(options, async (call) => {
        const init = {
          method: "POST",
          headers: { ...JSON_ONLY, "Content-Type": "application/json" },
          body: JSON.stringify({ items }),
        };
        return shaped<Quotes>(await textOf(await ask("/v1/quotes", init, call, options.onWait), call));
      });
    },
  };
}

const JSON_ONLY = { Accept: "application/json" } as const;
const NOT_MODIFIED = 304;

/** `?a=b&c=d,e`; what is undefined is left out. */
function searchOf(query: Parameters): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent([value].flat().join(","))}`],
  );
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function isEventStream(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").startsWith("text/event-stream");
}

async function textOf(response: Response, { signal }: Call): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    signal.throwIfAborted();
    throw new StorefrontProblem("unreachable", "The answer broke off.", { status: response.status, cause });
  }
}

/** JSON of the shape that the OpenAPI document promises, to which the service's tests hold every answer. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the caller knows what it asked for
function shaped<T>(text: string): T {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a parser of every shape would be most of the client
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new StorefrontProblem("unreadable", "The answer is not JSON.", { cause });
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done, failed) => {
    const stop = (): void => {
      clearTimeout(timer);
      failed(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      done();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
  });
}

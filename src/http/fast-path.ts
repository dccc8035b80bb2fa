/**
 * Answers three kinds of requests without Express: plain GETs with a known answer or a simple refusal, from prerendered bytes; carts whose prices
 * are all known, unless other replicas can be asked about their names; and all requests of a client over its limit. Express handles the rest.
 * Security checks, headers, limits, log and metrics are the same either way, because they come from the same code.
 */
import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.js";
import { type ErrorCode, ServiceError } from "../errors.js";
import type { ClientLimit } from "./edge/client-limit.js";
import type { Shop } from "../storefront/shop.js";
import { CART_PATH, knownCart } from "./carts.js";
import { type AccessLog, requestId } from "./edge/context.js";
import type { Arrived } from "./edge/arrived.js";
import { addressOf, clientOf } from "./edge/client.js";
import { hasRightHost, type HeadersFor, isForWebsite, SECURITY_HEADERS } from "./edge/headers.js";
import { HEALTH_PATHS } from "./health.js";
import { parseQuery } from "./parse.js";
import { renderProblem } from "./edge/problems.js";
import { isNotModified, type Rendered } from "./edge/rendered.js";
import { handOn, type Question, type QuestionKind, type ReadQuestion } from "./questions.js";

interface FastPathParts {
  readonly questions: ReadonlyMap<string, QuestionKind>;
  readonly shop: () => Shop;
  /** The headers of every answer that pages of the website may read. */
  readonly headersFor: HeadersFor;
  readonly limit: ClientLimit;
  readonly isServing: () => boolean;
  readonly accessLog: AccessLog;
  readonly onProblem: (code: ErrorCode) => void;
  readonly clock: Clock;
}

/** The maximum number of cached URLs with their parsed questions, about 2 MB. When the cache is full, it is cleared. */
const MAX_SPELLINGS = 5_000;
const MAX_SPELLING_LENGTH = 256;
/** Without fragment and white space, such a URL only has to be split at the question mark. */
const PLAIN_URL = /^\/[!-"$-~]*$/;
/** What browsers' fetch, axios and apps send. Express negotiates all other values. */
const PLAIN_ACCEPT = /^(?:\*\/\*|application\/json(?:, ?text\/plain)?(?:, ?\*\/\*)?)$/;
/** What EventSource sends. */
const EVENTS_ACCEPT = "text/event-stream";

interface Spelling {
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  readonly question: Question | null;
}

/** Null unless the URL is plain. */
function spellingOf(url: string): Spelling | null {
  if (!PLAIN_URL.test(url)) return null;
  const queryAt = url.indexOf("?");
  if (queryAt === -1) return { path: url, query: "", question: null };
  return { path: url.slice(0, queryAt), query: url.slice(queryAt + 1), question: null };
}

/** Returns a function that answers a request and returns true, or returns false and leaves it untouched. */
export function fastPath(parts: FastPathParts): (request: Arrived, response: ServerResponse) => boolean {
  const { limit, clock } = parts;
  const atEndOfTurn = together();
  /** By URL; only those whose question had a known answer. */
  const spellings = new Map<string, Spelling>();

  /** The known answer, or undefined if it must be looked up. Throws the refusal, if any. */
  function known(
    request: Arrived,
    spelling: Spelling,
    read: ReadQuestion,
    address: string,
  ): Rendered | undefined {
    const familiar = spelling.question?.shop === parts.shop() ? spelling.question : null;
    const question = familiar ?? read(parseQuery(spelling.query));
    const asEvents = request.headers.accept === EVENTS_ACCEPT;
    const answer = asEvents ? question.events?.known(lastEventIdOf(request)) : question.known();
    if (answer !== undefined) {
      if (familiar === null) remember(request, { ...spelling, question });
      return answer;
    }
    const refusal = asEvents ? null : question.refusal?.(address);
    if (refusal) throw refusal;
    handOn(request, question);
    return undefined;
  }

  function remember({ url = "" }: Arrived, spelling: Spelling): void {
    if (url.length > MAX_SPELLING_LENGTH) return;
    if (spellings.size >= MAX_SPELLINGS) spellings.clear();
    spellings.set(url, spelling);
  }

  return (request, response) => {
    const { method = "", url = "" } = request;
    if (!parts.isServing()) return false;
    const spelling = spellings.get(url) ?? spellingOf(url);
    if (spelling === null) return false;
    const { path, query } = spelling;
    const kind = parts.questions.get(path);
    const isCart = method === "POST" && path === CART_PATH && query === "";
    if (method === "OPTIONS" || HEALTH_PATHS.has(path)) return false;

    const startedAtMs = clock.monotonic();
    const address = addressOf(request);
    const window = limit.windowOf(clientOf(address));
    let answer: Rendered | undefined;
    let sendable: Promise<void> | null = null;
    let refusal: ServiceError | null = null;
    // A client that has used up its limit gets this refusal before any other.
    if (!limit.isSpent(window)) {
      if (limit.mustAsk(window)) return false;
      try {
        if (kind !== undefined && method === "GET" && isPlain(request, kind.hasEvents)) {
          answer = known(request, spelling, kind.read, address);
        } else if (isCart && isPlain(request, false)) {
          const cart = knownCart(request, parts.shop());
          answer = cart?.answer;
          sendable = cart?.shared ?? null;
        }
      } catch (error) {
        if (!(error instanceof ServiceError)) return false;
        refusal = error;
      }
      if (answer === undefined && refusal === null) return false;
    }
    const id = requestId(request);
    refusal = limit.take(window) ?? refusal;
    if (refusal !== null) {
      parts.onProblem(refusal.code);
      answer = renderProblem(refusal, id);
    }
    if (answer === undefined) return false;

    const { body, isShared } = answer;
    const isSame = isNotModified(request.headers["if-none-match"], answer);
    const status = isSame ? 304 : answer.status;
    const perClient = isShared ? [] : ["x-request-id", id];
    const headers = perClient.concat(
      isForWebsite(path) ? parts.headersFor(request.headers.origin) : SECURITY_HEADERS,
      isShared ? [] : limit.fields(window),
      answer.headers,
      isSame ? [] : answer.entityHeaders,
    );
    const code = refusal?.code ?? null;
    const route = kind !== undefined || (isCart && refusal === null) ? path : "none";
    response.writeHead(status, headers);
    function end(): void {
      if (!isSame && method !== "HEAD") writeOnce(response, body);
      response.end();
      onceSettled(response, (isSent) => {
        parts.accessLog({ id, startedAtMs, route, code, method }, isSent ? status : 499);
      });
    }
    if (sendable === null) atEndOfTurn(end);
    else
      void sendable.then(() => {
        atEndOfTurn(end);
      });
    return true;
  };
}

/**
 * Runs all functions that it gets within a turn of the event loop together, at its end. Written one by one, each answer would wake its reader on
 * another core, which costs as much as the answer.
 */
function together(): (act: () => void) => void {
  let acts: (() => void)[] = [];
  function doAll(): void {
    const due = acts;
    acts = [];
    for (const act of due) act();
  }
  return (act) => {
    if (acts.push(act) === 1) setImmediate(doAll);
  };
}

/** Writes the headers and the body as one part. From `end`, Node writes a list of two, the second empty, and a hit takes 6 to 10 % longer on Node 20 and 22. */
function writeOnce(response: ServerResponse, body: Rendered["body"]): void {
  response.cork();
  response.write(body, "latin1");
  response.uncork();
}

/** Reports whether an ended answer reached the socket: usually known immediately, without the cost of a listener. */
function onceSettled(response: ServerResponse, settled: (isSent: boolean) => void): void {
  if (response.destroyed) settled(false);
  else if (response.writableFinished) settled(true);
  else
    response.once("close", () => {
      settled(response.writableFinished);
    });
}

function lastEventIdOf({ headers }: Arrived): string {
  const id = headers["last-event-id"];
  return typeof id === "string" ? id : "";
}

function isPlain(request: Arrived, hasEvents: boolean): boolean {
  const { accept, expect } = request.headers;
  const isAccepted =
    accept === undefined || (accept === EVENTS_ACCEPT ? hasEvents : PLAIN_ACCEPT.test(accept));
  return isAccepted && expect === undefined && hasRightHost(request);
}

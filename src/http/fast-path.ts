/**
 * A plain GET whose answer is known, or is a plain refusal, is answered in front of Express with ready bytes, and so is every request of a
 * client that has used up its minute; everything else is left to Express. Protections, headers, limit, log and metrics are those of the other
 * way, from the same sources.
 */
import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.js";
import { type ErrorCode, ServiceError } from "../errors.js";
import type { ClientLimit } from "./client-limit.js";
import type { Shop } from "../storefront/shop.js";
import { type AccessLog, requestId } from "./context.js";
import type { Arrived } from "./edge/arrived.js";
import { addressOf, clientOf } from "./edge/client.js";
import { hasRightHost, type HeadersFor, isForWebsite, SECURITY_HEADERS } from "./edge/headers.js";
import { parseQuery } from "./parse.js";
import { renderProblem } from "./problems.js";
import { isNotModified, type Rendered } from "./rendered.js";
import { handOn, type Question, type QuestionKind, type ReadQuestion } from "./questions.js";

export interface FastPathParts {
  readonly questions: ReadonlyMap<string, QuestionKind>;
  readonly shop: () => Shop;
  /** What stands on every answer that pages of the website may read. */
  readonly headersFor: HeadersFor;
  /** Paths that no limit applies to. */
  readonly unlimited: ReadonlySet<string>;
  readonly limit: ClientLimit;
  readonly isServing: () => boolean;
  readonly accessLog: AccessLog;
  readonly onProblem: (code: ErrorCode) => void;
  readonly clock: Clock;
}

/** The number of addresses kept with their questions, about 2 MB. When full they are cleared, and parsed again on next use. */
const MOST_SPELLINGS = 5_000;
const LONGEST_SPELLING = 256;
/** No fragment, no white space: what is left needs no more than a split at the question mark. */
const PLAIN_URL = /^\/[!-"$-~]*$/;
/** What browsers' fetch, axios and apps send; Express weighs the others. */
const PLAIN_ACCEPT = /^(?:\*\/\*|application\/json(?:, ?text\/plain)?(?:, ?\*\/\*)?)$/;

interface Spelling {
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  readonly question: Question | null;
}

/** Null unless the address is plain. */
function spellingOf(url: string): Spelling | null {
  if (!PLAIN_URL.test(url)) return null;
  const queryAt = url.indexOf("?");
  if (queryAt === -1) return { path: url, query: "", question: null };
  return { path: url.slice(0, queryAt), query: url.slice(queryAt + 1), question: null };
}

/** Whether the request has been answered; false leaves it untouched. */
export function fastPath(parts: FastPathParts): (request: Arrived, response: ServerResponse) => boolean {
  const { limit, clock } = parts;
  const atEndOfTurn = together();
  /** Those whose questions had an answer. */
  const spellings = new Map<string, Spelling>();

  /** The answer, or undefined where it has to be looked up; throws a refusal. */
  function known(
    request: Arrived,
    spelling: Spelling,
    read: ReadQuestion,
    address: string,
  ): Rendered | undefined {
    const familiar = spelling.question?.shop === parts.shop() ? spelling.question : null;
    const question = familiar ?? read(parseQuery(spelling.query));
    const answer = question.known();
    if (answer !== undefined) {
      if (familiar === null) remember(request, { ...spelling, question });
      return answer;
    }
    const refusal = question.refusal?.(address);
    if (refusal) throw refusal;
    handOn(request, question);
    return undefined;
  }

  function remember({ url = "" }: Arrived, spelling: Spelling): void {
    if (url.length > LONGEST_SPELLING) return;
    if (spellings.size >= MOST_SPELLINGS) spellings.clear();
    spellings.set(url, spelling);
  }

  return (request, response) => {
    const { method = "", url = "" } = request;
    if (!parts.isServing()) return false;
    const spelling = spellings.get(url) ?? spellingOf(url);
    if (spelling === null) return false;
    const { path } = spelling;
    const kind = parts.questions.get(path);
    if (method === "OPTIONS" || (kind === undefined && parts.unlimited.has(path))) return false;

    const startedAtMs = clock.monotonic();
    const address = addressOf(request);
    const window = limit.windowOf(clientOf(address));
    let answer: Rendered | undefined;
    let refusal: ServiceError | null = null;
    // A spent client gets this refusal before any other.
    if (!limit.isSpent(window)) {
      if (kind === undefined || method !== "GET" || !isPlain(request) || limit.mustAsk(window)) return false;
      try {
        answer = known(request, spelling, kind.read, address);
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

    const isSame = isNotModified(request.headers["if-none-match"], answer);
    const status = isSame ? 304 : answer.status;
    const perClient = answer.isShared ? [] : ["x-request-id", id];
    const headers = perClient.concat(
      kind === undefined && !isForWebsite(path) ? SECURITY_HEADERS : parts.headersFor(request.headers.origin),
      answer.isShared ? [] : limit.fields(window),
      answer.headers,
      isSame ? [] : answer.entityHeaders,
    );
    const { body } = answer;
    const code = refusal?.code ?? null;
    const route = kind === undefined ? "none" : path;
    response.writeHead(status, headers);
    atEndOfTurn(() => {
      response.end(isSame || method === "HEAD" ? undefined : body, "latin1");
      onceSettled(response, (isSent) => {
        parts.accessLog({ id, startedAtMs, route, code, method }, isSent ? status : 499);
      });
    });
    return true;
  };
}

/**
 * Has all that is given within a turn of the event loop done at its end. Written one by one, each answer would wake its reader on another
 * core, which costs as much as the answer.
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

/** Reports whether an ended answer reached the socket: usually known immediately, without the cost of a listener. */
function onceSettled(response: ServerResponse, settled: (isSent: boolean) => void): void {
  if (response.destroyed) settled(false);
  else if (response.writableFinished) settled(true);
  else
    response.once("close", () => {
      settled(response.writableFinished);
    });
}

function isPlain(request: Arrived): boolean {
  const { accept, expect } = request.headers;
  return (accept === undefined || PLAIN_ACCEPT.test(accept)) && expect === undefined && hasRightHost(request);
}

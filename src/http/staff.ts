/** The staff routes, by token scope. No other route shows wholesale amounts. */
import type { IRouter, Request, RequestHandler } from "express";
import { AF_TLDS, parseDomainName } from "../domain-name.js";
import type { Engine } from "../engine.js";
import { challenge, type ErrorCode, ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import { audited } from "./audit.js";
import type { Callers } from "./callers.js";
import { type AskFor, contextOf } from "./edge/context.js";
import { ACT_COLUMNS, CART_COLUMNS, DOMAIN_COLUMNS, PRICE_COLUMNS } from "../wire/csv.js";
import { sendList } from "./csv.js";
import { send, sendJson } from "./edge/answers.js";
import { hostInPath, readBody, readQuery } from "./parse.js";
import { presentDomain } from "./presenters.js";
import {
  presentAudit,
  presentBalance,
  presentCart,
  presentPromise,
  presentStaffPrices,
  presentSums,
  presentTier,
  presentUnreadable,
} from "../staff/presenters.js";
import { CALENDAR, CALENDAR_PATH, calendarOf } from "../staff/calendar.js";
import { presentPreview } from "../staff/price-preview.js";
import type { AnswerOf } from "../wire/answer.js";
import { calendarQuery, noQuery, promisesQuery } from "../wire/queries.js";
import { presentOrigin } from "../wire/parts.js";
import type { Scope } from "../wire/scopes.js";
import {
  cartNoteRequestShape,
  type followedCartsShape,
  type purgedShape,
  purgeRequestShape,
  type staffDomainShape,
  type staffDomainsShape,
} from "../wire/staff.js";
import type { Monitoring } from "../staff/monitoring.js";
import { answersCalendar, answersJson, answersJsonOrCsv, endedByHead, route, yamlBody } from "./routes.js";

interface StaffParts
  extends
    Pick<Engine, "account" | "policies" | "prices" | "carts" | "audit" | "purge">,
    Pick<Monitoring, "overview" | "history"> {
  readonly callers: Callers;
  readonly metrics: Metrics;
  readonly ask: AskFor;
  readonly now: () => number;
}

/** The format of a promise's id; anything else isn't copied into the audit log. */
const PROMISE_ID = /^[\w-]{1,64}$/;

/** Requires a staff token with the scope. */
function requireScope({ callers, audit }: StaffParts, scope: Scope): RequestHandler {
  return async (request, response, next) => {
    const refused = (who: string | null, outcome: ErrorCode): void => {
      audit.note({ who, what: "token", subject: contextOf(request).route, outcome });
    };
    response.set("Cache-Control", "no-store");
    const caller = await callers.of(request);
    if (caller.kind === "blocked") throw caller.refusal;
    if (caller.kind !== "staff") {
      if (caller.kind === "wrong") await callers.noteWrong(request, response, "staff");
      refused(null, "unauthenticated");
      const detail = "This endpoint requires a staff token: Authorization: Bearer ….";
      throw challenge("unauthenticated", detail, 'realm="staff"');
    }
    const { name, scopes } = caller.token;
    if (!scopes.includes(scope)) {
      callers.noteMissingScope(request, name, scope);
      refused(name, "forbidden");
      const parameters = `realm="staff", error="insufficient_scope", scope="${scope}"`;
      throw challenge("forbidden", `The token lacks the ${scope} scope.`, parameters);
    }
    contextOf(request).tokenName = name;
    next();
  };
}

const noParameters: RequestHandler = (request, _response, next) => {
  readQuery(request.query, noQuery);
  next();
};

/** The `jti` in the path, which the audit log names. */
function promiseId(request: Request): string {
  const { id } = request.params;
  if (typeof id !== "string" || !PROMISE_ID.test(id)) throw noSuchPromise();
  contextOf(request).subject = id;
  return id;
}

function noSuchPromise(): ServiceError {
  return new ServiceError("not_found", "No such promise exists, or it has expired.");
}

/** One handler for POST, another for all else. */
function ofPost(post: RequestHandler, other: RequestHandler): RequestHandler {
  return (request, response, next) => (request.method === "POST" ? post : other)(request, response, next);
}

export function addStaffRoutes(router: IRouter, parts: StaffParts): void {
  const { account, policies, prices, carts, metrics, audit, ask, now } = parts;
  const reader = requireScope(parts, "read");
  const read = [reader, answersJson, noParameters];
  const list = [reader, answersJsonOrCsv, noParameters];
  const operate = [requireScope(parts, "operate"), answersJson];

  route(router, "/v1/staff/domains", {
    before: list,
    GET: async (request, response) => {
      if (endedByHead(request, response)) return;
      const known = await account.domains(ask(request, "account"));
      const { records, unreadable } = known.value;
      const domains = records.map(presentDomain);
      const ofAll = { ...(known.truncated && { truncated: true as const }), ...presentOrigin(known) };
      const body: AnswerOf<typeof staffDomainsShape> = {
        domains,
        ...(unreadable.length > 0 && { unreadable: unreadable.map(presentUnreadable) }),
        ...ofAll,
      };
      // CSV has no place for what holds for the whole list, so every row says it.
      const rows = domains.map((domain) => ({ ...domain, ...ofAll }));
      sendList(request, response, body, { name: "domains", columns: DOMAIN_COLUMNS, rows });
    },
  });

  route(router, CALENDAR_PATH, {
    before: [reader, answersCalendar],
    GET: async (request, response) => {
      readQuery(request.query, calendarQuery);
      if (endedByHead(request, response, CALENDAR)) return;
      const body = Buffer.from(calendarOf(await account.domains(ask(request, "account"))));
      send(response, { body, type: CALENDAR, cacheControl: "no-store", tagged: true });
    },
  });

  route(router, "/v1/staff/domains/:domain", {
    before: read,
    GET: async (request, response) => {
      const name = parseDomainName(hostInPath(request), AF_TLDS, "domain");
      if (endedByHead(request, response)) return;
      const known = await account.domain(ask(request, "account"), name);
      if (known.value === null)
        throw new ServiceError("not_found", "The reseller doesn't manage this domain.");
      const body: AnswerOf<typeof staffDomainShape> = {
        ...presentDomain(known.value),
        ...presentOrigin(known),
      };
      sendJson(response, body);
    },
  });

  route(router, "/v1/staff/balance", {
    before: read,
    GET: async (request, response) => {
      if (endedByHead(request, response)) return;
      sendJson(response, presentBalance(await account.balance(ask(request, "account"))));
    },
  });

  route(router, "/v1/staff/tier", {
    before: read,
    GET: async (request, response) => {
      if (endedByHead(request, response)) return;
      sendJson(response, presentTier(await account.tier(ask(request, "account"))));
    },
  });

  route(router, "/v1/staff/prices", {
    before: list,
    GET: (request, response) => {
      const body = presentStaffPrices(prices, policies.current(), policies.state(), now());
      sendList(request, response, body, { name: "prices", columns: PRICE_COLUMNS, rows: body.prices });
    },
  });

  route(router, "/v1/staff/prices/preview", {
    before: [...operate, audited(audit, "preview")],
    body: yamlBody,
    POST: (request, response) => {
      readQuery(request.query, noQuery);
      const text = typeof request.body === "string" ? request.body : "";
      const preview = presentPreview(text, { policies, prices, nowMs: now() });
      const changes = preview.prices.filter(({ change }) => change !== "same").length;
      contextOf(request).subject =
        preview.faults.length > 0 ? `${preview.faults.length} faults` : `${changes} changes`;
      response.json(preview);
    },
  });

  route(router, "/v1/staff/promises", {
    before: [reader, answersJsonOrCsv],
    GET: (request, response) => {
      const { state, since, limit = 100 } = readQuery(request.query, promisesQuery);
      const all = carts.all();
      const sinceMs = since === undefined ? -Infinity : Date.parse(since);
      const chosen = all.flatMap((cart) => {
        const lines = cart.lines.filter(
          (line) => state === undefined || line.state === state || cart.checkout?.state === state,
        );
        return cart.issuedAtMs >= sinceMs && lines.length > 0 ? [{ ...cart, lines }] : [];
      });
      const facts = prices.all();
      const promises = chosen
        .slice(0, limit)
        .map((cart) => presentCart(cart, facts, policies.current(), now()));
      const body: AnswerOf<typeof followedCartsShape> = { promises, sums: presentSums(all, now()) };
      const rows = promises.flatMap(({ items, ...cart }) => items.map((item) => ({ ...cart, ...item })));
      sendList(request, response, body, { name: "promises", columns: CART_COLUMNS, rows });
    },
  });

  route(router, "/v1/staff/promises/:id", {
    before: [
      ofPost(requireScope(parts, "order"), reader),
      answersJson,
      ofPost(audited(audit, "order"), audited(audit, "promise")),
      noParameters,
    ],
    GET: (request, response) => {
      const promise = carts.find(promiseId(request));
      if (promise === null) throw noSuchPromise();
      sendJson(response, presentPromise(promise, prices.all(), policies.current(), now()));
    },
    POST: async (request, response) => {
      const id = promiseId(request);
      const { state, reference = null } = readBody(request.body, cartNoteRequestShape);
      contextOf(request).subject = [id, state, reference ?? []].flat().join(" ");
      const cart = await carts.note(id, state, reference);
      if (cart === null) throw noSuchPromise();
      response.json(presentCart(cart, prices.all(), policies.current(), now()));
    },
  });

  route(router, "/v1/staff/overview", {
    before: read,
    GET: (_request, response) => {
      sendJson(response, parts.overview());
    },
  });

  route(router, "/v1/staff/history", {
    before: read,
    GET: async (_request, response) => {
      sendJson(response, await parts.history());
    },
  });

  route(router, "/v1/staff/cache/purge", {
    before: [...operate, audited(audit, "purge")],
    POST: async (request, response) => {
      readQuery(request.query, noQuery);
      const { what } = readBody(request.body, purgeRequestShape);
      contextOf(request).subject = what;
      const body: AnswerOf<typeof purgedShape> = { purged: parts.purge(what) };
      response.json(body);
    },
  });

  route(router, "/v1/staff/audit", {
    before: list,
    GET: async (request, response) => {
      if (endedByHead(request, response)) return;
      const body = presentAudit(await audit.last());
      sendList(request, response, body, { name: "audit", columns: ACT_COLUMNS, rows: body.acts });
    },
  });

  route(router, "/metrics", {
    before: [requireScope(parts, "metrics")],
    GET: async (_request, response) => {
      response.type(metrics.contentType).send(await metrics.text());
    },
  });
}

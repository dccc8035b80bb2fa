/** The staff routes, by token scope. No other route shows wholesale amounts. */
import type { IRouter, Request, RequestHandler } from "express";
import { AF_TLDS, parseDomainName } from "../domain-name.js";
import type { Engine } from "../engine.js";
import { ServiceError } from "../errors.js";
import type { Metrics } from "../metrics.js";
import type { Ask } from "../quota/quota.js";
import { CALENDAR, CALENDAR_PATH, calendarOf } from "../staff/calendar.js";
import type { Monitoring } from "../staff/monitoring.js";
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
import { presentPreview } from "../staff/price-preview.js";
import type { AnswerOf } from "../wire/answer.js";
import { ACT_COLUMNS, CART_COLUMNS, DOMAIN_COLUMNS, PRICE_COLUMNS } from "../wire/csv.js";
import { presentOrigin } from "../wire/parts.js";
import { calendarQuery, noQuery, promisesQuery } from "../wire/queries.js";
import {
  cartNoteRequestShape,
  type followedCartsShape,
  type purgedShape,
  purgeRequestShape,
  type staffDomainShape,
  type staffDomainsShape,
} from "../wire/staff.js";
import type { Callers } from "./callers.js";
import { send, sendJson, sendList } from "./edge/answers.js";
import { type AskFor, contextOf } from "./edge/context.js";
import { hostInPath, readBody, readQuery } from "./parse.js";
import { presentDomain } from "./presenters.js";
import { answersCalendar, answersJson, answersJsonOrCsv, endedByHead, route, yamlBody } from "./routes.js";
import { audited, requireScope } from "./staff-access.js";

interface StaffParts
  extends
    Pick<Engine, "account" | "policies" | "prices" | "carts" | "audit" | "purge">,
    Pick<Monitoring, "overview" | "history"> {
  readonly callers: Callers;
  readonly metrics: Metrics;
  readonly ask: AskFor;
  readonly now: () => number;
}

export function addStaffRoutes(router: IRouter, parts: StaffParts): void {
  addAccountRoutes(router, parts);
  addPriceRoutes(router, parts);
  addCartRoutes(router, parts);
  addServiceRoutes(router, parts);
}

const noParameters: RequestHandler = (request, _response, next) => {
  readQuery(request.query, noQuery);
  next();
};

/** What runs before the handler of each kind of route. */
function guardsOf({ callers, audit }: StaffParts) {
  const reader = requireScope(callers, audit, "read");
  return {
    reader,
    read: [reader, answersJson, noParameters],
    list: [reader, answersJsonOrCsv, noParameters],
    operate: [requireScope(callers, audit, "operate"), answersJson],
  };
}

function addAccountRoutes(router: IRouter, parts: StaffParts): void {
  const { account, ask } = parts;
  const { reader, read, list } = guardsOf(parts);

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

  function addFact(path: string, load: (ask: Ask) => Promise<object>): void {
    route(router, path, {
      before: read,
      GET: async (request, response) => {
        if (!endedByHead(request, response)) sendJson(response, await load(ask(request, "account")));
      },
    });
  }
  addFact("/v1/staff/balance", async (asked) => presentBalance(await account.balance(asked)));
  addFact("/v1/staff/tier", async (asked) => presentTier(await account.tier(asked)));
}

function addPriceRoutes(router: IRouter, parts: StaffParts): void {
  const { policies, prices, audit, now } = parts;
  const { list, operate } = guardsOf(parts);

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
}

function addCartRoutes(router: IRouter, parts: StaffParts): void {
  const { policies, prices, carts, callers, audit, now } = parts;
  const { reader } = guardsOf(parts);

  route(router, "/v1/staff/promises", {
    before: [reader, answersJsonOrCsv],
    GET: (request, response) => {
      const { state, since, limit = 100 } = readQuery(request.query, promisesQuery);
      const all = carts.all();
      const sinceAt = since === undefined ? -Infinity : Date.parse(since);
      const chosen = all.flatMap((cart) => {
        const lines = cart.lines.filter(
          (line) => state === undefined || line.state === state || cart.checkout?.state === state,
        );
        return cart.issuedAtMs >= sinceAt && lines.length > 0 ? [{ ...cart, lines }] : [];
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
      ofPost(requireScope(callers, audit, "order"), reader),
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
}

/** One handler for POST, another for all else. */
function ofPost(post: RequestHandler, other: RequestHandler): RequestHandler {
  return (request, response, next) => (request.method === "POST" ? post : other)(request, response, next);
}

/** The format of a promise's id; anything else isn't copied into the audit log. */
const PROMISE_ID = /^[\w-]{1,64}$/;

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

function addServiceRoutes(router: IRouter, parts: StaffParts): void {
  const { callers, audit, metrics } = parts;
  const { read, list, operate } = guardsOf(parts);

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
    before: [requireScope(callers, audit, "metrics")],
    GET: async (_request, response) => {
      response.type(metrics.contentType).send(await metrics.text());
    },
  });
}

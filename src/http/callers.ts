/** Who makes a request: a member of staff or a customer with a token, or a client known only by its address. Wrong tokens are logged and limited. */
import type { Request, Response } from "express";
import type { CustomerTokens, OwnNames } from "../customers/customer-tokens.js";
import { CALENDAR_PATH } from "../staff/calendar.js";
import type { StaffToken, StaffTokens } from "../staff/staff-tokens.js";
import type { ServiceError } from "../errors.js";
import type { Log } from "../logger.js";
import { calendarQuery } from "../wire/queries.js";
import { markOf } from "./edge/client.js";
import { contextOf } from "./edge/context.js";
import { createLimit, WRONG_PER_MINUTE } from "./edge/limits.js";

export type Caller =
  | { readonly kind: "anyone" | "wrong" | "expired" }
  /** This client has sent too many wrong tokens, so its tokens aren't read for now. */
  | { readonly kind: "blocked"; readonly refusal: ServiceError }
  | { readonly kind: "staff"; readonly token: StaffToken }
  | ({ readonly kind: "customer" } & OwnNames);

export interface Callers {
  /** Reads the token of a staff or customer route, once per request. Rejects if the keys of customers' tokens can't be fetched. */
  of(request: Request): Promise<Caller>;
  /** Whom the request counts against. */
  keyOf(request: Request): Promise<string>;
  /** Counts and logs a wrong token; rejects with `rate_limited` if the client has sent too many. */
  noteWrong(request: Request, response: Response, kind: "staff" | "customer"): Promise<void>;
  /** Logs that a valid token lacks a scope. */
  noteMissingScope(request: Request, name: string, scope: string): void;
}

interface CallerSettings {
  readonly staff: StaffTokens;
  /** Null: there are no customer routes. */
  readonly customers: CustomerTokens | null;
  readonly log: Log;
}

const STAFF_PATH = /^\/(?:v1\/staff\/|metrics$)/;
const CUSTOMER_PATH = /^\/v1\/me\//;
const STAFF_TOKEN = /^Bearer +([\x21-\x7e]{1,512})$/i;
const CUSTOMER_TOKEN = /^Bearer +([\w-]+\.[\w-]+\.[\w-]+)$/i;

export function createCallers({ staff, customers, log }: CallerSettings): Callers {
  const known = new WeakMap<Request, Promise<Caller>>();
  const clientOf = (request: Request): string => contextOf(request).client;
  const wrongTokens = createLimit({
    perMinute: WRONG_PER_MINUTE,
    keyOf: clientOf,
    detail: "Too many wrong tokens from this client within a minute.",
    isShown: false,
  });

  async function read(request: Request): Promise<Caller> {
    const { path, headers } = request;
    const isCustomer = CUSTOMER_PATH.test(path) && customers !== null;
    if (!isCustomer && !STAFF_PATH.test(path)) return { kind: "anyone" };
    const [, token] = (isCustomer ? CUSTOMER_TOKEN : STAFF_TOKEN).exec(headers.authorization ?? "") ?? [];
    const link = path === CALENDAR_PATH ? calendarQuery.safeParse(request.query).data : undefined;
    if (token === undefined && link?.signature === undefined) return { kind: "anyone" };
    const refusal = await wrongTokens.refusal(clientOf(request));
    if (refusal !== null) return { kind: "blocked", refusal };
    if (token === undefined) {
      const signer = staff.signer(link?.name ?? "", link?.signature ?? "", path);
      return signer === null ? { kind: "wrong" } : { kind: "staff", token: signer };
    }
    if (isCustomer) {
      const owner = await customers.ownerOf(token, contextOf(request).signal);
      return typeof owner === "string" ? { kind: owner } : { kind: "customer", ...owner };
    }
    const found = staff.find(token);
    return found === null ? { kind: "wrong" } : { kind: "staff", token: found };
  }

  function of(request: Request): Promise<Caller> {
    const caller = known.get(request) ?? read(request);
    known.set(request, caller);
    return caller;
  }

  function logFieldsOf(request: Request) {
    const { id, client, route } = contextOf(request);
    return { requestId: id, route, client: markOf(client) };
  }

  return {
    of,
    async keyOf(request) {
      // The route answers if the token can't be read.
      const caller = await of(request).catch(() => null);
      if (caller?.kind === "staff") return `staff ${caller.token.name}`;
      if (caller?.kind === "customer" && caller.subject !== null) return `customer ${caller.subject}`;
      return clientOf(request);
    },
    async noteWrong(request, response, kind) {
      await new Promise<void>((counted, refused) => {
        void wrongTokens.count(request, response, (error?: unknown) => {
          if (error === undefined) counted();
          else refused(error);
        });
      });
      log.warn("auth.token.wrong", { kind, ...logFieldsOf(request) });
    },
    noteMissingScope(request, name, scope) {
      log.warn("auth.scope.missing", { token: name, scope, ...logFieldsOf(request) });
    },
  };
}

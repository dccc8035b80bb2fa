/** The requests of the page, each with the token, and the words for what goes wrong. */
import { asProblem, problemOf, shaped, StorefrontProblem } from "../../client/src/problem.js";
import type { StaffComponents } from "../../client/src/staff.js";

type Schemas = StaffComponents["schemas"];
export type Overview = Schemas["Overview"];
export type Tier = Schemas["Tier"];
export type Balance = Schemas["Balance"];
export type Domains = Schemas["StaffDomains"];
export type DomainRecord = Domains["domains"][number];
export type Prices = Schemas["StaffPrices"];
export type Price = Prices["prices"][number];
export type Carts = Schemas["FollowedCarts"];
export type Purge = Schemas["PurgeRequest"]["what"];
export type History = Schemas["History"];
export type Preview = Schemas["PricePreview"];
export type Audit = Schemas["Audit"];
type Purged = Schemas["Purged"];

/**
 * What went wrong, in words for staff; `otherwise` if that isn't known. `retryAfter`: seconds after which a retry makes sense, null if unknown.
 * `isServiceDown`: no request can be answered, not only this one.
 */
export function staffProblem(error: unknown, otherwise = "Something went wrong.") {
  const { code, status, retryAfter = null } = asProblem(error);
  if (code === "shutting_down")
    return { status, message: "The service is shutting down.", retryAfter, isServiceDown: true };
  if (status > 0) {
    const message = WORDS[status] ?? "The service couldn't answer.";
    return { status, message, retryAfter, isServiceDown: false };
  }
  const isServiceDown = code === "unreachable";
  const message = isServiceDown ? "The service can't be reached." : otherwise;
  return { status, message, retryAfter, isServiceDown };
}

export type StaffApi = ReturnType<typeof staffApi>;

interface Sent {
  readonly type: string;
  readonly text: string;
}

export function staffApi(token: string) {
  async function send(path: string, signal: AbortSignal, accept: string, sent?: Sent): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(path, {
        method: sent === undefined ? "GET" : "POST",
        headers: {
          Accept: accept,
          Authorization: `Bearer ${token}`,
          ...(sent && { "Content-Type": sent.type }),
        },
        ...(sent && { body: sent.text }),
        signal,
      });
    } catch (cause) {
      signal.throwIfAborted();
      throw new StorefrontProblem("unreachable", "", { retryAfter: 5, cause });
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }
  async function ask<T>(path: string, signal: AbortSignal, sent?: Sent): Promise<T> {
    const response = await send(path, signal, "application/json", sent);
    return shaped(await response.text());
  }

  const get =
    <T>(path: string) =>
    (signal: AbortSignal): Promise<T> =>
      ask(path, signal);

  return {
    overview: get<Overview>("/v1/staff/overview"),
    tier: get<Tier>("/v1/staff/tier"),
    balance: get<Balance>("/v1/staff/balance"),
    domains: get<Domains>("/v1/staff/domains"),
    prices: get<Prices>("/v1/staff/prices"),
    carts: get<Carts>("/v1/staff/promises?limit=1000"),
    history: get<History>("/v1/staff/history"),
    audit: get<Audit>("/v1/staff/audit"),
    purge: (what: Purge, signal: AbortSignal): Promise<Purged> =>
      ask("/v1/staff/cache/purge", signal, { type: "application/json", text: JSON.stringify({ what }) }),
    /** The changes that this text would make as `retail.yaml`. */
    preview: (text: string, signal: AbortSignal): Promise<Preview> =>
      ask("/v1/staff/prices/preview", signal, { type: "application/yaml", text }),
    csv: async (list: "domains" | "promises" | "prices" | "audit", signal: AbortSignal): Promise<Blob> =>
      (await send(`/v1/staff/${list}${list === "promises" ? "?limit=1000" : ""}`, signal, "text/csv")).blob(),
  };
}

const WORDS: Readonly<Record<number, string>> = {
  401: "The service doesn't accept this token.",
  403: "This token doesn't have the required scope.",
  413: "The file is larger than 64 kB.",
  429: "Too many requests from this address.",
  502: "The registry isn't answering correctly at the moment.",
  503: "The registry can't be asked right now.",
  504: "The registry is very slow at the moment.",
};

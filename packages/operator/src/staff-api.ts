/** The requests of the page, each with the token. Every failure is a StaffProblem with a message for staff. */
import { shaped } from "../../client/src/problem.js";
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

export class StaffProblem extends Error {
  override readonly name = "StaffProblem";
  /** The HTTP status; 0 without an answer. */
  readonly status: number;
  /** Seconds after which a retry makes sense, if the service says so. */
  readonly retryAfter: number | null;
  /** Whether no request can be answered, not only this one. */
  readonly isServiceDown: boolean;

  constructor(message: string, status: number, retryAfter: number | null = null, isServiceDown = false) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.isServiceDown = isServiceDown;
  }
}

/** Any error as a StaffProblem. */
export function staffProblem(error: unknown, otherwise = "Something went wrong."): StaffProblem {
  return error instanceof StaffProblem ? error : new StaffProblem(otherwise, 0);
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
    } catch (error) {
      signal.throwIfAborted();
      throw new StaffProblem("The service can't be reached.", 0, error instanceof TypeError ? 5 : null, true);
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

async function problemOf(response: Response): Promise<StaffProblem> {
  const { status, headers } = response;
  const body: unknown = await response.json().catch(() => null);
  const isStopping =
    typeof body === "object" && body !== null && "code" in body && body.code === "shutting_down";
  const words = isStopping
    ? "The service is shutting down."
    : (WORDS[status] ?? "The service couldn't answer.");
  const seconds = headers.get("retry-after") ?? "";
  const retryAfter = /^\d{1,6}$/.test(seconds) ? Number(seconds) : null;
  return new StaffProblem(words, status, retryAfter, isStopping);
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

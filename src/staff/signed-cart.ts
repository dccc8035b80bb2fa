/**
 * A signed cart, kept for 30 days, and what became of its lines. States follow from evidence alone: records of the account and checks, each asked
 * after the cart was signed.
 */
import { z } from "zod";
import { parseJson } from "../json.js";
import type { RecordKind } from "../record-file.js";
import { promiseShape, promisedLineShape } from "../retail/promise.js";
import type { DomainRecord } from "../upstream/contract.js";

/** What the account's record of the name said before the order: the later record must differ from it. */
const beforeShape = z.object({
  isOurs: z.boolean(),
  expiresAt: z.string().nullable(),
  status: z.string().nullable(),
});

const lineNotice = z.enum(["lost", "unordered"]);
/** What a notice says about a line. */
export type LineNotice = z.infer<typeof lineNotice>;

const followedLine = promisedLineShape.extend({
  /** Null: not known yet. */
  before: beforeShape.nullable(),
  /** What was found, and when the answer that says so was asked. */
  found: z.object({ state: z.enum(["managed", "lost"]), atMs: z.number() }).nullable(),
  /** The notices sent so far. */
  notices: z.array(lineNotice).readonly(),
});
export type FollowedLine = Readonly<z.infer<typeof followedLine>>;

const signedCartShape = promiseShape.extend({
  /** The upstream whose account the cart is for. */
  upstream: z.string(),
  lines: z.array(followedLine).readonly(),
  /** What the checkout has said. */
  checkout: z
    .object({ state: z.enum(["ordered", "cancelled"]), reference: z.string().nullable(), atMs: z.number() })
    .nullable(),
});
export type SignedCart = Readonly<z.infer<typeof signedCartShape>>;

export const DAY_MS = 86_400_000;
const KEPT_MS = 30 * DAY_MS;

export const signedCarts: RecordKind<SignedCart> = {
  parse: (line) => signedCartShape.safeParse(parseJson(line)).data,
  latest(carts, nowMs) {
    const byId = new Map<string, SignedCart>();
    for (const cart of carts) if (cart.issuedAtMs > nowMs - KEPT_MS) byId.set(cart.id, cart);
    return [...byId.values()].sort((a, b) => a.issuedAtMs - b.issuedAtMs);
  },
  whenMs: ({ issuedAtMs }) => issuedAtMs,
  keptMs: KEPT_MS,
  // Each change of a cart is another line.
  most: 20_000,
};

/** What an answer says about a name, and when it was asked; wall clock, ms. Null: the reseller doesn't manage it. */
export interface Evidence {
  readonly record: Pick<DomainRecord, "registeredAt" | "expiresAt" | "status"> | null;
  readonly atMs: number;
}

export type LineState = "open" | "expired" | "managed" | "lost" | "unknown";

/** `lookedAt`: when the last answer was asked that shows whether the reseller manages the name. */
export function stateOf(
  cart: SignedCart,
  line: FollowedLine,
  lookedAt: number,
  nowMs: number,
): { readonly state: LineState; readonly atMs: number } {
  if (line.found !== null) return line.found;
  if (nowMs < cart.validUntilMs) return { state: "open", atMs: cart.issuedAtMs };
  // Without a record from before, or with one that can't change any further, no later one shows an order.
  const isBlind =
    line.action !== "registration" &&
    (line.before === null || (line.action === "transfer" && line.before.isOurs));
  if (isBlind || lookedAt < nowMs - DAY_MS)
    return { state: "unknown", atMs: Math.max(lookedAt, cart.validUntilMs) };
  return { state: "expired", atMs: cart.validUntilMs };
}

export function beforeOf({ record }: Evidence): FollowedLine["before"] {
  return {
    isOurs: record !== null,
    expiresAt: record?.expiresAt ?? null,
    status: record?.status ?? null,
  };
}

/**
 * The line with what the account's last answer about the name shows. `takenAt`: when a check first found the name taken. `claimed`: the expiries
 * that other lines are the cause of; grows.
 */
export function judgedBy(
  { issuedAtMs }: SignedCart,
  line: FollowedLine,
  evidence: Evidence | undefined,
  takenAt: number | null,
  claimed: Set<string>,
): FollowedLine {
  if (evidence === undefined || evidence.atMs <= issuedAtMs) return line;
  const { record, atMs } = evidence;
  const move = `${line.domain} ${line.action} ${record?.expiresAt ?? ""}`;
  if (showsOrder(line, issuedAtMs, evidence) && !(line.action === "renewal" && claimed.has(move))) {
    claimed.add(move);
    return { ...line, found: { state: "managed", atMs } };
  }
  if (line.action !== "registration") {
    const before = beforeOf(evidence);
    // A transferred name that is ours at first sight may have been ours before.
    return line.before?.expiresAt === before?.expiresAt ? line : { ...line, before };
  }
  const isLost =
    takenAt !== null && takenAt > issuedAtMs && record === null && atMs >= takenAt + ARRIVES_WITHIN_MS;
  return isLost && line.found === null ? { ...line, found: { state: "lost", atMs: takenAt } } : line;
}

/** An own order may take this long from the registry to the account's records. */
const ARRIVES_WITHIN_MS = 3_600_000;

/** Whether the record, asked after the cart was signed, shows that this line was ordered. */
function showsOrder(
  { action, years, before }: FollowedLine,
  signedAt: number,
  { record }: Evidence,
): boolean {
  if (record === null) return false;
  // The name was available when the cart was signed, so without a date its presence shows it.
  if (action === "registration") return isSince(record.registeredAt, signedAt);
  if (before === null) return false;
  if (action === "transfer") return !before.isOurs;
  if (action === "renewal") return moved(before.expiresAt, record.expiresAt, years);
  const isLater = (record.expiresAt ?? "") > (before.expiresAt ?? record.expiresAt ?? "");
  return (
    !before.isOurs ||
    isLater ||
    (before.status !== record.status && record.status?.toLowerCase() === "active")
  );
}

/** A date without a time counts as the whole day. */
function isSince(instant: string | null, sinceAt: number): boolean {
  if (instant === null) return true;
  const atMs = Date.parse(instant);
  return atMs + (atMs % DAY_MS === 0 ? DAY_MS : SKEW_MS) > sinceAt;
}

/** The clocks of the registry and of this machine may differ by this much. */
const SKEW_MS = 60_000;
/** Registries count the days of leap years in different ways. */
const LEAP_MS = 3 * DAY_MS;

/** Whether the expiry is later by exactly the term: an automatic renewal by another term isn't this order. */
function moved(from: string | null, to: string | null, years: number): boolean {
  if (from === null || to === null) return false;
  const expected = new Date(from);
  expected.setUTCFullYear(expected.getUTCFullYear() + years);
  return Math.abs(expected.getTime() - Date.parse(to)) < LEAP_MS;
}

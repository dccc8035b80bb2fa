/**
 * The signed carts of the last 30 days: what became of them, and what the checkout has said. The lists and checks that the service makes anyway
 * answer most; names that they don't show are asked for in spare quota, behind everything else.
 */
import { BoundedMap } from "../bounded-map.js";
import type { Clock } from "../clock.js";
import { AF_TLDS, type DomainName, parseDomainName } from "../domain-name.js";
import type { Entry } from "../facts/page.js";
import { inBackground } from "../quota/background.js";
import type { Ask } from "../quota/quota.js";
import type { Records } from "../record-file.js";
import type { PricePromise } from "../retail/promise.js";
import type { Check } from "../upstream/contract.js";
import type { Account } from "./account.js";
import {
  beforeOf,
  DAY_MS,
  type Evidence,
  type FollowedLine,
  judgedBy,
  type LineNotice,
  type LineState,
  type SignedCart,
  signedCarts,
  stateOf,
} from "./signed-cart.js";

export interface SeenLine extends FollowedLine {
  readonly state: LineState;
  /** When the state began, or when the answer was asked that shows it; wall clock, ms. */
  readonly stateAt: number;
}

export interface SeenCart extends SignedCart {
  readonly lines: readonly SeenLine[];
}

export interface Carts {
  /** Keeps what was signed. Resolves when the next owner could know it; never rejects. */
  keep(promise: PricePromise): Promise<void>;
  /** The cart, if it can still be redeemed. */
  find(id: string): SignedCart | null;
  /** Those that can still be redeemed. */
  inForce(): readonly SignedCart[];
  isEmpty(): boolean;
  /** All of the last 30 days, the newest first. */
  all(): readonly SeenCart[];
  /** What the checkout says of a cart of the last 30 days; null if there is none with this id. */
  note(id: string, state: "ordered" | "cancelled", reference: string | null): Promise<SeenCart | null>;
  /** Remembers that this notice about a line was sent. */
  markNotified(id: string, line: Pick<FollowedLine, "domain" | "action">, what: LineNotice): Promise<void>;
  /** Reads what former processes or owners have kept. */
  restore(): Promise<void>;
  /** Starts looking for what became of the carts; returns a function that stops it. */
  follow(): () => void;
}

interface CartSettings {
  /** Null: what is known ends with the process. */
  readonly store: Records<SignedCart> | null;
  readonly upstream: string;
  readonly account: Pick<Account, "managed" | "domain">;
  readonly names: {
    /** The last check for this term, whatever its age. */
    check(name: { readonly ascii: string }, years: number): Entry<Check> | undefined;
    find(ask: Ask & { spend(): void }, name: DomainName, years: number): Promise<unknown>;
  };
  readonly hasSpare: () => boolean;
  readonly clock: Clock;
  /** The clock of facts. */
  readonly factClock: Clock;
}

interface Seen {
  /** When the last answer was asked that shows whether the reseller manages the name. */
  askedAt: number;
  /** When the check was asked that first found it taken. */
  takenAt: number | null;
  /** When it was last looked for. */
  lookedAt: number | null;
}

const MAX_CARTS = 10_000;
/** A record this old, or younger, was still true when the cart was signed. */
const BEFORE_MS = 15 * 60_000;
/** A line is looked for at most this often; an old one whenever it has grown older by a quarter, at least twice a day. */
const LOOK_EVERY_MS = 30 * 60_000;
const LOOK_AT_LEAST_MS = DAY_MS / 2;
/** Between two looks, and while there are none to make. */
const PAUSE_MS = 15_000;
const IDLE_MS = 60_000;

export function createCarts(settings: CartSettings): Carts {
  const { store, upstream, account, names, clock, factClock } = settings;
  const carts = new BoundedMap<string, SignedCart>(MAX_CARTS);
  let isRestored = store === null;
  /** By name. */
  const seen = new BoundedMap<string, Seen>(2 * MAX_CARTS);

  function seenOf(domain: string): Seen {
    const known = seen.get(domain) ?? { askedAt: -Infinity, takenAt: null, lookedAt: null };
    seen.set(domain, known);
    return known;
  }

  function kept(): SignedCart[] {
    const list: SignedCart[] = [];
    carts.forEach((cart) => list.push(cart));
    return signedCarts.latest(list, clock.now());
  }

  function write(cart: SignedCart): Promise<void> {
    carts.set(cart.id, cart);
    return store?.append(cart) ?? Promise.resolve();
  }

  function evidenceOf(domain: string): Evidence | undefined {
    const known = account.managed(domain);
    return known && { record: known.value, atMs: known.asOfMs };
  }

  /** When the last check of a registration found the name taken; null if it found it available, undefined without one. */
  function takenAtOf({ domain, action, years }: FollowedLine): number | null | undefined {
    if (action !== "registration") return undefined;
    const check = names.check({ ascii: domain }, years);
    if (check === undefined) return undefined;
    return check.value.status === "taken" ? clock.now() - (factClock.monotonic() - check.askedAt) : null;
  }

  /** What memory says about a line now. `claimed`: the expiries that other lines have been found to be the cause of. */
  function judged(cart: SignedCart, line: FollowedLine, claimed: Set<string>): FollowedLine {
    if (line.found?.state === "managed") return line;
    const evidence = evidenceOf(line.domain);
    const known = seenOf(line.domain);
    if (evidence !== undefined) known.askedAt = Math.max(known.askedAt, evidence.atMs);
    const takenAt = takenAtOf(line);
    if (takenAt === null) known.takenAt = null;
    else if (takenAt !== undefined && takenAt > cart.issuedAtMs) known.takenAt ??= takenAt;
    return judgedBy(cart, line, evidence, known.takenAt, claimed);
  }

  /** Brings all carts up to date with what memory knows. Ordered ones come first, then the newest: one move of an expiry is one order. */
  function judge(): void {
    const claimed = new Set<string>();
    const isOrdered = ({ checkout }: SignedCart): boolean => checkout?.state === "ordered";
    const sorted = kept()
      .toReversed()
      .sort((a, b) => Number(isOrdered(b)) - Number(isOrdered(a)));
    for (const cart of sorted) {
      const lines = cart.lines.map((line) => judged(cart, line, claimed));
      if (lines.some((line, at) => line !== cart.lines[at])) void write({ ...cart, lines });
    }
  }

  function seenNow(cart: SignedCart): SeenCart {
    const lines = cart.lines.map((line) => {
      const { state, atMs } = stateOf(cart, line, seenOf(line.domain).askedAt, clock.now());
      return { ...line, state, stateAt: atMs };
    });
    return { ...cart, lines };
  }

  /** The line to look for next: of an ordered cart first, then the newest. */
  function nextDue(): FollowedLine | undefined {
    const now = clock.now();
    const due = ({ issuedAtMs, lines }: SignedCart): FollowedLine | undefined =>
      lines.find((line) => {
        const { lookedAt } = seenOf(line.domain);
        if (line.found !== null || !needsLook(line)) return false;
        if (lookedAt === null && line.action !== "registration" && line.before === null) return true;
        const everyMs = Math.min(Math.max(LOOK_EVERY_MS, (now - issuedAtMs) / 4), LOOK_AT_LEAST_MS);
        return now - Math.max(lookedAt ?? 0, issuedAtMs) >= (lookedAt === null ? LOOK_EVERY_MS : everyMs);
      });
    const open = kept()
      .toReversed()
      .filter(({ checkout }) => checkout?.state !== "cancelled");
    const ordered = open.filter(({ checkout }) => checkout !== null);
    for (const cart of [...ordered, ...open]) {
      const line = due(cart);
      if (line !== undefined) return line;
    }
    return undefined;
  }

  /** Whether a call could show more than the list does. */
  function needsLook({ domain, action }: FollowedLine): boolean {
    return action === "registration" || account.managed(domain)?.source !== "hit";
  }

  async function look(ask: Ask, { domain, action, years }: FollowedLine): Promise<void> {
    seenOf(domain).lookedAt = clock.now();
    const name = parseDomainName(domain, AF_TLDS, "domain");
    if (account.managed(domain)?.source !== "hit") await account.domain(ask, name);
    const isOurs = account.managed(domain)?.value;
    if (action === "registration" && !isOurs) await names.find({ ...ask, spend() {} }, name, years);
  }

  /** If the store can't be read, the next round tries again. */
  async function restore(): Promise<void> {
    const stored = await store?.load().catch(() => null);
    isRestored = stored !== null;
    for (const cart of signedCarts.latest(stored ?? [], clock.now()))
      if (cart.upstream === upstream) carts.set(cart.id, cart);
  }

  return {
    keep(promise) {
      const lines = promise.lines.map((line): FollowedLine => {
        const evidence = evidenceOf(line.domain);
        const isKnown = evidence !== undefined && evidence.atMs >= promise.issuedAtMs - BEFORE_MS;
        return { ...line, before: isKnown ? beforeOf(evidence) : null, found: null, notices: [] };
      });
      return write({ ...promise, lines, upstream, checkout: null });
    },
    find(id) {
      const cart = carts.get(id);
      return cart !== undefined && cart.validUntilMs > clock.now() ? cart : null;
    },
    inForce: () => kept().filter(({ validUntilMs }) => validUntilMs > clock.now()),
    isEmpty: () => carts.first() === undefined,
    all() {
      judge();
      return kept().toReversed().map(seenNow);
    },
    async note(id, state, reference) {
      const cart = kept().find((one) => one.id === id);
      if (cart === undefined) return null;
      const isSame = cart.checkout?.state === state && cart.checkout.reference === reference;
      const noted = isSame ? cart : { ...cart, checkout: { state, reference, atMs: clock.now() } };
      if (!isSame) await write(noted);
      return seenNow(noted);
    },
    async markNotified(id, { domain, action }, what) {
      const cart = carts.get(id);
      if (cart === undefined) return;
      const lines = cart.lines.map((line) =>
        line.domain === domain && line.action === action
          ? { ...line, notices: [...line.notices, what] }
          : line,
      );
      await write({ ...cart, lines });
    },
    restore,
    follow() {
      const round = async (ask: Ask): Promise<number> => {
        if (!isRestored) await restore();
        judge();
        const line = nextDue();
        if (line === undefined) return IDLE_MS;
        // After a failure it is looked for again at the next time.
        if (settings.hasSpare()) await look(ask, line).catch(() => undefined);
        return PAUSE_MS;
      };
      const { stop } = inBackground({
        client: "carts",
        round,
        firstInMs: PAUSE_MS,
        backgroundRoomInMs: () => 0,
        clock,
      });
      return stop;
    },
  };
}

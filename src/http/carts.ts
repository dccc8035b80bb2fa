/** Carts (`POST /v1/quotes`): each is parsed once, and answered with its prices, signed. */
import type { IncomingMessage } from "node:http";
import type { Request } from "express";
import type { PricedCart, QuoteItem } from "../storefront/quotes.js";
import type { Shop } from "../storefront/shop.js";
import { readCart } from "./parse.js";
import { presentCart } from "./presenters.js";
import { render, type Rendered } from "./edge/rendered.js";
import { MAX_BODY_BYTES } from "./routes.js";

export const CART_PATH = "/v1/quotes";

interface SignedCart {
  readonly answer: Rendered;
  /** Resolves when the answer may be sent, because every replica knows its promise; null if it may be sent now. */
  readonly shared: Promise<void> | null;
}

export function signedCart(priced: PricedCart): SignedCart {
  const cart = priced.sign();
  const answer = render(presentCart(cart), { cacheControl: "no-store" });
  return { answer, shared: cart.promise?.shared ?? null };
}

/** Carts that the fast path has parsed but couldn't answer. */
const alreadyRead = new WeakMap<
  IncomingMessage,
  { readonly shop: Shop; readonly items: readonly QuoteItem[] }
>();

/** The request's cart: from the fast path if it belongs to this shop, otherwise parsed now. */
export function cartOf(request: Request, shop: Shop): readonly QuoteItem[] {
  const read = alreadyRead.get(request);
  return read?.shop === shop ? read.items : readCart(request.body, shop.policy);
}

/** As most clients send it. */
const PLAIN_JSON = /^application\/json(?:; ?charset=utf-8)?$/i;

/**
 * The signed cart if the whole body has arrived and memory has the price of every line. Otherwise undefined, and Express can still read the
 * body.
 */
export function knownCart(request: IncomingMessage, shop: Shop): SignedCart | undefined {
  const { "content-type": type = "", "content-encoding": coding } = request.headers;
  const bytes = Number(request.headers["content-length"]);
  if (!PLAIN_JSON.test(type) || coding !== undefined || bytes > MAX_BODY_BYTES) return undefined;
  // Not `complete`, which Node sets after it has handed over the body.
  if (request.readableLength !== bytes) return undefined;
  const body: unknown = request.read(bytes);
  if (!Buffer.isBuffer(body)) return undefined;
  let signed: SignedCart | undefined;
  try {
    const items = readCart(JSON.parse(body.toString()), shop.policy);
    const priced = shop.quotes.known(items);
    if (priced === undefined) alreadyRead.set(request, { shop, items });
    else signed = signedCart(priced);
  } catch {
    // Express meets the same error, and answers it.
  }
  if (signed === undefined) request.unshift(body);
  // Node discards what is left of a request only if nothing of it was read.
  else request.resume();
  return signed;
}

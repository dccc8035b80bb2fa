/** The query parameters of the visitor routes: each shape parses them and documents them. */
import { z } from "zod";
import { ACTIONS } from "../upstream/contract.js";
import { CART_STATES } from "./staff.js";

const asLimit = (text: unknown): unknown =>
  typeof text === "string" && /^[1-9]\d{0,3}$/.test(text) ? Number(text) : text;
/** The text if it isn't a term, so that the shape refuses it. */
const asYears = (text: unknown): unknown =>
  typeof text === "string" && /^[1-9]\d?$/.test(text) ? Number(text) : text;
const asList = (text: unknown): unknown => (typeof text === "string" ? text.split(",") : text);

const text = z.string("is missing").min(1, "is missing");
const tld = z.string();
const action = z.enum(ACTIONS, `must be one of ${ACTIONS.join(", ")}`);
const yearsOr = (otherwise: string) =>
  z
    .preprocess(asYears, z.int("must be a whole number of years").min(1).max(99))
    .optional()
    .meta({ description: `The term in years. Default: ${otherwise}.`, example: 1 });
const only = z.literal("known", 'must be "known"').optional().meta({
  description:
    "`known`: answer from memory only, which is free and immediate. A name that isn't in memory is `unknown`.",
});

export const availabilityQuery = z.strictObject({
  domain: text.meta({ description: "The name.", example: "kabul.af" }),
  years: yearsOr("the shortest one sold"),
  only,
});

export const searchQuery = z.strictObject({
  q: text.meta({ description: "A label or a full name.", example: "kabul" }),
  tlds: z
    .preprocess(asList, z.array(tld).min(1))
    .optional()
    .meta({ description: "The TLDs to search. Default: all TLDs sold.", example: [".af", ".com.af"] }),
  years: yearsOr("the shortest one sold"),
  only,
});

export const pricesQuery = z.strictObject({
  tld: tld.optional().meta({ description: "Only this TLD.", example: ".af" }),
  action: action.optional().meta({ description: "Only this action.", example: "registration" }),
  years: yearsOr("all"),
});

export const quoteQuery = z.strictObject({
  tld: text.meta({ description: "The TLD.", example: ".af" }),
  action: action.meta({ description: "The action.", example: "renewal" }),
  years: yearsOr("the shortest one sold"),
});

export const promisesQuery = z.strictObject({
  state: z
    .enum([...CART_STATES, "ordered", "cancelled"], "isn't a state")
    .optional()
    .meta({
      description: "Only lines in this state, or of carts of which the checkout said this.",
      example: "lost",
    }),
  since: z.iso
    .datetime({ offset: true, error: "must be a time as in RFC 3339" })
    .optional()
    .meta({ description: "Only carts signed at this time or later.", example: "2026-03-01T00:00:00Z" }),
  limit: z
    .preprocess(asLimit, z.int("must be a whole number").min(1).max(1000))
    .optional()
    .meta({ description: "At most this many carts, up to 1000. Default: 100.", example: 100 }),
});

const ofLink = z.string().max(64).optional();
export const calendarQuery = z.strictObject({
  name: ofLink.meta({ description: "Of a signed link: the name of the token.", example: "anna" }),
  signature: ofLink.meta({
    description: "Of a signed link, which `npm run token` prints: stands in for a token.",
    example: "tIVSyI2g0u5d8pK3oYh7mW9bQx1cZr4n6aLfEjUv0Hs",
  }),
});

export const noQuery = z.strictObject({});

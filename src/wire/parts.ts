/** Parts that the answers to visitors, customers and staff have in common. */
import { instant } from "../clock.js";
import { presentRetail, type Retail } from "../money.js";
import type { AnswerOf } from "./answer.js";
import type { originShape } from "./staff.js";

interface Promotion {
  readonly id: string;
  readonly regular: Retail;
  /** RFC 3339. */
  readonly until: string;
}

/** An empty object without a promotion, to be spread. */
export function presentPromotion(promotion: Promotion | undefined) {
  if (promotion === undefined) return {};
  return {
    promotion: { id: promotion.id, regular: presentRetail(promotion.regular), until: promotion.until },
  };
}

interface Origin {
  readonly asOfMs: number;
  readonly source: "hit" | "inflight" | "miss" | "stale";
}

/** The age and origin of an answer. */
export function presentOrigin({ asOfMs, source }: Origin): AnswerOf<typeof originShape> {
  const origin = source === "stale" ? "stale" : source === "hit" ? "cache" : "upstream";
  return { asOf: instant(asOfMs), source: origin };
}

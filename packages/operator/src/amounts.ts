/** How amounts are written and compared. Only percentages, which are just displayed, are ever floats. */
import type { Money } from "../../client/src/client.js";
import { digitsOf, moneyOf, sumOf, unitsOf } from "../../storefront/src/money.js";

const whole = new Intl.NumberFormat("en");
const share = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1 });

/** `1,843.50 USD` */
export function written({ amount, currency }: Money): string {
  const [, sign = "", units = "0", rest = ""] = /^(-?)(\d+)(\.\d+)?$/.exec(amount) ?? [];
  return `${sign && "−"}${whole.format(BigInt(units))}${rest} ${currency}`;
}

/** `+1.20 USD` or `−1.20 USD` */
export function signed(amount: Money): string {
  return amount.amount.startsWith("-") ? written(amount) : `+${written(amount)}`;
}

/** Parses typed text such as `8`, `8.5` or `8,50`; null if it isn't an amount. */
export function typed(text: string, currency: string): Money | null {
  return /^\d{1,9}(?:[.,]\d{1,8})?$/.test(text) ? { amount: text.replace(",", "."), currency } : null;
}

/** How much cheaper the orders would be at `nextPrice` than at `price`; negative if more expensive. One amount per currency. */
export function saved(
  orders: readonly { readonly count: number; readonly price: Money; readonly nextPrice: Money }[],
): Money[] {
  return sumOf(
    orders.map(({ count, price, nextPrice }) => {
      const digits = Math.max(digitsOf(price.amount), digitsOf(nextPrice.amount));
      const difference = unitsOf(price.amount, digits) - unitsOf(nextPrice.amount, digits);
      return moneyOf(BigInt(count) * difference, digits, price.currency);
    }),
  );
}

/** How many times the funds cover the price; null if the currencies differ or the price isn't positive. */
export function coverage(funds: readonly Money[], price: Money): number | null {
  const [total, ...others] = sumOf(funds);
  const ratio = total && others.length === 0 ? scaled(total, price, 1n) : null;
  return ratio === null ? null : Math.max(0, Number(ratio));
}

/** `25.1%`: the part as a share of the whole, rounded down; null if the currencies differ or the whole isn't positive. */
export function shareOf(part: Money, of: Money): string | null {
  const ratio = scaled(part, of, 1000n);
  return ratio === null ? null : share.format(Number(ratio) / 1000);
}

/** `times` the quotient, rounded towards zero; null if the currencies differ or the divisor isn't positive. */
function scaled(part: Money, of: Money, times: bigint): bigint | null {
  const digits = Math.max(digitsOf(part.amount), digitsOf(of.amount));
  const divisor = unitsOf(of.amount, digits);
  if (part.currency !== of.currency || divisor <= 0n) return null;
  return (unitsOf(part.amount, digits) * times) / divisor;
}

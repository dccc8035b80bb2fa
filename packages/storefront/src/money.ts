/** Exact arithmetic with the service's amounts. */
import type { Money } from "../../client/src/client.js";

/** The amount per year, rounded up to the currency's last digit. */
export function perYear({ amount, currency }: Money, years: number): Money {
  const digits = digitsOf(amount);
  return moneyOf((unitsOf(amount, digits) + BigInt(years) - 1n) / BigInt(years), digits, currency);
}

/** One amount for each currency, in the order of their first appearance. */
export function sumOf(amounts: readonly Money[]): Money[] {
  return [...new Set(amounts.map(({ currency }) => currency))].map((currency) => {
    const same = amounts.flatMap((one) => (one.currency === currency ? one.amount : []));
    const digits = Math.max(...same.map(digitsOf));
    return moneyOf(
      same.reduce((sum, amount) => sum + unitsOf(amount, digits), 0n),
      digits,
      currency,
    );
  });
}

export function digitsOf(amount: string): number {
  return amount.split(".")[1]?.length ?? 0;
}

/** In units of the decimal place `digits`, which isn't before its last one. */
export function unitsOf(amount: string, digits: number): bigint {
  return BigInt(amount.replace(".", "")) * 10n ** BigInt(digits - digitsOf(amount));
}

export function moneyOf(units: bigint, digits: number, currency: string): Money {
  const text = String(units < 0n ? -units : units).padStart(digits + 1, "0");
  const whole = text.slice(0, text.length - digits);
  const sign = units < 0n ? "-" : "";
  return { amount: `${sign}${whole}${digits === 0 ? "" : `.${text.slice(-digits)}`}`, currency };
}

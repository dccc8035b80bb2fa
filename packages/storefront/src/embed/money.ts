/** Exact arithmetic with the service's amounts, in units of the currency's last digit. */
import type { Money } from "../../../client/src/client.js";

/** The amount per year, rounded up. */
export function perYear(total: Money, years: number): Money {
  const { units, digits } = unitsOf(total);
  return moneyOf((units + BigInt(years) - 1n) / BigInt(years), digits, total.currency);
}

/** One amount for each currency, in the order of their first appearance. */
export function sumOf(amounts: readonly Money[]): Money[] {
  const sums = new Map<string, { units: bigint; digits: number }>();
  for (const amount of amounts) {
    const { units, digits } = unitsOf(amount);
    const sum = sums.get(amount.currency) ?? { units: 0n, digits };
    sums.set(amount.currency, { units: sum.units + units, digits: sum.digits });
  }
  return [...sums].map(([currency, { units, digits }]) => moneyOf(units, digits, currency));
}

function unitsOf({ amount }: Money): { readonly units: bigint; readonly digits: number } {
  return { units: BigInt(amount.replace(".", "")), digits: amount.split(".")[1]?.length ?? 0 };
}

function moneyOf(units: bigint, digits: number, currency: string): Money {
  const text = String(units).padStart(digits + 1, "0");
  const whole = text.slice(0, text.length - digits);
  return { amount: digits === 0 ? whole : `${whole}.${text.slice(-digits)}`, currency };
}

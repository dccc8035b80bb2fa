/** Exact amounts in the format of the service. Only percentages, which are just displayed, are ever floats. */
const whole = new Intl.NumberFormat("en");
const share = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1 });

export interface Amount {
  readonly amount: string;
  readonly currency: string;
}

/** `1,843.50 USD` */
export function written({ amount, currency }: Amount): string {
  const [, sign = "", units = "0", rest = ""] = /^(-?)(\d+)(\.\d+)?$/.exec(amount) ?? [];
  return `${sign && "−"}${whole.format(BigInt(units))}${rest} ${currency}`;
}

/** `+1.20 USD` or `−1.20 USD` */
export function signed(amount: Amount): string {
  return amount.amount.startsWith("-") ? written(amount) : `+${written(amount)}`;
}

/** Parses typed text such as `8`, `8.5` or `8,50`; null if it isn't an amount. */
export function typed(text: string, currency: string): Amount | null {
  return /^\d{1,9}(?:[.,]\d{1,8})?$/.test(text) ? { amount: text.replace(",", "."), currency } : null;
}

/** How much cheaper the orders would be at `nextPrice` than at `price`; negative if more expensive. One amount per currency. */
export function saved(
  orders: readonly { readonly count: number; readonly price: Amount; readonly nextPrice: Amount }[],
): Amount[] {
  const sums = new Map<string, { readonly sum: bigint; readonly decimals: number }>();
  for (const { count, price, nextPrice } of orders) {
    const known = sums.get(price.currency) ?? { sum: 0n, decimals: 0 };
    sums.set(price.currency, {
      sum: known.sum + BigInt(count) * (units(price.amount) - units(nextPrice.amount)),
      decimals: Math.max(known.decimals, decimalsOf(price.amount), decimalsOf(nextPrice.amount)),
    });
  }
  return [...sums].map(([currency, { sum, decimals }]) => ({ amount: amountOf(sum, decimals), currency }));
}

const decimalsOf = (amount: string): number => amount.split(".")[1]?.length ?? 0;

function amountOf(sum: bigint, decimals: number): string {
  const digits = String(sum < 0n ? -sum : sum).padStart(9, "0");
  const rest = digits.slice(-8, digits.length - 8 + decimals);
  return `${sum < 0n ? "-" : ""}${digits.slice(0, -8)}${rest && `.${rest}`}`;
}

/** The amount in hundred-millionths, which is a whole number for every currency. */
function units(amount: string): bigint {
  const [, sign = "", digits = "0", rest = ""] = /^(-?)(\d+)(?:\.(\d{1,8}))?$/.exec(amount) ?? [];
  const size = BigInt(digits + rest.padEnd(8, "0"));
  return sign === "-" ? -size : size;
}

/** How many times the funds cover the price; null if the currencies differ or the price isn't positive. */
export function coverage(funds: readonly Amount[], price: Amount): number | null {
  if (funds.some(({ currency }) => currency !== price.currency) || units(price.amount) <= 0n) return null;
  const total = funds.reduce((sum, { amount }) => sum + units(amount), 0n);
  return total <= 0n ? 0 : Number(total / units(price.amount));
}

/** `25.1%`: the part as a share of the whole, rounded down; null if the currencies differ or the whole isn't positive. */
export function shareOf(part: Amount, of: Amount): string | null {
  if (part.currency !== of.currency || units(of.amount) <= 0n) return null;
  return share.format(Number((units(part.amount) * 1000n) / units(of.amount)) / 1000);
}

/** Amounts as the service writes them, exactly: nothing here is ever a float but a share that is only shown. */
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

/** Hundred-millionths, in which amounts of all currencies are whole. */
function units(amount: string): bigint {
  const [, sign = "", digits = "0", rest = ""] = /^(-?)(\d+)(?:\.(\d{1,8}))?$/.exec(amount) ?? [];
  const size = BigInt(digits + rest.padEnd(8, "0"));
  return sign === "-" ? -size : size;
}

/** How often the price fits into the funds; null where it cannot be said. */
export function coverage(funds: readonly Amount[], price: Amount): number | null {
  if (funds.some(({ currency }) => currency !== price.currency) || units(price.amount) <= 0n) return null;
  const total = funds.reduce((sum, { amount }) => sum + units(amount), 0n);
  return total <= 0n ? 0 : Number(total / units(price.amount));
}

/** `25.1%`: the part in the whole, cut to a tenth of a percent; null where it cannot be said. */
export function shareOf(part: Amount, of: Amount): string | null {
  if (part.currency !== of.currency || units(of.amount) <= 0n) return null;
  return share.format(Number((units(part.amount) * 1000n) / units(of.amount)) / 1000);
}

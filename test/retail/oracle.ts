/** A second implementation of contract section 8, in bigint fractions and independent of the service's own arithmetic. */

interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

function fraction(text: string): Fraction {
  const [whole = "0", rest = ""] = text.split(".");
  return { over: BigInt(whole + rest), under: 10n ** BigInt(rest.length) };
}

const plus = (a: Fraction, b: Fraction) => ({
  over: a.over * b.under + b.over * a.under,
  under: a.under * b.under,
});
const times = (a: Fraction, b: Fraction) => ({ over: a.over * b.over, under: a.under * b.under });
const larger = (a: Fraction, b: Fraction) => (a.over * b.under >= b.over * a.under ? a : b);
const ceil = ({ over, under }: Fraction) => (over >= 0n ? (over + under - 1n) / under : over / under);

function text(units: bigint, digits: number): string {
  if (digits === 0) return String(units);
  const padded = String(units).padStart(digits + 1, "0");
  return `${padded.slice(0, -digits)}.${padded.slice(-digits)}`;
}

export interface OracleRule {
  readonly markupPercent: string;
  readonly addFixed: string;
  readonly minMargin: string;
  readonly ending?: string | undefined;
  readonly step?: string | undefined;
}

/** The regular price, the price with this percentage off, and the floor, all with this many fraction digits. */
export function oracle(
  wholesale: string,
  rate: string,
  rule: OracleRule,
  percentOff: string,
  digits: number,
): { regular: string; promoted: string; floor: string } {
  const unitsPerOne = { over: 10n ** BigInt(digits), under: 1n };
  const cost = times(fraction(wholesale), fraction(rate));
  const markup = fraction(rule.markupPercent);
  const factor = plus({ over: 1n, under: 1n }, { over: markup.over, under: markup.under * 100n });
  const lowest = plus(cost, fraction(rule.minMargin));
  const wanted = larger(plus(times(cost, factor), fraction(rule.addFixed)), lowest);

  const inUnits = (value: Fraction) => ceil(times(value, unitsPerOne));
  let remainder = 0n;
  let modulus = 1n;
  if (rule.ending !== undefined) {
    remainder = inUnits(fraction(rule.ending));
    const whole = rule.ending.split(".")[0] ?? "0";
    modulus = unitsPerOne.over * (whole === "0" ? 1n : 10n ** BigInt(whole.length));
  } else if (rule.step !== undefined) {
    modulus = inUnits(fraction(rule.step));
  }
  const ended = (units: bigint) => {
    const needed = units - remainder;
    return remainder + (needed <= 0n ? 0n : ceil({ over: needed, under: modulus })) * modulus;
  };
  const regular = ended(inUnits(wanted));

  const floor = inUnits(lowest);
  const off = fraction(percentOff);
  const reduced = ceil({ over: regular * (100n * off.under - off.over), under: 100n * off.under });
  const promoted = ended([reduced, floor].reduce((a, b) => (a > b ? a : b)));
  return {
    regular: text(regular, digits),
    promoted: text(promoted < regular ? promoted : regular, digits),
    floor: text(floor, digits),
  };
}

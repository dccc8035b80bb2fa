/** The one place that parses names: LDH, fully qualified, in lower case, split into label and TLD. */
import { createHash } from "node:crypto";
import { Failure } from "./facts.js";

// Without the `i` flag, because case folding would accept a non-ASCII letter (KELVIN SIGN).
const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
const MAX_NAME_LENGTH = 253;

/** The name in lower case, or undefined if it isn't a fully qualified LDH name. */
export function asName(text: string): string | undefined {
  if (text.length > MAX_NAME_LENGTH) return undefined;
  const labels = text.split(".");
  if (labels.length < 2 || !labels.every((label) => LABEL.test(label))) return undefined;
  return /^[0-9]+$/.test(labels.at(-1) ?? "") ? undefined : text.toLowerCase();
}

export function parseName(text: string): string {
  const name = asName(text);
  if (name === undefined) throw new Failure("invalid_domain", "domain: not a fully qualified domain name");
  return name;
}

export function isTld(text: string): boolean {
  return text.length <= MAX_NAME_LENGTH && /^(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)+$/.test(text);
}

/** The TLD of a name that can be registered under one of `priced`. TLDs that are only known are rejected. */
export function tldOf(name: string, priced: readonly string[], unpriced: readonly string[]): string {
  if (priced.includes(`.${name}`) || unpriced.includes(`.${name}`)) {
    throw new Failure("invalid_domain", "domain: this is a TLD, not a name under one");
  }
  const longest = [...priced, ...unpriced]
    .filter((tld) => name.endsWith(tld))
    .reduce((best, tld) => (tld.length > best.length ? tld : best), "");
  if (!priced.includes(longest)) throw new Failure("tld_not_supported", "domain: this TLD is not sold");
  if (name.slice(0, -longest.length).includes(".")) {
    throw new Failure("invalid_domain", "domain: only names directly under a TLD can be registered");
  }
  return longest;
}

/** Whether the name looks taken, as about `percent` of all names do. It is the same on every start. */
export function looksTaken(name: string, percent: number): boolean {
  return createHash("sha256").update(name).digest().readUInt32BE(0) % 100 < percent;
}

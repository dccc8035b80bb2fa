/** Lists for staff as CSV (RFC 4180), safe to open in a spreadsheet. */
import { staffDomainShape } from "./staff.js";

/** A list as CSV: its rows, and its columns as paths into them, such as `retail.amount`. */
export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  readonly rows: readonly object[];
}

export function csvOf({ columns, rows }: Omit<Table, "name">): string {
  const lines = [columns, ...rows.map((row) => columns.map((path) => cellAt(row, path.split("."))))];
  return lines.map((cells) => `${cells.map(written).join(",")}\r\n`).join("");
}

function cellAt(value: unknown, [key, ...rest]: readonly string[]): string {
  if (key !== undefined) {
    const own =
      typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, key) : null;
    return cellAt(own?.value, rest);
  }
  if (Array.isArray(value)) return value.map((item) => cellAt(item, [])).join(" ");
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? `${value}`
    : "";
}

/** Spreadsheets evaluate cells with these first characters, or their full-width forms, as formulas. Negative numbers are allowed. */
const FORMULA = /^[=+\-@\t\r\n\uFF0B\uFF0D\uFF1D\uFF20]/;
const NUMBER = /^-?\d+(?:\.\d+)?$/;

function written(cell: string): string {
  const safe = FORMULA.test(cell) && !NUMBER.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const DOMAIN_COLUMNS = [...Object.keys(staffDomainShape.shape), "truncated"];
export const PRICE_COLUMNS = [
  "tld",
  "action",
  "years",
  "wholesale.amount",
  "wholesale.currency",
  "retail.amount",
  "retail.currency",
  "margin.amount",
  "margin.currency",
  "rule",
  "promotion.id",
  "promotion.regular.amount",
  "promotion.until",
  "asOf",
  "doubtful",
  "changed.at",
  "changed.from.amount",
  "changed.from.currency",
  "changed.by.amount",
  "warning",
];
export const CART_COLUMNS = [
  "id",
  "issuedAt",
  "validUntil",
  "domain",
  "action",
  "years",
  "state",
  "stateAt",
  "checkout.state",
  "checkout.reference",
  "checkout.at",
  "price.amount",
  "price.currency",
  "wholesale.amount",
  "wholesale.currency",
  "margin.amount",
  "wholesaleToday.amount",
  "marginToday.amount",
  "marginLost.amount",
];
export const ACT_COLUMNS = ["when", "who", "what", "subject", "outcome", "times", "id"];

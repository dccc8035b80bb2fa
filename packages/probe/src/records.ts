/** Finds domain records in an answer by the names of their fields, also of those that the service may miss. */
import { type Role, ROLES } from "./answers.js";
import { isFields, isList, pathTo } from "./shapes.js";

/** The usual names without case, `_`, `-` and spaces, and those that clearly mean the same, although the service may not read them. */
const NAMES: Readonly<Record<Role, RegExp>> = {
  domain: /^(?:domain|name|domainname|fqdn)$/,
  status: /^(?:status|state|domainstatus)$/,
  expiresAt: /expir|^validuntil$/,
  registeredAt: /regist(?:ered|ration)|creat/,
  autoRenew: /autorenew|renewauto/,
  nameservers: /^(?:nameservers?|ns|dns|hosts)$/,
};

export interface RawRecord {
  /** The field that contains the record, or null. */
  readonly wrapper: string | null;
  readonly fields: ReadonlyMap<Role, { readonly key: string; readonly value: unknown }>;
}

/** The record in a value, directly or one level deep, or null. */
export function recordIn(value: unknown): RawRecord | null {
  if (!isFields(value)) return null;
  const candidates = [[null, value] as const, ...Object.entries(value)];
  for (const [wrapper, inner] of candidates) {
    const fields = fieldsIn(inner);
    if (fields.size >= 2) return { wrapper, fields };
  }
  return null;
}

function fieldsIn(value: unknown): RawRecord["fields"] {
  const found = new Map<Role, { key: string; value: unknown }>();
  for (const [key, inner] of isFields(value) ? Object.entries(value) : []) {
    const name = key.toLowerCase().replaceAll(/[_\- ]/g, "");
    const role = ROLES.find((one) => !found.has(one) && NAMES[one].test(name));
    if (role !== undefined && (role !== "domain" || typeof inner === "string"))
      found.set(role, { key, value: inner });
  }
  return found;
}

/** Whether a record has every field that the document promises. */
export function isWhole(record: RawRecord | null): boolean {
  return record?.fields.size === ROLES.length;
}

export interface RawList {
  /** Its path in `data`; empty if `data` itself is the list. */
  readonly path: string;
  readonly items: readonly unknown[];
  /** Names of the fields next to the list, and next to the objects that contain it. */
  readonly beside: readonly string[];
}

/** The list in `data` that contains records or names, otherwise the first list, or null. */
export function listIn(data: unknown): RawList | null {
  const lists = listsIn(data, "", 0);
  return lists.find(({ items: [first] }) => isNameOrRecord(first)) ?? lists[0] ?? null;
}

const MAX_DEPTH = 4;

function listsIn(data: unknown, path: string, depth: number): RawList[] {
  if (isList(data)) return [{ path, items: data, beside: [] }];
  if (!isFields(data) || depth >= MAX_DEPTH) return [];
  return Object.entries(data).flatMap(([key, inner]) => {
    const others = Object.keys(data).filter((name) => name !== key);
    return listsIn(inner, pathTo(path, key), depth + 1).map((list) => ({
      ...list,
      beside: [...list.beside, ...others],
    }));
  });
}

function isNameOrRecord(item: unknown): boolean {
  return typeof item === "string" ? item.includes(".") : recordIn(item) !== null;
}

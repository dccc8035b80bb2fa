/** Finds domain records in an answer by the names of their fields, also of those that the service may miss. */
import { isFields, normalized } from "./json.js";
import { pathTo } from "./shapes.js";

/** By normalized names: the usual ones, and those that clearly mean the same, although the service may not read them. The first match counts. */
const NAMES = {
  expiry: /expir|^validuntil$/,
  autoRenew: /autorenew|renewauto/,
  registered: /regist(?:ered|ration)|creat/,
  nameservers: /^(?:nameservers?|ns|dns|hosts)$/,
  status: /^(?:status|state|domainstatus)$/,
  name: /^(?:domain|name|domainname|fqdn)$/,
} as const;

export type Role = keyof typeof NAMES;

const ROLES: readonly Role[] = ["expiry", "autoRenew", "registered", "nameservers", "status", "name"];

/** As people and the sandbox's settings list them. */
export const ROLE_ORDER: readonly Role[] = [
  "name",
  "status",
  "expiry",
  "registered",
  "autoRenew",
  "nameservers",
];

function isLike(role: Role, key: string): boolean {
  return NAMES[role].test(normalized(key));
}

interface RawField {
  readonly key: string;
  readonly value: unknown;
}

export interface RawRecord {
  /** The field that contains the record, or null. */
  readonly wrapper: string | null;
  readonly fields: ReadonlyMap<Role, RawField>;
}

/** The record in a value, directly or one level deep, or null. */
export function recordIn(value: unknown): RawRecord | null {
  const own = fieldsIn(value);
  if (own.size >= 2) return { wrapper: null, fields: own };
  if (!isFields(value)) return null;
  for (const [key, inner] of Object.entries(value)) {
    const fields = fieldsIn(inner);
    if (fields.size >= 2) return { wrapper: key, fields };
  }
  return null;
}

function fieldsIn(value: unknown): Map<Role, RawField> {
  const found = new Map<Role, RawField>();
  if (!isFields(value)) return found;
  for (const [key, inner] of Object.entries(value)) {
    const role = ROLES.find((one) => !found.has(one) && isLike(one, key));
    if (role === undefined || (role === "name" && typeof inner !== "string")) continue;
    found.set(role, { key, value: inner });
  }
  return found;
}

/** Whether the record has every field that the document promises. */
export function isWhole({ fields }: RawRecord): boolean {
  return fields.size === ROLES.length;
}

export interface RawList {
  /** Its path in `data`; empty if `data` itself is the list. */
  readonly path: string;
  readonly items: readonly unknown[];
  /** Names of the fields next to the list, and next to the objects that contain it. */
  readonly beside: readonly string[];
}

const MAX_DEPTH = 4;

/** The list in `data` that contains records or names, otherwise the first list, or null. */
export function listIn(data: unknown): RawList | null {
  const lists = listsIn(data, "", 0);
  return lists.find(({ items: [first] }) => isNameOrRecord(first)) ?? lists[0] ?? null;
}

function listsIn(data: unknown, path: string, depth: number): RawList[] {
  if (Array.isArray(data)) return [{ path, items: data, beside: [] }];
  if (!isFields(data) || depth >= MAX_DEPTH) return [];
  const names = Object.keys(data);
  return Object.entries(data).flatMap(([key, inner]) => {
    const others = names.filter((name) => name !== key);
    return listsIn(inner, pathTo(path, key), depth + 1).map((list) => ({
      ...list,
      beside: [...list.beside, ...others],
    }));
  });
}

function isNameOrRecord(item: unknown): boolean {
  return typeof item === "string" ? item.includes(".") : recordIn(item) !== null;
}

/** Finds the domain records in an answer by what their fields are called, whoever named them, and without the service's own decoder. */
import { isFields, pathTo } from "./shapes.js";

/** In the order in which a name is tried for them. */
const ROLES = {
  expiry: /expir|valid_?until/i,
  autoRenew: /auto.?renew|renew.?auto/i,
  registered: /regist(?:ered|ration)|creat/i,
  nameservers: /^(?:name_?servers?|ns|dns|hosts)$/i,
  status: /^(?:domain_?)?(?:status|state)$/i,
  name: /^(?:domain_?)?name$|^domain$|^fqdn$/i,
} as const;
export type Role = keyof typeof ROLES;

export interface RawField {
  readonly key: string;
  readonly value: unknown;
}

export interface RawRecord {
  /** The field that the record stands in; null: in none. */
  readonly wrapper: string | null;
  readonly fields: ReadonlyMap<Role, RawField>;
}

function isRole(name: string): name is Role {
  return Object.hasOwn(ROLES, name);
}

/** The record in a value, bare or one object deep; null where there is none. */
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
    const role = Object.keys(ROLES)
      .filter(isRole)
      .find((one) => !found.has(one) && ROLES[one].test(key));
    if (role === undefined || (role === "name" && typeof inner !== "string")) continue;
    found.set(role, { key, value: inner });
  }
  return found;
}

/** Whether the record tells all that the document promises of one. */
export function isWhole({ fields }: RawRecord): boolean {
  return fields.size === Object.keys(ROLES).length;
}

export interface RawList {
  /** Where it stands in `data`; empty: `data` is the list. */
  readonly path: string;
  readonly items: readonly unknown[];
  /** The fields beside it, and beside what it stands in. */
  readonly beside: readonly string[];
}

const DEEPEST = 4;

/** The list in `data` that holds records or names, else the first that is there; null where there is none. */
export function listIn(data: unknown): RawList | null {
  const lists = listsIn(data, "", 0);
  return lists.find(({ items: [first] }) => isNameOrRecord(first)) ?? lists[0] ?? null;
}

function listsIn(data: unknown, path: string, depth: number): RawList[] {
  if (Array.isArray(data)) return [{ path, items: data, beside: [] }];
  if (!isFields(data) || depth >= DEEPEST) return [];
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

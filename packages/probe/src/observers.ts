/** Observers of one part of the answers. Each also says whether the service read that part correctly. */
import {
  all,
  type Answer,
  type CallResult,
  type Contact,
  dataOf,
  isUnderstood,
  type Kind,
  type ReadRecord,
} from "./contact.js";
import { type Fields, isFields } from "./json.js";
import { listIn, type RawList, type RawRecord, recordIn, type Role } from "./records.js";

interface Seen<Setting> {
  /** Types, formats and words, never values. */
  readonly seen: string;
  /** The sandbox settings that behave like this; empty if there is none. */
  readonly fits: readonly Setting[];
}

export interface Observation<Setting> extends Seen<Setting> {
  readonly copes: boolean;
}

/** Null if the answers show nothing about the point. */
export type Observer<Setting> = (contact: Contact) => Observation<Setting> | null;

/** Observes the data of one call. */
export function ofData<Setting>(
  operation: "check" | "quote",
  look: (data: Fields) => Seen<Setting> | null,
): Observer<Setting> {
  return (contact) => {
    const call: CallResult<unknown> = contact[operation];
    const data = dataOf(call.answer);
    const seen = isFields(data) ? look(data) : null;
    return seen && { ...seen, copes: isUnderstood(call) };
  };
}

export function ofTaken<Setting>(look: (data: Fields) => Seen<Setting>): Observer<Setting> {
  return ofData("check", (data) => (data["available"] === false ? look(data) : null));
}

export function ofList<Setting>(look: (list: RawList) => Seen<Setting> | null): Observer<Setting> {
  return ({ domains }) => {
    const list = listIn(dataOf(domains.answer));
    const seen = list && look(list);
    return seen && { ...seen, copes: isUnderstood(domains) };
  };
}

const MAX_WORDS = 8;

interface SeenRecord {
  readonly raw: RawRecord;
  /** What the service read, or null. */
  readonly read: ReadRecord | null;
}

/** The record that was requested, then those of the list. */
export function recordsOf({ domain, isOwn, domains }: Contact): SeenRecord[] {
  const one = isOwn ? recordIn(dataOf(domain.answer)) : null;
  const read = isUnderstood(domain) ? domain.outcome.value : null;
  const items = listIn(dataOf(domains.answer))?.items ?? [];
  const listed = items.flatMap((item, index): SeenRecord[] => {
    const raw = recordIn(item);
    if (raw === null) return [];
    return [{ raw, read: isUnderstood(domains) ? (domains.outcome.value[index] ?? null) : null }];
  });
  return [...(one === null ? [] : [{ raw: one, read }]), ...listed];
}

/** Whether the service read this field; an empty field doesn't have to be read. */
export function isRead({ raw, read }: SeenRecord, role: Role): boolean {
  if (read === null) return false;
  const value = raw.fields.get(role)?.value;
  if (value === null || value === undefined || value === "") return true;
  if (role === "name") return true;
  if (role === "nameservers") return read.nameservers.length > 0 || isEmpty(value);
  const { status, expiresAt: expiry, registeredAt: registered, autoRenew } = read;
  return { status, expiry, registered, autoRenew }[role] !== null;
}

export function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** Observes the records' fields with these roles; a setting fits if it fits all of them. */
export function ofRoles<Setting extends string>(
  roles: readonly Role[],
  formsOf: (value: unknown) => readonly Setting[],
  shown: (value: unknown) => string,
): Observer<Setting> {
  return (contact) => {
    const records = recordsOf(contact);
    const values = records.flatMap((record) =>
      roles.flatMap((role) => {
        const value = record.raw.fields.get(role)?.value;
        return value === null || value === undefined || isEmpty(value) ? [] : [{ record, role, value }];
      }),
    );
    const [first] = values;
    if (first === undefined) return null;
    return {
      // Sorted, because the original order would reveal something about the account.
      seen: [...new Set(values.map(({ value }) => shown(value)))].sort().slice(0, MAX_WORDS).join(", "),
      fits: formsOf(first.value).filter((form) => values.every(({ value }) => formsOf(value).includes(form))),
      copes: values.every(({ record, role }) => isRead(record, role)),
    };
  };
}

type Failed = CallResult<unknown> & { readonly answer: Answer };

/** Answers that are errors. Rate limit errors come last, because a proxy may have produced them. */
function errorsOf(contact: Contact): Failed[] {
  const failed = all(contact).filter(
    (call): call is Failed => call.answer !== null && call.answer.kind !== "success",
  );
  return failed.sort((a, b) => Number(a.answer.kind === "limit") - Number(b.answer.kind === "limit"));
}

/** Whether this kind of error is independent of the requested domain. */
export function isAboutNoDomain(kind: Kind): boolean {
  return kind === "limit" || kind === "credential" || kind === "access";
}

/** Whether the service interpreted the error correctly. */
function isRecognized(call: Failed, { domain }: Contact): boolean {
  const { kind } = call.answer;
  if (kind === "limit") return "code" in call.outcome && call.outcome.code === "quota_exhausted";
  if (call.operation === "domain" && !isAboutNoDomain(kind))
    return isUnderstood(domain) && domain.outcome.value === null;
  return "code" in call.outcome;
}

/** Observes the first error that shows something. */
export function ofErrors<Setting>(look: (answer: Answer) => Seen<Setting> | null): Observer<Setting> {
  return (contact) => {
    for (const call of errorsOf(contact)) {
      const seen = look(call.answer);
      if (seen !== null) return { ...seen, copes: isRecognized(call, contact) };
    }
    return null;
  };
}

export function ofKind<Setting>(kind: Kind, look: (answer: Answer) => Seen<Setting>): Observer<Setting> {
  return ofErrors((answer) => (answer.kind === kind ? look(answer) : null));
}

export function ofStatus<Status extends number>(kind: Kind, settings: readonly Status[]): Observer<Status> {
  return ofKind(kind, ({ status }) => ({
    seen: `status ${status}`,
    fits: settings.filter((setting) => setting === status),
  }));
}

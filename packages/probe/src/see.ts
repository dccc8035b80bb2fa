/** Kinds of open points: where one shows in the answers, whether the service read that part of them, and what else would show it. */
import { type Answer, type Call, type Contact, dataOf, type Kind, type Role } from "./answers.js";
import { listIn, type RawList, recordIn } from "./records.js";
import { type Fields, isEmpty, isFields } from "./shapes.js";

export interface Point {
  /** What would show it. The probe never provokes it. */
  readonly how: string;
  /** Describes it by types, formats and words, never by values. Null or no text if the answers don't show it. */
  readonly see: (contact: Contact) => { readonly texts: readonly string[]; readonly copes: boolean } | null;
  /** How settings of the sandbox look; one that isn't listed looks like its name, perhaps in quotes. */
  readonly looks?: Looks | undefined;
}

type Looks = Readonly<Record<string, RegExp>>;

/** Shown by the data of a success. */
export function inData(
  operation: "check" | "quote",
  how: string,
  describe: (data: Fields) => string | readonly string[] | null,
  looks?: Looks,
): Point {
  const see: Point["see"] = ({ calls }) => {
    const { answer, error } = calls[operation];
    const data = dataOf(answer);
    const seen = isFields(data) ? describe(data) : null;
    return seen === null ? null : { texts: [seen].flat(), copes: error === null };
  };
  return { how, see, looks };
}

export function inTaken(describe: (data: Fields) => string, looks?: Looks): Point {
  const ifTaken = (data: Fields) => (data["available"] === false ? describe(data) : null);
  return inData("check", "the check of a taken name", ifTaken, looks);
}

export function inList(how: string, describe: (list: RawList) => string | null, looks: Looks): Point {
  const see: Point["see"] = ({ calls: { domains } }) => {
    const list = listIn(dataOf(domains.answer));
    const seen = list && describe(list);
    return seen === null ? null : { texts: [seen], copes: domains.error === null };
  };
  return { how, see, looks };
}

/** The record that was requested, then those of the list. */
export function recordsOf({ calls: { domain, domains }, isOwn }: Contact) {
  const items = listIn(dataOf(domains.answer))?.items ?? [];
  const pairs = items.map((item, at) => ({ raw: recordIn(item), read: domains.read?.[at] ?? null }));
  if (isOwn) pairs.unshift({ raw: recordIn(dataOf(domain.answer)), read: domain.read });
  return pairs.flatMap(({ raw, read }) => {
    if (raw === null) return [];
    const valueOf = (role: Role): unknown => raw.fields.get(role)?.value;
    /** Whether the service read this field; an empty one doesn't have to be read. */
    const isRead = (role: Role) => read !== null && (isEmpty(valueOf(role)) || !isEmpty(read[role]));
    return [{ raw, valueOf, isRead }];
  });
}

/** Shown by the records' fields with these roles. */
export function inRecords(roles: readonly Role[], describe: (value: unknown) => string, looks: Looks): Point {
  const see: Point["see"] = (contact) => {
    const fields = recordsOf(contact)
      .flatMap(({ valueOf, isRead }) => roles.map((role) => ({ value: valueOf(role), copes: isRead(role) })))
      .filter(({ value }) => !isEmpty(value));
    // Sorted, because the original order would reveal something about the account.
    const texts = [...new Set(fields.map(({ value }) => describe(value)))].sort();
    return { texts, copes: fields.every(({ copes }) => copes) };
  };
  return { how: "an account with a domain", see, looks };
}

/** Whether this kind of error is independent of the requested domain. */
export function isAboutNoDomain(kind: Kind): boolean {
  return kind === "limit" || kind === "credential" || kind === "access";
}

const ERRORS = {
  any: "any error, such as that for a name outside the account",
  limit: "more calls than the limit: not provoked",
  credential: "a call with a revoked credential: not provoked",
  access: "a call from an address outside the allowlist: not provoked",
  input: "an invalid request: not provoked",
};

/** Shown by the first error of this kind that shows something. Of any kind, rate limits come last: a proxy may have produced them. */
export function inErrors(
  kind: keyof typeof ERRORS,
  describe: (answer: Answer) => string | null = ({ status }) => `status ${status}`,
  looks?: Looks,
): Point {
  const see: Point["see"] = ({ calls }) => {
    const all: Call[] = Object.values(calls);
    const inOrder = [...all.filter(({ answer }) => answer?.kind !== "limit"), ...all];
    for (const { operation, answer, error, read } of inOrder) {
      if (answer === null || answer.kind === "success" || (kind !== "any" && kind !== answer.kind)) continue;
      const seen = describe(answer);
      const isAbsent = operation === "domain" && !isAboutNoDomain(answer.kind);
      const copes = isAbsent ? error === null && read === null : error !== null;
      if (seen !== null) return { texts: [seen], copes };
    }
    return null;
  };
  return { how: ERRORS[kind], see, looks };
}

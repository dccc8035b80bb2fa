/**
 * What an error of the upstream means. Its document shows neither the statuses nor the codes of errors, so both are considered: a rate limit
 * first, because it must pause all calls, and a refused credential only if nothing else is possible.
 */
import type { DomainName } from "../domain-name.js";
import { walk } from "./fields.js";

export type Meaning =
  | "limit"
  | "credential"
  /** The requested domain isn't managed by the reseller. */
  | "absent"
  | "failure";

export interface Refusal {
  readonly status: number;
  /** Whether there is a Retry-After header. */
  readonly hasRetryAfter: boolean;
  /** The parsed JSON, or the text if it isn't JSON. */
  readonly body: unknown;
  /** Whether the call requested the record of one domain. */
  readonly isRecord: boolean;
  /** The name in the request; text that repeats it isn't the upstream's own. */
  readonly asked: DomainName | null;
}

export function meaningOf({ status, hasRetryAfter, body, isRecord, asked }: Refusal): Meaning {
  if (status === 429) return "limit";
  if (status === 404) return "absent";
  const said = meaningOfText(body, asked);
  if (said === "limit") return "limit";
  // A proxy that limits the rate uses other words, or none.
  if (hasRetryAfter && (status === 403 || status === 503 || status === 200)) return "limit";
  if (status === 401) return "credential";
  if (isRecord && status < 500 && said === "absent") return "absent";
  if (status === 403) return isRecord && said !== "credential" ? "absent" : "credential";
  if ((status === 200 || status === 400) && said === "credential") return "credential";
  return "failure";
}

/** Matched in this order against every code and sentence of the error. Any character may join the words of a code. */
const PATTERNS: readonly (readonly [Exclude<Meaning, "failure">, RegExp])[] = [
  [
    "limit",
    /rate.?limit|too.?many.?(?:request|call|attempt)|throttl|quota.{0,12}(?:exceed|exhaust|reached)|(?:request|call|usage).?(?:limit|quota)|slow.?down|^429$/i,
  ],
  ["absent", /not.?(?:be.?)?(?:found|managed|owned)|no.?such|(?:does|do).?(?:not|n.t).?exist|^404$/i],
  [
    "credential",
    /credential|unauthenticated|authentication|unauthori[sz]ed|not.?authori[sz]ed|(?:api|service).?(?:key|secret|access)|(?:invalid|wrong|missing|expired|unknown).?(?:key|secret|token|signature)|(?:ip|address).{0,24}(?:allowed|allow.?list|white.?list)|^401$/i,
  ],
];

function meaningOfText(body: unknown, asked: DomainName | null): Meaning {
  const texts = textsIn(body).filter((text) => asked === null || !repeats(text, asked));
  return PATTERNS.find(([, words]) => texts.some((text) => words.test(text)))?.[0] ?? "failure";
}

/** A visitor who searches for too-many-requests.af must not be able to pause the service when an error repeats the name. */
function repeats(text: string, { ascii, unicode, label }: DomainName): boolean {
  const lower = text.toLowerCase();
  if (lower.includes(ascii) || lower.includes(unicode)) return true;
  if (!/\s/.test(text)) return lower === label;
  return lower.split(/[^\p{L}\p{N}-]+/u).includes(label);
}

const LIMITS = { depth: 5, values: 500 };
const MAX_TEXT_LENGTH = 2000;

/** The texts of an error object, and its numeric codes and statuses. `data` isn't part of the error. */
function textsIn(body: unknown): string[] {
  const texts: string[] = [];
  walk([body], LIMITS, (value, path) => {
    const name = path.at(-1) ?? "";
    if (name === "data") return false;
    if (typeof value === "string") texts.push(value.slice(0, MAX_TEXT_LENGTH));
    else if (typeof value === "number" && /code|status/i.test(name)) texts.push(String(value));
    return true;
  });
  return texts;
}

/**
 * What the upstream means when it does not give what was asked for. Its document shows neither statuses nor codes of errors, so both are
 * weighed: a limit before anything else, because it must pause us, and a credential only where nothing else can be meant.
 */
import type { DomainName } from "../domain-name.js";

export type Meaning =
  | "limit"
  | "credential"
  /** The domain asked for is not the reseller's. */
  | "absent"
  | "failure";

export interface Refusal {
  readonly status: number;
  /** Whether the answer has a Retry-After. */
  readonly hasRetryAfter: boolean;
  /** The body: JSON, or a text where it is none. */
  readonly body: unknown;
  /** Whether one domain's record was asked for. */
  readonly isRecord: boolean;
  /** The name that was asked about: a text that repeats it is not the upstream's own words. */
  readonly asked: DomainName | null;
}

export function meaningOf({ status, hasRetryAfter, body, isRecord, asked }: Refusal): Meaning {
  if (status === 429) return "limit";
  if (status === 404) return "absent";
  const said = saying(body, asked);
  if (said === "limit") return "limit";
  // A proxy that limits has words of its own or none at all.
  if (hasRetryAfter && (status === 403 || status === 503 || status === 200)) return "limit";
  if (status === 401) return "credential";
  if (isRecord && status < 500 && said === "absent") return "absent";
  if (status === 403) return isRecord && said !== "credential" ? "absent" : "credential";
  if ((status === 200 || status === 400) && said === "credential") return "credential";
  return "failure";
}

/** Tried in this order against every code and sentence of the error; words of a code may be joined by anything. */
const SAYINGS: readonly (readonly [Exclude<Meaning, "failure">, RegExp])[] = [
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

function saying(body: unknown, asked: DomainName | null): Meaning {
  const texts = textsIn(body).filter((text) => asked === null || !repeats(text, asked));
  return SAYINGS.find(([, words]) => texts.some((text) => words.test(text)))?.[0] ?? "failure";
}

/** Whoever searches for too-many-requests.af must not be able to pause the service by having the name repeated in an error. */
function repeats(text: string, { ascii, unicode, label }: DomainName): boolean {
  const lower = text.toLowerCase();
  if (lower.includes(ascii) || lower.includes(unicode)) return true;
  if (!/\s/.test(text)) return lower === label;
  return lower.split(/[^\p{L}\p{N}-]+/u).includes(label);
}

const MOST_TEXTS = 64;
const DEEPEST = 4;
const LONGEST_TEXT = 2000;

/** The texts of an error object, and the numbers that are a code or a status; `data` is not the error's. */
function textsIn(body: unknown): string[] {
  const texts: string[] = [];
  const walk = (value: unknown, name: string, depth: number): void => {
    if (texts.length >= MOST_TEXTS) return;
    if (typeof value === "string") texts.push(value.slice(0, LONGEST_TEXT));
    else if (typeof value === "number" && /code|status/i.test(name)) texts.push(String(value));
    else if (typeof value === "object" && value !== null && depth < DEEPEST) {
      for (const [key, inner] of Object.entries(value).slice(0, MOST_TEXTS)) {
        if (key !== "data") walk(inner, key, depth + 1);
      }
    }
  };
  walk(body, "", 0);
  return texts;
}

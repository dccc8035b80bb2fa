/**
 * Detects a secret in an answer, however it is encoded: with JSON or URL escapes, in another case, with spaces, invisible characters or
 * look-alikes, in base64, base64url or hex.
 */
import type { Credential } from "./credentials.js";

/** Shorter secrets could occur by chance. */
const MIN_SECRET_LENGTH = 8;

/** Prepared once for each credential. */
const formsOfCredentials = new WeakMap<Credential, readonly string[]>();

/** Whether the credential, or an encoding of it, occurs in the bytes; `asked`: the name in the request, which an answer may repeat. */
export function echoes(bytes: Uint8Array, credential: Credential, asked?: string): boolean {
  const forms = formsOfCredentials.get(credential) ?? formsOf(credential);
  formsOfCredentials.set(credential, forms);
  const texts = readingsOf(new TextDecoder().decode(bytes));
  const expected = asked === undefined ? [] : readingsOf(asked);
  return forms.some(
    (form) => texts.some((text) => text.includes(form)) && !expected.some((text) => text.includes(form)),
  );
}

function formsOf({ key, secret }: Credential): readonly string[] {
  return [key, secret].filter(({ length }) => length >= MIN_SECRET_LENGTH).flatMap(encodingsOf);
}

/** The text without escapes, and reduced to letters and digits. */
function readingsOf(text: string): readonly string[] {
  const plain = text.replaceAll(/\\(?:u([\da-f]{4})|(.))/gi, (_escape, code?: string, char?: string) =>
    code === undefined ? unescaped(char ?? "") : charOf(code),
  );
  const decoded = plain.replaceAll(/%([\da-f]{2})/gi, (_escape, code: string) => charOf(code));
  return [...new Set([plain, decoded])].map(bare).flatMap((reading) => [reading, folded(reading)]);
}

function charOf(code: string): string {
  return String.fromCharCode(parseInt(code, 16));
}

/** Escaped white space is dropped. */
function unescaped(char: string): string {
  return "bfnrt".includes(char) ? "" : char;
}

function encodingsOf(secret: string): readonly string[] {
  const hex = Buffer.from(secret).toString("hex");
  const encoded = [secret, hex, ...BASE64_OFFSETS.map((at) => base64At(at, secret))];
  return [bare(secret), ...encoded.map(folded).filter(({ length }) => length >= MIN_SECRET_LENGTH)];
}

function bare(text: string): string {
  return text.replaceAll("\\", "");
}

/** Lower-case letters and digits only. This also drops the two characters in which base64 and base64url differ. */
function folded(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, "");
}

/** How many bytes of other text can precede the secret in a group of three. */
const BASE64_OFFSETS = [0, 1, 2] as const;

/** The base64 of the secret at this offset in a group of three, without the characters that depend on its neighbours. */
function base64At(offset: 0 | 1 | 2, secret: string): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  const shared = { 0: 0, 1: 2, 2: 3 }[offset];
  const whole = Math.floor((bytes.length * 8) / 6);
  return bytes.toString("base64").slice(shared, whole);
}

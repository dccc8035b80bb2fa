/** The shop's identity, as shown in the storefront: the section `shop` of the retail config. Everything in it is optional. */
import { z } from "zod";

type Words = Readonly<Record<"en" | "fa" | "ps", string>>;

export interface ShopIdentity {
  /** In each language of the page; null: the page's own. */
  readonly name: Words | null;
  /** The address of the logo; null: the page's own. */
  readonly logo: string | null;
  readonly email: string | null;
  readonly phone: string | null;
  readonly terms: string | null;
  readonly privacy: string | null;
  /** Whether the price of a restore includes a renewal; null: not said. */
  readonly restoreIncludesRenewal: boolean | null;
}

export const nameSchema = z
  .string()
  .trim()
  .regex(/^.{1,60}$/, "must be 1 to 60 characters on one line");
const address = z
  .string()
  .refine(isAddress, "must be an https URL, or a path on the same host such as /terms");

export const namesSchema = z.strictObject({ en: nameSchema, fa: nameSchema, ps: nameSchema });
export const identitySchema = z.strictObject({
  name: z.unknown().optional(),
  logo: address.nullish(),
  contact: z
    .strictObject({
      email: z
        .string()
        .regex(/^[^\s@:?&]{1,64}@[^\s@:?&]{1,190}$/, "must be an e-mail address")
        .nullish(),
      phone: z
        .string()
        .regex(/^\+?\d[\d ()-]{3,30}$/, 'must be a phone number in quotes, such as "+93 20 000 0000"')
        .nullish(),
    })
    .nullish(),
  restoreIncludesRenewal: z.boolean("must be true or false").nullish(),
  links: z.strictObject({ terms: address.nullish(), privacy: address.nullish() }).nullish(),
});

/** Whether the text is safe in the page's Content-Security-Policy and as a link, which must not run a script. */
function isAddress(text: string): boolean {
  if (/[\s"'<>\\;,]/.test(text)) return false;
  if (text.startsWith("/")) return !text.startsWith("//");
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && url.protocol === "https:" && url.username === "" && url.password === "";
}

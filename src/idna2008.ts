/**
 * Which labels IDNA 2008 permits (RFC 5892). UTS 46 is more lenient, so that browsers can reach names that were once registered: it permits emoji
 * and other symbols, which registries reject.
 */

/** Code points that are disallowed although their category is permitted, and those of ignored blocks (RFC 5892, sections 2.4, 2.6, 2.9). */
const DISALLOWED =
  /[\u20D0-\u20FF\u0640\u07FA\u302E\u302F\u3031-\u3035\u303B\u1100-\u11FF\uA960-\uA97F\uD7B0-\uD7FF\u{1D100}-\u{1D24F}]/u;
/** Letters, digits, marks, hyphens, joiners, and exceptions, some of them valid only in a context (sections 2.1, 2.2, 2.6, 2.8). */
const PERMITTED =
  /[\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}\p{Join_Control}\u002D\u00B7\u0375\u05F3\u05F4\u06FD\u06FE\u0F0B\u3007\u30FB]/u;

/** The pattern that a label must match if it contains the first (appendices A.3 to A.9; UTS 46 checks the joiners). */
const IN_CONTEXT: readonly (readonly [RegExp, RegExp])[] = [
  [/\u00B7/u, /^(?:(?<=l)\u00B7(?=l)|[^\u00B7])*$/u],
  [/\u0375/u, /^(?:\u0375(?=\p{Script=Greek})|[^\u0375])*$/u],
  [/[\u05F3\u05F4]/u, /^(?:(?<=\p{Script=Hebrew})[\u05F3\u05F4]|[^\u05F3\u05F4])*$/u],
  [/\u30FB/u, /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u],
  [/[\u0660-\u0669]/u, /^[^\u06F0-\u06F9]*$/u],
];

/** The first character that isn't permitted, at all or in its position; null for a permitted label. */
export function forbiddenIn(label: string): string | null {
  for (const character of label)
    if (!PERMITTED.test(character) || DISALLOWED.test(character)) return character;
  const broken = IN_CONTEXT.find(([special, context]) => special.test(label) && !context.test(label));
  return broken === undefined ? null : (broken[0].exec(label)?.[0] ?? null);
}

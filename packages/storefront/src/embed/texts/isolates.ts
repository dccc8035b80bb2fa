/** Isolates, so that text of one writing direction, such as a name and its dots, stays in place within a sentence of the other. */

/** Text in Latin letters. */
export function latin(text: string): string {
  return `\u2066${text}\u2069`;
}

/** Text in whichever direction it is written. */
export function isolated(text: string): string {
  return `\u2068${text}\u2069`;
}

export function partOf(document: object, tags: readonly string[]): object;

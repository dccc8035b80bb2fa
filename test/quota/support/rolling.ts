/** Counts calls as strictly as the upstream may. */

/** The maximum number of arrivals in any window. Two arrivals exactly one window apart count as being in the same window. */
export function largestWindow(arrivals: readonly number[], windowMs: number): number {
  const sorted = [...arrivals].sort((a, b) => a - b);
  let first = 0;
  let largest = 0;
  for (const [index, at] of sorted.entries()) {
    while (at - (sorted[first] ?? at) > windowMs) first += 1;
    largest = Math.max(largest, index - first + 1);
  }
  return largest;
}

/** The clock by which everything that waits, expires or counts down is measured, so that nothing lasts longer than promised when the device's clock is set. */

let leadMs = -Infinity;

/**
 * In ms since the epoch, like `Date.now()`, but it never goes back: after the device's clock has been set back, it continues at the same pace. It also
 * counts the time for which the device sleeps, which `performance.now()` leaves out in some browsers.
 */
export function now(): number {
  const steadyMs = Math.round(performance.now());
  leadMs = Math.max(leadMs, Date.now() - steadyMs);
  return steadyMs + leadMs;
}

/** How far `now()` is ahead of the device's clock. A time of `now()` minus this is the time of day to show or store. */
export function aheadMs(): number {
  return now() - Date.now();
}

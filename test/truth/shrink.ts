/** Shrinks a failing history: it removes steps, then simplifies those that remain, as long as the failure persists. */
import type { History, Step } from "./history.js";

export async function shrink(
  history: History,
  stillFails: (candidate: History) => Promise<boolean>,
): Promise<History> {
  let best = history;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length;) {
      const candidate = [...best.slice(0, at), ...best.slice(at + size)];
      if (candidate.length > 0 && (await stillFails(candidate))) best = candidate;
      else at += size;
    }
  }
  for (let at = 0; at < best.length; at += 1) {
    for (const simpler of simplerThan(best[at])) {
      const candidate = best.with(at, simpler);
      if (await stillFails(candidate)) {
        best = candidate;
        break;
      }
    }
  }
  return best;
}

/** Simplest first. */
function simplerThan(step: Step | undefined): readonly Step[] {
  if (step === undefined) return [];
  if ("pass" in step) return [1_000, 10_000].filter((ms) => ms < step.pass).map((ms) => ({ pass: ms }));
  if ("restart" in step && step.restart > 0) return [{ restart: 0 }];
  if ("cart" in step && step.cart.length > 1) return step.cart.map((line) => ({ cart: [line] }));
  if ("hold" in step && step.calls > 1) return [{ ...step, calls: 1 }];
  if ("look" in step && step.years > 1) return [{ ...step, years: 1 }];
  return [];
}

/** Numbers, terms and times as staff read them, and the mean waits between two readings. */
import type { Overview } from "./staff-api.js";

const whole = new Intl.NumberFormat("en");
const time = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const dateAndTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** `1,843` */
export function count(value: number): string {
  return whole.format(value);
}

/** `1 domain`, `1,843 domains` */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** `13:05`; with its date unless that is today. */
export function timeOf(instant: string): string {
  const at = new Date(instant);
  return at.toDateString() === new Date().toDateString() ? time.format(at) : dateAndTimeOf(instant);
}

/** `25 Nov 2026, 13:05` */
export function dateAndTimeOf(instant: string): string {
  return dateAndTime.format(Date.parse(instant));
}

type Lane = keyof Overview["quota"]["lanes"];

export const LANES = [
  "checkout",
  "exact",
  "search",
  "account",
  "refresh",
  "suggestion",
] as const satisfies readonly Lane[];

type Lanes = { readonly quota: Pick<Overview["quota"], "lanes"> };

/**
 * Overviews count from startup. The mean wait of each lane's requests served since `before`, in ms; 0 if there
 * were none.
 */
export function meanWaits(now: Lanes, before: Lanes): number[] {
  return LANES.map((lane) => {
    const [later, earlier] = [now.quota.lanes[lane], before.quota.lanes[lane]];
    const served = later.served - earlier.served;
    return served > 0 ? (later.waitedMsTotal - earlier.waitedMsTotal) / served : 0;
  });
}

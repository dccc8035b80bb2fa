/** Numbers, terms and times as staff read them. */
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

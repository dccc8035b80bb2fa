export interface Alarm {
  readonly level: "bad" | "warn";
  readonly text: string;
  /** What to do about it. */
  readonly todo: string;
}

/** An alarm that begins with its condition and ends with it, on the staff page and as a notice. */
import { expect } from "@jest/globals";
import type { z } from "zod";
import { overviewShape } from "../../src/wire/overview.js";
import type { Condition, Scene } from "../support/conditions.js";
import { bearer, until } from "../support/service.js";
import { pass, type Receiver } from "./receiver.js";

type Alarm = z.infer<typeof overviewShape>["alarms"][number];

export async function alarmsOf({ service }: Scene): Promise<readonly Alarm[]> {
  const { body } = await service.ask("/v1/staff/overview", { headers: bearer("read") });
  return overviewShape.parse(body).alarms;
}

/** Its kind and text, and what it is raised by. */
export type Expected = readonly [kind: string, text: RegExp, condition: Condition];

/** Causes each condition after the other and ends it. Staff see its alarm with what to do, and are notified of its begin and end. */
export async function expectAlarms(
  scene: Scene,
  receiver: Receiver,
  alarms: readonly Expected[],
): Promise<void> {
  for (const [kind, text, condition] of alarms) {
    const raised = async (): Promise<Alarm | undefined> =>
      (await alarmsOf(scene)).find((alarm) => alarm.kind === kind && text.test(alarm.text));
    await pass(scene.clock, 15_000);
    const before = receiver.of(kind).length;
    const notices = (): string[] => receiver.of(kind).slice(before);
    expect([kind, await raised()]).toEqual([kind, undefined]);
    await condition.cause(scene);
    await until(async () => (await raised()) !== undefined, `the alarm ${kind}`);
    expect((await raised())?.todo).toMatch(/^[A-Z].{20,}\.$/);
    await pass(scene.clock, 15_000);
    expect([kind, notices()]).toEqual([kind, ["begun"]]);
    await condition.cure(scene);
    await until(async () => (await raised()) === undefined, `the end of the alarm ${kind}`);
    await pass(scene.clock, 90_000);
    expect([kind, notices()]).toEqual([kind, ["begun", "ended"]]);
  }
}

/** Servers run on one core and load on another, where the machine has two and `taskset` is there; elsewhere the system chooses. */
import { spawnSync } from "node:child_process";

const [serverCore, loadCore] = allowedCores();
const CORES =
  serverCore === undefined || loadCore === undefined ? null : { server: serverCore, load: loadCore };

export type Core = "server" | "load" | "any";

/** The command that runs `command` on this core; the process id stays its own. */
export function pinned(side: Core, command: readonly string[]): readonly string[] {
  return CORES && side !== "any" ? ["taskset", "-c", String(CORES[side]), ...command] : command;
}

export function coresInWords(): string {
  return CORES ? `servers on core ${CORES.server}, load on core ${CORES.load}` : "cores not pinned";
}

/** Runs this process on that core too, where it plays a part of the load. */
export function pinThisProcess(side: "server" | "load"): void {
  if (CORES) spawnSync("taskset", ["-cp", String(CORES[side]), String(process.pid)]);
}

/** Empty without taskset. */
function allowedCores(): number[] {
  const told = spawnSync("taskset", ["-cp", String(process.pid)], { encoding: "utf8" });
  if (told.error) return [];
  const ranges = /: ([\d,-]+)\s*$/.exec(told.stdout)?.[1]?.split(",") ?? [];
  return ranges.flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

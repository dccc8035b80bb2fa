/** Runs servers on one core and the load on another, if the machine has two and `taskset` is installed. Otherwise the system chooses. */
import { spawnSync } from "node:child_process";

const [serverCore, loadCore] = allowedCores();
const CORES =
  serverCore === undefined || loadCore === undefined ? null : { server: serverCore, load: loadCore };

type Core = "server" | "load";

/** Wraps `command` so that it runs on this core. Its process id is still that of the command. */
export function pinned(side: Core, command: readonly string[]): readonly string[] {
  return CORES ? ["taskset", "-c", String(CORES[side]), ...command] : command;
}

export function coresInWords(): string {
  return CORES ? `servers on core ${CORES.server}, load on core ${CORES.load}` : "cores not pinned";
}

/** Moves this process to that core too, for benchmarks in which it is part of the load. */
export function pinThisProcess(side: "server" | "load"): void {
  if (CORES) spawnSync("taskset", ["-cp", String(CORES[side]), String(process.pid)]);
}

/** The cores that this process may use; empty without taskset. */
function allowedCores(): number[] {
  const result = spawnSync("taskset", ["-cp", String(process.pid)], { encoding: "utf8" });
  if (result.error) return [];
  const ranges = /: ([\d,-]+)\s*$/.exec(result.stdout)?.[1]?.split(",") ?? [];
  return ranges.flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

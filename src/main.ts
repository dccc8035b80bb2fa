/** The entry point: loads the service, with cached compiled code if there is any, and starts it. Nothing else in the service reads process.env. */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { loadCached } from "./code-cache.js";
import type { serve } from "./service.js";

/**
 * Heap growth limit, as a percentage of the live heap. Short-lived entries of long-lived maps survive V8's minor collections, and by default
 * V8 lets them grow to several times the live heap: by 100 MB in a flood of new names.
 */
const HEAP_GROWTH_PERCENT = 50;

/**
 * V8 allocates all objects of a kind as old ones once many of them have survived minor collections, and whatever these refer to then survives as
 * well. Under load Node 24 did so in most starts, for good: a third of all new objects became old, and a hit cost twice the CPU and 90 MB more.
 */
setFlagsFromString("--no-allocation-site-pretenuring");

/**
 * On a single core, V8's helper threads take the CPU from the thread that answers, for a tick of the kernel (4 ms) at a time, so it collects
 * garbage itself. V8 would abort if parallel marking were also switched off after its start. Marking then takes longer, and Node 24 would let new
 * objects pile up until it ends (50 MB in a flood of hits), unless both kinds of collection may overlap as in earlier versions.
 */
const ONE_CORE_FLAGS = [
  "--no-concurrent-marking",
  "--no-concurrent-sweeping",
  "--no-parallel-scavenge",
  "--no-separate-gc-phases",
];
if (availableParallelism() === 1) for (const flag of ONE_CORE_FLAGS) setFlagsFromString(flag);

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

// The cache is next to the bundle, because write access to either is enough to change what runs.
const { exports, save } = loadCached(here("service.cjs"), here("compile-cache"));
if (!isService(exports)) throw new Error("service.cjs isn't the service");
// If it can't start, it ends the process.
process.once("exit", save);
await exports.serve(process.env);
save();
// Only now: startup produces little garbage, and V8 ignores a cache that was made with other flags.
setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);

function isService(value: unknown): value is { readonly serve: typeof serve } {
  return typeof value === "object" && value !== null && "serve" in value && typeof value.serve === "function";
}

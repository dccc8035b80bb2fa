/** The first module of the process: what must happen before the rest is loaded. The only reader of process.env. */
import module from "node:module";
import { fileURLToPath } from "node:url";

// Node 22 and later cache compiled code there. The cache is next to the bundle because write access to it is enough to change what runs. If the
// directory isn't writable, nothing is cached.
if ("enableCompileCache" in module && typeof module.enableCompileCache === "function")
  Reflect.apply(module.enableCompileCache, module, [
    fileURLToPath(new URL("compile-cache", import.meta.url)),
  ]);

const { serve } = await import("./service.js");
await serve(process.env);

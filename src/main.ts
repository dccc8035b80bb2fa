/** The entry point: does what must happen before other modules are loaded. The only reader of process.env. */
import module from "node:module";
import { fileURLToPath } from "node:url";

// Node 22 and later can cache compiled code. The cache is next to the bundle, because write access to either is enough to change what runs. If the
// directory isn't writable, nothing is cached.
if ("enableCompileCache" in module && typeof module.enableCompileCache === "function")
  Reflect.apply(module.enableCompileCache, module, [
    fileURLToPath(new URL("compile-cache", import.meta.url)),
  ]);

const { serve } = await import("./service.js");
await serve(process.env);

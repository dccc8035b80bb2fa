/** The first module of the process: what must happen before the rest is loaded. The only reader of process.env. */
import module from "node:module";
import { fileURLToPath } from "node:url";

// Node from 22 keeps compiled code there, beside the bundle, because whoever can write it decides what runs. Where it can't, nothing is kept.
if ("enableCompileCache" in module && typeof module.enableCompileCache === "function")
  Reflect.apply(module.enableCompileCache, module, [
    fileURLToPath(new URL("compile-cache", import.meta.url)),
  ]);

const { serve } = await import("./service.js");
await serve(process.env);

/** The sandbox as a process: environment, `--preset`, one start line, signals. */
import { existsSync, readFileSync } from "node:fs";
import { loadEnvFile } from "node:process";
import { parseArgs } from "node:util";
import { z } from "zod";
import type { ShapeSettings } from "./open-points.js";
import { PRESET_NAMES, shapeSettings } from "./presets.js";
import { startSandbox } from "./sandbox.js";

const port = z
  .string()
  .regex(/^\d{1,5}$/, "must be a port number")
  .transform(Number)
  .refine((number) => number <= 65_535, "must be a port number");
const environment = z.object({
  SANDBOX_PORT: port.default(4000),
  SANDBOX_CONTROL_PORT: port.default(4001),
  SANDBOX_CONFIG: z.string().min(1).optional(),
  HOST: z.string().min(1).default("127.0.0.1"),
});

const probed = z.object({ shapes: z.unknown() });

/** The shapes of a preset, or of a file that contains a result of the probe or settings. */
function shapesOf(preset: string): ShapeSettings {
  if (PRESET_NAMES.some((name) => name === preset)) return shapeSettings({ preset });
  let choice: unknown;
  try {
    // npm may have printed lines of its own before it.
    choice = JSON.parse(readFileSync(preset, "utf8").replace(/^[^{]*/, ""));
  } catch {
    throw new Error(
      `--preset must be one of ${PRESET_NAMES.join(", ")}, or a JSON file: ${preset} is neither`,
    );
  }
  const result = probed.safeParse(choice);
  return shapeSettings(result.success ? result.data.shapes : choice);
}

async function main(): Promise<void> {
  if (existsSync(".env")) loadEnvFile(".env");
  const { preset } = parseArgs({ options: { preset: { type: "string" } } }).values;
  const settings = environment.safeParse(process.env);
  if (!settings.success) {
    throw new Error(
      settings.error.issues.map(({ path, message }) => `${path.join(".")} ${message}`).join("\n"),
    );
  }
  const { SANDBOX_PORT, SANDBOX_CONTROL_PORT, SANDBOX_CONFIG, HOST } = settings.data;
  const sandbox = await startSandbox({
    port: SANDBOX_PORT,
    controlPort: SANDBOX_CONTROL_PORT,
    configFile: SANDBOX_CONFIG,
    host: HOST,
    shapes: preset === undefined ? undefined : shapesOf(preset),
  });
  const { key, secret } = sandbox.credential();
  console.log(
    `sandbox listening on ${sandbox.url}, control on ${sandbox.controlUrl}, ` +
      `UPSTREAM_SERVICE_KEY=${key} UPSTREAM_SERVICE_SECRET=${secret}`,
  );
  const stop = (): void => {
    void sandbox.close().then(() => process.exit(0));
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
});

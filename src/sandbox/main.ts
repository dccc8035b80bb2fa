/** The sandbox alone, as a process: the environment, one start line, the signals. */
import { z } from "zod";
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

async function main(): Promise<void> {
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

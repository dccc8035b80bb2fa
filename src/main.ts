/** The entry point: settings from the environment, and from `.env` in the working folder for what the environment doesn't set. */
import { existsSync } from "node:fs";
import { loadEnvFile } from "node:process";
import { serve } from "./service.js";

if (existsSync(".env")) loadEnvFile(".env");
await serve(process.env);

/** Reads settings one by one and collects every fault, each with the name of its setting, so that all are reported at once. */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Clock } from "../clock.js";
import { fileProblem, readFileText } from "../file-text.js";
import { ROOT } from "../root.js";
import { fileSecret, fixedSecret, type Secret } from "../secret.js";
import type { SecretFile } from "./secret-files.js";
import type { CredentialSource } from "../upstream/credentials.js";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The value of a variable without white space around it; null if it isn't set or empty. */
export function textOf(env: Environment, name: string): string | null {
  const value = env[name]?.trim();
  return value === undefined || value === "" ? null : value;
}

export class Settings {
  readonly faults: string[] = [];
  /** The files of all secrets read so far. */
  readonly secretFiles: SecretFile[] = [];
  readonly #env: Environment;
  readonly #clock: Clock;

  constructor(env: Environment, clock: Clock) {
    this.#env = env;
    this.#clock = clock;
  }

  fault(name: string, problem: string): void {
    this.faults.push(`${name}: ${problem}`);
  }

  text(name: string): string | null {
    return textOf(this.#env, name);
  }

  integer(name: string, standard: number, least: number, most: number): number {
    const text = this.text(name);
    if (text === null) return standard;
    const value = Number(text);
    if (/^\d{1,12}$/.test(text) && value >= least && value <= most) return value;
    this.fault(name, `must be a whole number from ${least} to ${most}`);
    return standard;
  }

  oneOf<T extends string>(name: string, standard: T, allowed: readonly T[]): T {
    const text = this.text(name);
    const found = text === null ? standard : allowed.find((word) => word === text);
    if (found === undefined) this.fault(name, `must be one of ${allowed.join(", ")}`);
    return found ?? standard;
  }

  /** Whether `name` or `name_FILE` is set. */
  isGiven(name: string): boolean {
    return [name, `${name}_FILE`].some((one) => this.text(one) !== null);
  }

  /** The secret in `name`, or in the file `name_FILE`; null if neither is set. Reports what `problemsIn` finds in it. */
  secret(name: string, problemsIn: (text: string) => readonly string[] = () => []): Secret | null {
    const secret = this.#secret(name, problemsIn);
    if (secret !== null) for (const problem of problemsIn(secret.current())) this.fault(name, problem);
    return secret;
  }

  #secret(name: string, problemsIn: (text: string) => readonly string[]): Secret | null {
    const value = this.#env[name];
    const path = this.text(`${name}_FILE`);
    if (value !== undefined && value !== "" && path !== null) {
      this.fault(name, `is set twice, directly and as ${name}_FILE: remove one`);
      return null;
    }
    if (path !== null) {
      try {
        const secret = fileSecret(path, this.#clock, problemsIn);
        this.secretFiles.push({ setting: `${name}_FILE`, secret });
        return secret;
      } catch (error) {
        this.fault(`${name}_FILE`, fileProblem(error));
        return null;
      }
    }
    return value === undefined || value === "" ? null : fixedSecret(value);
  }

  /** A key and its secret, which must be set together; null if neither is set. */
  credential(keyName: string, secretName: string): CredentialSource | null {
    const problemsIn = (text: string): readonly string[] =>
      /^[\x21-\x7e]{1,512}$/.test(text) ? [] : ["must be 1 to 512 printable characters without white space"];
    const key = this.secret(keyName, problemsIn);
    const secret = this.secret(secretName, problemsIn);
    if (key && secret) return { key, secret };
    const [hasKey, hasSecret] = [this.isGiven(keyName), this.isGiven(secretName)];
    if (hasKey && !hasSecret) this.fault(secretName, `is missing: ${keyName} needs it`);
    if (hasSecret && !hasKey) this.fault(keyName, `is missing: ${secretName} needs it`);
    return null;
  }
}

/** The path of a configured file, relative to the working folder, or that of the package's own. */
export function fileOf(settings: Settings, name: string, standard: string): string {
  const given = settings.text(name);
  return given === null ? fileURLToPath(new URL(standard, ROOT)) : resolve(given);
}

/** The text of a configured file, or null after reporting why it can't be read. */
export function readText(settings: Settings, name: string, standard: string): string | null {
  try {
    return readFileText(fileOf(settings, name, standard));
  } catch (error) {
    settings.fault(name, fileProblem(error));
    return null;
  }
}

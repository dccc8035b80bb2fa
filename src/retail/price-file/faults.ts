/** Reads values by their shapes and collects what is wrong with them, each fault with its path, in plain words. */
import { z } from "zod";

/** Collects the faults of all sections, so that one doesn't hide another. */
export class Reader {
  readonly faults: string[] = [];

  fault(path: string, message: string): void {
    this.faults.push(`${path === "" ? "the file" : path}: ${message}`);
  }

  /** The parsed value; undefined if invalid, after reporting all of its faults. */
  read<T>(schema: z.ZodType<T>, value: unknown, path: string): T | undefined {
    // A file is read too rarely for a compiled parser to pay off.
    const result = schema.safeParse(value, { error: plainWords, jitless: true });
    if (result.success) return result.data;
    for (const issue of result.error.issues) {
      const at = issue.path.reduce<string>(
        (text, key) => (typeof key === "number" ? `${text}[${key}]` : join(text, String(key))),
        path,
      );
      if (issue.code === "unrecognized_keys") {
        for (const key of issue.keys) this.fault(join(at, key), "is an unknown key");
      } else {
        this.fault(at, issue.message);
      }
    }
    return undefined;
  }

  list(value: unknown, path: string): readonly unknown[] {
    if (Array.isArray(value)) return value;
    this.fault(path, value === undefined || value === null ? "is missing" : "must be a list");
    return [];
  }

  record(value: unknown, path: string): Readonly<Record<string, unknown>> {
    if (isRecord(value)) return value;
    this.fault(path, "must be a mapping");
    return {};
  }
}

export function join(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const plainWords: z.core.$ZodErrorMap = (issue) => {
  if (issue.input === undefined) return "is missing";
  if (issue.code === "invalid_type") {
    return (
      { string: "must be text", array: "must be a list", object: "must be a mapping" }[
        String(issue.expected)
      ] ?? "must be a whole number"
    );
  }
  if (issue.code === "invalid_value") return `must be one of ${issue.values.map(String).join(", ")}`;
  if (issue.code === "too_small") return `must be at least ${issue.minimum}`;
  if (issue.code === "too_big") return `must be at most ${issue.maximum}`;
  return undefined;
};

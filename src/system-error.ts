/** What the system says about an error, by its code: the messages contain paths. */

/** The system's error code, such as "ENOENT"; empty for other errors. */
export function systemCodeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : "";
}

/** The reason of a failure for the log: the system's error code, or the error's class. */
export function failureReason(error: unknown): string {
  return systemCodeOf(error) || (error instanceof Error ? error.name : "unknown");
}

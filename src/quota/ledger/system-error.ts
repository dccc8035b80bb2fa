/** The system's error code, such as "ENOENT"; empty for other errors. */
export function systemCodeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : "";
}

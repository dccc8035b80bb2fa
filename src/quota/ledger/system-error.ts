/** What the operating system said, if it did: "ENOENT" and the like, or an empty string. */
export function systemCodeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : "";
}

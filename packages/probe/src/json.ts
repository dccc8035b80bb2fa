/** The JSON of an answer as the service parsed it: whole numbers are numbers, other numbers are objects of a class that holds their digits. */

export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is a JSON object. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** A number with a fraction or an exponent, with its original digits. */
export function isWrittenNumber(value: unknown): value is { readonly text: string } {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !isFields(value) &&
    "text" in value &&
    typeof value.text === "string"
  );
}

/** A field's name without case, `_`, `-` and spaces. */
export function normalized(name: string): string {
  return name.toLowerCase().replaceAll(/[_\- ]/g, "");
}

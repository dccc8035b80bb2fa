/** Resolves a choice of shapes (a preset, single settings, or both) to one setting for each open point, or reports unknown names. */
import { areShapeSettings, OPEN_POINTS, openPoints, type ShapeSettings } from "./open-points.js";

/** Common styles of API. What a preset doesn't name is as in `documented`. */
const PRESETS = {
  /** The plainest reading of the document. */
  documented: {},
  rails: {
    takenStatus: "unavailable",
    takenPricing: "absent",
    checkEcho: "years",
    dates: "fraction",
    nameservers: "objects",
    tierFields: "nested",
    quoteFields: "flat",
    listPaging: "counts",
    errorFields: "list",
    errorFlag: "absent",
    retryAfter: "date",
  },
  dotnet: {
    takenStatus: "not-available",
    recordFields: "pascal",
    recordWrapper: "domain",
    dates: "offset",
    statusWords: "title",
    tierFields: "camel",
    topTier: "absent",
    quoteFields: "wrapped",
    quoteAmount: "padded-number",
    listWrapper: "items",
    listPaging: "counts",
    errorFields: "problem",
    errorFlag: "absent",
    errorCodes: "pascal",
    inputStatus: 400,
    limitStatus: 503,
  },
  registry: {
    takenStatus: "registered",
    recordFields: "whois",
    dates: "month-name",
    autoRenew: "word",
    nameservers: "numbered",
    statusWords: "epp",
    listItems: "brief",
    listOrder: "name",
    notManaged: 403,
    errorCodes: "number",
    credentialStatus: 403,
    retryAfter: "absent",
  },
  legacy: {
    envelope: "meta",
    takenStatus: "UNAVAILABLE",
    takenPricing: "zero",
    recordFields: "date",
    recordWrapper: "domain",
    dates: "space",
    autoRenew: "text",
    nameservers: "text",
    statusWords: "upper",
    tierFields: "wrapped",
    topTier: "empty",
    quoteFields: "unit-and-total",
    listItems: "wrapped",
    listOrder: "newest",
    notManaged: "refusal-in-200",
    errorCodes: "upper",
    credentialStatus: 200,
    accessStatus: 200,
    inputStatus: 200,
    limitStatus: 200,
    retryAfter: "absurd",
  },
} as const satisfies Record<string, Partial<ShapeSettings>>;

export type PresetName = keyof typeof PRESETS;

/** A preset (default: `documented`) and the settings that differ from it. */
export type ShapeChoice = { readonly preset?: PresetName | undefined } & Partial<ShapeSettings>;

function isPreset(name: unknown): name is PresetName {
  return typeof name === "string" && Object.hasOwn(PRESETS, name);
}

export const PRESET_NAMES: readonly PresetName[] = Object.keys(PRESETS).filter(isPreset);

/** A choice with unknown names. Each fault is a sentence that lists the allowed ones. */
export class ShapeFault extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.name = "ShapeFault";
    this.faults = faults;
  }
}

/** The settings for an unvalidated choice, in which a number may be text and `null` unquoted. Throws a ShapeFault with every fault. */
export function shapeSettings(choice: unknown): ShapeSettings {
  if (typeof choice !== "object" || choice === null || Array.isArray(choice)) {
    throw new ShapeFault(["shapes must be a mapping of switches to settings"]);
  }
  const { preset = "documented", ...given }: { preset?: unknown } = choice;
  const points = openPoints();
  const faults: string[] = [];
  if (!isPreset(preset)) {
    faults.push(`preset: there is no ${quoted(preset)}; allowed: ${PRESET_NAMES.join(", ")}`);
  }
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(OPEN_POINTS, name)) continue;
    faults.push(`there is no switch ${quoted(name)}; allowed: ${points.map((one) => one.name).join(", ")}`);
  }
  const own = new Map<string, unknown>(Object.entries(given));
  const preferred = new Map<string, unknown>(Object.entries(isPreset(preset) ? PRESETS[preset] : {}));
  const chosen = Object.fromEntries(
    points.map(({ name, point: { settings } }) => {
      const wanted = [own.get(name), preferred.get(name), settings[0]].find((one) => one !== undefined);
      const setting = settings.find(
        (allowed) => allowed === wanted || String(allowed) === (wanted ?? "null"),
      );
      if (setting === undefined) {
        faults.push(`${name}: there is no setting ${quoted(wanted)}; allowed: ${settings.join(", ")}`);
      }
      return [name, setting];
    }),
  );
  if (faults.length > 0 || !areShapeSettings(chosen)) throw new ShapeFault(faults);
  return chosen;
}

function quoted(value: unknown): string {
  return JSON.stringify(value) ?? "such value";
}

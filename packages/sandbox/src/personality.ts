/** The shapes that the sandbox currently plays: chosen at startup, and changed while it runs. */
import type { ShapeSettings } from "./open-points.js";
import { type ShapeChoice, shapeSettings } from "./presets.js";
import { createShapes, type Shapes } from "./shapes.js";

export class Personality {
  #settings: ShapeSettings;
  #shapes: Shapes;

  /** Custom shapes are played until others are chosen. */
  constructor(chosen: ShapeChoice | Shapes) {
    const own = "failure" in chosen;
    this.#settings = shapeSettings(own ? {} : chosen);
    this.#shapes = own ? chosen : createShapes(this.#settings);
  }

  get settings(): ShapeSettings {
    return this.#settings;
  }

  get shapes(): Shapes {
    return this.#shapes;
  }

  /** Open points that the choice doesn't name return to the preset's setting. If it throws a ShapeFault, nothing changes. */
  choose(choice: unknown): void {
    this.#settings = shapeSettings(choice);
    this.#shapes = createShapes(this.#settings);
  }
}

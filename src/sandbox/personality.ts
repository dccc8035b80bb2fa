/** The shapes that the sandbox plays at this moment: chosen at its start, changed while it runs. */
import type { ShapeSettings } from "./open-points.js";
import { type ShapeChoice, shapeSettings } from "./presets.js";
import { createShapes, type Shapes } from "./shapes.js";

export class Personality {
  #settings: ShapeSettings;
  #shapes: Shapes;

  /** Shapes of one's own are played as they are, until others are chosen. */
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

  /** Every switch that the choice does not name goes back to its preset's setting. Throws a ShapeFault and changes nothing. */
  choose(choice: unknown): void {
    this.#settings = shapeSettings(choice);
    this.#shapes = createShapes(this.#settings);
  }
}

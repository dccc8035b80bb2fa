/** The answers of a sandbox that follows the plainest reading of the document, for tests that change some of them. */
import { shapeSettings } from "../../src/sandbox/presets.js";
import { createShapes, type Shapes } from "../../src/sandbox/shapes.js";

export const plainShapes: Shapes = createShapes(shapeSettings({ preset: "documented" }));

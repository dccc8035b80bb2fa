/** The answers of a sandbox that follows the plainest reading of the document, for tests that change some of them. */
import { shapeSettings } from "../../packages/sandbox/src/presets.js";
import { createShapes, type Shapes } from "../../packages/sandbox/src/shapes.js";

export const plainShapes: Shapes = createShapes(shapeSettings({ preset: "documented" }));

/** uPlot's own build for browsers is a plain script, so that its name is a global one. */
import type UPlot from "uplot";

declare global {
  const uPlot: typeof UPlot;
}

/** A chart of the last minutes, the last hour or the last day, in the colours of the page's light or dark theme. */
import UPlot from "uplot";
import { element } from "../../storefront/src/element.js";

interface Line {
  readonly label: string;
  /** A CSS custom property. */
  readonly colour: `--${string}`;
  readonly dashed?: boolean;
}

interface ChartSettings {
  readonly title: string;
  readonly lines: readonly Line[];
  /** Formats a value of the axis. */
  readonly format: (value: number) => string;
  /** The axis reaches at least this value. */
  readonly least: number;
}

interface Chart {
  readonly card: HTMLElement;
  /** Adds a value for each line; null is a gap. `now` is shown in large type, with `rest` next to it. */
  add(atMs: number, values: readonly (number | null)[], now: string, rest: string): void;
  /** Adds values between these times, oldest first: a column for each line. */
  past(
    times: readonly number[],
    columns: readonly (readonly (number | null)[])[],
    afterMs: number,
    beforeMs: number,
  ): void;
  /** Shows the last `seconds` seconds. */
  show(seconds: number): void;
  remove(): void;
}

interface Row {
  readonly atS: number;
  /** One for each line. */
  readonly values: readonly (number | null)[];
}

const DAY_S = 86_400;
/** A line ends where no values are known for longer. The history has a row each minute, and the last one is up to two minutes old. */
const GAP_S = 150;
const HEIGHT = 132;
const clockTime = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });

export function chart({ title, lines, format, least }: ChartSettings): Chart {
  const now = element("p", { class: "figure" }, "–");
  const rest = element("p", { class: "quiet" });
  const host = element("div", { class: "plot", role: "img", "aria-label": `${title}: no data yet` });
  const legend = element(
    "ul",
    { class: "legend" },
    ...lines.map(({ label, colour }) => {
      const key = element("li", { class: "key" }, label);
      key.style.setProperty("--key", `var(${colour})`);
      return key;
    }),
  );
  const card = element(
    "div",
    { class: "card panel chart" },
    element("h3", {}, title),
    element("div", { class: "figures" }, now, rest),
    host,
    lines.length > 1 && legend,
  );
  let rows: readonly Row[] = [];
  function data(): UPlot.AlignedData {
    const drawn = rows.flatMap((row, at): Row[] => {
      const sinceS = row.atS - (rows[at - 1]?.atS ?? row.atS);
      return sinceS > GAP_S ? [{ atS: row.atS - 1, values: [] }, row] : [row];
    });
    return [
      drawn.map(({ atS }) => atS),
      ...lines.map((_, index) => drawn.map(({ values }) => values[index] ?? null)),
    ];
  }
  const colour = (name: string): string => getComputedStyle(host).getPropertyValue(name).trim();
  const font = (): string => `11px ${getComputedStyle(host).fontFamily}`;
  const axis = { stroke: () => colour("--quiet"), font: font(), ticks: { show: false } };
  const grid = { stroke: () => colour("--line"), width: 1 };

  let shownS = 600;
  let said = "";
  let plot: UPlot | null = null;

  const lastS = (): number => rows.at(-1)?.atS ?? 0;
  const known = (index: number): number =>
    rows.filter(({ values }) => (values[index] ?? null) !== null).length;

  function describe(): void {
    const span = shownS === DAY_S ? "day" : shownS === 3_600 ? "hour" : "ten minutes";
    host.setAttribute("aria-label", `${title} in the last ${span}; now ${said}`);
  }
  function draw(): UPlot {
    return new UPlot(
      {
        width: Math.max(160, host.clientWidth),
        height: HEIGHT,
        padding: [8, 4, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { range: () => [lastS() - shownS, lastS()] },
          y: { range: (_plot, _low, high) => [0, Math.max(least, (Number.isFinite(high) ? high : 0) * 1.1)] },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 22,
            space: 70,
            values: (_plot, marks) => marks.map((mark) => clockTime.format(mark * 1000)),
          },
          { ...axis, grid, size: 46, space: 32, values: (_plot, marks) => marks.map(format) },
        ],
        series: [
          {},
          ...lines.map((line, index) => ({
            label: line.label,
            stroke: () => colour(line.colour),
            width: line.dashed === true ? 1 : 2,
            ...(line.dashed === true && { dash: [4, 4] }),
            // A few values alone are hardly visible as a line.
            points: {
              show: () => known(index) < 3 && line.dashed !== true,
              size: 6,
              fill: colour(line.colour),
            },
          })),
        ],
      },
      data(),
      host,
    );
  }

  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const recolour = (): void => plot?.redraw(false, true);
  scheme.addEventListener("change", recolour);
  const sized = new ResizeObserver(() =>
    plot?.setSize({ width: Math.max(160, host.clientWidth), height: HEIGHT }),
  );
  sized.observe(host);

  return {
    card,
    add(atMs, values, large, beside) {
      const atS = atMs / 1000;
      rows = [...rows, { atS, values }].filter((row) => row.atS >= atS - DAY_S);
      if (plot === null) plot = draw();
      else plot.setData(data());
      now.textContent = large;
      rest.textContent = beside;
      said = `${large} ${beside}`;
      describe();
    },
    past(times, columns, afterMs, beforeMs) {
      const between = times.flatMap((atMs, at): Row[] =>
        atMs > afterMs && atMs < beforeMs
          ? [{ atS: atMs / 1000, values: columns.map((column) => column[at] ?? null) }]
          : [],
      );
      const earlier = rows.filter(({ atS }) => atS < beforeMs / 1000);
      rows = [...earlier, ...between, ...rows.slice(earlier.length)];
      plot?.setData(data());
    },
    show(seconds) {
      shownS = seconds;
      plot?.setData(data());
      describe();
    },
    remove() {
      scheme.removeEventListener("change", recolour);
      sized.disconnect();
      plot?.destroy();
    },
  };
}

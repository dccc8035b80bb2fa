/** The current state: charts of up to a day of what staff decide by (the Grafana dashboard has the rest), tables of lanes and operations, credentials, and alarms. */
import { button, byId, element } from "../../storefront/src/element.js";
import { showAlarms, showNotices } from "./alarms.js";
import { chart } from "./chart.js";
import { count, counted, LANES, meanWaits, timeOf } from "./figures.js";
import type { History, Overview } from "./staff-api.js";
import { numbers, table, words } from "./table.js";

/** The mean since an older reading says nothing about now. */
const RECENT_MS = 90_000;

const decimal = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
/** With the day, because a time can be from yesterday: the page stays open overnight. */
const time = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});

/** `840 ms`, `2.4 s` */
function duration(ms: number): string {
  return ms < 1000 ? `${count(Math.round(ms))} ms` : `${decimal.format(ms / 1000)} s`;
}

/** `history` asks for the figures of the last day. */
export function overviewView(history: () => Promise<History>) {
  const quota = chart({
    title: "Quota in use",
    lines: [
      { label: "calls in the window", colour: "--line-1" },
      { label: "budget", colour: "--quiet", dashed: true },
    ],
    format: count,
    least: 10,
  });
  const waits = chart({
    title: "Waits by lane",
    lines: LANES.map((lane, index) => ({ label: lane, colour: `--line-${index + 1}` as const })),
    format: duration,
    least: 1000,
  });
  const failures = chart({
    title: "Upstream errors",
    lines: [{ label: "failed calls in the last ten minutes", colour: "--line-5" }],
    format: count,
    least: 5,
  });
  const lanes = element("div", { class: "card panel" });
  const operations = element("div", { class: "card panel" });
  const charts = [quota, waits, failures];
  offerSpans((seconds) => {
    for (const one of charts) one.show(seconds);
  });
  byId("charts", HTMLDivElement).replaceChildren(...charts.map(({ card }) => card));
  byId("figures", HTMLDivElement).replaceChildren(lanes, operations);
  let before: { readonly atMs: number; readonly overview: Overview } | null = null;

  /** Adds figures from a time without readings to the charts. If the history can't be loaded, their lines have a gap. */
  function fillIn(afterMs: number, beforeMs: number): void {
    history().then(
      ({ at, used, budget, waitMs, failed }) => {
        const times = at.map((instant) => Date.parse(instant));
        quota.past(times, [used, budget], afterMs, beforeMs);
        waits.past(
          times,
          LANES.map((lane) => waitMs[lane]),
          afterMs,
          beforeMs,
        );
        failures.past(times, [failed], afterMs, beforeMs);
      },
      () => undefined,
    );
  }

  /** Doesn't redraw a card that has the focus, so that keyboard users don't lose their place. */
  function fill(card: HTMLElement, title: string, figures: HTMLElement): void {
    if (!card.contains(document.activeElement)) card.replaceChildren(element("h3", {}, title), figures);
  }

  function showLanes(overview: Overview): void {
    const columns = [...words("Lane"), ...numbers("Waiting", "Served", "Refused", "Longest wait")];
    const rows = LANES.map((lane) => {
      const { queued, served, refused, longestWaitMs } = overview.quota.lanes[lane];
      return [lane, count(queued), count(served), count(refused), duration(longestWaitMs)];
    });
    fill(lanes, "Lanes since startup", table("Lanes since startup", columns, rows));
  }

  function showOperations({ upstream }: Overview): void {
    const columns = [...words("Operation"), ...numbers("Calls", "Failed", "Mean", "95th percentile")];
    const rows = upstream.recent.operations.map(({ operation, calls, failed, meanMs, p95Ms }) => [
      operation,
      count(calls),
      failed > 0 ? element("span", { class: "bad" }, count(failed)) : "0",
      duration(meanMs),
      duration(p95Ms),
    ]);
    const title = "Upstream operations in the last ten minutes";
    fill(operations, title, table(title, columns, rows));
  }

  return {
    show(overview: Overview): void {
      const atMs = Date.now();
      const recent = before !== null && atMs - before.atMs <= RECENT_MS ? before.overview : null;
      if (recent === null) fillIn(before?.atMs ?? 0, atMs);
      const means = recent === null ? null : meanWaits(overview, recent);
      const { used, budget, largestWindowToday, windowMs, lanes: queue } = overview.quota;
      const { operations: calls } = overview.upstream.recent;
      const sumOf = (counts: readonly number[]) => counts.reduce((sum, one) => sum + one, 0);
      const failed = sumOf(calls.map((one) => one.failed));
      quota.add(
        atMs,
        [used, budget],
        `${count(used)} of ${count(budget)}`,
        `calls in ${duration(windowMs)}; at most ${count(largestWindowToday)} today`,
      );
      waits.add(
        atMs,
        means ?? LANES.map(() => null),
        means === null ? "–" : duration(Math.max(...means)),
        `longest mean wait of a lane; ${count(sumOf(LANES.map((lane) => queue[lane].queued)))} waiting`,
      );
      failures.add(
        atMs,
        [failed],
        count(failed),
        `of ${counted(sumOf(calls.map((one) => one.calls)), "call")} in ten minutes`,
      );
      showLanes(overview);
      showOperations(overview);
      showCredentials(overview);
      showAlarms(overview.alarms);
      showNotices(overview.notices);
      const mode = byId("mode", HTMLParagraphElement);
      mode.hidden = false;
      mode.textContent = overview.mode === "sandbox" ? "Sandbox" : "Live";
      byId("updated", HTMLParagraphElement).textContent = `as of ${time.format(atMs)}`;
      before = { atMs, overview };
    },
    remove(): void {
      for (const one of charts) one.remove();
      byId("mode", HTMLParagraphElement).hidden = true;
    },
  };
}

const SPANS = [
  ["10 minutes", 600],
  ["1 hour", 3_600],
  ["1 day", 86_400],
] as const;

/** Buttons to choose the time span of the charts. */
function offerSpans(choose: (seconds: number) => void): void {
  const buttons = SPANS.map(([words, seconds], index) =>
    button(
      { class: "button second small", "aria-pressed": String(index === 0) },
      () => {
        for (const [other, one] of buttons.entries())
          one.setAttribute("aria-pressed", String(other === index));
        choose(seconds);
      },
      words,
    ),
  );
  byId("spans", HTMLDivElement).replaceChildren(...buttons);
}

function showCredentials({ credentials, upstream }: Overview): void {
  const { lastSuccessAt, lastFailureAt } = upstream;
  const at = (instant: string | null): string => (instant === null ? "none since startup" : timeOf(instant));
  byId("credentials", HTMLDivElement).replaceChildren(
    element(
      "ul",
      { class: "rows" },
      ...credentials.map(({ role, fingerprint, refused }) =>
        element(
          "li",
          {},
          element("span", {}, role, " ", element("code", {}, fingerprint)),
          element("span", { class: `state ${refused ? "bad" : "good"}` }, refused ? "refused" : "accepted"),
        ),
      ),
    ),
    element(
      "p",
      { class: "quiet" },
      `Last answer: ${at(lastSuccessAt)}. Last failure: ${at(lastFailureAt)}.`,
    ),
  );
}

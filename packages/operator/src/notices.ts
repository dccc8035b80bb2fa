/** Shows why the page isn't up to date, each reason once, and counts down to the next retry. */
import { now } from "../../client/src/clock.js";
import { Countdown } from "../../storefront/src/countdown.js";
import { byId } from "../../storefront/src/element.js";

export function noticeBoard() {
  const notice = byId("notice", HTMLParagraphElement);
  const words = byId("notice-words", HTMLSpanElement);
  const left = byId("notice-left", HTMLSpanElement);
  const reasons = new Map<string, { readonly text: string; readonly retryAt: number }>();
  const countdown = new Countdown();

  function show(): void {
    const all = [...reasons.values()];
    const text = [...new Set(all.map((reason) => reason.text))].join(" ");
    notice.hidden = text === "";
    if (words.textContent !== text) words.textContent = text;
    if (text === "") return countdown.stop();
    countdown.start(Math.min(...all.map(({ retryAt }) => retryAt)), (seconds) => {
      left.textContent = seconds > 0 ? `Retrying in ${seconds} s.` : "Retrying…";
    });
  }
  return {
    set(part: string, text: string, retryInMs: number): void {
      reasons.set(part, { text, retryAt: now() + retryInMs });
      show();
    },
    clear(part?: string): void {
      if (part === undefined) reasons.clear();
      else reasons.delete(part);
      show();
    },
  };
}

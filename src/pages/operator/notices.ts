/** Shows why the page isn't up to date, each reason once, and counts down to the next try. */
import { Countdown } from "../countdown.js";
import { byId } from "../element.js";

export function noticeBoard() {
  const notice = byId("notice", HTMLParagraphElement);
  const words = byId("notice-words", HTMLSpanElement);
  const left = byId("notice-left", HTMLSpanElement);
  const reasons = new Map<string, string>();
  const countdown = new Countdown();

  function show(): void {
    const text = [...new Set(reasons.values())].join(" ");
    notice.hidden = text === "";
    if (words.textContent !== text) words.textContent = text;
    if (text === "") countdown.stop();
  }
  return {
    set(part: string, text: string, retryInMs: number): void {
      reasons.set(part, text);
      countdown.start(Date.now() + retryInMs, (seconds) => {
        left.textContent = seconds > 0 ? `Retrying in ${seconds} s.` : "Retrying…";
      });
      show();
    },
    clear(part?: string): void {
      if (part === undefined) reasons.clear();
      else reasons.delete(part);
      show();
    },
  };
}

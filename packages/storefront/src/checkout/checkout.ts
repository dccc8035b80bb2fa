/** The demo checkout: shows the cart whose signature the service verified, in the language chosen in the shop. */
import { aheadMs, now } from "../../../client/src/clock.js";
import { Countdown } from "../countdown.js";
import { byId, element, embedded } from "../element.js";
import type { CheckoutLine, CheckoutView } from "../../../../src/wire/pages.js";
import { amount, clock, tagOf, textsIn, timeWithDay, years } from "../embed/language.js";
import { sumOf } from "../money.js";
import { stored } from "../embed/storage.js";
import { CHECKOUT_TEXTS } from "./texts.js";

const texts = textsIn(stored("language"));
const words = CHECKOUT_TEXTS[texts.language];
const view = embedded("view");

document.documentElement.lang = tagOf(texts);
document.documentElement.dir = texts.direction;
document.title = words.heading;
write("heading", words.heading);
write("back", words.back);
// Counts from when the page was requested: its script may have taken long to load.
if (view.kind === "good") showOrder(view.lines, now() - Math.round(performance.now()) + view.validForMs);
else notice(view.kind);

function showOrder(lines: readonly CheckoutLine[], untilMs: number): void {
  write("lead", words.good);
  write("name-column", words.name);
  write("term-column", words.term);
  write("price-column", words.price);
  byId("lines", HTMLElement).replaceChildren(
    ...lines.map(({ unicodeName, years: term, price }) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, element("bdi", { dir: "ltr" }, unicodeName)),
        element("td", {}, years(texts, term)),
        element("td", {}, amount(texts, price)),
      ),
    ),
  );
  const total = sumOf(lines.map(({ price }) => price)).map((money) => amount(texts, money));
  write("total", words.total(total.join(" + ")));
  byId("order", HTMLElement).hidden = false;
  notice("good");
  const until = byId("until", HTMLElement);
  new Countdown().start(untilMs, (left) => {
    until.textContent = words.heldUntil(
      timeWithDay(texts, untilMs - aheadMs()),
      texts.left(clock(texts, left)),
    );
    if (left > 0) return;
    byId("order", HTMLElement).hidden = true;
    write("lead", "");
    notice("expired");
  });
}

function notice(kind: CheckoutView["kind"]): void {
  write("notice", words.notices[kind]);
  byId("notice", HTMLElement).dataset["kind"] = kind;
}

function write(id: string, text: string): void {
  byId(id, HTMLElement).textContent = text;
}

/** Draws the search box with what can be searched instead, and says how the search stands. */
import { html } from "lit-html";
import { canBeName } from "../../../client/src/search-as-you-type.js";
import { secondsTo } from "./cart-view.js";
import { count, seconds, years } from "./language.js";
import type { Meaning } from "./query.js";
import { hasUnknown, type Row } from "./rows.js";
import type { Scene } from "./scene.js";
import { isolated } from "./texts/isolates.js";
import { causeOf, wordsFor } from "./texts/texts.js";

const EXAMPLES = ["kabul", "gold.af", "google.af", "کابل"];
/** A search that still has this many of its 30 seconds left, and no answer, is called slow. */
const SLOW_WITH_LEFT = 27;
/** Longer queries are shortened. This many characters fit into two lines on a phone. */
const LONG = 32;

export function drawBox(scene: Scene) {
  const { texts, shop, text, found } = scene;
  const { phase, problem, meaning, rows } = found;
  const isRefused = problem?.code === "invalid_request";
  const isOpen = phase === "failed" ? !isRefused : phase === "done" && hasUnknown(rows);
  // A client over its rate limit would be refused again until the wait is over.
  const canTryNow = phase === "waiting" && problem?.code !== "rate_limited";
  const choice = (name: string, id: string) =>
    html`<button type="button" dir="auto" id=${id} @click=${() => scene.search(name)}>${name}</button>`;
  const offers = meaning.kind === "name" ? meaning.offers : [];
  return html`<form
    id="search"
    role="search"
    autocomplete="off"
    @submit=${(event: Event) => {
      event.preventDefault();
      scene.search(text);
    }}
  >
    <label class="visually-hidden" for="query">${texts.searchLabel}</label>
    <input
      id="query"
      part="box"
      type="search"
      maxlength="2000"
      placeholder="kabul"
      autocapitalize="none"
      autocorrect="off"
      spellcheck="false"
      enterkeyhint="search"
      dir="auto"
      aria-describedby="search-status"
      aria-invalid=${isRefused}
      .value=${text}
      @input=${({ target }: Event) => {
        if (target instanceof HTMLInputElement) scene.type(target.value);
      }}
      @paste=${(event: ClipboardEvent) => insert(scene, event, event.clipboardData)}
      @beforeinput=${(event: InputEvent) => insert(scene, event, event.dataTransfer, event.data)}
    />
    <button class="button" part="button search">${texts.search}</button>
    <div class="status">
      <p id="search-status" class="message" part="message" data-kind=${isRefused ? "refused" : phase}>
        ${statusText(scene)}
      </p>
      <button
        id="search-again"
        type="button"
        class="button second"
        part="button again"
        ?hidden=${!canTryNow && !isOpen}
        @click=${scene.retry}
      >
        ${phase === "waiting" ? texts.tryNow : texts.tryAgain}
      </button>
    </div>
    <p id="examples" class="chips" ?hidden=${text.trim() !== ""}>
      <span>${texts.examples}</span> ${EXAMPLES.map((name) => choice(name, `example-${name}`))}
    </p>
    <p id="offers" class="chips" ?hidden=${offers.length === 0}>
      <span>${texts.orElse}</span> ${offers.map((name) => choice(name, `offer-${name}`))}
    </p>
    <fieldset class="term">
      <legend>${texts.term}</legend>
      <div id="terms" class="terms">
        ${shop.terms().map(
          (term) =>
            html`<label>
              <input
                type="radio"
                name="term"
                value=${term}
                .checked=${term === scene.term}
                @change=${() => scene.chooseTerm(term)}
              />
              <span>${years(texts, term)}</span>
            </label>`,
        )}
      </div>
    </fieldset>
  </form>`;
}

/** The box has a single line, so the names of a list that is pasted, dropped or inserted by a keyboard are separated by commas. */
function insert({ type }: Scene, event: Event, data: DataTransfer | null, typed?: string | null): void {
  const text = (typed ?? data?.getData("text/plain") ?? "").trim();
  const box = event.target;
  if (!/[\r\n\t]/.test(text) || !(box instanceof HTMLInputElement)) return;
  event.preventDefault();
  const names = text.split(/[\r\n\t]+/).flatMap((name) => name.trim() || []);
  box.setRangeText(names.join(", "), box.selectionStart ?? 0, box.selectionEnd ?? box.value.length, "end");
  type(box.value);
}

export function statusText({ texts, shop, text, found, tlds }: Scene): string {
  const { phase, meaning, problem, rows, untilMs } = found;
  if (shop.isClosed) return texts.notAllowed;
  // A wait for the registry isn't shorter when the connection is back, so it is still counted down.
  const continuesOnline = phase === "searching" || problem?.code === "unreachable";
  if (!navigator.onLine && continuesOnline) return texts.offline;
  if (phase === "idle" && text.trim() === "") return texts.hint;
  if (phase === "idle" || phase === "typing") return typingText(texts, meaning);
  const left = secondsTo(untilMs);
  if (phase === "searching" && left > 0 && left <= SLOW_WITH_LEFT) return texts.slow(seconds(texts, left));
  if (phase === "searching")
    return meaning.kind === "list"
      ? texts.checkedOf(
          count(texts, rows.filter(({ state }) => state !== "looking").length),
          count(texts, rows.length),
        )
      : texts.lookingFor(isolated(shortened(text.trim())));
  if (phase === "waiting") {
    const why = problem === null ? texts.notAll : causeOf(texts, problem);
    return `${why} ${texts.again(seconds(texts, Math.max(1, left)))}`;
  }
  return problem === null ? sumOf(texts, rows) : wordsFor(texts, problem, tlds);
}

function typingText(texts: Scene["texts"], meaning: Meaning): string {
  if (meaning.kind === "none") return texts.typingShort;
  if (meaning.kind === "name") return canBeName(meaning.q) ? texts.typing : texts.typingShort;
  const names = count(texts, meaning.names.length);
  return meaning.leftOut > 0 ? texts.listTooLong(names) : texts.list(names);
}

function sumOf(texts: Scene["texts"], rows: readonly Row[]): string {
  const available = rows.filter((row) => row.state === "known" && row.result.available).length;
  const sum = texts.availableOf(count(texts, available), count(texts, rows.length));
  return hasUnknown(rows) ? `${sum} ${texts.notAll}` : sum;
}

/** Shortened so that a long name doesn't push the results down. */
function shortened(text: string): string {
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text;
}

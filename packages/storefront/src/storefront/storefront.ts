/** The demo storefront: the search element on a page that says in three languages what is sold here, how it works and what it costs. */
import { html, nothing, render } from "lit-html";
import { byId, embedded } from "../element.js";
import { DomainSearch } from "../embed/embed.js";
import { amount, tagOf, textsIn, timeWithDay, years } from "../embed/language.js";
import { shopAt } from "../embed/shop.js";
import { store, stored } from "../embed/storage.js";
import type { PriceList } from "../../../client/src/client.js";
import { PAGE_TEXTS } from "./texts.js";

const ACTIONS = ["registration", "renewal", "transfer", "restore"] as const;

const search = byId("search", DomainSearch);
const main = byId("main", HTMLElement);
const switches = document.querySelectorAll<HTMLAnchorElement>("a[data-language]");
const identity = embedded("shop");
const shop = shopAt("");

const address = new URL(location.href);
const [name, language] = ["q", "lang"].map((parameter) => address.searchParams.get(parameter));
for (const parameter of ["q", "lang"]) address.searchParams.delete(parameter);
if (address.href !== location.href) history.replaceState(null, "", address);
if (name) search.setAttribute("q", name);

let texts = textsIn(language, stored("language"));
if (language) store("language", texts.language);
for (const link of switches)
  link.addEventListener("click", (event) => {
    event.preventDefault();
    texts = textsIn(link.dataset["language"]);
    store("language", texts.language);
    speak();
  });
byId("skip", HTMLAnchorElement).addEventListener("click", (event) => {
  event.preventDefault();
  search.focus();
});
for (const event of ["input", "af-search"])
  search.addEventListener(event, () => main.toggleAttribute("data-searching", search.text.trim() !== ""));
shop.follow(({ kind }) => {
  if (kind === "list") drawPrices();
});
speak();

function speak(): void {
  const { page, runBy } = PAGE_TEXTS[texts.language];
  const { name: names, logo, email, phone, terms, privacy, sells } = identity;
  const own = names?.[texts.language] ?? null;
  search.lang = document.documentElement.lang = tagOf(texts);
  document.documentElement.dir = texts.direction;
  document.title = own === null ? page.title : `${page.title} · ${own}`;
  document.querySelector('meta[name="description"]')?.setAttribute("content", page.lead);
  for (const at of document.querySelectorAll<HTMLElement>("[data-text]"))
    at.textContent = Object.entries(page).find(([key]) => key === at.dataset["text"])?.[1] ?? "";
  byId("languages", HTMLElement).ariaLabel = page.languages;
  for (const link of switches) link.ariaCurrent = link.dataset["language"] === texts.language ? "true" : null;
  byId("brand", HTMLElement).textContent = own ?? page.brand;
  if (logo !== null) byId("logo", HTMLImageElement).src = logo;
  byId("runs", HTMLElement).textContent = own === null ? "" : runBy(own);
  byId("demo", HTMLElement).hidden = sells;
  show("email-link", email && `mailto:${email}`, email);
  show("phone-link", phone && `tel:${phone.replace(/[^+\d]/g, "")}`, phone);
  show("terms-link", terms);
  show("privacy-link", privacy);
  drawPrices();
}

function show(id: string, href: string | null, text: string | null = null): void {
  const anchor = byId(id, HTMLAnchorElement);
  if (href !== null) anchor.href = href;
  if (text !== null) anchor.textContent = text;
  const item = anchor.closest("li");
  if (item !== null) item.hidden = href === null;
}

/** A row for each TLD, with the price of each action for every term. */
function drawPrices(): void {
  const { page, withoutFees, restores } = PAGE_TEXTS[texts.language];
  const { list } = shop;
  if (list.length === 0) return;
  const hasRestore = list.some(({ action }) => action === "restore");
  byId("prices-note", HTMLElement).textContent = [
    withoutFees,
    ...(hasRestore ? [restores(identity.restoreIncludesRenewal)] : []),
  ].join(" ");
  const rows = [...new Set(list.map(({ tld }) => tld))].map((tld) => {
    const cells = ACTIONS.map((action) =>
      list.filter((price) => price.tld === tld && price.action === action),
    );
    return html`<tr>
      <th scope="row"><bdi dir="ltr">${tld}</bdi></th>
      ${cells.map(drawCell)}
    </tr>`;
  });
  render(
    html`<thead>
        <tr>
          <th scope="col">${page.ending}</th>
          ${ACTIONS.map((action) => html`<th scope="col">${page[action]}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows}
      </tbody>`,
    byId("prices-table", HTMLTableElement),
  );
}

function drawCell(prices: PriceList["prices"]) {
  const { regular, until, withoutPrice } = PAGE_TEXTS[texts.language];
  // Either it isn't sold or its price isn't known yet: the list doesn't say which.
  if (prices.length === 0)
    return html`<td class="quiet">
      <span aria-hidden="true">–</span><span class="visually-hidden">${withoutPrice}</span>
    </td>`;
  return html`<td>
    ${[...prices]
      .sort((one, other) => one.years - other.years)
      .map(
        ({ price, years: term, promotion }) =>
          html`<div>
            <span class="amount">${amount(texts, price)}</span> <small>${years(texts, term)}</small>
            ${
              promotion
                ? html`<s
                      ><span class="visually-hidden">${regular}</span>${amount(texts, promotion.regular)}</s
                    >
                    <small>${until(timeWithDay(texts, promotion.until))}</small>`
                : nothing
            }
          </div>`,
      )}
  </td>`;
}

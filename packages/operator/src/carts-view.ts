/** Signed carts and what became of them: what needs a hand first, with the order to copy into the reseller portal, and the sums. */
import { button, byId, element, refill } from "../../storefront/src/element.js";
import { written } from "./amounts.js";
import { count, counted, timeOf } from "./figures.js";
import type { Carts } from "./staff-api.js";
import { numbers, table, words } from "./table.js";

type Cart = Carts["promises"][number];
type Line = Cart["items"][number];

interface Row {
  readonly cart: Cart;
  readonly line: Line;
  /** Why somebody should look at it; null if nobody has to. */
  readonly hand: string | null;
}

const DAY_MS = 86_400_000;
const MAX_SHOWN = 200;
const CHOICES = [
  ["", "all"],
  ["hand", "needs a hand"],
  ["open", "open"],
  ["ordered", "ordered"],
  ["managed", "managed"],
  ["lost", "lost"],
  ["expired", "expired"],
  ["unknown", "unknown"],
  ["cancelled", "cancelled"],
] as const;

/** Returns a function that shows the carts. */
export function cartsView(csv: HTMLElement): (carts: Carts) => void {
  const host = byId("carts", HTMLDivElement);
  const select = element(
    "select",
    { id: "cart-state" },
    ...CHOICES.map(([value, text]) => element("option", { value }, text)),
  );
  const list = element("div");
  const sums = element("div");
  const said = element("span", { class: "quiet", role: "status" });
  const note = element("p", { class: "quiet" });
  const tools = element(
    "p",
    { class: "bar" },
    element("label", { for: "cart-state" }, "Show signed lines"),
    select,
    csv,
    said,
  );
  const card = element("div", { class: "card panel" }, tools, list, note, sums);
  let shown: Carts | null = null;

  async function copy(order: string): Promise<void> {
    try {
      await navigator.clipboard.writeText(order);
      said.textContent = `Copied: ${order}`;
    } catch {
      said.textContent = `Copying isn't allowed here. The order is: ${order}`;
    }
  }

  function cellsOf({ cart: { id, issuedAt, checkout }, line, hand }: Row): (Node | string)[] {
    const { domain, action, years, price, wholesale, wholesaleToday, state, stateAt } = line;
    const order = `${action} ${domain} ${years}`;
    const isDearer = wholesaleToday !== null && wholesaleToday.amount !== wholesale.amount;
    const word =
      checkout !== null && state !== "managed" && state !== "lost" ? `${state}, ${checkout.state}` : state;
    return [
      domain,
      `${action}, ${counted(years, "year")}`,
      timeOf(issuedAt),
      written(price),
      isDearer ? `${written(wholesale)}, now ${written(wholesaleToday)}` : written(wholesale),
      element(
        "span",
        { class: "notes" },
        element(
          "span",
          { class: `state ${hand === null ? (state === "managed" ? "good" : "") : "bad"}` },
          word,
        ),
        element("span", { class: "quiet" }, hand ?? `since ${timeOf(stateAt)}`),
      ),
      button(
        { class: "button second small", id: `copy-${id}-${order}`, "aria-label": `Copy the order: ${order}` },
        () => void copy(order),
        "Copy",
      ),
    ];
  }

  function draw(): void {
    if (shown === null) return;
    const nowMs = Date.now();
    const all = shown.promises.flatMap((cart) =>
      cart.items.map((line): Row => ({ cart, line, hand: handOf(cart, line, nowMs) })),
    );
    const chosen = all.filter(
      ({ cart, line, hand }) =>
        select.value === "" ||
        (select.value === "hand"
          ? hand !== null
          : [line.state, cart.checkout?.state].some((one) => one === select.value)),
    );
    const sorted = [...chosen].sort((a, b) => Number(b.hand !== null) - Number(a.hand !== null));
    refill(
      list,
      sorted.length === 0
        ? element("p", { class: "quiet" }, "None.")
        : table(
            "Signed lines",
            [
              ...words("Name", "Order", "Signed"),
              ...numbers("Price", "Cost"),
              ...words("State", "For the portal"),
            ],
            sorted.slice(0, MAX_SHOWN).map(cellsOf),
          ),
    );
    note.textContent =
      sorted.length > MAX_SHOWN ? `${count(sorted.length - MAX_SHOWN)} more are in the file.` : "";
    refill(sums, sumsTable(shown.sums));
  }
  select.addEventListener("change", draw);

  return (carts) => {
    shown = carts;
    if (!host.contains(card)) host.replaceChildren(card);
    draw();
  };
}

function handOf({ checkout }: Cart, { state, marginLost }: Line, nowMs: number): string | null {
  if (state === "managed" || checkout?.state === "cancelled") return null;
  if (state === "lost") return "somebody else has the name";
  if (checkout !== null && Date.parse(checkout.at) < nowMs - DAY_MS)
    return "ordered a day ago, but not managed";
  return marginLost === null ? null : `margin gone: ${written(marginLost)} below the minimum`;
}

function sumsTable({ days7, days30 }: Carts["sums"]): HTMLElement {
  const cell = ({ names, amounts }: Carts["sums"]["days7"]["signed"]): string =>
    [counted(names, "name"), ...amounts.map(written)].join(", ");
  return table(
    "Sums of signed carts",
    [{ title: "Last" }, ...words("Signed", "Ordered", "Managed")],
    [
      ["7 days", cell(days7.signed), cell(days7.ordered), cell(days7.managed)],
      ["30 days", cell(days30.signed), cell(days30.ordered), cell(days30.managed)],
    ],
  );
}

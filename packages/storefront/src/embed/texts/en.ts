/** English, which decides what texts there are: every language has the same keys. Numbers are passed in as digits of the language. */
import type { Base } from "./texts.js";

const base: Base = {
  language: "en",
  direction: "ltr",
  locale: "en",
  problems: {
    rate_limited: ["Your network has sent too many requests.", "Please wait a moment."],
    quota_exhausted: ["The shop is busy right now.", "Try again in a minute."],
    shutting_down: ["The service is restarting.", "Try again in a moment."],
    unavailable: ["The service can't be reached in full at the moment.", "Try again in a few seconds."],
    upstream_failed: ["The registry is not answering properly.", "Try again in a few minutes."],
    upstream_contract: ["The registry is not answering properly.", "Try again in a few minutes."],
    upstream_timeout: ["The registry is very slow right now.", "Try again in a minute."],
    unreachable: ["The connection was lost.", "Check your connection and try again."],
    internal: ["Something went wrong on our side.", "Try again in a minute."],
    other: ["Something went wrong.", "Reload the page and try again."],
  },
  inMinutes: "Try again in a few minutes.",
  reasons: {
    required: "Type a name first.",
    too_long: "This name is too long. Each part can have up to 63 characters.",
    not_a_name: (endings) =>
      `This is not one whole name. Check its dots, its hyphens and its ending.${endings && ` Our endings are ${endings}.`}`,
    character: "A name can have only letters, digits and hyphens. Leave out everything else.",
    script:
      "Write the whole name in Latin letters, or the whole name in the letters of Dari and Pashto. Such a name cannot start with a digit.",
    not_sold: (endings) =>
      `We do not sell names with this ending.${endings && ` Our endings are ${endings}.`}`,
    term: "This name cannot be registered for this term. Choose another term.",
    other: "This name was not accepted. Check how it is written.",
  },
};

export const en = {
  ...base,
  // Labels
  searchLabel: "The name you want",
  search: "Search",
  examples: "For example",
  hint: "A word, a whole name, or a list of names.",
  term: "Register for",
  results: "Names",
  hideTaken: "Hide taken names",
  ideas: "Similar names that are available",
  tryNow: "Try now",
  tryAgain: "Try again",
  add: "Add to cart",
  cart: "Cart",
  cartEmpty: "Your cart is empty. Add a name that is available.",
  confirm: "Confirm the price",
  confirmAgain: "Confirm again",
  checkout: "Go to checkout",
  undo: "Undo",

  // The search
  typing: "Press Enter to search.",
  typingShort: "Type at least three letters, or press Enter.",
  lookingFor: (query: string) => `Searching for ${query}…`,
  list: (names: string) => `A list of ${names} names. Press Enter to check them.`,
  listTooLong: (names: string) => `Only the first ${names} names will be checked. Press Enter to start.`,
  checkedOf: (checked: string, all: string) => `${checked} of ${all} names checked…`,
  availableOf: (available: string, all: string) =>
    `${available} of ${all} ${available === "1" ? "is" : "are"} available.`,
  notAll: "Some names could not be checked yet.",
  again: (duration: string) => `We will try again in ${duration}.`,
  slow: (duration: string) =>
    `This is taking longer than usual. We will keep asking the registry for up to ${duration}.`,
  orElse: "Or search for",

  // A result
  looking: "Checking…",
  available: "Available",
  taken: "Taken",
  unknown: "Not checked yet",
  premium: "Premium",
  asOf: (time: string) => `as of ${time}`,
  noPrice: "No price right now. Try again later.",
  aYear: (amount: string) => `${amount} a year`,
  renewsAt: (price: string) => `Renews at ${price}`,
  renewalUnknown: "Renewal price on request",
  spoken: (name: string, status: string, price: string) => `${name}: ${status}${price && `, ${price}`}.`,
  inCart: "In your cart",
  cartFull: "Cart is full",

  // The cart
  cartFullWhy: (most: string) => `Your cart holds ${most} names and is full. Remove one to add another.`,
  added: (name: string) => `${name} is in your cart.`,
  removed: (name: string) => `${name} was removed.`,
  removeNamed: (name: string) => `Remove ${name}`,
  termOf: (name: string) => `Term of ${name}`,
  total: (amount: string) => `Total: ${amount}`,
  notAsked: "Confirm the price to hold it for you.",
  checking: "Checking with the registry…",
  partly: (priced: string, all: string) =>
    `${priced} of ${all} names can be ordered. See what to do about the others.`,
  priceChanged: "A price has changed since you last saw it.",
  nonePriced: "None of these names can be ordered right now.",
  notHeld: (time: string) => `The price was checked at ${time}, and is not held.`,
  heldUntil: (time: string) => `Price held for you until ${time}`,
  left: (clock: string) => `${clock}\u00A0left`,
  runOut: "This price has expired. Confirm it again.",
  justTaken: "This name has been registered in the meantime. Remove it.",
  priceLater: "Price shown when you confirm",
  notOffered: "not offered",

  years: (digits: string, count: number) => `${digits} ${count === 1 ? "year" : "years"}`,
  seconds: (digits: string, count: number) => `${digits} ${count === 1 ? "second" : "seconds"}`,
  notAllowed: "This search has not been set up for this website yet.",
  offline: "You are offline. We will continue as soon as the connection is back.",
};

export type Texts = Readonly<typeof en>;

/**
 * The operator page: staff sign in with a token, which is kept only in memory, and watch quota, upstream, account, domains and prices.
 * Polling pauses while the page is hidden, and ends when the token is no longer accepted.
 */
import { byId } from "../../storefront/src/element.js";
import { type Account, showBalance, showTier } from "./account-view.js";
import { showAlarms } from "./alarms.js";
import { showAudit } from "./audit-view.js";
import { cartsView } from "./carts-view.js";
import { domainsView } from "./domains-view.js";
import { csvButton } from "./download.js";
import { noticeBoard } from "./notices.js";
import { overviewView } from "./overview-view.js";
import { poll } from "./poll.js";
import { previewView } from "./preview-view.js";
import { pricesView } from "./prices-view.js";
import { purgeView } from "./purge-view.js";
import { savingsView } from "./savings-view.js";
import {
  type Domains,
  type Overview,
  type Prices,
  staffApi,
  type StaffApi,
  staffProblem,
} from "./staff-api.js";

const OVERVIEW_MS = 5_000;
const PRICES_MS = 30_000;
const CARTS_MS = 30_000;
const AUDIT_MS = 10_000;
/** The service refreshes account data this often, so polling more often would show nothing new. */
const ACCOUNT_MS = 300_000;

/** After this time the service has begun to refresh what was purged. */
const AFTER_PURGE_MS = 1_500;
/** Limits retries while the registry is failing. */
const ACCOUNT_RETRY_MS = 30_000;

/** The parts of the page that are filled after signing in, and emptied after signing out. */
const FILLED = [
  "updated",
  "notices",
  "carts",
  "domains",
  "spans",
  "charts",
  "credentials",
  "figures",
  "tier",
  "savings",
  "balance",
  "purged",
  "prices",
  "preview-result",
  "audit",
] as const;

const form = byId("sign-in", HTMLFormElement);
const field = byId("token", HTMLInputElement);
const problem = byId("sign-in-problem", HTMLParagraphElement);
const dashboard = byId("dashboard", HTMLDivElement);
const signOut = byId("sign-out", HTMLButtonElement);

function askForToken(words: string): void {
  dashboard.hidden = true;
  signOut.hidden = true;
  form.hidden = false;
  problem.textContent = words;
  field.value = "";
  field.focus();
}

/** Runs until the token is refused or the user signs out. */
function run(api: StaffApi, first: Overview): void {
  form.hidden = true;
  dashboard.hidden = false;
  signOut.hidden = false;
  // The focused field has just been hidden. The page stays at its top, where the alarms are.
  dashboard.focus({ preventScroll: true });
  scrollTo(0, 0);
  const end = new AbortController();
  const notices = noticeBoard();
  const overview = overviewView(() => api.history(end.signal));
  const showCarts = cartsView(csvButton(api, "promises", end.signal));
  const showDomains = domainsView(csvButton(api, "domains", end.signal));
  const showPrices = pricesView(csvButton(api, "prices", end.signal));
  const showSavings = savingsView();
  const auditCsv = csvButton(api, "audit", end.signal);
  previewView(api, end.signal);
  let latest = first;
  let account: Account | null = null;
  let domains: Domains | null = null;
  let prices: Prices | null = null;

  function show(): void {
    if (account !== null) {
      showTier(account);
      showBalance(account, prices);
      if (domains !== null && prices !== null) showSavings(account.tier, domains, prices);
    }
    if (domains !== null) showDomains(domains);
  }

  /** Keeps a part of the page current, and shows a notice while it isn't. */
  function watch<T>(
    part: string,
    everyMs: number,
    ask: (signal: AbortSignal) => Promise<T>,
    use: (value: T) => void,
    retryMs = everyMs,
  ) {
    return poll({
      everyMs,
      ask,
      show: (value: T) => {
        notices.clear(part);
        use(value);
      },
      fail: (error) => {
        const { status, message, retryAfter, isServiceDown } = staffProblem(error);
        if (status === 401 || status === 403) {
          close(status === 401 ? `${message} Sign in again.` : message);
          return null;
        }
        // Otherwise the notice would stay long after the service is back.
        const waitMs = Math.max(isServiceDown ? OVERVIEW_MS : retryMs, (retryAfter ?? 0) * 1000);
        notices.set(part, message, waitMs);
        return waitMs;
      },
    });
  }

  const standing = async (signal: AbortSignal): Promise<Account> => ({
    tier: await api.tier(signal),
    balance: await api.balance(signal),
  });
  const polls = [
    watch("overview", OVERVIEW_MS, api.overview, (value) => {
      latest = value;
      overview.show(value);
    }),
    watch("carts", CARTS_MS, api.carts, showCarts),
    watch("audit", AUDIT_MS, api.audit, (value) => showAudit(value, auditCsv)),
    watch("prices", PRICES_MS, api.prices, (value) => {
      prices = value;
      showPrices(value);
      show();
    }),
    watch(
      "account",
      ACCOUNT_MS,
      standing,
      (value) => {
        account = value;
        show();
      },
      ACCOUNT_RETRY_MS,
    ),
    watch(
      "domains",
      ACCOUNT_MS,
      api.domains,
      (value) => {
        domains = value;
        show();
      },
      ACCOUNT_RETRY_MS,
    ),
  ];

  const askAgain = (): void => {
    for (const one of polls) one.now();
  };
  purgeView(
    api,
    () => latest,
    () => setTimeout(askAgain, AFTER_PURGE_MS),
    end.signal,
  );

  function close(words: string): void {
    end.abort();
    for (const one of polls) one.stop();
    notices.clear();
    showAlarms([]);
    overview.remove();
    for (const id of FILLED) byId(id, HTMLElement).replaceChildren();
    askForToken(words);
  }
  signOut.addEventListener(
    "click",
    () => {
      close("");
      // Only here: a token that is refused in the middle of the work must not cost a price file that was being edited.
      byId("preview", HTMLFormElement).reset();
    },
    { signal: end.signal },
  );
}

let isSigningIn = false;

form.addEventListener("submit", (event) => {
  event.preventDefault();
  // fetch rejects a malformed Authorization header with a message for programmers.
  const token = field.value.trim();
  if (!/^[\x21-\x7e]{1,512}$/.test(token)) {
    askForToken("This isn't a token: it contains spaces or other characters that a token can't have.");
    return;
  }
  if (!isSigningIn) void signIn(staffApi(token));
});

async function signIn(api: StaffApi): Promise<void> {
  problem.textContent = "";
  isSigningIn = true;
  let first: Overview;
  try {
    first = await api.overview(AbortSignal.timeout(15_000));
  } catch (error) {
    const { status, message, retryAfter } = staffProblem(error, "The service doesn't answer.");
    const again = retryAfter === null || status === 0 ? "" : ` Try again in ${retryAfter} s.`;
    askForToken(
      status === 403 ? "This token can't read: it doesn't have the read scope." : `${message}${again}`,
    );
    return;
  } finally {
    isSigningIn = false;
  }
  field.value = "";
  run(api, first);
}

askForToken("");

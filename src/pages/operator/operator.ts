/**
 * The operator page: staff sign in with a token, which is kept only in memory, and watch quota, upstream, account, domains and prices.
 * Polling pauses while the page is hidden, and ends when the token is no longer accepted.
 */
import { Countdown } from "../countdown.js";
import { byId } from "../element.js";
import { type Account, showBalance, showTier } from "./account-view.js";
import { alarmList } from "./alarms.js";
import { auditView } from "./audit-view.js";
import { domainsView } from "./domains-view.js";
import { csvButton } from "./download.js";
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
  StaffProblem,
} from "./staff-api.js";

const OVERVIEW_MS = 5_000;
const PRICES_MS = 30_000;
const AUDIT_MS = 10_000;
/** The service refreshes account data this often, so polling more often would show nothing new. */
const ACCOUNT_MS = 300_000;

/** After this time the service has begun to refresh what was purged. */
const AFTER_PURGE_MS = 1_500;
/** Limits retries while the registry is failing. */
const ACCOUNT_RETRY_MS = 30_000;

const form = byId("sign-in", HTMLFormElement);
const field = byId("token", HTMLInputElement);
const problem = byId("sign-in-problem", HTMLParagraphElement);
const dashboard = byId("dashboard", HTMLDivElement);
const signOut = byId("sign-out", HTMLButtonElement);

/** Shows why the page isn't up to date, each reason once, and counts down to the next try. */
function noticeBoard(signal: AbortSignal) {
  const notice = byId("notice", HTMLParagraphElement);
  const words = byId("notice-words", HTMLSpanElement);
  const left = byId("notice-left", HTMLSpanElement);
  const reasons = new Map<string, string>();
  const countdown = new Countdown(signal);

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

const alarms = alarmList();

function askForToken(words: string): void {
  dashboard.hidden = true;
  signOut.hidden = true;
  form.hidden = false;
  problem.textContent = words;
  field.value = "";
  field.focus();
}

/** Runs until the token is refused or the user signs out. */
function run(api: StaffApi): void {
  form.hidden = true;
  dashboard.hidden = false;
  signOut.hidden = false;
  // The focused field has just been hidden. The page stays at its top, where the alarms are.
  dashboard.focus({ preventScroll: true });
  scrollTo(0, 0);
  const end = new AbortController();
  const notices = noticeBoard(end.signal);
  const overview = overviewView(alarms);
  const domainList = domainsView(alarms, csvButton(api, "domains", end.signal));
  const priceTable = pricesView(alarms, csvButton(api, "prices", end.signal));
  const savings = savingsView();
  const audit = auditView(csvButton(api, "audit", end.signal));
  const preview = previewView(api, end.signal);
  let latest: Overview | null = null;
  let account: Account | null = null;
  let domains: Domains | null = null;
  let prices: Prices | null = null;

  function show(): void {
    if (account !== null) {
      showTier(account);
      showBalance(account, prices);
      if (domains !== null && prices !== null) savings.show(account.tier, domains, prices);
    }
    if (domains !== null) domainList.show(domains, account?.balance.activeDomains ?? null);
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
        const known = error instanceof StaffProblem ? error : new StaffProblem("Something went wrong.", 0);
        if (known.status === 401 || known.status === 403) {
          close(known.status === 401 ? `${known.message} Sign in again.` : known.message);
          return null;
        }
        const waitMs = Math.max(retryMs, (known.retryAfter ?? 0) * 1000);
        notices.set(part, known.message, waitMs);
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
    watch("audit", AUDIT_MS, api.audit, audit.show),
    watch("prices", PRICES_MS, api.prices, (value) => {
      prices = value;
      priceTable.show(value);
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

  // If the history can't be loaded, the charts begin now.
  api.history(end.signal).then(
    (history) => {
      overview.past(history);
    },
    () => undefined,
  );
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
    alarms.clear();
    overview.remove();
    domainList.remove();
    priceTable.remove();
    savings.remove();
    audit.remove();
    preview.remove();
    for (const id of ["tier", "balance"]) byId(id, HTMLDivElement).replaceChildren();
    byId("purged", HTMLParagraphElement).textContent = "";
    askForToken(words);
  }
  signOut.addEventListener(
    "click",
    () => {
      close("");
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
  try {
    await api.overview(AbortSignal.timeout(15_000));
  } catch (error) {
    const known = error instanceof StaffProblem ? error : new StaffProblem("The service doesn't answer.", 0);
    const again =
      known.retryAfter === null || known.status === 0 ? "" : ` Try again in ${known.retryAfter} s.`;
    askForToken(
      known.status === 403
        ? "This token can't read: it doesn't have the read scope."
        : `${known.message}${again}`,
    );
    return;
  } finally {
    isSigningIn = false;
  }
  field.value = "";
  run(api);
}

askForToken("");

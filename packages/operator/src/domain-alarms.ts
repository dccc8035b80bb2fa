/** Derives alarms from the list of domains: expired, soon to lapse, or perhaps not complete. */
import type { Alarm } from "./alarm.js";
import { type Expiring, expiring, whenOf } from "./expiry.js";
import { count, counted } from "./figures.js";
import type { DomainRecord, Domains } from "./staff-api.js";

/** The registry lists at most this many (section 4 of its document). */
const LIST_CAP = 100;
/** A domain without auto-renewal raises an alarm this many days before it expires. */
const SOON_DAYS = 7;
const MAX_NAMED = 5;

const names = new Intl.ListFormat("en");

/** `active` is the number of domains in the account, or null if unknown. */
export function domainAlarms({ domains, truncated }: Domains, active: number | null): Alarm[] {
  const dated = expiring(domains, Date.now());
  const past = dated.filter(({ inDays }) => inDays < 0);
  const lapsing = dated.filter(
    ({ inDays, record }) => inDays >= 0 && inDays <= SOON_DAYS && record.autoRenew === false,
  );
  const alarms: Alarm[] = [];
  if (past.length > 0)
    alarms.push({
      level: "bad",
      text: `${past.length === 1 ? "A domain has" : `${counted(past.length, "domain")} have`} expired: ${named(past)}.`,
      todo: "Renew it in the reseller portal, or restore it at the price in the list below, before somebody else registers it.",
    });
  if (lapsing.length > 0)
    alarms.push({
      level: "warn",
      text: `${lapsing.length === 1 ? "A domain expires" : `${counted(lapsing.length, "domain")} expire`} within ${SOON_DAYS} days without auto-renewal: ${named(lapsing)}.`,
      todo: "Ask the customer, or switch on auto-renew in the reseller portal.",
    });
  const todo = "Check the reseller portal for when the others expire.";
  const listed = counted(domains.length, "domain");
  if (truncated === true) {
    const all =
      active === null || active <= domains.length
        ? "the account has more"
        : `the account has ${count(active)}`;
    alarms.push({ level: "bad", text: `The registry lists only ${listed}, but ${all}.`, todo });
  } else if (domains.length >= LIST_CAP)
    alarms.push({
      level: "warn",
      text: `The registry's list is full (${listed}). Further domains and their expiry won't be shown here.`,
      todo,
    });
  return alarms;
}

function named(list: readonly Expiring<DomainRecord>[]): string {
  const named = list.slice(0, MAX_NAMED).map((one) => `${one.record.domain} (${whenOf(one)})`);
  const rest = list.length - named.length;
  return names.format(rest === 0 ? named : [...named, `${count(rest)} more`]);
}

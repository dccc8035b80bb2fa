/** What the demo storefront says around the search, in each language. */
import { isolated, latin } from "../embed/texts/isolates.js";
import type { Language } from "../embed/texts/texts.js";

const AF = latin(".af");

const en = {
  /** Texts of the page, by their `data-text` or `data-label`. */
  page: {
    title: "Find a name under .af",
    brand: ".af names",
    skip: "Skip to the search",
    languages: "Language",
    heading: "Find your name under .af",
    lead: "Web addresses for Afghanistan: see at once whether a name is available, what it costs, and what it costs to renew.",
    prices: "Prices",
    ending: "Ending",
    registration: "Register",
    renewal: "Renew",
    transfer: "Transfer",
    restore: "Restore",
    about: "How it works",
    findHeading: "1. Find",
    find: "Type a word. You see at once which names are available, for how much, and what they cost to renew.",
    holdHeading: "2. Hold the price",
    hold: "Put names in your cart and confirm. We check them with the registry and hold the price for you for a few minutes. A name is yours only once you have ordered it.",
    orderHeading: "3. Order",
    order:
      "At the checkout you pay exactly that price. Then the name is registered for you, for the years that you chose.",
    renewHeading: "4. Keep it",
    renew:
      "The name stays yours for as long as you renew it. The renewal price is shown next to the name if it is known.",
    terms: "Terms",
    privacy: "Privacy",
    demo: "This is a demonstration. You cannot order anything here.",
    docs: "API documentation",
  },
  runBy: (name: string) => `This shop is run by ${name}.`,
  withoutFees: "Without extra fees for registering, renewing or transferring.",
  restores: (includesRenewal: boolean | null): string =>
    includesRenewal === null
      ? "Ask us whether restoring a name includes its renewal."
      : includesRenewal
        ? "Restoring a name includes its renewal."
        : "Restoring a name does not include its renewal.",
  regular: "Regular price: ",
  until: (date: string) => `until ${date}`,
  withoutPrice: "no price",
};

export type PageTexts = typeof en;

export const PAGE_TEXTS: Readonly<Record<Language, PageTexts>> = {
  en,
  fa: {
    page: {
      title: `نامی زیر ${AF} بیابید`,
      brand: `نام‌های ${AF}`,
      skip: "رفتن به جستجو",
      languages: "زبان",
      heading: `نام خود را زیر ${AF} بیابید`,
      lead: "آدرس‌های ویب برای افغانستان: فوراً ببینید که نامی قابل ثبت است یا نه، قیمتش چند است و تمدیدش چند.",
      prices: "قیمت‌ها",
      ending: "پسوند",
      registration: "ثبت",
      renewal: "تمدید",
      transfer: "انتقال",
      restore: "بازیابی",
      about: "چگونه کار می‌کند",
      findHeading: "۱. بیابید",
      find: "یک کلمه بنویسید. فوراً می‌بینید کدام نام‌ها قابل ثبت است، به چه قیمت، و تمدیدش چند است.",
      holdHeading: "۲. قیمت را محفوظ کنید",
      hold: "نام‌ها را در سبد بگذارید و تأیید کنید. آن‌ها را با دفتر ثبت بررسی می‌کنیم و قیمت را چند دقیقه برای شما محفوظ نگه می‌داریم. نام تنها بعد از فرمایش از شما می‌شود.",
      orderHeading: "۳. فرمایش دهید",
      order:
        "هنگام پرداخت، دقیقاً همان قیمت را می‌پردازید. بعد نام برای سال‌هایی که انتخاب کرده‌اید به نام شما ثبت می‌شود.",
      renewHeading: "۴. نگه دارید",
      renew:
        "تا زمانی که تمدیدش می‌کنید، نام از شما می‌ماند. قیمت تمدید، اگر معلوم باشد، در کنار نام نوشته شده است.",
      terms: "شرایط",
      privacy: "حریم خصوصی",
      demo: "این صفحه نمایشی است. اینجا چیزی فرمایش داده نمی‌شود.",
      docs: "اسناد رابط برنامه‌نویسی",
    },
    runBy: (name) => `این فروشگاه از ${isolated(name)} است.`,
    withoutFees: "ثبت، تمدید و انتقال هزینهٔ اضافی ندارد.",
    restores: (includesRenewal) =>
      includesRenewal === null
        ? "از ما بپرسید که بازیابی نام، تمدید آن را دربر دارد یا نه."
        : includesRenewal
          ? "بازیابی نام، تمدید آن را دربر دارد."
          : "بازیابی نام، تمدید آن را دربر ندارد.",
    regular: "قیمت عادی: ",
    until: (date) => `تا ${date}`,
    withoutPrice: "بدون قیمت",
  },
  ps: {
    page: {
      title: `تر ${AF} لاندې نوم ومومئ`,
      brand: `د ${AF} نومونه`,
      skip: "لټون ته ورشئ",
      languages: "ژبه",
      heading: `تر ${AF} لاندې خپل نوم ومومئ`,
      lead: "د افغانستان لپاره وېب پتې: سمدستي ووینئ چې نوم د ثبت وړ دی که نه، بیه یې څو ده او تمدید یې په څو دی.",
      prices: "بیې",
      ending: "وروستاړی",
      registration: "ثبت",
      renewal: "تمدید",
      transfer: "لېږد",
      restore: "راګرځول",
      about: "څنګه کار کوي",
      findHeading: "۱. ومومئ",
      find: "یوه کلمه ولیکئ. سمدستي وینئ چې کوم نومونه د ثبت وړ دي، په څو دي، او تمدید یې په څو دی.",
      holdHeading: "۲. بیه خوندي کړئ",
      hold: "نومونه په ټوکرۍ کې کېږدئ او تایید یې کړئ. د ثبت له دفتره یې پوښتو او بیه څو دقیقې ستاسو لپاره خوندي ساتو. نوم یوازې له فرمایش وروسته ستاسو کېږي.",
      orderHeading: "۳. فرمایش ورکړئ",
      order:
        "د تادیې پر مهال کټ مټ همدا بیه ورکوئ. بیا نوم د هغو کلونو لپاره چې تاسو ټاکلي دي، ستاسو په نوم ثبتېږي.",
      renewHeading: "۴. ویې ساتئ",
      renew:
        "تر هغه چې یې تمدیدوئ، نوم ستاسو پاتې کېږي. د تمدید بیه، که معلومه وي، د نوم تر څنګ لیکل شوې ده.",
      terms: "شرایط",
      privacy: "محرمیت",
      demo: "دا یوه نمایشي پاڼه ده. دلته فرمایش نه شئ ورکولای.",
      docs: "د پروګرام لیکنې د رابط اسناد",
    },
    runBy: (name) => `دا پلورنځی «${isolated(name)}» چلوي.`,
    withoutFees: "ثبت، تمدید او لېږد اضافي لګښت نه لري.",
    restores: (includesRenewal) =>
      includesRenewal === null
        ? "له موږ وپوښتئ چې د نوم په راګرځولو کې یې تمدید شامل دی که نه."
        : includesRenewal
          ? "د نوم په راګرځولو کې یې تمدید شامل دی."
          : "د نوم په راګرځولو کې یې تمدید شامل نه دی.",
    regular: "عادي بیه: ",
    until: (date) => `تر ${date} پورې`,
    withoutPrice: "بې بیې",
  },
};

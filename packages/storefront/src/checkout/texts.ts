/** The texts of the demo checkout in each language. */
import type { Language } from "../embed/texts/texts.js";

const en = {
  heading: "Checkout",
  good: "These are your names and prices, as the shop has signed them.",
  name: "Name",
  term: "Term",
  price: "Price",
  total: (amount: string) => `Total: ${amount}`,
  heldUntil: (time: string, left: string) => `These prices hold until ${time} (${left}).`,
  /** By the result of the check. */
  notices: {
    good: "This is a demonstration. Nothing is ordered and nothing is paid. A real checkout would ask for your details now.",
    expired: "These prices are no longer held. Go back and confirm them again.",
    altered:
      "This cart was not signed by the shop, or was changed on the way. Go back and confirm the prices again.",
    nothing: "No cart has arrived here. Go back to the shop and choose a name.",
  },
  back: "Back to the shop",
};

export const CHECKOUT_TEXTS: Readonly<Record<Language, typeof en>> = {
  en,
  fa: {
    heading: "پرداخت",
    good: "این‌ها نام‌ها و قیمت‌های شما است، چنان که فروشگاه امضا کرده است.",
    name: "نام",
    term: "مدت",
    price: "قیمت",
    total: (amount) => `مجموع: ${amount}`,
    heldUntil: (time, left) => `این قیمت‌ها تا ${time} محفوظ است (${left}).`,
    notices: {
      good: "این صفحه نمایشی است. نه چیزی فرمایش داده می‌شود و نه پولی پرداخته می‌شود. صفحهٔ پرداخت واقعی حالا مشخصات شما را می‌پرسید.",
      expired: "مهلت این قیمت‌ها تمام شد. برگردید و دوباره تأییدشان کنید.",
      altered:
        "این سبد را فروشگاه امضا نکرده، یا در راه تغییر کرده است. برگردید و قیمت‌ها را دوباره تأیید کنید.",
      nothing: "سبدی به اینجا نرسیده است. به فروشگاه برگردید و نامی انتخاب کنید.",
    },
    back: "برگشت به فروشگاه",
  },
  ps: {
    heading: "تادیه",
    good: "دا ستاسو نومونه او بیې دي، لکه څنګه چې پلورنځي لاسلیک کړې دي.",
    name: "نوم",
    term: "موده",
    price: "بیه",
    total: (amount) => `ټولټال: ${amount}`,
    heldUntil: (time, left) => `دا بیې تر ${time} پورې خوندي دي (${left}).`,
    notices: {
      good: "دا یوه نمایشي پاڼه ده. نه څه فرمایش کېږي او نه څه تادیه کېږي. د تادیې رښتینې پاڼه به اوس ستاسو معلومات وغواړي.",
      expired: "د دې بیو موده پای ته ورسېده. بېرته لاړ شئ او بیا یې تایید کړئ.",
      altered:
        "دا ټوکرۍ پلورنځي نه ده لاسلیک کړې، یا په لاره کې بدله شوې ده. بېرته لاړ شئ او بیې بیا تایید کړئ.",
      nothing: "دلته هېڅ ټوکرۍ نه ده رارسېدلې. پلورنځي ته ستانه شئ او یو نوم وټاکئ.",
    },
    back: "پلورنځي ته ستنېدل",
  },
};
